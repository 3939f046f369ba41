//! The ways in which the replaced programs were used.

use serde_json::{Value, json};

use super::{annotated, ports};

/// What the first generation calls the load balancer of `default/web` in the cluster `test`.
const NAME: &str = "k8s-test-default-web";

/// One way to use a replaced program: what a user wrote, and what it made of that.
#[derive(Clone, Debug)]
pub struct Variant {
    /// What is special about it.
    pub case: &'static str,
    /// What the Service says beside port 80.
    pub(super) service: Value,
    pub(super) rules: &'static [&'static str],
    /// Protocol and path of the health check.
    pub(super) check: (&'static str, &'static str),
    pub(super) region: Option<&'static str>,
    pub(super) name: &'static str,
    /// The id of the load balancer was written on the Service by hand: the program read it and never wrote it.
    pub(super) recorded: bool,
    /// Nodes and routes, no load balancer.
    pub(super) routed: bool,
    /// Whether the program would do the same again with the settings that it has by default.
    pub(super) usual: bool,
}

/// One without anything special.
pub fn plain(case: &'static str) -> Variant {
    Variant {
        case,
        service: json!({}),
        rules: &["http"],
        check: ("http", "/"),
        region: None,
        name: NAME,
        recorded: false,
        routed: false,
        usual: true,
    }
}

/// Nodes and load balancers.
pub fn first_generation() -> Vec<Variant> {
    let mut https = annotated(&[("protocol", json!("https")), ("healthcheck-protocol", json!("http"))]);
    sim_kit::merge(&mut https, ports(&[443]));
    let mut half = annotated(&[("protocol", json!("http"))]);
    sim_kit::merge(&mut half, ports(&[80, 443]));
    vec![
        plain("plain"),
        Variant { recorded: true, ..plain("recorded by hand") },
        Variant { region: Some("bne"), usual: false, ..plain("regional") },
        Variant { name: "k8s-Test-default-web", usual: false, ..plain("another spelling of the cluster") },
        Variant {
            service: annotated(&[("healthcheck-path", json!("/up"))]),
            check: ("http", "/up"),
            ..plain("a path in the old spelling")
        },
        Variant { service: https, rules: &["https"], ..plain("https, checked over http") },
        Variant { service: half, ..plain("one of two ports, as the annotation says") },
        Variant {
            service: json!({"spec": {"externalTrafficPolicy": "Cluster", "loadBalancerSourceRanges": ["10.0.0.0/8"]}}),
            ..plain("sources, which the nodes look after")
        },
        Variant { service: ports(&[5432]), usual: false, ..plain("a port that it never forwarded") },
        Variant {
            service: json!({"spec": {"sessionAffinity": "ClientIP"}}),
            usual: false,
            ..plain("an affinity that it ignored")
        },
    ]
}

/// Nodes and routes.
pub fn second_generation() -> Vec<Variant> {
    vec![Variant { routed: true, usual: false, ..plain("nodes and routes") }]
}
