//! When a load balancer is written, and when it is left alone.

use cloudberth_brightbox::{Action, Observed, wire::Listener};
use cloudberth_core::{ServiceView, lb::Desired, lb::Next};
use serde_json::{Value, json};

use crate::fixture::{
    APPLIED, FQDN, NAME, REVERSE, aged, annotated, built, decide, edited, gone, notices, port, read, secure,
    service, settle, want,
};

/// Something that somebody changed.
type Change = fn(&mut Observed);

/// The one PUT that follows, if there is one.
fn written(want: &Desired, observed: &Observed) -> Option<Value> {
    let way = settle(want, observed.clone());
    let puts: Vec<_> = way
        .acts
        .iter()
        .filter_map(|act| match act {
            Action::UpdateBalancer { options, .. } => Some(json!(options)),
            _ => None,
        })
        .collect();
    assert!(puts.len() < 2, "{:?}", way.labels);
    puts.into_iter().next()
}

#[test]
fn the_same_is_left_alone() {
    let (want, observed) = built(&want(secure(&[])), &["srv-a", "srv-b"]);
    assert_eq!(written(&want, &observed), None, "BB-117 BB-120 BB-137");
    let mut turned = observed.clone();
    turned.balancers[0].acme.as_mut().unwrap().domains.reverse();
    turned.balancers[0].nodes.reverse();
    assert_eq!(written(&want, &turned), None, "BB-118 BB-127 L4-1602");
    let mut filled = observed;
    filled.balancers[0].listeners.iter_mut().for_each(|one| one.timeout = Some(50_000));
    filled.balancers[0].policy = Some("least-connections".to_owned());
    filled.balancers[0].healthcheck.interval = Some(5_000);
    assert_eq!(written(&want, &filled), None, "BB-128 what the cloud fills in");
    assert_eq!(notices(&decide(&want, &filled)), [""; 0]);
    let listener = json!({"protocol": "tcp", "in": 80, "out": 30080, "proxy_protocol": ""});
    assert_eq!(read::<Listener>(listener).proxy_protocol, None, "BB-165 an empty word is none");
}

#[test]
fn every_difference_is_written_once() {
    let (want, observed) = built(&want(secure(&[])), &["srv-a", "srv-b"]);
    let table: &[(&str, Change)] = &[
        ("BB-119 a domain too many", |o| {
            o.balancers[0]
                .acme
                .as_mut()
                .unwrap()
                .domains
                .push(read(json!({"identifier": "x.example", "status": "valid"})));
        }),
        ("BB-119 a domain too few", |o| drop(o.balancers[0].acme.as_mut().unwrap().domains.pop())),
        ("BB-119 another domain", |o| {
            "x.example".clone_into(&mut o.balancers[0].acme.as_mut().unwrap().domains[0].identifier);
        }),
        ("BB-129 no certificate at all", |o| o.balancers[0].acme = None),
        ("BB-121 a listener too few", |o| drop(o.balancers[0].listeners.pop())),
        ("BB-121 a listener too many", |o| {
            let one = o.balancers[0].listeners[0].clone();
            o.balancers[0].listeners.push(one);
        }),
        ("BB-121 another node port", |o| o.balancers[0].listeners[0].outside = Some(1)),
        ("BB-122 proxy protocol", |o| o.balancers[0].listeners[0].proxy_protocol = Some("v1".to_owned())),
        ("BB-123 a node exchanged", |o| "srv-x".clone_into(&mut o.balancers[0].nodes[0].id)),
        ("BB-123 a node too few", |o| drop(o.balancers[0].nodes.pop())),
        ("BB-123 a node too many", |o| o.balancers[0].nodes.push(read(json!({"id": "srv-x"})))),
        ("BB-124 another name", |o| format!("{NAME}#type:container").clone_into(&mut o.balancers[0].name)),
        ("BB-125 another path", |o| "/x".clone_into(&mut o.balancers[0].healthcheck.request)),
        ("another check", |o| "tcp".clone_into(&mut o.balancers[0].healthcheck.kind)),
        ("another port", |o| o.balancers[0].healthcheck.port = 1),
    ];
    for (case, change) in table {
        let mut changed = observed.clone();
        change(&mut changed);
        let put = written(&want, &changed).unwrap_or_else(|| panic!("{case}"));
        assert_eq!(
            (put["name"].as_str(), &put["domains"]),
            (Some(NAME), &json!([REVERSE, FQDN])),
            "{case}: the whole object, BB-137"
        );
        let rest = aged(settle(&want, changed).observed);
        assert_eq!(written(&want, &rest), None, "L4-1603 {case}: once");
        assert_eq!(rest.balancers[0].id, observed.balancers[0].id, "BB-137 {case}: the id stays");
    }
    for value in ["v1", "v2"] {
        let asks = annotated(&want, "listener-proxy-protocol", Some(value));
        assert_eq!(written(&asks, &observed).unwrap()["listeners"][0]["proxy_protocol"], value, "BB-122");
    }
    let asks = annotated(&want, "listener-idle-timeout", Some("60000"));
    let mut other = observed.clone();
    other.balancers[0].listeners[0].timeout = Some(50_000);
    assert_eq!(written(&asks, &other).unwrap()["listeners"][0]["timeout"], 60_000, "BB-128");
    let turned = edited(&want, |service| service.ports.reverse());
    assert!(
        written(&turned, &observed).is_some(),
        "BB-184 the order of ports is written as the old program would"
    );
}

#[test]
fn settings_that_are_not_compared_are_written_when_they_are_edited() {
    for (key, value) in [
        ("policy", "round-robin"),
        ("healthcheck-interval", "4000"),
        ("healthcheck-timeout", "4000"),
        ("healthcheck-healthy-threshold", "4"),
        ("idle-timeout", "60000"),
    ] {
        let (want, observed) = built(&want(service(&[])), &["srv-a"]);
        let asks = annotated(&want, key, Some(value));
        let way = settle(&asks, observed.clone());
        assert!(matches!(&way.acts[..], [Action::UpdateBalancer { .. }]), "BB-126 {key}: {:?}", way.labels);
        let recorded = way.last.publish.unwrap().annotations;
        assert_ne!(recorded[APPLIED], want.service.annotations[APPLIED], "BB-126 {key}");
        let asks = edited(&asks, |service| service.annotations.extend(recorded));
        assert_eq!(settle(&asks, aged(way.observed)).labels, [""; 0], "BB-126 {key}: once");
    }
}

#[test]
fn what_was_taken_over_is_written_only_after_an_edit() {
    let (built_want, observed) = built(&want(service(&[("policy", "round-robin")])), &["srv-a"]);
    let mut left = observed;
    left.balancers[0].policy = Some("least-connections".to_owned());
    let want =
        annotated(&annotated(&built_want, APPLIED, None), "cloudberth.dev/brightbox-load-balancer", None);
    let digest = built_want.service.annotations[APPLIED].clone();
    left.first_digest = Some(digest);
    let way = settle(&want, left.clone());
    assert_eq!(way.labels, [""; 0], "BB-182 BB-126");
    assert_eq!(way.last.publish, None, "BB-182 nothing is recorded either");
    assert!(notices(&way.last).iter().any(|line| line.contains("policy")), "BB-182 {:?}", notices(&way.last));
    let edit = annotated(&want, "healthcheck-timeout", Some("4000"));
    let put = written(&edit, &left).expect("BB-182");
    assert_eq!(
        (&put["policy"], &put["healthcheck"]["timeout"]),
        (&json!("round-robin"), &json!(4000)),
        "BB-182 one PUT carries both"
    );
    let mut node = left;
    node.servers.found.push("srv-b".to_owned());
    assert_eq!(
        written(&want, &node).unwrap()["policy"],
        "round-robin",
        "BB-182 with a PUT that is needed anyway"
    );
}

#[test]
fn no_nodes_and_no_path_are_no_reason_to_write_again() {
    let (want, mut observed) = built(&want(service(&[("healthcheck-request", "")])), &["srv-a"]);
    observed.balancers[0].healthcheck.request = "/anything".to_owned();
    assert_eq!(written(&want, &observed), None, "BB-171");
    observed.servers.found.clear();
    assert_eq!(written(&want, &observed).unwrap()["nodes"], json!([]), "BB-123 removed to none, BB-177");
    let rest = aged(settle(&want, observed).observed);
    assert_eq!(settle(&want, rest).labels, [""; 0], "BB-177 once");
}

#[test]
fn states_of_the_cloud_are_waited_for_and_told() {
    let (want, mut observed) = built(&want(service(&[])), &["srv-a"]);
    observed.balancers[0].status = read(json!("creating"));
    let moved = edited(&want, |service| service.ports = vec![port("", 81, 31_348)]);
    assert!(
        matches!(&decide(&moved, &observed).next, Next::Wait { on, .. } if on.contains("to be built")),
        "F40 no write while it is built"
    );
    observed.balancers[0].status = read(json!("failed"));
    let decision = decide(&want, &observed);
    assert!(notices(&decision).iter().any(|line| line.contains("failed")), "BB-141 {:?}", notices(&decision));
    let way = settle(&want, observed.clone());
    assert!(
        matches!(
            &way.acts[..],
            [Action::DeleteBalancer { .. }, Action::CreateBalancer(_), Action::Map { .. }]
        ),
        "BB-141 it is replaced {:?}",
        way.labels
    );
    observed.balancers[0].locked = true;
    assert!(
        matches!(&decide(&gone(&want), &Observed { groups: vec![], policies: vec![], ..observed }).next, Next::Wait { on, .. } if on.contains("unlocked")),
        "F40"
    );
}

#[test]
fn a_failed_twin_of_a_live_one_is_left_alone() {
    let (want, mut observed) = built(&want(service(&[])), &["srv-a"]);
    let mut twin = observed.balancers[0].clone();
    twin.id = "lba-twin".to_owned();
    twin.status = read(json!("failed"));
    twin.cloud_ips.clear();
    observed.balancers.insert(0, twin);
    assert_eq!(settle(&want, observed).labels, [""; 0], "BB-183");
}

#[test]
fn everything_goes_in_order() {
    let (want, observed) = built(&want(service(&[])), &["srv-a"]);
    let way = settle(&gone(&want), observed);
    let words: Vec<_> =
        way.labels.iter().map(|label| label.split(' ').take(3).collect::<Vec<_>>().join(" ")).collect();
    let order = [
        "remove srv-a from",
        "delete server group",
        "delete firewall policy",
        "delete load balancer",
        "delete Cloud IP",
    ];
    assert_eq!(words, order, "BB-146");
    assert_eq!(way.last.next, Next::Converged);
    let broken = ServiceView { ports: Vec::new(), ..service(&[("policy", "x")]) };
    assert_eq!(
        decide(&gone(&crate::fixture::want(broken)), &Observed::default()).refused,
        [],
        "nothing wrong stands in the way"
    );
}
