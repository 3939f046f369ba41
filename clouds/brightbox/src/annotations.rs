//! Every annotation, declared once: reading, refusals and the reference page follow from this table.

#![allow(missing_docs, reason = "each key states its meaning in its own declaration")]

use cloudberth_core::{
    annotation::{Alias, By, Key, Kind, OneOf, Pattern, Retired, Table, Text, Unsigned},
    lb::Impact,
};

use crate::ids::is_cloud_ip_id;

macro_rules! prefixed {
    ($key:literal) => {
        concat!("service.beta.kubernetes.io/brightbox-load-balancer-", $key)
    };
}

pub static POLICY: Key<OneOf<&'static str>> = Key::new(
    prefixed!("policy"),
    OneOf::exact(&[
        ("least-connections", "least-connections"),
        ("round-robin", "round-robin"),
        ("source-address", "source-address"),
    ]),
)
.derived("the cloud's own, `least-connections`")
.impact(Impact::None)
.about("Which node takes the next connection.");

pub static LISTENER_PROTOCOL: Key<OneOf<&'static str>> = Key::new(
    prefixed!("listener-protocol"),
    OneOf::exact(&[("tcp", "tcp"), ("http", "http"), ("https", "https")]),
)
.default("http")
.impact(Impact::Considerable)
.about("What clients speak on every port. With `http`, port 443 and the ports of ssl-ports speak https.");

/// Milliseconds that the API accepts for idle connections.
const IDLE: std::ops::RangeInclusive<u32> = 5_000..=86_400_000;

pub static IDLE_TIMEOUT: Key<By<u32>> = Key::new(
    prefixed!("listener-idle-timeout"),
    By::new("0 (not set) or a positive number of milliseconds from 5000 to 86400000, digits only", |text| {
        let number = Unsigned::ANY.read(text)?;
        if number == 0 || IDLE.contains(&number) { Ok(number) } else { Err("out of range".to_owned()) }
    }),
)
.aliases(&[Alias::new(prefixed!("idle-timeout")).lenient().deprecated()])
.derived("the cloud's own, 50000")
.impact(Impact::Minimal)
.about("Milliseconds after which an idle connection is closed, on every port.");

pub static PROXY_PROTOCOL: Key<OneOf<&'static str>> = Key::new(
    prefixed!("listener-proxy-protocol"),
    OneOf::exact(&[("v1", "v1"), ("v2", "v2"), ("v2-ssl", "v2-ssl"), ("v2-ssl-cn", "v2-ssl-cn")]),
)
.impact(Impact::Considerable)
.about("The version of the PROXY protocol that nodes are spoken to in, on every port.");

pub static SSL_PORTS: Key<Text> = Key::new(prefixed!("ssl-ports"), Text)
    .derived("port 443 alone")
    .impact(Impact::Considerable)
    .about(
        "Further ports that speak https, by number or name, with commas and without blanks between them. With \
         BRIGHTBOX_LENIENT_SSL_PORTS blanks mean nothing, and `*` is every port.",
    );

pub static SSL_DOMAINS: Key<Text> = Key::new(prefixed!("ssl-domains"), Text)
    .impact(Impact::Minimal)
    .about(
        "Domains that the certificate is for beside the names of the Cloud IP, with commas between them. One that does \
         not lead to the Cloud IP yet is added once it does.",
    );

pub static CLOUD_IP: Key<Pattern> = Key::new(
    prefixed!("cloudip-allocations"),
    Pattern::new("the id of one Cloud IP, ^cip-[0-9a-z]{5,}$", is_cloud_ip_id),
)
.derived("a Cloud IP of its own")
.impact(Impact::Major)
.about("The Cloud IP to use. One that is given is never deleted.");

pub static CHECK_PROTOCOL: Key<OneOf<&'static str>> =
    Key::new(prefixed!("healthcheck-protocol"), OneOf::exact(&[("http", "http"), ("tcp", "tcp")]))
        .derived("`tcp` where the listeners speak tcp and the traffic policy is Cluster, otherwise `http`")
        .impact(Impact::Minimal)
        .about("How nodes are checked.");

pub static CHECK_REQUEST: Key<By<String>> =
    Key::new(prefixed!("healthcheck-request"), By::new("a URL path such as /healthz", read_path))
        .default("/healthz")
        .impact(Impact::Minimal)
        .about(
            "The path that is asked for in checks over http. With externalTrafficPolicy Cluster the workload itself has to \
             answer it.",
        );

/// A path is taken as it is, so it must mean itself in a URL. An empty one means that none is sent.
fn read_path(text: &str) -> Result<String, String> {
    let plain = |c: char| !c.is_control() && !matches!(c, '?' | '#' | '%');
    if text.is_empty() || (text.starts_with('/') && text.chars().all(plain)) {
        Ok(text.to_owned())
    } else {
        Err(String::new())
    }
}

pub static CHECK_TARGET: Key<OneOf<&'static str>> = Key::new(
    "cloudberth.dev/brightbox-healthcheck-target",
    OneOf::exact(&[("node-port", "node-port"), ("kube-proxy", "kube-proxy")]),
)
.default("node-port")
.impact(Impact::Minimal)
.about(
    "Who answers checks with externalTrafficPolicy Cluster: the workload, on the first node port, or kube-proxy, on port \
     10256 of each node.",
);

macro_rules! numbers {
    ($( $name:ident: $key:literal, $default:literal, $about:literal; )*) => { $(
        pub static $name: Key<Unsigned> = Key::new(prefixed!($key), Unsigned::ANY)
            .derived($default)
            .impact(Impact::None)
            .about($about);
    )* };
}

numbers! {
    CHECK_TIMEOUT: "healthcheck-timeout", "the cloud's own, 5000", "Milliseconds after which a check has failed; 0 is not set.";
    CHECK_UP: "healthcheck-healthy-threshold", "the cloud's own, 3", "Successful checks until a node takes traffic; 0 is not set.";
    CHECK_DOWN: "healthcheck-unhealthy-threshold", "the cloud's own, 3", "Failed checks until a node takes none; 0 is not set.";
}

/// The replaced program reads the second name alone, by mistake; the vendor's examples use the first.
pub static CHECK_INTERVAL: Key<Unsigned> = Key::new(prefixed!("healthcheck-interval"), Unsigned::ANY)
    .lenient()
    .aliases(&[Alias::new("service.beta.kubernetes.io/aws-load-balancer-healthcheck-interval")])
    .derived("the cloud's own, 5000")
    .impact(Impact::None)
    .about("Milliseconds between two checks of a node; 0 is not set.");

pub static APPLIED: Key<Text> = Key::new("cloudberth.dev/applied", Text).recorded().about(
    "A digest of the settings that were last written and that the cloud's answers do not show plainly. Where it differs, \
     they are written again.",
);

pub static BALANCER: Key<Text> = Key::new("cloudberth.dev/brightbox-load-balancer", Text).recorded().about(
    "The id of the load balancer, where cloudberth has written to it. It is found by its name all the same.",
);

/// All of them. Values are taken as they are: an empty one is a value.
pub static TABLE: Table = Table::new(&[
    &POLICY,
    &LISTENER_PROTOCOL,
    &IDLE_TIMEOUT,
    &PROXY_PROTOCOL,
    &SSL_PORTS,
    &SSL_DOMAINS,
    &CLOUD_IP,
    &CHECK_PROTOCOL,
    &CHECK_REQUEST,
    &CHECK_TARGET,
    &CHECK_TIMEOUT,
    &CHECK_INTERVAL,
    &CHECK_UP,
    &CHECK_DOWN,
    &APPLIED,
    &BALANCER,
])
.retired(&[Retired { name: prefixed!("buffer-size"), why: "the cloud sizes buffers by itself" }])
.watching(&["service.beta.kubernetes.io/brightbox-load-balancer-"]);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_is_sound() {
        assert_eq!(TABLE.flaws(), Vec::<String>::new());
    }

    #[test]
    fn a_path_means_itself() {
        for (text, good) in [
            ("/a/b", true),
            ("", true),
            ("/a b", true),
            ("/", true),
            ("fred", false),
            ("/a?b=1", false),
            ("/a#b", false),
            ("/a%20b", false),
            ("/a\n", false),
        ] {
            assert_eq!(read_path(text).is_ok(), good, "BB-76 {text:?}");
        }
    }
}
