//! Every annotation, declared once: reading, refusals and the reference page follow from this table.

#![allow(missing_docs, reason = "each key states its meaning in its own declaration")]

use cloudberth_core::{
    annotation::{Key, OneOf, Pattern, Table, Text, Unsigned},
    lb::Impact,
};

/// Longest times and highest counts that the API takes.
const DAY: u32 = 86_400;

pub static POLICY: Key<OneOf<&'static str>> = Key::new(
    "service.beta.kubernetes.io/cloudlycke-load-balancer-policy",
    OneOf::exact(&[
        ("round-robin", "round-robin"),
        ("least-connections", "least-connections"),
        ("source-hash", "source-hash"),
    ]),
)
.default("round-robin")
.impact(Impact::None)
.about("Which node gets the next connection. `spec.sessionAffinity` goes before it.");

pub static PROXY_PROTOCOL: Key<OneOf<&'static str>> = Key::new(
    "service.beta.kubernetes.io/cloudlycke-load-balancer-proxy-protocol",
    OneOf::exact(&[("none", "none"), ("v1", "v1"), ("v2", "v2")]),
)
.default("none")
.impact(Impact::Minimal)
.about("The version of the PROXY header that TCP connections to nodes begin with, so that pods see clients.");

pub static IDLE_TIMEOUT: Key<Unsigned> =
    Key::new("service.beta.kubernetes.io/cloudlycke-load-balancer-idle-timeout", Unsigned::between(0, DAY))
        .default("600")
        .impact(Impact::Minimal)
        .about("After so many seconds without a byte a TCP connection is closed; 0 never does.");

pub static HEALTH_PROTOCOL: Key<OneOf<&'static str>> = Key::new(
    "service.beta.kubernetes.io/cloudlycke-load-balancer-healthcheck-protocol",
    OneOf::exact(&[("auto", "auto"), ("tcp", "tcp"), ("http", "http"), ("none", "none")]),
)
.default("auto")
.impact(Impact::Minimal)
.about(
    "How nodes are checked. `auto` asks kube-proxy with `externalTrafficPolicy: Local`, and connects to the node ports \
     otherwise; `none` takes every node for healthy.",
);

pub static HEALTH_PORT: Key<Unsigned> = Key::new(
    "service.beta.kubernetes.io/cloudlycke-load-balancer-healthcheck-port",
    Unsigned::between(1, 65_535),
)
.derived("the node ports, or `spec.healthCheckNodePort`")
.impact(Impact::Minimal)
.about(
    "The port of nodes that is checked. `http` needs one, unless the Service has a `healthCheckNodePort`.",
);

pub static HEALTH_PATH: Key<Pattern> = Key::new(
    "service.beta.kubernetes.io/cloudlycke-load-balancer-healthcheck-path",
    Pattern::new("a path that begins with / and has no blanks", is_path),
)
.default("/healthz")
.impact(Impact::Minimal)
.about("The path that is asked for, if nodes are checked over HTTP.");

pub static HEALTH_INTERVAL: Key<Unsigned> = Key::new(
    "service.beta.kubernetes.io/cloudlycke-load-balancer-healthcheck-interval",
    Unsigned::between(1, DAY),
)
.default("2")
.impact(Impact::None)
.about("Seconds between two checks.");

pub static HEALTH_TIMEOUT: Key<Unsigned> = Key::new(
    "service.beta.kubernetes.io/cloudlycke-load-balancer-healthcheck-timeout",
    Unsigned::between(1, DAY),
)
.default("1")
.impact(Impact::None)
.about("Seconds that the answer to a check may take.");

pub static HEALTHY_THRESHOLD: Key<Unsigned> = Key::new(
    "service.beta.kubernetes.io/cloudlycke-load-balancer-healthcheck-healthy-threshold",
    Unsigned::between(1, 1_000),
)
.default("1")
.impact(Impact::None)
.about("So many good checks in a row bring a node back.");

pub static UNHEALTHY_THRESHOLD: Key<Unsigned> = Key::new(
    "service.beta.kubernetes.io/cloudlycke-load-balancer-healthcheck-unhealthy-threshold",
    Unsigned::between(1, 1_000),
)
.default("2")
.impact(Impact::None)
.about("So many bad checks in a row take a node out.");

pub static ADDRESS_MODE: Key<OneOf<&'static str>> = Key::new(
    "service.beta.kubernetes.io/cloudlycke-load-balancer-address-mode",
    OneOf::exact(&[("loopback", "loopback"), ("shared", "shared"), ("pool", "pool")]),
)
.derived("the `mode` of the inventory")
.impact(Impact::Major)
.about("Where the address comes from. A change moves the load balancer to another address.");

pub static ID: Key<Text> = Key::new("cloudlycke.io/load-balancer", Text)
    .recorded()
    .about("The load balancer: cluster, namespace and name. Written when it exists; what stands here decides nothing.");

pub static SHIFTED_PORTS: Key<Text> = Key::new("cloudlycke.io/shifted-ports", Text).recorded().about(
    "The ports below 1024 that the service may not bind, each with the port that it listens on instead: `80=10080`.",
);

pub static MODE_IN_FORCE: Key<Text> = Key::new("cloudlycke.io/address-mode", Text)
    .recorded()
    .about("The address mode that an annotation asked for, so that its removal is noticed.");

/// All of them. An empty value counts as not set.
pub static TABLE: Table = Table::new(&[
    &POLICY,
    &PROXY_PROTOCOL,
    &IDLE_TIMEOUT,
    &HEALTH_PROTOCOL,
    &HEALTH_PORT,
    &HEALTH_PATH,
    &HEALTH_INTERVAL,
    &HEALTH_TIMEOUT,
    &HEALTHY_THRESHOLD,
    &UNHEALTHY_THRESHOLD,
    &ADDRESS_MODE,
    &ID,
    &SHIFTED_PORTS,
    &MODE_IN_FORCE,
])
.watching(&["service.beta.kubernetes.io/cloudlycke-", "cloudlycke.io/"])
.trimmed()
.empty_is_absent();

fn is_path(text: &str) -> bool {
    text.starts_with('/') && text.bytes().all(|b| b.is_ascii_graphic())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_is_sound() {
        assert_eq!(TABLE.flaws(), [""; 0]);
    }

    #[test]
    fn a_path_has_no_blanks() {
        for good in ["/", "/healthz", "/a?b=c"] {
            assert!(is_path(good), "{good}");
        }
        for bad in ["", "healthz", "/a b", "/a\r\nHost: x", "/ä"] {
            assert!(!is_path(bad), "{bad:?}");
        }
    }
}
