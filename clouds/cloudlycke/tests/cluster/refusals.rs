//! What the service refuses of a spec blocks that part of it, and nothing else (law 8).

use std::{
    sync::{Arc, Mutex},
    time::Duration,
};

use cloudberth_core::{
    Call, Clock, Error, Instance, Lookup, Provider, ProviderId, Result, ServiceView,
    call::Unguarded,
    instance::InstanceListing,
    lb::{
        Claims, Creation, Desired, Effects, Fleet, Goal, IntentMark, Permit, Publish, SharedInstances,
        StepReport, Turn, TurnEnd,
    },
    net::IpFamily,
    provider::Boxed,
    view::{IpFamilyPolicy, ServicePort, ServiceType},
};
use serde_json::json;
use testing_kit::checks::{CloudFixture, CloudUnderTest as _};

use crate::{seeded::ports, under_test::Lycke};

const WEB: &str = "c2/default/web";
const MODE: &str = "service.beta.kubernetes.io/cloudlycke-load-balancer-address-mode";

/// The service was started with another pool since the address was given: the wish cannot be repeated.
#[tokio::test(start_paused = true)]
async fn an_address_that_was_given_and_is_refused_now_holds_nothing_up() {
    let fixture: CloudFixture<Lycke> = CloudFixture::with_nodes(2).await;
    fixture.pass(10).await;
    fixture.create("web", json!({"spec": {"loadBalancerIP": "127.77.0.9"}})).await;
    fixture.pass(30).await;
    fixture.cloud.refuse_address("127.77.0.9");
    fixture.edit("web", ports(&[80, 443])).await;
    fixture.pass(60).await;
    let listeners = fixture.cloud.balancer(WEB).unwrap().balancer.spec.listeners.len();
    assert_eq!(listeners, 2, "L8-1812 {:?}", fixture.warnings("web"));
    assert_eq!(fixture.ingress("web").await, ["127.77.0.9"], "L8-1812 what it has it keeps");
    let warnings = fixture.warnings("web");
    assert!(warnings.iter().any(|text| text.contains("spec.loadBalancerIP")), "L8-1812 {warnings:?}");
}

/// Nothing passes for a good annotation that the service refuses afterwards.
#[tokio::test(start_paused = true)]
async fn the_service_takes_the_highest_value_of_every_annotation() {
    let fixture: CloudFixture<Lycke> = CloudFixture::with_nodes(2).await;
    fixture.pass(10).await;
    let highest = [
        ("idle-timeout", "86400"),
        ("healthcheck-protocol", "http"),
        ("healthcheck-port", "65535"),
        ("healthcheck-interval", "86400"),
        ("healthcheck-timeout", "86400"),
        ("healthcheck-healthy-threshold", "1000"),
        ("healthcheck-unhealthy-threshold", "1000"),
    ];
    let annotations: std::collections::BTreeMap<_, _> = highest
        .map(|(name, value)| (format!("service.beta.kubernetes.io/cloudlycke-load-balancer-{name}"), value))
        .into();
    fixture.create("web", json!({"metadata": {"annotations": annotations}})).await;
    fixture.pass(30).await;
    assert_eq!(fixture.warnings("web"), [""; 0], "CL-49");
    assert!(fixture.cloud.balancer(WEB).is_some(), "CL-49 it is made");
}

/// Nobody is behind the load balancers here, so nobody is asked for.
struct NoFleet;

impl Fleet for NoFleet {
    fn listing(&self) -> Boxed<'_, SharedInstances> {
        struct Never(Result<InstanceListing>);
        impl AsRef<Result<InstanceListing>> for Never {
            fn as_ref(&self) -> &Result<InstanceListing> {
                &self.0
            }
        }
        let never: SharedInstances = Arc::new(Never(Err(Error::temporary("nobody lists"))));
        Box::pin(std::future::ready(never))
    }

    fn ask<'a>(&'a self, _: &'a Call, _: &'a ProviderId) -> Boxed<'a, Lookup<Instance>> {
        Box::pin(std::future::ready(Lookup::Unknown(Error::temporary("nobody answers"))))
    }
}

/// What a turn did: each step, and whether it was refused.
#[derive(Default)]
struct Noted(Mutex<Vec<(String, bool)>>);

impl Effects for Noted {
    fn record<'a>(&'a self, _: &'a Publish, _: IntentMark) -> Boxed<'a, Result<()>> {
        Box::pin(std::future::ready(Ok(())))
    }

    fn step(&self, report: StepReport) {
        self.0.lock().unwrap().push((report.label, report.result.is_err()));
    }
}

/// A Service of two families. The embedded Kubernetes has one only, so these turns are had without it.
fn dual(policy: IpFamilyPolicy, ports: &[i64]) -> ServiceView {
    let port = |port: &i64| ServicePort { port: *port, node_port: 30_000 + *port, ..ServicePort::default() };
    ServiceView {
        namespace: "default".to_owned(),
        name: "web".to_owned(),
        uid: "uid-web".to_owned(),
        service_type: ServiceType::LoadBalancer,
        ports: ports.iter().map(port).collect(),
        ip_families: vec![IpFamily::V4, IpFamily::V6],
        ip_family_policy: Some(policy),
        ..ServiceView::default()
    }
}

struct Turns {
    cloud: Lycke,
    clock: Arc<dyn Clock>,
    provider: Arc<dyn Provider>,
}

impl Turns {
    fn new() -> Self {
        let fixture: CloudFixture<Lycke> = CloudFixture::new();
        fixture.killer().abort();
        let (cloud, clock) = (fixture.cloud.clone(), Arc::clone(&fixture.cluster.clock));
        let provider = cloud.provider(&clock);
        Self { cloud, clock, provider }
    }

    async fn turn(&self, service: ServiceView) -> (Turn, Vec<(String, bool)>) {
        let call = Call::new(self.clock.now() + Duration::from_secs(60), Arc::new(Unguarded));
        let balancers = self.provider.load_balancers().unwrap();
        let fleet: Arc<dyn Fleet> = Arc::new(NoFleet);
        let survey = balancers.survey(&fleet).unwrap();
        let want = Desired {
            service: Arc::new(service),
            cluster: "test".to_owned(),
            goal: Goal::Present,
            backends: Vec::new(),
            nodes: Vec::new(),
            rivals: Vec::new(),
            claims: Claims::default(),
        };
        let noted = Noted::default();
        let turn = balancers.turn(&call, &survey, &want, Permit::Create, &noted).await;
        (turn, noted.0.into_inner().unwrap())
    }

    /// How many families and how many ports are served.
    fn served(&self) -> Option<(usize, usize)> {
        let spec = self.cloud.balancer(WEB)?.balancer.spec;
        Some((spec.families.len(), spec.listeners.len()))
    }
}

fn refused(turn: &Turn) -> Vec<&str> {
    turn.refused.iter().map(|refusal| refusal.field.as_str()).collect()
}

#[tokio::test(start_paused = true)]
async fn whoever_only_prefers_both_families_is_served_in_the_same_turn() {
    let it = Turns::new();
    let (turn, steps) = it.turn(dual(IpFamilyPolicy::PreferDualStack, &[80])).await;
    assert_eq!((&turn.end, it.served()), (&TurnEnd::Converged, Some((1, 1))), "CL-68 {turn:?}");
    let create = "create load balancer default/web".to_owned();
    assert_eq!(steps, [(create.clone(), true), (create.clone(), false)], "the planner chose the second");
    assert_eq!((&turn.done, refused(&turn)), (&vec![create], vec![]), "L8-1813 only what was done is said");
    assert!(turn.notices.iter().any(|notice| notice.message.contains("one family")), "{:?}", turn.notices);
    let (turn, steps) = it.turn(dual(IpFamilyPolicy::PreferDualStack, &[80])).await;
    assert_eq!((turn.end, steps.len()), (TurnEnd::Converged, 0), "L4-1811 it is content");
}

#[tokio::test(start_paused = true)]
async fn a_family_that_cannot_be_had_blocks_only_itself() {
    let it = Turns::new();
    let single = ServiceView { ip_families: vec![IpFamily::V4], ..dual(IpFamilyPolicy::SingleStack, &[80]) };
    it.turn(single).await;
    assert_eq!(it.served(), Some((1, 1)));
    let (turn, steps) = it.turn(dual(IpFamilyPolicy::RequireDualStack, &[80, 443])).await;
    assert_eq!((&turn.end, it.served()), (&TurnEnd::Converged, Some((1, 2))), "L8-1810 {turn:?}");
    assert_eq!(refused(&turn), ["spec.ipFamilyPolicy"], "L8-1810");
    assert_eq!(steps.len(), 2, "one was refused: {steps:?}");
    let (_, steps) = it.turn(dual(IpFamilyPolicy::RequireDualStack, &[80, 443])).await;
    assert_eq!(steps, [], "L4-1810 it is not asked for again at once");
    tokio::time::sleep(Duration::from_secs(301)).await;
    let (_, steps) = it.turn(dual(IpFamilyPolicy::RequireDualStack, &[80, 443])).await;
    assert_eq!(steps.len(), 1, "after a while it is: {steps:?}");
    // Where both are to be had, they are given.
    let mut shared = dual(IpFamilyPolicy::RequireDualStack, &[80, 443]);
    shared.annotations = [(MODE.to_owned(), "shared".to_owned())].into_iter().collect();
    let (turn, _) = it.turn(shared).await;
    assert_eq!((refused(&turn), it.served()), (vec![], Some((2, 2))), "CL-68 {turn:?}");
}

#[tokio::test(start_paused = true)]
async fn a_new_service_that_needs_both_families_waits_and_says_why() {
    let it = Turns::new();
    let wants = || dual(IpFamilyPolicy::RequireDualStack, &[80]);
    let (turn, steps) = it.turn(wants()).await;
    assert!(matches!(turn.end, TurnEnd::Wait { .. }), "L8-1811 {turn:?}");
    assert_eq!((refused(&turn), it.served()), (vec!["spec.ipFamilyPolicy"], None), "L8-1811");
    assert_eq!((turn.creation, steps.len()), (Creation::Nothing, 1), "L6-1806 nothing came into being");
    let (turn, steps) = it.turn(wants()).await;
    assert!(matches!(turn.end, TurnEnd::Wait { .. }) && steps.is_empty(), "L4-1812 {turn:?} {steps:?}");
    tokio::time::sleep(Duration::from_secs(61)).await;
    assert_eq!(it.turn(wants()).await.1.len(), 1, "it is asked for again");
}
