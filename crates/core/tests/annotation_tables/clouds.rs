//! A few real rows of each cloud, chosen for what is odd about them.

use cloudberth_core::{
    annotation::{
        Alias, By, Cidr, CommaList, Int, Json, JsonList, Key, OneOf, Pattern, Retired, Table, Text, Unsigned,
        Value,
    },
    lb::Impact,
};

use super::annotations;

/// Values are taken as they are, lists and documents are JSON, nothing has a second name.
pub(crate) mod cloudscale {
    use super::*;

    #[derive(Clone, Debug, Default, PartialEq, serde::Deserialize)]
    #[serde(default)]
    pub(crate) struct Vip {
        pub(crate) address: Option<String>,
        pub(crate) subnet: Option<String>,
    }

    #[derive(Clone, Copy, Debug, PartialEq)]
    pub(crate) enum IpMode {
        Proxy,
        Vip,
    }

    fn selector(text: &str) -> Result<Vec<(String, String)>, String> {
        let pair = |part: &str| match part.split_once('=') {
            Some((key, value)) => Ok((key.to_owned(), value.to_owned())),
            None => Err(format!("{part:?} compares nothing")),
        };
        text.split(',').filter(|part| !part.is_empty()).map(pair).collect()
    }

    pub(crate) static UUID: Key<Text> =
        Key::new("k8s.cloudscale.ch/loadbalancer-uuid", Text).recorded().about("The load balancer.");
    pub(crate) static FLAVOR: Key<Pattern> =
        Key::new("k8s.cloudscale.ch/loadbalancer-flavor", Pattern::new("a flavor", |text| !text.is_empty()))
            .default("lb-standard")
            .impact(Impact::Major)
            .about("Its size.");
    pub(crate) static VIPS: Key<Json<Vec<Vip>>> = Key::new(
        "k8s.cloudscale.ch/loadbalancer-vip-addresses",
        Json::new("a JSON list of objects with address and subnet"),
    )
    .default("[]")
    .impact(Impact::Major);
    pub(crate) static FLOATING_IPS: Key<JsonList<Cidr>> =
        Key::new("k8s.cloudscale.ch/loadbalancer-floating-ips", JsonList::of(Cidr))
            .default("[]")
            .impact(Impact::Minimal);
    pub(crate) static IP_MODE: Key<OneOf<IpMode>> = Key::new(
        "k8s.cloudscale.ch/loadbalancer-ip-mode",
        OneOf::exact(&[("Proxy", IpMode::Proxy), ("VIP", IpMode::Vip)]),
    )
    .default("Proxy");
    pub(crate) static DELAY: Key<Int> =
        Key::new("k8s.cloudscale.ch/loadbalancer-health-monitor-delay-s", Int::ANY)
            .default("2")
            .impact(Impact::Minimal);
    pub(crate) static SELECTOR: Key<By<Vec<(String, String)>>> =
        Key::new("k8s.cloudscale.ch/loadbalancer-node-selector", By::new("a label selector", selector))
            .default("");
    pub(crate) static TABLE: Table =
        Table::new(&[&UUID, &FLAVOR, &VIPS, &FLOATING_IPS, &IP_MODE, &DELAY, &SELECTOR])
            .watching(&["k8s.cloudscale.ch/"]);
}

/// Empty means absent, words in any case, second spellings.
pub(crate) mod binarylane {
    use super::*;

    #[derive(Clone, Copy, Debug, PartialEq)]
    pub(crate) enum Protocol {
        Http,
        Https,
    }

    const PROTOCOLS: &[(&str, Protocol)] = &[("http", Protocol::Http), ("https", Protocol::Https)];

    fn is_path(text: &str) -> bool {
        let allowed = |b: u8| b.is_ascii_alphanumeric() || b"/.?=&+%_-".contains(&b);
        text.starts_with('/') && text.bytes().all(allowed)
    }

    pub(crate) static PROTOCOL: Key<CommaList<OneOf<Protocol>>> = Key::new(
        "service.beta.kubernetes.io/binarylane-loadbalancer-protocol",
        CommaList::tidy(OneOf::any_case(PROTOCOLS)),
    )
    .derived("from the ports");
    pub(crate) static CHECK_PATH: Key<Pattern> = Key::new(
        "service.beta.kubernetes.io/binarylane-loadbalancer-health-check-path",
        Pattern::new("a path such as /healthz", is_path),
    )
    .aliases(&[Alias::new("service.beta.kubernetes.io/binarylane-loadbalancer-healthcheck-path")])
    .default("/");
    pub(crate) static ID: Key<Int> =
        Key::new("service.beta.kubernetes.io/binarylane-loadbalancer-id", Int::between(1, i64::MAX))
            .lenient()
            .aliases(&[Alias::new("binarylane.com.au/load-balancer-id").lenient()])
            .recorded();
    pub(crate) static TABLE: Table = Table::new(&[&PROTOCOL, &CHECK_PATH, &ID])
        .watching(&["service.beta.kubernetes.io/binarylane-loadbalancer-"])
        .trimmed()
        .empty_is_absent();
}

/// Strict words and numbers, a key under another cloud's prefix, a key that does nothing.
pub(crate) mod brightbox {
    use super::*;

    #[derive(Clone, Copy, Debug, PartialEq)]
    pub(crate) enum Policy {
        LeastConnections,
        RoundRobin,
    }

    fn is_cloud_ip(text: &str) -> bool {
        let id = |id: &str| id.len() >= 5 && id.bytes().all(|b| b.is_ascii_digit() || b.is_ascii_lowercase());
        text.strip_prefix("cip-").is_some_and(id)
    }

    pub(crate) static POLICY: Key<OneOf<Policy>> = Key::new(
        "service.beta.kubernetes.io/brightbox-load-balancer-policy",
        OneOf::exact(&[("least-connections", Policy::LeastConnections), ("round-robin", Policy::RoundRobin)]),
    );
    pub(crate) static IDLE: Key<Unsigned> =
        Key::new("service.beta.kubernetes.io/brightbox-load-balancer-listener-idle-timeout", Unsigned::ANY)
            .aliases(&[Alias::new("service.beta.kubernetes.io/brightbox-load-balancer-idle-timeout")
                .lenient()
                .deprecated()]);
    pub(crate) static INTERVAL: Key<Unsigned> =
        Key::new("service.beta.kubernetes.io/brightbox-load-balancer-healthcheck-interval", Unsigned::ANY)
            .lenient()
            .aliases(&[Alias::new("service.beta.kubernetes.io/aws-load-balancer-healthcheck-interval")]);
    pub(crate) static SSL_DOMAINS: Key<CommaList<Text>> =
        Key::new("service.beta.kubernetes.io/brightbox-load-balancer-ssl-domains", CommaList::raw(Text));
    pub(crate) static CLOUD_IP: Key<Pattern> = Key::new(
        "service.beta.kubernetes.io/brightbox-load-balancer-cloudip-allocations",
        Pattern::new("the id of a Cloud IP (cip-, then five or more of a-z and 0-9)", is_cloud_ip),
    );
    pub(crate) static TABLE: Table = Table::new(&[&POLICY, &IDLE, &INTERVAL, &SSL_DOMAINS, &CLOUD_IP])
        .watching(&["service.beta.kubernetes.io/brightbox-load-balancer-"])
        .retired(&[Retired {
            name: "service.beta.kubernetes.io/brightbox-load-balancer-buffer-size",
            why: "the cloud sizes buffers itself.",
        }]);
}

/// Numbers with ranges.
pub(crate) mod cloudlycke {
    use super::*;

    pub(crate) static IDLE: Key<Unsigned> = Key::new(
        "service.beta.kubernetes.io/cloudlycke-load-balancer-idle-timeout",
        Unsigned::between(0, 86_400),
    )
    .default("600");
    pub(crate) static CHECK_PORT: Key<Unsigned> = Key::new(
        "service.beta.kubernetes.io/cloudlycke-load-balancer-healthcheck-port",
        Unsigned::between(1, 65_535),
    )
    .derived("from the Service");
    pub(crate) static PROXY: Key<OneOf<u8>> = Key::new(
        "service.beta.kubernetes.io/cloudlycke-load-balancer-proxy-protocol",
        OneOf::exact(&[("none", 0), ("v1", 1), ("v2", 2)]),
    )
    .default("none");
    pub(crate) static TABLE: Table = Table::new(&[&IDLE, &CHECK_PORT, &PROXY])
        .watching(&["service.beta.kubernetes.io/cloudlycke-load-balancer-"]);
}

#[test]
fn every_table_is_sound_and_documents_itself() {
    for (cloud, table) in super::ALL {
        assert_eq!(table.flaws(), [""; 0], "{cloud}");
        let rows = table.to_markdown().lines().count();
        assert!(rows >= 5, "{cloud}: {rows}");
    }
    let docs = brightbox::TABLE.to_markdown();
    assert!(
        docs.contains(
            "brightbox-load-balancer-buffer-size` | | | | No effect: the cloud sizes buffers itself."
        )
    );
    assert!(cloudscale::TABLE.to_markdown().contains("| a flavor | `lb-standard` | major | Its size. |"));
}

#[test]
fn cloudscale_takes_values_as_they_are() {
    use cloudscale::*;
    let set = annotations(&[
        (FLAVOR.name(), ""),
        (VIPS.name(), r#"[{"Subnet": "abc"}, {"address": "10.0.0.1", "subnet": null, "note": 1}]"#),
        (FLOATING_IPS.name(), " "),
        (IP_MODE.name(), "vip"),
        (DELAY.name(), "+5"),
        (SELECTOR.name(), "a=b,c"),
        (UUID.name(), ""),
    ]);
    let parsed = TABLE.parse(&set);
    assert_eq!(parsed.get(&UUID), Value::Set(String::new()));
    assert_eq!(parsed.get(&FLAVOR), Value::Wrong);
    let vip = |address: Option<&str>, subnet: Option<&str>| Vip {
        address: address.map(str::to_owned),
        subnet: subnet.map(str::to_owned),
    };
    assert_eq!(parsed.get(&VIPS), Value::Set(vec![vip(None, Some("abc")), vip(Some("10.0.0.1"), None)]));
    assert_eq!(parsed.get(&FLOATING_IPS), Value::Set(vec![]));
    assert_eq!(parsed.get(&IP_MODE), Value::Wrong);
    assert_eq!(parsed.settle(&IP_MODE, Some(IpMode::Vip)), Some(IpMode::Vip));
    assert_eq!(parsed.get(&DELAY), Value::Set(5));
    let fields: Vec<_> = parsed.refused.iter().map(|r| r.field.as_str()).collect();
    assert_eq!(fields, [FLAVOR.name(), IP_MODE.name(), SELECTOR.name()]);
    assert!(parsed.refused[2].message.contains("\"c\" compares nothing"));
    let nothing = annotations(&[]);
    assert_eq!(TABLE.parse(&nothing).settle(&VIPS, None), Some(vec![]));
    assert_eq!(TABLE.parse(&nothing).settle(&SELECTOR, None), Some(vec![]));
    let null = annotations(&[(VIPS.name(), "null"), (FLOATING_IPS.name(), "null")]);
    assert_eq!(TABLE.parse(&null).get(&VIPS), Value::Set(vec![]));
    assert_eq!(TABLE.parse(&null).get(&FLOATING_IPS), Value::Set(vec![]));
}

#[test]
fn binarylane_has_second_spellings_and_empty_means_absent() {
    use binarylane::*;
    let old_path = "service.beta.kubernetes.io/binarylane-loadbalancer-healthcheck-path";
    let set = annotations(&[
        (PROTOCOL.name(), "HTTP, https,,http"),
        (CHECK_PATH.name(), "/a"),
        (old_path, "/b"),
        (ID.name(), "0"),
        ("binarylane.com.au/load-balancer-id", "12"),
    ]);
    let parsed = TABLE.parse(&set);
    assert_eq!(parsed.get(&PROTOCOL), Value::Set(vec![Protocol::Http, Protocol::Https]));
    assert_eq!(parsed.get(&CHECK_PATH), Value::Set("/a".to_owned()));
    assert_eq!(
        (parsed.get(&ID), parsed.spelling(&ID)),
        (Value::Set(12), Some("binarylane.com.au/load-balancer-id"))
    );
    let reasons: Vec<_> = parsed.notices.iter().map(|n| n.reason).collect();
    assert_eq!(parsed.refused, []);
    assert_eq!(reasons, ["ConflictingAnnotations", "InvalidAnnotation"]);
    let empty = annotations(&[(CHECK_PATH.name(), ""), (old_path, "/b"), (PROTOCOL.name(), "tcp")]);
    let parsed = TABLE.parse(&empty);
    assert_eq!(parsed.get(&CHECK_PATH), Value::Set("/b".to_owned()));
    assert_eq!(parsed.get(&PROTOCOL), Value::Wrong);
    assert_eq!(parsed.notices, []);
}

#[test]
fn brightbox_is_strict_where_the_original_was_and_lenient_where_it_was_not() {
    use brightbox::*;
    let aws = "service.beta.kubernetes.io/aws-load-balancer-healthcheck-interval";
    let old_idle = "service.beta.kubernetes.io/brightbox-load-balancer-idle-timeout";
    let set = annotations(&[
        (POLICY.name(), "Round-Robin"),
        (INTERVAL.name(), "fast"),
        (aws, "3000"),
        (old_idle, "9000"),
        (SSL_DOMAINS.name(), ""),
        (CLOUD_IP.name(), "cip-1234"),
        ("service.beta.kubernetes.io/brightbox-load-balancer-buffer-size", "1"),
        ("service.beta.kubernetes.io/brightbox-load-balancer-polcy", "1"),
    ]);
    let parsed = TABLE.parse(&set);
    assert_eq!(parsed.get(&POLICY), Value::Wrong);
    assert_eq!((parsed.get(&INTERVAL), parsed.spelling(&INTERVAL)), (Value::Set(3_000), Some(aws)));
    assert_eq!((parsed.get(&IDLE), parsed.spelling(&IDLE)), (Value::Set(9_000), Some(old_idle)));
    assert_eq!(parsed.get(&SSL_DOMAINS), Value::Set(vec![String::new()]));
    let fields: Vec<_> = parsed.refused.iter().map(|r| r.field.as_str()).collect();
    assert_eq!(fields, [POLICY.name(), CLOUD_IP.name()]);
    let reasons: Vec<_> = parsed.notices.iter().map(|n| n.reason).collect();
    assert_eq!(
        reasons,
        ["DeprecatedAnnotation", "InvalidAnnotation", "AnnotationWithoutEffect", "UnknownAnnotation"]
    );
    assert!(parsed.notices[3].message.ends_with(&format!("did you mean {}?", POLICY.name())));
    let wrong = annotations(&[(aws, "-1")]);
    let parsed = TABLE.parse(&wrong);
    assert_eq!((parsed.get(&INTERVAL), parsed.refused.len()), (Value::Wrong, 1));
}

#[test]
fn cloudlycke_has_ranges() {
    use cloudlycke::*;
    let set = annotations(&[(IDLE.name(), "86401"), (CHECK_PORT.name(), "0"), (PROXY.name(), "v3")]);
    let parsed = TABLE.parse(&set);
    assert_eq!(parsed.refused.len(), 3, "all faults at once");
    assert!(parsed.refused[0].message.contains("from 0 to 86400"));
    let set = annotations(&[(IDLE.name(), "86400"), (CHECK_PORT.name(), "65535")]);
    let parsed = TABLE.parse(&set);
    assert_eq!((parsed.get(&IDLE), parsed.get(&CHECK_PORT)), (Value::Set(86_400), Value::Set(65_535)));
    assert_eq!((parsed.settle(&PROXY, None), parsed.refused.len()), (Some(0), 0));
}
