//! The fake cloud behaves as clouds do: it is slow, it forgets, it lies on demand; and the provider on top of it copes.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing, missing_docs)]

use std::{
    sync::{
        Arc, Mutex,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use cloudberth_core::{
    Call, Category, Clock, InstanceState, Instances, Lookup, NodeView, Provider, Random, Result, Routes,
    ServiceView, Tick, Zones,
    call::{Gate, ReadOnly, Unguarded},
    lb::{Backend, Claims, Desired, Effects, Fleet, Goal, IntentMark, Permit, Publish, TurnEnd},
    provider::Boxed,
    route::{NewRoute, RouteChange},
    view::{ServicePort, ServiceProtocol, SessionAffinity},
};
use cloudberth_fake::{BALANCER_ID, Cloud, FLOATING_ADDRESS, FakeProvider, Fault, PowerState, SimSettings};
use tokio::time::Instant;

struct TestClock(Instant);

impl Clock for TestClock {
    fn now(&self) -> Tick {
        Tick(self.0.elapsed())
    }
    fn wall(&self) -> jiff::Timestamp {
        jiff::Timestamp::UNIX_EPOCH
    }
}

struct Fixture {
    cloud: Cloud,
    provider: FakeProvider,
    clock: Arc<dyn Clock>,
}

impl Fixture {
    fn new(settings: SimSettings) -> Self {
        let clock: Arc<dyn Clock> = Arc::new(TestClock(Instant::now()));
        let cloud = Cloud::new(Arc::clone(&clock), Random::seeded(1), settings);
        let provider = FakeProvider::new("fake", &cloud, "tester", Arc::clone(&clock));
        Self { cloud, provider, clock }
    }

    fn fleet(&self) -> Arc<dyn Fleet> {
        let provider = FakeProvider::new("fake", &self.cloud, "tester", Arc::clone(&self.clock));
        testing_kit::fleet(Arc::new(provider), &self.clock)
    }

    fn call(&self, gate: Arc<dyn Gate>) -> Call {
        Call::new(self.clock.now() + Duration::from_secs(30), gate)
    }

    async fn names(&self) -> Result<(Vec<String>, bool)> {
        let list = Instances::list(&self.provider, &self.call(Arc::new(ReadOnly))).await?;
        Ok((list.items.iter().map(|i| i.name.clone()).collect(), list.is_complete()))
    }

    /// Turns until the Service rests, as a controller would.
    async fn converge(&self, want: &Desired, recorder: &Recorder) -> TurnEnd {
        let balancers = self.provider.load_balancers().unwrap();
        for _ in 0..100 {
            let call = self.call(Arc::new(Unguarded));
            let survey = balancers.survey(&self.fleet()).unwrap();
            let want = recorder.on(want);
            let first = balancers.turn(&call, &survey, &want, Permit::NoCreate, recorder).await;
            let end = match first.end {
                TurnEnd::NeedsIntent => {
                    balancers.turn(&call, &survey, &want, Permit::Create, recorder).await.end
                }
                end => end,
            };
            match end {
                TurnEnd::Converged | TurnEnd::Refused => return end,
                // A lost creation has shown up, or never will, once the settle time is over.
                TurnEnd::Unknown(_) => tokio::time::sleep(balancers.profile().settle_time).await,
                _ => tokio::time::sleep(Duration::from_secs(2)).await,
            }
        }
        panic!("it does not come to rest");
    }
}

#[derive(Default)]
struct Recorder {
    published: Mutex<Publish>,
    writes: AtomicU64,
}

impl Recorder {
    fn on(&self, want: &Desired) -> Desired {
        let mut want = want.clone();
        let recorded = self.published.lock().unwrap().annotations.clone();
        Arc::make_mut(&mut want.service).annotations.extend(recorded);
        want
    }
}

impl Effects for Recorder {
    fn record<'a>(&'a self, publish: &'a Publish, _: IntentMark) -> Boxed<'a, Result<()>> {
        *self.published.lock().unwrap() = publish.clone();
        self.writes.fetch_add(1, Ordering::Relaxed);
        Box::pin(async { Ok(()) })
    }
}

fn want(ports: &[i64], instances: &[String]) -> Desired {
    let service = ServiceView {
        namespace: "default".into(),
        name: "web".into(),
        uid: "u-1".into(),
        ports: ports
            .iter()
            .map(|&port| ServicePort { port, node_port: 30_000 + port, ..ServicePort::default() })
            .collect(),
        ..ServiceView::default()
    };
    let backend = |id: &String| Backend {
        node: Arc::new(NodeView {
            name: id.clone(),
            provider_id: Some(format!("fake://{id}")),
            ..NodeView::default()
        }),
        local_endpoint: None,
    };
    Desired {
        service: Arc::new(service),
        cluster: "test".into(),
        goal: Goal::Present,
        backends: instances.iter().map(backend).collect(),
        rivals: vec![],
        nodes: Vec::new(),
        claims: Claims::default(),
    }
}

fn gone(mut want: Desired) -> Desired {
    want.goal = Goal::Gone;
    want
}

#[tokio::test(start_paused = true)]
async fn listings_lag_and_lookups_do_not() {
    let fixture = Fixture::new(SimSettings { lag: Duration::from_secs(3), ..SimSettings::default() });
    let instance = fixture.cloud.add_instance("a", "north-1");
    let id = format!("fake://{}", instance.id).parse().unwrap();
    assert_eq!(fixture.names().await.unwrap(), (vec![], true));
    let found = fixture.provider.get(&fixture.call(Arc::new(ReadOnly)), &id).await.known().unwrap().unwrap();
    assert_eq!(
        (found.name.as_str(), found.zone.unwrap().as_str(), found.region.unwrap().as_str()),
        ("a", "north-1", "north")
    );
    tokio::time::sleep(Duration::from_secs(3)).await;
    assert_eq!(fixture.names().await.unwrap().0, ["a"]);
    fixture.cloud.set_state(&instance.id, PowerState::Stopped);
    fixture.cloud.resize(&instance.id, "big");
    let list = Instances::list(&fixture.provider, &fixture.call(Arc::new(ReadOnly))).await.unwrap();
    assert_eq!(
        (list.items[0].state, list.items[0].instance_type.clone().unwrap().as_str()),
        (InstanceState::Stopped, "big")
    );
    fixture.cloud.delete_instance(&instance.id);
    assert_eq!(fixture.names().await.unwrap().0, ["a"], "a listing still shows it");
    assert_eq!(fixture.provider.get(&fixture.call(Arc::new(ReadOnly)), &id).await, Lookup::Absent);
    tokio::time::sleep(Duration::from_secs(3)).await;
    assert_eq!(fixture.names().await.unwrap().0, Vec::<String>::new());
    let foreign = "other://1".parse().unwrap();
    assert!(matches!(
        fixture.provider.get(&fixture.call(Arc::new(ReadOnly)), &foreign).await,
        Lookup::Unknown(_)
    ));
}

#[tokio::test(start_paused = true)]
async fn each_fault_does_what_it_says() {
    let fixture = Fixture::new(SimSettings { latency: Duration::from_millis(100), ..SimSettings::default() });
    fixture.cloud.add_instance("a", "north-1");
    fixture.cloud.add_instance("b", "north-2");
    let fault = |fault| fixture.cloud.plan_faults(move |_| Some(fault));
    fault(Fault::Refuse(Category::Unauthorised));
    assert_eq!(fixture.names().await.unwrap_err().category(), Category::Unauthorised);
    fault(Fault::RequestLost);
    assert_eq!(fixture.names().await.unwrap_err().category(), Category::Temporary);
    fault(Fault::Deny);
    assert_eq!(fixture.names().await.unwrap(), (vec![], true), "a lie looks like the truth");
    fault(Fault::ShortPage);
    assert_eq!(fixture.names().await.unwrap(), (vec!["a".into()], false));
    fault(Fault::Stall(Duration::ZERO));
    let before = fixture.clock.now();
    assert!(fixture.names().await.unwrap_err().message().contains("no answer in time"), "L12-2");
    assert_eq!(fixture.clock.now().since(before), Duration::from_secs(30), "the call ends at its deadline");
    fixture.cloud.stop_faults();
    assert_eq!(fixture.names().await.unwrap().0, ["a", "b"]);
    let outcomes: Vec<_> = fixture.cloud.calls().iter().map(|c| c.outcome).collect();
    assert_eq!(outcomes, ["unauthorised", "ok", "ok", "ok", "ok"], "a lost request never arrived");
}

fn new_route() -> RouteChange {
    RouteChange::Create(NewRoute {
        hint: "u".into(),
        node: "a".into(),
        provider_id: None,
        addresses: vec![],
        destination: "10.0.0.0/24".into(),
    })
}

#[tokio::test(start_paused = true)]
async fn a_client_that_hangs_up_loses_the_answer_and_not_the_write() {
    let fixture = Fixture::new(SimSettings { latency: Duration::from_secs(1), ..SimSettings::default() });
    let changes = [new_route()];
    let call = fixture.call(Arc::new(Unguarded));
    let hung_up =
        tokio::time::timeout(Duration::from_millis(10), fixture.provider.apply(&call, None, &changes)).await;
    assert!(hung_up.is_err());
    assert!(fixture.cloud.routes().is_empty(), "it is still on its way");
    tokio::time::sleep(Duration::from_secs(2)).await;
    assert_eq!(fixture.cloud.routes().len(), 1, "L6-21 it arrives all the same");
}

#[tokio::test(start_paused = true)]
async fn nothing_is_written_without_the_leaders_claim() {
    let fixture = Fixture::new(SimSettings::default());
    let changes = [new_route()];
    let answers = fixture.provider.apply(&fixture.call(Arc::new(ReadOnly)), None, &changes).await;
    assert_eq!(answers[0].as_ref().unwrap_err().category(), Category::Cancelled, "L9-7");
    assert!(fixture.cloud.calls().is_empty(), "L9-8 not even sent");
    assert_eq!(
        fixture.provider.apply(&fixture.call(Arc::new(Unguarded)), None, &changes).await,
        [Ok(Vec::new())]
    );
    let again = fixture.provider.apply(&fixture.call(Arc::new(Unguarded)), None, &changes).await;
    assert_eq!(again[0].as_ref().unwrap_err().category(), Category::Conflict);
    let (call, fleet) = (fixture.call(Arc::new(ReadOnly)), fixture.fleet());
    let listed = Routes::list(&fixture.provider, &call, &[], &fleet).await.unwrap();
    let removal = [RouteChange::Delete(listed.routes.items[0].clone())];
    assert_eq!(
        fixture.provider.apply(&fixture.call(Arc::new(Unguarded)), None, &removal).await,
        [Ok(Vec::new())]
    );
    assert!(fixture.cloud.routes().is_empty());
    let places = Zones::list(&fixture.provider, &fixture.call(Arc::new(ReadOnly))).await.unwrap();
    assert_eq!(places.items.len(), 2);
}

#[tokio::test(start_paused = true)]
async fn a_load_balancer_follows_its_service_and_rests() {
    let settings = SimSettings {
        build: Duration::from_secs(5),
        latency: Duration::from_millis(20),
        ..SimSettings::default()
    };
    let fixture = Fixture::new(settings);
    fixture.cloud.add_floating("192.0.2.9");
    let ids: Vec<_> = ["a", "b", "c"].map(|name| fixture.cloud.add_instance(name, "north-1").id).into();
    let recorder = Recorder::default();
    let mut desired = want(&[80, 53], &ids[..2]);
    {
        let service = Arc::make_mut(&mut desired.service);
        service.ports[1].protocol = ServiceProtocol::Udp;
        service.ports.push(ServicePort { port: 53, node_port: 30_054, ..ServicePort::default() });
        service.annotations.insert(FLOATING_ADDRESS.name().into(), "192.0.2.9".into());
        service.annotations.insert("fake.cloudberth.dev/algorithm".into(), "least-connections".into());
    }
    assert_eq!(fixture.converge(&desired, &recorder).await, TurnEnd::Converged);
    let built = fixture.cloud.balancers().remove(0);
    assert_eq!(
        (built.listeners.len(), built.members.len(), built.algorithm.as_str()),
        (3, 2, "least-connections")
    );
    assert!(built.floating.contains("192.0.2.9"));
    let published = recorder.published.lock().unwrap().clone();
    assert_eq!(published.annotations[BALANCER_ID.name()], built.id);
    assert_eq!(published.ingress.unwrap()[0].ip.as_deref(), Some(built.address.as_str()));

    let calls = fixture.cloud.calls().len();
    assert_eq!(fixture.converge(&desired, &recorder).await, TurnEnd::Converged);
    assert!(fixture.cloud.calls()[calls..].iter().all(|c| !c.write), "L4-3 a second pass only looks");

    fixture.cloud.delete_instance(&ids[0]);
    let desired = want(&[443], &[ids[0].clone(), ids[2].clone()]);
    assert_eq!(
        fixture.converge(&desired, &recorder).await,
        TurnEnd::Converged,
        "a dead instance keeps nobody out"
    );
    let changed = fixture.cloud.balancers().remove(0);
    assert_eq!(changed.members.values().collect::<Vec<_>>(), [&ids[2]]);
    assert_eq!(changed.listeners.values().map(|l| l.port).collect::<Vec<_>>(), [443]);
    assert_eq!(changed.algorithm, "round-robin", "an annotation that goes takes its effect along");

    let mut moved = desired.clone();
    Arc::make_mut(&mut moved.service).ports[0].node_port = 31_000;
    assert_eq!(fixture.converge(&moved, &recorder).await, TurnEnd::Converged);
    assert_eq!(fixture.cloud.balancers()[0].listeners.values().next().unwrap().node_port, 31_000);

    assert_eq!(fixture.converge(&gone(moved), &recorder).await, TurnEnd::Converged);
    assert!(fixture.cloud.balancers().is_empty());
}

#[tokio::test(start_paused = true)]
async fn all_refused_fields_are_named_at_once_and_nothing_is_built() {
    let fixture = Fixture::new(SimSettings::default());
    let mut desired = want(&[80], &[]);
    {
        let service = Arc::make_mut(&mut desired.service);
        service.ports.push(ServicePort {
            port: 9,
            protocol: ServiceProtocol::Sctp,
            node_port: 30_009,
            ..ServicePort::default()
        });
        service.ports.push(ServicePort { port: 81, ..ServicePort::default() });
        service.source_ranges = Some(vec!["10.0.0.0/8".into()]);
        service.load_balancer_ip = Some("192.0.2.1".into());
        service.session_affinity = SessionAffinity::ClientIp { timeout_seconds: None };
        service.ip_families = vec![cloudberth_core::net::IpFamily::V6];
        service.annotations.insert("fake.cloudberth.dev/algorithm".into(), "fastest".into());
    }
    let recorder = Recorder::default();
    assert_eq!(fixture.converge(&desired, &recorder).await, TurnEnd::Refused, "L8-8");
    let call = fixture.call(Arc::new(Unguarded));
    let balancers = fixture.provider.load_balancers().unwrap();
    let survey = balancers.survey(&fixture.fleet()).unwrap();
    let turn = balancers.turn(&call, &survey, &desired, Permit::Create, &recorder).await;
    let mut fields: Vec<_> = turn.refused.iter().map(|r| r.field.as_str()).collect();
    fields.sort_unstable();
    let all = [
        "fake.cloudberth.dev/algorithm",
        "spec.ipFamilies",
        "spec.loadBalancerIP",
        "spec.loadBalancerSourceRanges",
        "spec.ports[].nodePort",
        "spec.ports[].protocol",
        "spec.sessionAffinity",
    ];
    assert_eq!(fields, all, "L8-9");
    assert!(fixture.cloud.balancers().is_empty());
}

#[tokio::test(start_paused = true)]
async fn an_exceeded_quota_is_named_in_the_error() {
    let fixture = Fixture::new(SimSettings { quota: 0, ..SimSettings::default() });
    let call = fixture.call(Arc::new(Unguarded));
    let balancers = fixture.provider.load_balancers().unwrap();
    let survey = balancers.survey(&fixture.fleet()).unwrap();
    let turn = balancers.turn(&call, &survey, &want(&[80], &[]), Permit::Create, &Recorder::default()).await;
    let TurnEnd::Failed(error) = turn.end else { panic!("{turn:?}") };
    assert!(error.message().contains("the quota of 0 load balancers is used up"), "{error}");
    assert_eq!(error.category(), Category::Permanent);
}

/// Each request in turn is lost, never answered, or refused; the final state is always the same.
#[tokio::test(start_paused = true)]
async fn one_fault_at_any_request_does_not_change_the_final_state() {
    let story = |ids: &[String]| vec![want(&[80], &ids[..1]), want(&[80, 443], ids), gone(want(&[80], ids))];
    let stall = Fault::Stall(Duration::from_secs(20));
    for fault in [Fault::RequestLost, Fault::AnswerLost, stall, Fault::Refuse(Category::Temporary)] {
        for number in 0..40 {
            let fixture = Fixture::new(SimSettings {
                build: Duration::from_secs(1),
                lag: Duration::from_secs(2),
                ..SimSettings::default()
            });
            let ids: Vec<_> = ["a", "b"].map(|name| fixture.cloud.add_instance(name, "north-1").id).into();
            fixture.cloud.plan_faults(move |request| (request.number == number).then_some(fault));
            let recorder = Recorder::default();
            for desired in story(&ids) {
                assert_eq!(
                    fixture.converge(&desired, &recorder).await,
                    TurnEnd::Converged,
                    "{fault:?} {number}"
                );
                let there = fixture.cloud.balancers();
                assert_eq!(
                    there.len(),
                    usize::from(desired.goal == Goal::Present),
                    "L6-22 {fault:?} at {number}"
                );
                if let Some(balancer) = there.first() {
                    assert_eq!(balancer.members.len(), desired.backends.len(), "{fault:?} {number}");
                    assert_eq!(balancer.listeners.len(), desired.service.ports.len(), "{fault:?} {number}");
                }
            }
        }
    }
}
