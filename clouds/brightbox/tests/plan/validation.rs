//! What is refused, in which order, and that everything is said at once.

use cloudberth_brightbox::{Switches, decide as decide_with};
use cloudberth_core::{
    ServiceView,
    view::{ServicePort, ServiceProtocol, SessionAffinity},
};

use crate::fixture::{
    PREFIX, built, decide, edited, notices, port, refused, secure, service, settle, udp, want,
};

const AWS_INTERVAL: &str = "service.beta.kubernetes.io/aws-load-balancer-healthcheck-interval";

/// What each refusal has to say, in order.
fn assert_refused(case: &str, service: ServiceView, want: &[&[&str]]) {
    let said = refused(service);
    assert_eq!(said.len(), want.len(), "{case}: {said:?}");
    for (said, words) in said.iter().zip(want) {
        assert!(words.iter().all(|word| said.contains(word)), "{case}: {words:?} in {said:?}");
    }
}

fn ports(list: Vec<ServicePort>) -> ServiceView {
    ServiceView { ports: list, ..service(&[]) }
}

/// The case, the annotations, and what the refusal has to say.
type Refused<'a> = (&'a str, &'a [(&'a str, &'a str)], &'a [&'a str]);

#[test]
fn fields_are_checked_first() {
    let affinity = |kind| ServiceView { session_affinity: kind, ports: Vec::new(), ..service(&[]) };
    let client_ip = SessionAffinity::ClientIp { timeout_seconds: None };
    assert_refused(
        "BB-62",
        affinity(client_ip),
        &[&["spec.sessionAffinity", "ClientIP"], &["without ports"]],
    );
    assert_refused(
        "BB-62",
        ServiceView { ports: vec![port("", 80, 1)], ..affinity(SessionAffinity::Other("x".to_owned())) },
        &[&["x is not supported"]],
    );
    assert_refused("BB-63", ports(Vec::new()), &[&["spec.ports", "without ports"]]);
    let mixed = vec![port("", 443, 31_347), port("", 80, 31_348), udp(53)];
    assert_refused("BB-64", ports(mixed), &[&["UDP on port 53", "only TCP"]]);
    let sctp = ServicePort { protocol: ServiceProtocol::Sctp, ..port("", 80, 31_348) };
    assert_refused("BB-83", ports(vec![sctp]), &[&["SCTP", "only TCP"]]);
    assert_refused(
        "BB-87",
        ports(vec![port("", 80, 0)]),
        &[&["spec.ports[].nodePort", "allocateLoadBalancerNodePorts"]],
    );
    let both = ServiceView {
        load_balancer_ip: Some("203.0.113.9".to_owned()),
        ..service(&[("cloudip-allocations", "cip-q4t9z")])
    };
    assert_refused("BB-82", both, &[&["remove the obsolete loadBalancerIP field", "cloudip-allocations"]]);
    let fred = ServiceView { load_balancer_ip: Some("fred".to_owned()), ..service(&[]) };
    assert_refused("BB-105", fred, &[&["spec.loadBalancerIP", "fred"]]);
}

#[test]
fn annotations_are_checked_one_by_one() {
    let table: &[Refused<'_>] = &[
        ("BB-65", &[("policy", "magic-routing")], &["policy", "magic-routing"]),
        ("BB-66", &[("listener-proxy-protocol", "v1-ssl")], &["listener-proxy-protocol", "v1-ssl"]),
        (
            "BB-67",
            &[("listener-protocol", "tcp"), ("ssl-domains", "a.example")],
            &["SSL domains cannot be used with tcp"],
        ),
        ("BB-74", &[("listener-protocol", "gopher")], &["listener-protocol", "gopher"]),
        ("BB-83", &[("listener-protocol", "TCP")], &["listener-protocol", "TCP"]),
        ("BB-75", &[("healthcheck-request", "fred")], &["healthcheck-request", "URL path"]),
        ("BB-76", &[("healthcheck-request", "/a?b=1")], &["healthcheck-request"]),
        ("BB-77", &[("healthcheck-protocol", "https")], &["healthcheck-protocol", "https"]),
        ("BB-78", &[("ssl-ports", "443")], &["ssl-ports", "needs", "ssl-domains"]),
        ("BB-170", &[("ssl-ports", "")], &["ssl-ports", "needs", "ssl-domains"]),
        ("BB-79", &[(AWS_INTERVAL, "-1")], &["aws-load-balancer-healthcheck-interval", "not a number"]),
        ("BB-79", &[(AWS_INTERVAL, "0x56")], &["aws-load-balancer-healthcheck-interval", "not a number"]),
        ("BB-80", &[("healthcheck-timeout", "4294967296")], &["healthcheck-timeout", "out of range"]),
        ("BB-81", &[("cloudip-allocations", "cip-123-45")], &["cloudip-allocations", "^cip-[0-9a-z]{5,}$"]),
        (
            "BB-87",
            &[("listener-idle-timeout", "100")],
            &["listener-idle-timeout", "positive number", "out of range"],
        ),
        ("an empty value", &[("policy", "")], &["policy"]),
        ("an empty number", &[("healthcheck-timeout", "")], &["healthcheck-timeout", "not a number"]),
    ];
    for (case, annotations, words) in table {
        assert_refused(case, secure(annotations), &[words]);
    }
    let both: &[(&str, &str)] =
        &[("listener-protocol", "tcp"), ("ssl-ports", "80"), ("ssl-domains", "a.example")];
    assert_refused("BB-68", secure(both), &[&["SSL ports cannot be used with tcp"], &["SSL domains cannot"]]);
}

#[test]
fn ssl_needs_port_443() {
    for (case, annotations) in [
        ("BB-72", &[("listener-protocol", "http"), ("ssl-domains", "a.example")][..]),
        ("BB-72 by default", &[("ssl-domains", "a.example")]),
        ("BB-73", &[("ssl-ports", "http"), ("ssl-domains", "a.example")]),
    ] {
        assert_refused(case, service(annotations), &[&["SSL needs a port 443"]]);
    }
    let everywhere = service(&[("listener-protocol", "https"), ("ssl-domains", "a.example")]);
    assert_refused("V4 does not count where every port speaks https", everywhere, &[]);
}

#[test]
fn what_can_be_served_is_accepted() {
    let table: &[(&str, &[(&str, &str)])] = &[
        ("BB-69", &[("listener-protocol", "tcp"), ("listener-proxy-protocol", "v2-ssl-cn")]),
        ("BB-69", &[("listener-protocol", "http"), ("listener-proxy-protocol", "v2-ssl")]),
        ("BB-70", &[("listener-protocol", "http"), ("ssl-domains", "a.example")]),
        ("BB-71", &[("listener-protocol", "https"), ("ssl-domains", "a.example")]),
        ("BB-76", &[("healthcheck-request", "/a/b")]),
        ("BB-76 empty", &[("healthcheck-request", "")]),
        ("BB-80", &[("healthcheck-timeout", "4294967295")]),
        ("BB-169 no domain at all", &[("ssl-domains", "")]),
        ("zero is not set", &[("listener-idle-timeout", "0"), ("healthcheck-healthy-threshold", "0")]),
        ("BB-85", &[("healthcheck-interval", "often")]),
    ];
    for (case, annotations) in table {
        assert_refused(case, secure(annotations), &[]);
    }
}

#[test]
fn all_faults_are_said_at_once_and_in_one_order() {
    let bad = ServiceView {
        session_affinity: SessionAffinity::ClientIp { timeout_seconds: None },
        ..secure(&[("policy", "x"), ("healthcheck-protocol", "x"), ("healthcheck-timeout", "x")])
    };
    let order: &[&[&str]] =
        &[&["sessionAffinity"], &["-policy"], &["healthcheck-protocol"], &["healthcheck-timeout"]];
    assert_refused("BB-86", bad.clone(), order);
    assert_eq!(refused(bad.clone()), refused(bad), "BB-86 always the same");
}

#[test]
fn both_names_of_the_interval_are_read() {
    let interval = |annotations: &[(&str, &str)]| {
        let decision = decide_with(&want(service(annotations)), None, Switches::default());
        let new = crate::fixture::created(service(annotations), &["srv-aaaaa"]);
        (new["healthcheck"]["interval"].clone(), notices(&decision))
    };
    let (value, said) = interval(&[("healthcheck-interval", "4000"), (AWS_INTERVAL, "6000")]);
    assert_eq!(value, 4_000, "BB-84");
    assert!(
        said.iter().any(|line| line.contains("aws-load-balancer") && line.contains("ignored")),
        "BB-84 {said:?}"
    );
    assert_eq!(
        interval(&[("healthcheck-interval", "4000"), (AWS_INTERVAL, "4000")]),
        (4_000.into(), vec![]),
        "BB-84"
    );
    assert_eq!(interval(&[("healthcheck-interval", "4000")]).0, 4_000, "BB-85");
    assert_eq!(interval(&[(AWS_INTERVAL, "6000")]), (6_000.into(), vec![]), "BB-84");
    let (value, said) = interval(&[("healthcheck-interval", "often")]);
    assert!(
        value.is_null() && said.iter().any(|line| line.contains("healthcheck-interval")),
        "BB-85 {said:?}"
    );
}

#[test]
fn keys_that_do_nothing_are_told_of() {
    let of = |key: &str, value: &str| {
        let decision = decide_with(&want(service(&[(key, value)])), None, Switches::default());
        assert!(decision.refused.is_empty(), "{key}");
        notices(&decision)
    };
    for (key, word) in
        [("buffer-size", "no effect"), ("idle-timeout", "listener-idle-timeout"), ("polcy", "did you mean")]
    {
        let said = of(key, "60000");
        assert!(
            said.iter().any(|line| line.contains(PREFIX) && line.contains(word)),
            "BB-181 {key}: {said:?}"
        );
    }
    for (case, ports) in [("BB-185 blanks", "443, 3030"), ("BB-185 a star", "*")] {
        let asks = secure(&[("ssl-ports", ports), ("ssl-domains", "a.example")]);
        let decision = decide_with(&want(asks), None, Switches::default());
        assert!(notices(&decision).iter().any(|line| line.contains("ssl-ports")), "{case}");
    }
}

#[test]
fn sources_are_refused_for_a_new_one_and_warned_about_on_another() {
    let limited = |service: &mut ServiceView| service.source_ranges = Some(vec!["10.0.0.0/8".to_owned()]);
    let mut new = service(&[]);
    limited(&mut new);
    assert_refused("BB-180 L8-1601", new, &[&["spec.loadBalancerSourceRanges", "cannot limit"]]);
    let mut open = service(&[]);
    open.source_ranges = Some(vec!["0.0.0.0/0".to_owned()]);
    assert_refused("BB-180 everybody", open, &[]);
    let by_annotation = service(&[("service.beta.kubernetes.io/load-balancer-source-ranges", "10.0.0.0/8")]);
    assert_refused("BB-180 by annotation", by_annotation, &[&["load-balancer-source-ranges"]]);
    let (want, observed) = built(&want(service(&[])), &["srv-aaaaa"]);
    let decision = decide(&edited(&want, limited), &observed);
    assert!(decision.refused.is_empty(), "BB-180 {:?}", decision.refused);
    assert!(notices(&decision).iter().any(|line| line.contains("everybody can")), "BB-180");
}

#[test]
fn a_refusal_keeps_what_runs_and_lets_the_rest_go_on() {
    let asks = [("listener-protocol", "tcp"), ("policy", "round-robin"), ("healthcheck-timeout", "4000")];
    let (want, observed) = built(&want(service(&asks)), &["srv-aaaaa"]);
    for (key, value) in [
        ("listener-protocol", "x"),
        ("policy", "x"),
        ("healthcheck-timeout", "x"),
        ("listener-proxy-protocol", "x"),
        ("cloudip-allocations", "x"),
    ] {
        let asks = crate::fixture::annotated(&want, key, Some(value));
        let way = settle(&asks, observed.clone());
        assert_eq!(way.labels, [""; 0], "L8-1602 {key}: nothing changes because of it");
        assert_eq!(way.last.refused.len(), 1, "L8-1602 {key}");
        let mut more = observed.clone();
        more.servers.found.push("srv-bbbbb".to_owned());
        let way = settle(&asks, more);
        assert_eq!(way.acts.len(), 2, "L8-1603 {key}: nodes go on {:?}", way.labels);
        let live = way.observed.live().unwrap();
        assert_eq!(
            (live.listeners[0].protocol.as_str(), live.policy.as_deref()),
            ("tcp", Some("round-robin")),
            "L8-1602 {key}"
        );
    }
}
