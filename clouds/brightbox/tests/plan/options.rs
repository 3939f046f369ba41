//! What is done differently from the replaced program where somebody asks for it, and what people are told unasked.

use std::sync::Arc;

use cloudberth_brightbox::{Action, Observed, Switches};
use cloudberth_core::{
    NodeView,
    lb::{Desired, Next},
    view::ExternalTrafficPolicy,
};
use serde_json::json;

use crate::fixture::{
    FQDN, NAME, Way, account, aged, annotated, built, edited, notices, port, secure, service, settle,
    settle_with, want,
};

const NARROW: Switches = switches(true, false);
const LENIENT: Switches = switches(false, true);
const TARGET: &str = "cloudberth.dev/brightbox-healthcheck-target";

const fn switches(narrow_firewall: bool, lenient_ssl_ports: bool) -> Switches {
    let reporting = cloudberth_brightbox::Reporting { internal: false };
    Switches { reporting, k3s: false, publish_addresses: false, narrow_firewall, lenient_ssl_ports }
}

fn sources(observed: &Observed) -> Vec<&str> {
    observed.policies[0].rules.iter().map(|rule| rule.source.as_str()).collect()
}

#[test]
fn only_the_load_balancer_itself_is_let_through_where_somebody_asks_for_it() {
    let asks = want(service(&[]));
    let way = settle_with(&asks, account(&["srv-a"]), NARROW);
    assert_eq!(way.last.next, Next::Converged, "F17 {:?}", way.labels);
    let id = way.observed.balancers[0].id.clone();
    assert_eq!(sources(&way.observed), [id.as_str()], "F17");
    let at = |what: &str| way.labels.iter().position(|label| label.contains(what)).unwrap();
    assert!(at("create load balancer") < at("open ports"), "F17 its id comes first {:?}", way.labels);
    assert!(at("open ports") < at("map Cloud IP"), "F17 nobody is led to closed ports {:?}", way.labels);
    let again = settle_with(&asks, aged(way.observed.clone()), NARROW);
    assert_eq!(again.labels, [""; 0], "F17 it rests");
    let back = settle(&asks, aged(way.observed));
    assert!(matches!(&back.acts[..], [Action::UpdateRule { .. }]), "F17 {:?}", back.labels);
    assert_eq!(sources(&back.observed), ["10.0.0.0/8"], "F17 and back");
}

#[test]
fn many_ports_are_narrowed_too_and_rules_by_hand_stay() {
    let asks = want(cloudberth_core::ServiceView {
        ports: (0..20).map(|at| port(&format!("p{at}"), 1_000 + at, 30_000 + at)).collect(),
        ..service(&[])
    });
    let mut before = settle(&asks, account(&["srv-a"])).observed;
    let mut by_hand = before.policies[0].rules[0].clone();
    by_hand.id = "fwr-hand0".to_owned();
    by_hand.description = "by hand".to_owned();
    before.policies[0].rules.push(by_hand);
    let id = before.balancers[0].id.clone();
    let way = settle_with(&asks, aged(before), NARROW);
    assert_eq!(sources(&way.observed), [id.as_str(), id.as_str(), "10.0.0.0/8"], "F17 {:?}", way.labels);
}

fn protocols(ports: &str, switches: Switches) -> (String, Way) {
    let mut asks = secure(&[("ssl-ports", ports), ("ssl-domains", FQDN)]);
    asks.ports.extend([port("fancy", 5050, 31_349), port("charm", 3030, 31_350)]);
    let way = settle_with(&want(asks), account(&["srv-a"]), switches);
    let listeners = way.observed.balancers[0].listeners.iter();
    (listeners.map(|one| one.protocol.as_str()).collect::<Vec<_>>().join(" "), way)
}

#[test]
fn blanks_and_stars_in_ssl_ports_count_where_somebody_asks_for_it() {
    let table = [
        ("443, 3030", "https http http https"),
        (" fancy ,3030", "https http https https"),
        ("*", "https https https https"),
        ("443, *", "https https https https"),
        ("fancy", "https http https http"),
        (", ", "https http http http"),
    ];
    for (ports, want) in table {
        let (got, way) = protocols(ports, LENIENT);
        assert_eq!(got, want, "F36 {ports:?}");
        let said = notices(&way.last);
        assert!(!said.iter().any(|line| line.contains("ssl-ports")), "F36 {ports:?} {said:?}");
    }
    assert_eq!(protocols("*", Switches::default()).0, "https http http http", "F36 BB-97");
}

/// Type, port and path of the check, and what the firewall lets through.
fn check(want: &Desired) -> (String, Way) {
    let way = settle(want, account(&["srv-a"]));
    let check = &way.observed.balancers[0].healthcheck;
    let open = &way.observed.policies[0].rules[0].destination_port;
    (format!("{} {} {} open {open}", check.kind, check.port, check.request), way)
}

#[test]
fn kube_proxy_answers_checks_where_somebody_asks_for_it() {
    let local = |want: &Desired| {
        edited(want, |service| {
            service.external_traffic_policy = ExternalTrafficPolicy::Local;
            service.health_check_node_port = 30_999;
        })
    };
    let (kube, tcp) = ((TARGET, "kube-proxy"), ("listener-protocol", "tcp"));
    let plain = want(service(&[kube]));
    let table = [
        ("by default the workload", want(service(&[])), "http 31348 /healthz open 31348"),
        ("said aloud", want(service(&[(TARGET, "node-port")])), "http 31348 /healthz open 31348"),
        ("kube-proxy", plain.clone(), "http 10256 /healthz open 31348,10256"),
        ("of a tcp Service", want(service(&[kube, tcp])), "http 10256 /healthz open 31348,10256"),
        ("over tcp", want(service(&[kube, ("healthcheck-protocol", "tcp")])), "tcp 10256 / open 31348,10256"),
        (
            "another path",
            want(service(&[kube, ("healthcheck-request", "/livez")])),
            "http 10256 /livez open 31348,10256",
        ),
        ("Local asks it anyway", local(&plain), "http 30999 /healthz open 31348,30999"),
    ];
    for (case, want, expected) in table {
        assert_eq!(check(&want).0, expected, "F26 {case}");
    }
}

#[test]
fn a_wrong_target_is_refused_and_the_check_stays() {
    for before in ["node-port", "kube-proxy"] {
        let (want, observed) = built(&want(service(&[(TARGET, before)])), &["srv-a"]);
        let way = settle(&annotated(&want, TARGET, Some("kubelet")), observed);
        assert_eq!(way.labels, [""; 0], "F26 L8-1604 {before}");
        assert_eq!(way.last.refused.len(), 1, "F26 L8-1604 {:?}", way.last.refused);
    }
}

#[test]
fn people_are_told_once_that_the_workload_is_asked() {
    let said = |want: &Desired| {
        let told = notices(&settle(want, account(&["srv-a"])).last);
        told.iter().any(|line| line.contains("ChecksAskWorkload") && line.contains("31348"))
    };
    let table = [
        ("nobody chose", &[][..], true),
        ("a path", &[("healthcheck-request", "/x")], false),
        ("a protocol", &[("healthcheck-protocol", "http")], false),
        ("kube-proxy", &[(TARGET, "kube-proxy")], false),
        ("tcp", &[("listener-protocol", "tcp")], false),
    ];
    for (case, annotations, want_said) in table {
        assert_eq!(said(&want(service(annotations))), want_said, "F26 {case}");
    }
    let (want, mut observed) = built(&want(service(&[])), &["srv-a"]);
    assert_eq!(notices(&settle(&want, observed.clone()).last), [""; 0], "F26 not at rest");
    observed.servers.found.push("srv-b".to_owned());
    assert_eq!(notices(&settle(&want, observed).last), [""; 0], "F26 not again");
}

#[test]
fn another_cluster_of_the_name_is_suspected_where_no_server_is_ours() {
    let node = |id: &str| {
        let provider_id = Some(format!("brightbox://{id}"));
        Arc::new(NodeView { name: id.to_owned(), provider_id, ..NodeView::default() })
    };
    let (asks, observed) = built(&want(service(&[])), &["srv-a", "srv-b"]);
    let told = |behind: &[&str], found: &[&str], nodes: &[&str]| {
        let mut observed = observed.clone();
        observed.balancers[0].nodes =
            behind.iter().map(|id| crate::fixture::read(json!({"id": id}))).collect();
        observed.servers.found = found.iter().map(|id| (*id).to_owned()).collect();
        let want = Desired { nodes: nodes.iter().map(|id| node(id)).collect(), ..asks.clone() };
        let told = notices(&crate::fixture::decide(&want, &observed));
        told.iter().any(|line| line.contains("ClusterNameShared") && line.contains(NAME))
    };
    let table = [
        ("none is ours", told(&["srv-x", "srv-y"], &["srv-a"], &[]), true),
        ("one is", told(&["srv-x", "srv-a"], &["srv-a"], &[]), false),
        ("one is a node that takes no traffic", told(&["srv-x", "srv-b"], &["srv-a"], &["srv-b"]), false),
        ("one server says little", told(&["srv-x"], &["srv-a"], &[]), false),
        ("nothing is known of our own", told(&["srv-x", "srv-y"], &[], &[]), false),
    ];
    for (case, got, want) in table {
        assert_eq!(got, want, "F27 {case}");
    }
}
