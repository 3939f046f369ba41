use serde_json::{Value, json};

use super::*;

fn full() -> Value {
    json!({
        "uid": "5d0c", "requestedAddress": "127.77.0.9", "families": ["IPv4"],
        "listeners": [
            {"protocol": "UDP", "port": 53, "nodePort": 31053},
            {"protocol": "TCP", "port": 80, "nodePort": 30222},
        ],
        "backends": [
            {"machine": "n-c2-2", "address": "192.168.20.12"},
            {"machine": "n-c2-1", "address": "192.168.20.11"},
        ],
        "affinity": {"kind": "ClientIP", "timeoutSeconds": 10800},
        "sourceRanges": ["127.0.0.1/8", "10.0.0.0/8"],
        "health": {"kind": "http", "port": 32000, "path": "/healthz"},
        "proxyProtocol": "v1", "policy": "source-hash", "idleTimeoutSeconds": 0, "addressMode": "loopback",
    })
}

fn small() -> Value {
    json!({"uid": "u", "listeners": [{"protocol": "TCP", "port": 80, "nodePort": 30222}]})
}

fn parsed(body: &Value) -> Spec {
    read(body, AddressMode::Loopback).unwrap()
}

#[test]
fn what_is_shown_reads_as_the_same() {
    for body in [full(), small()] {
        let spec = parsed(&body);
        let shown = serde_json::to_value(SpecView::new(&spec, spec.address_mode)).unwrap();
        assert_eq!(parsed(&shown), spec);
        let filled = serde_json::to_value(SpecView::new(&spec, Some(AddressMode::Loopback))).unwrap();
        assert!(parsed(&filled).is_same_as(&spec, AddressMode::Loopback), "CL-79 defaults spelt out");
    }
    let shown = serde_json::to_value(SpecView::new(&parsed(&small()), Some(AddressMode::Loopback))).unwrap();
    let want = json!({
        "uid": "u", "requestedAddress": "", "families": ["IPv4"],
        "listeners": [{"protocol": "TCP", "port": 80, "nodePort": 30222}],
        "backends": [], "affinity": {"kind": "None"}, "sourceRanges": [],
        "health": {"kind": "auto", "path": "/healthz", "intervalSeconds": 2, "timeoutSeconds": 1,
                   "healthyThreshold": 1, "unhealthyThreshold": 2},
        "proxyProtocol": "none", "policy": "round-robin", "idleTimeoutSeconds": 600, "addressMode": "loopback",
    });
    assert_eq!(shown, want);
}

#[test]
fn order_and_spelling_make_no_difference() {
    let spec = parsed(&full());
    let mut other = full();
    for list in ["listeners", "backends", "sourceRanges"] {
        other[list].as_array_mut().unwrap().reverse();
    }
    other["sourceRanges"] = json!(["10.1.2.3/8", "127.0.0.0/8", "127.255.0.0/8"]);
    other["requestedAddress"] = json!("127.077.0.9");
    other["health"]["intervalSeconds"] = json!(2);
    other["addressMode"] = Value::Null;
    assert!(parsed(&other).is_same_as(&spec, AddressMode::Loopback), "CL-79");
    assert!(!parsed(&other).is_same_as(&spec, AddressMode::Shared), "the inventory's mode is another");
    for (field, value) in [
        ("uid", json!("other")),
        ("policy", json!("round-robin")),
        ("idleTimeoutSeconds", json!(1)),
        ("requestedAddress", json!("")),
        ("backends", json!([])),
    ] {
        let mut other = full();
        other[field] = value;
        assert!(!parsed(&other).is_same_as(&spec, AddressMode::Loopback), "CL-79 {field} is another");
    }
}

#[test]
#[expect(clippy::too_many_lines, reason = "a row for each rule")]
fn every_fault_is_named_with_its_field_and_value() {
    let table: &[(&str, &str, Value, &str)] = &[
        ("CL-91", "", json!([]), "[] must be an object"),
        ("CL-91", "colour", json!("red"), "colour: there is no such field"),
        ("CL-91", "polcy", json!("x"), "polcy: there is no such field; did you mean policy?"),
        ("CL-91", "uid", json!(7), "uid: 7 must be text"),
        ("CL-91", "uid", json!(""), "uid: \"\" must not be empty"),
        ("CL-91", "uid", Value::Null, "uid: it is missing"),
        ("CL-42", "requestedAddress", json!("here"), "requestedAddress: \"here\" is not an IP address"),
        ("CL-91", "families", json!(["IPv5"]), "families[0]: \"IPv5\" must be one of IPv4, IPv6"),
        ("CL-91", "families", json!([]), "families: [] must name at least one family"),
        ("CL-91", "families", json!(["IPv4", "IPv4"]), "families: each family may be named once only"),
        ("CL-91", "listeners", json!([]), "listeners: [] must have at least one"),
        ("CL-91", "listeners", json!({}), "listeners: {} must be a list"),
        (
            "CL-45",
            "listeners",
            json!([{"protocol": "SCTP", "port": 1, "nodePort": 1}]),
            "listeners[0].protocol: \"SCTP\" is not supported",
        ),
        (
            "CL-46",
            "listeners",
            json!([{"protocol": "TCP", "port": 1, "nodePort": 0}]),
            "listeners[0].nodePort: 0 must be a whole number from 1 to 65535",
        ),
        (
            "CL-91",
            "listeners",
            json!([{"protocol": "TCP", "port": 65536, "nodePort": 1}]),
            "listeners[0].port: 65536 must be",
        ),
        (
            "CL-91",
            "listeners",
            json!([{"protocol": "TCP", "port": "80", "nodePort": 1}]),
            "listeners[0].port: \"80\" must be",
        ),
        (
            "CL-91",
            "listeners",
            json!([{"protocol": "TCP", "port": 1, "nodePort": 1}, {"protocol": "TCP", "port": 1, "nodePort": 2}]),
            "listeners[1]: TCP 1 is there twice",
        ),
        (
            "CL-91",
            "backends",
            json!([{"machine": "a", "address": "x"}]),
            "backends[0].address: \"x\" is not an IP address",
        ),
        (
            "CL-91",
            "backends",
            json!([{"machine": "a", "address": "1.1.1.1"}, {"machine": "a", "address": "1.1.1.2"}]),
            "backends[1].machine: \"a\" is there twice",
        ),
        (
            "CL-91",
            "affinity",
            json!({"kind": "Cookie"}),
            "affinity.kind: \"Cookie\" must be one of None, ClientIP",
        ),
        (
            "CL-91",
            "affinity",
            json!({"kind": "ClientIP", "timeoutSeconds": 0}),
            "affinity.timeoutSeconds: 0 must be",
        ),
        ("CL-91", "sourceRanges", json!(["10.0.0.1"]), "sourceRanges[0]: \"10.0.0.1\" is not a CIDR"),
        ("CL-91", "health", json!({"kind": "http"}), "health.port: it is missing: kind http needs a port"),
        (
            "CL-91",
            "health",
            json!({"kind": "http", "port": 1, "path": "/a b"}),
            "health.path: \"/a b\" is not a path",
        ),
        (
            "CL-91",
            "health",
            json!({"kind": "tcp", "intervalSeconds": 0}),
            "health.intervalSeconds: 0 must be",
        ),
        ("CL-91", "proxyProtocol", json!("v3"), "proxyProtocol: \"v3\" must be one of none, v1, v2"),
        ("CL-91", "policy", json!("random"), "policy: \"random\" must be one of"),
        (
            "CL-91",
            "idleTimeoutSeconds",
            json!(86401),
            "idleTimeoutSeconds: 86401 must be a whole number from 0 to 86400",
        ),
        ("CL-91", "addressMode", json!("cloud"), "addressMode: \"cloud\" is not a mode"),
    ];
    for (case, field, value, want) in table {
        let mut body = small();
        if field.is_empty() {
            body = value.clone();
        } else {
            body[field] = value.clone();
        }
        let why = read(&body, AddressMode::Loopback).unwrap_err();
        assert!(why.starts_with(want), "{case} {field}: {why}");
    }
    let why = read(&json!({"uid": 1, "listeners": 2, "x": 3}), AddressMode::Loopback).unwrap_err();
    assert_eq!(
        why, "uid: 1 must be text; listeners: 2 must be a list; x: there is no such field",
        "CL-91 all at once"
    );
}

#[test]
fn the_plane_gets_what_was_asked_for() {
    let limits = crate::inventory::BalancerSettings::default().limits;
    let addresses = ["127.77.0.9".parse().unwrap()];
    let down = |machine: &str| (machine == "n-c2-2").then(|| "machine stopped".to_owned());
    let config = parsed(&full()).config(&addresses, limits, down);
    assert_eq!(config.addresses, addresses);
    assert_eq!(
        config.listeners[0],
        Listener { protocol: crate::plane::Protocol::Tcp, port: 80, node_port: 30222 }
    );
    assert_eq!(config.backends[1].down.as_deref(), Some("machine stopped"), "CL-82");
    assert_eq!(config.backends[0].down, None, "CL-82");
    assert_eq!(config.affinity, Some(Duration::from_secs(10_800)));
    assert_eq!(config.idle_timeout, None);
    assert_eq!(config.health.kind, HealthKind::Http { port: 32000, path: "/healthz".into() });
    let kind = |health: Value| {
        let mut body = small();
        body["health"] = health;
        parsed(&body).config(&addresses, limits, |_| None).health.kind
    };
    assert_eq!(kind(json!({"kind": "auto"})), HealthKind::Auto);
    assert_eq!(kind(json!({"kind": "auto", "port": 9})), HealthKind::Tcp { port: Some(9) });
    assert_eq!(kind(json!({"kind": "tcp"})), HealthKind::Tcp { port: None });
    assert_eq!(kind(json!({"kind": "none"})), HealthKind::None);
}
