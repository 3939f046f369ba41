//! What is done about a load balancer that is there.

use std::time::Duration;

use cloudberth_binarylane::{
    Action, Build, Observed,
    wire::{BalancerStatus, BalancerUpdate, LoadBalancer, Progress},
};
use cloudberth_core::{
    lb::{Desired, Next},
    view::{Ingress, IpMode, SessionAffinity},
};

use crate::fixture::*;

fn decided(want: &Desired, balancer: LoadBalancer) -> Vec<Action> {
    steps(&planner().decide(want, Some(&present(want, balancer))))
}

fn update(words: &[&str], protocol: &str, path: &str, members: &[i64]) -> Vec<Action> {
    let update = BalancerUpdate {
        name: "k8s-prod-shop-web".to_owned(),
        forwarding_rules: rules(words),
        health_check: check(protocol, path),
        server_ids: members.to_vec(),
    };
    vec![Action::Update { id: LB, update }]
}

#[test]
fn only_what_differs_is_written() {
    let plain = || want(service(&[], &[80]), [1, 2]);
    let both = || want(service(&[], &[80, 443]), [1, 2]);
    let add = |servers: &[i64]| vec![Action::AddServers { id: LB, servers: servers.to_vec() }];
    let remove = |servers: &[i64]| vec![Action::RemoveServers { id: LB, servers: servers.to_vec() }];
    let renamed =
        LoadBalancer { name: "k8s-Prod-shop-web".to_owned(), ..balancer(&["http"], "http", &[1, 2]) };
    let table = [
        ("BL-86 nothing", plain(), balancer(&["http"], "http", &[1, 2]), vec![]),
        ("BL-90 another order", plain(), balancer(&["http"], "http", &[2, 1]), vec![]),
        ("BL-154 another order of rules", both(), balancer(&["https", "http"], "both", &[1, 2]), vec![]),
        ("BL-139 only the name", plain(), renamed, vec![]),
        ("BL-87 a node came", plain(), balancer(&["http"], "http", &[1]), add(&[2])),
        ("BL-88 a node went", plain(), balancer(&["http"], "http", &[1, 2, 3]), remove(&[3])),
        ("BL-89 one was replaced", plain(), balancer(&["http"], "http", &[1, 3]), add(&[2])),
        (
            "BL-91",
            both(),
            balancer(&["http"], "http", &[1, 2]),
            update(&["http", "https"], "both", "/", &[1, 2]),
        ),
        (
            "BL-91 and a node",
            both(),
            balancer(&["http"], "http", &[1]),
            update(&["http", "https"], "both", "/", &[1, 2]),
        ),
        (
            "BL-92",
            want(service(&[("health-check-path", "/up")], &[80]), [1, 2]),
            balancer(&["http"], "http", &[1, 2]),
            update(&["http"], "http", "/up", &[1, 2]),
        ),
        ("BL-82 the first node", plain(), balancer(&["http"], "http", &[]), add(&[1, 2])),
        ("no node is left", want(service(&[], &[80]), []), balancer(&["http"], "http", &[1]), remove(&[1])),
    ];
    for (case, want, balancer, steps) in table {
        assert_eq!(decided(&want, balancer), steps, "{case}");
    }
}

#[test]
fn what_is_refused_keeps_its_value_and_the_rest_goes_on() {
    let existing = || balancer(&["http", "https"], "both", &[1]);
    let odd = want(service(&[], &[8080]), [1, 2]);
    assert_eq!(decided(&odd, existing()), [Action::AddServers { id: LB, servers: vec![2] }], "BL-104");
    let decision = planner().decide(&odd, Some(&present(&odd, existing())));
    assert!(refusals(&decision)[0].contains("8080"), "BL-104");
    assert_eq!(decision.publish.unwrap().ingress.unwrap()[0].ip.as_deref(), Some("203.0.113.80"), "BL-104");

    let mut sticky = service(&[], &[80, 443]);
    sticky.session_affinity = SessionAffinity::ClientIp { timeout_seconds: None };
    let sticky = want(sticky, [1, 2]);
    assert_eq!(decided(&sticky, existing()), [Action::AddServers { id: LB, servers: vec![2] }], "BL-136");
    assert_eq!(decided(&gone(&sticky), existing()), [Action::Delete { id: LB }], "BL-136");

    let wrong = want(service(&[("protocol", "tcp"), ("health-check-path", "x")], &[80]), [1]);
    let kept = LoadBalancer { health_check: check("both", "/kept"), ..existing() };
    assert_eq!(decided(&wrong, kept), [], "L8-1604");
    let half = want(service(&[("health-check-protocol", "http")], &[80, 443]), [1]);
    let one = balancer(&["http"], "http", &[1]);
    assert_eq!(
        decided(&half, one),
        update(&["http", "https"], "both", "/", &[1]),
        "L8-1605 two rules need both"
    );
    assert_eq!(decided(&half, existing()), [], "L8-1605");
}

#[test]
fn an_address_that_it_has_is_accepted() {
    let mut asks = service(&[], &[80]);
    for (ip, count) in [("203.0.113.80", 0), ("203.0.113.81", 1)] {
        asks.load_balancer_ip = Some(ip.to_owned());
        let want = want(asks.clone(), [1]);
        let decision = planner().decide(&want, Some(&present(&want, balancer(&["http"], "http", &[1]))));
        assert_eq!(refusals(&decision).len(), count, "BL-84 {ip}");
        assert_eq!(decision.next, Next::Converged, "BL-84 {ip}");
    }
}

#[test]
fn a_region_stays_what_it_is() {
    let existing = || in_region(balancer(&["http"], "http", &[1]), "bne");
    for (region, refused) in [(None, 0), (Some("bne"), 0), (Some("syd"), 1), (Some("anycast"), 1)] {
        let annotations: Vec<_> = region.map(|region| ("region", region)).into_iter().collect();
        let want = want(service(&annotations, &[80]), [1]);
        let decision = planner().decide(&want, Some(&present(&want, existing())));
        let said = refusals(&decision);
        assert_eq!((said.len(), decision.next), (refused, Next::Converged), "BL-98 {region:?} {said:?}");
        assert!(said.iter().all(|line| line.starts_with("RegionImmutable") && line.contains("bne")), "BL-98");
    }
}

#[test]
fn a_node_that_cannot_be_resolved_costs_nobody_a_member() {
    let want = want(service(&[], &[80]), [1, 2]);
    let existing = balancer(&["http"], "http", &[1, 2, 3]);
    let mut observed = present(&want, existing);
    observed.servers.found.pop();
    observed.servers.unknown = vec![("node-2".to_owned(), "networks is missing".to_owned())];
    let decision = planner().decide(&want, Some(&observed));
    assert_eq!(steps(&decision), [], "BL-100");
    assert!(matches!(&decision.next, Next::Wait { on, .. } if on.contains("node-2")), "BL-100 {decision:?}");
    assert_eq!(reasons(&decision), ["NodeNotResolved"], "BL-100");

    // A node without an id whose name finds nothing may have any of the members.
    let mut nameless = want.clone();
    let mut node = (*nameless.backends[1].node).clone();
    node.provider_id = None;
    nameless.backends[1].node = std::sync::Arc::new(node);
    observed.servers.unknown.clear();
    observed.servers.missing = vec![("node-2".to_owned(), "there is no instance called node-2".to_owned())];
    assert_eq!(steps(&planner().decide(&nameless, Some(&observed))), [], "BL-100");
    // One whose server is surely gone takes its member along.
    let gone = [Action::RemoveServers { id: LB, servers: vec![2, 3] }];
    assert_eq!(steps(&planner().decide(&want, Some(&observed))), gone, "a server that is gone");
}

#[test]
fn servers_that_vanished_are_not_added_again() {
    let want = want(service(&[], &[80]), [1, 2]);
    let mut observed = present(&want, balancer(&["http"], "http", &[1]));
    let act = &steps(&planner().decide(&want, Some(&observed)))[0];
    let answer = cloudberth_binarylane::Answer::WithoutServers(vec![2]);
    observed = cloudberth_binarylane::fold(Some(observed), act, &answer).unwrap();
    let decision = planner().decide(&want, Some(&observed));
    assert_eq!(decision.next, Next::Converged, "BL-101");
    assert_eq!(observed.existing.unwrap().server_ids, [1], "BL-101");
}

#[test]
fn while_it_is_built_nothing_is_sent_and_nothing_published() {
    let want = want(service(&[], &[80]), [1, 2]);
    let new = LoadBalancer { status: BalancerStatus::New, ..balancer(&["http"], "http", &[1]) };
    let build = |seconds, progress| Some(Build { age: Duration::from_secs(seconds), progress });
    let table = [
        ("BL-71 at first", build(0, None), 2_500, &[][..]),
        ("BL-71 later", build(3, None), 5_000, &[]),
        ("BL-71 after a restart", None, 5_000, &[]),
        (
            "BL-73",
            build(60, Some(Progress::Blocked("invoice 9 is not paid".to_owned()))),
            300_000,
            &["LoadBalancerBlocked"],
        ),
        ("BL-152", build(60, Some(Progress::Errored(None))), 300_000, &["LoadBalancerErrored"]),
        ("it goes on", build(60, Some(Progress::UnderWay)), 5_000, &[]),
    ];
    for (case, build, millis, notices) in table {
        let observed = Observed { build, ..present(&want, new.clone()) };
        let decision = planner().decide(&want, Some(&observed));
        let Next::Wait { poll, .. } = decision.next else { panic!("{case}: {decision:?}") };
        assert_eq!(poll.as_millis(), millis, "{case}");
        assert_eq!(reasons(&decision), notices, "{case}");
        let publish = decision.publish.unwrap();
        assert_eq!(publish.ingress, None, "{case}");
        assert_eq!(publish.annotations[&format!("{PREFIX}id")], "5512", "{case}");
    }
    let text = |progress| {
        let observed = Observed { build: build(60, Some(progress)), ..present(&want, new.clone()) };
        planner().decide(&want, Some(&observed)).notices[0].message.clone()
    };
    assert!(text(Progress::Blocked("invoice 9 is not paid".to_owned())).contains("invoice 9"), "BL-73");
    assert!(
        text(Progress::Errored(Some("no address is left".to_owned()))).contains("no address is left"),
        "BL-152"
    );
    assert!(text(Progress::Errored(None)).contains("does not say why"), "BL-152");
}

#[test]
fn one_that_could_not_be_built_is_kept() {
    let want = want(service(&[], &[80]), [1, 2]);
    let errored = LoadBalancer { status: BalancerStatus::Errored, ..balancer(&["http"], "http", &[1]) };
    let decision = planner().decide(&want, Some(&present(&want, errored.clone())));
    assert_eq!(reasons(&decision), ["LoadBalancerErrored"], "BL-72");
    assert!(decision.notices[0].message.contains("5512"), "BL-72");
    assert!(matches!(decision.next, Next::Wait { poll, .. } if poll == Duration::from_secs(300)), "BL-72");
    assert_eq!(decided(&gone(&want), errored), [Action::Delete { id: LB }], "BL-72 it goes with its Service");
}

#[test]
fn an_address_is_published_once_it_is_one() {
    let plain = want(service(&[], &[80]), [1]);
    let ingress = |want: &Desired, ip: &str| {
        let balancer = LoadBalancer { ip: ip.to_owned(), ..balancer(&["http"], "http", &[1]) };
        let decision = planner().decide(want, Some(&present(want, balancer)));
        (decision.publish.unwrap().ingress, decision.next)
    };
    for ip in ["", "soon", "2001:db8::1"] {
        let (published, next) = ingress(&plain, ip);
        assert_eq!(published, None, "BL-71 {ip:?}");
        assert!(matches!(next, Next::Wait { .. }), "BL-71 {ip:?}");
    }
    let entry = |ip_mode| Ingress { ip: Some("203.0.113.80".to_owned()), ip_mode, ..Ingress::default() };
    assert_eq!(
        ingress(&plain, "203.0.113.80"),
        (Some(vec![entry(Some(IpMode::Vip))]), Next::Converged),
        "BL-52"
    );
    let mut shown = (*plain.service).clone();
    shown.ingress = vec![entry(None)];
    let shown = want(shown, [1]);
    assert_eq!(
        ingress(&shown, "203.0.113.80").0,
        Some(vec![entry(None)]),
        "L4-1600 what the replaced program wrote"
    );
}

#[test]
fn left_overs_go_last_and_with_the_service() {
    let want = want(service(&[], &[80]), [1]);
    let surplus = vec![(7, "k8s-prod-shop-web".to_owned())];
    let busy = Observed { surplus: surplus.clone(), ..present(&want, balancer(&["http"], "http", &[])) };
    let add = [Action::AddServers { id: LB, servers: vec![1] }];
    assert_eq!(steps(&planner().decide(&want, Some(&busy))), add, "BL-105 what takes traffic comes first");
    let rest = Observed { surplus, ..present(&want, balancer(&["http"], "http", &[1])) };
    assert_eq!(steps(&planner().decide(&want, Some(&rest))), [Action::Delete { id: 7 }], "BL-105");
    let both = [Action::Delete { id: LB }, Action::Delete { id: 7 }];
    assert_eq!(steps(&planner().decide(&gone(&want), Some(&rest))), both, "BL-106");
    assert_eq!(planner().decide(&gone(&want), Some(&Observed::default())).next, Next::Converged, "BL-107");
}
