//! The ways in which the replaced program is used.

use serde_json::{Value, json};

use crate::Cloud;

/// One way to use the replaced program: what a user wrote, and what it made of that.
#[derive(Clone, Debug, Default)]
pub struct Variant {
    /// What is special about it.
    pub case: &'static str,
    pub(super) annotations: Vec<(&'static str, String)>,
    pub(super) spec: Value,
    /// What differs from the default in each kind of part.
    pub(super) pool: Value,
    pub(super) listener: Value,
    pub(super) monitor: Value,
    pub(super) member: Value,
    /// The nodes that it chose, by the end of their names; empty is all.
    pub(super) nodes: &'static [&'static str],
    /// Nodes have addresses in two private networks, and only the second is used.
    pub(super) second_subnet: bool,
    pub(super) private_vip: bool,
    /// The status, where it is not the addresses with `Proxy`.
    pub(super) status: Option<Value>,
    /// Something else that is there.
    pub(super) beside: Option<fn(&Cloud, &str)>,
}

/// One without anything special.
pub fn plain(case: &'static str) -> Variant {
    let nothing = || json!({});
    Variant {
        case,
        spec: nothing(),
        pool: nothing(),
        listener: nothing(),
        monitor: nothing(),
        member: nothing(),
        ..Variant::default()
    }
}

fn with(case: &'static str, annotations: &[(&'static str, &str)]) -> Variant {
    let annotations = annotations.iter().map(|(key, value)| (*key, (*value).to_owned())).collect();
    Variant { annotations, ..plain(case) }
}

fn tcp(name: &str, port: u16) -> Value {
    json!({"name": name, "port": port, "protocol": "TCP"})
}

const LIVEZ: &str = r#"{"url_path": "/livez", "version": "1.0", "method": "GET", "expected_codes": ["200"]}"#;

/// All of them: as many as there are kinds of settings.
pub fn variants() -> Vec<Variant> {
    [ports_and_checks(), addresses_and_settings()].concat()
}

fn ports_and_checks() -> Vec<Variant> {
    let livez: Value = serde_json::from_str(LIVEZ).unwrap();
    let checked = json!({"url_path": "/x", "host": "h.example", "method": "GET", "expected_codes": ["200"], "version": "1.1"});
    let usual = json!({"url_path": "/", "method": "GET", "expected_codes": ["200"], "version": "1.1"});
    vec![
        plain("plain TCP"),
        Variant { spec: json!({"ports": [tcp("http", 80), tcp("https", 443)]}), ..plain("several ports") },
        Variant {
            spec: json!({"ports": [{"port": 53, "protocol": "UDP"}]}),
            monitor: json!({"type": "udp-connect", "delay_s": 3, "timeout_s": 2}),
            ..with(
                "UDP",
                &[
                    ("health-monitor-type", "udp-connect"),
                    ("health-monitor-delay-s", "3"),
                    ("health-monitor-timeout-s", "2"),
                ],
            )
        },
        Variant {
            spec: json!({"ports": [{"name": "u", "port": 53, "protocol": "UDP"}, tcp("t", 53)]}),
            ..plain("UDP and TCP on one port")
        },
        Variant {
            spec: json!({"externalTrafficPolicy": "Local"}),
            monitor: json!({"type": "http", "http": livez}),
            ..plain("Local")
        },
        Variant {
            spec: json!({"externalTrafficPolicy": "Local"}),
            monitor: json!({"type": "http", "http": {"url_path": "/mine", "method": "GET", "expected_codes": ["200"], "version": "1.1"}}),
            ..with("Local with a path of the user's", &[("health-monitor-http", r#"{"url_path": "/mine"}"#)])
        },
        Variant {
            monitor: json!({"type": "http", "http": checked}),
            ..with(
                "HTTP with a host",
                &[
                    ("health-monitor-type", "http"),
                    ("health-monitor-http", r#"{"URL_path": "/x", "host": "h.example"}"#),
                ],
            )
        },
        Variant {
            monitor: json!({"type": "http", "http": usual}),
            ..with("HTTP without details", &[("health-monitor-type", "http")])
        },
    ]
}

fn addresses_and_settings() -> Vec<Variant> {
    vec![
        Variant { private_vip: true, ..plain("a private address") },
        Variant {
            private_vip: true,
            beside: Some(|cloud, _| cloud.edit(|stock| stock.floating_ips.clear())),
            ..plain("a private address that is not asked for any more")
        },
        Variant {
            beside: Some(|cloud, balancer| {
                for address in ["192.0.2.7", "192.0.2.8"] {
                    let body = json!({"load_balancer": balancer});
                    cloud.back_door("PATCH", &format!("/v1/floating-ips/{address}"), &body).unwrap();
                }
            }),
            ..with("floating IPs with leftovers", &[("floating-ips", r#"["192.0.2.7/32"]"#)])
        },
        with("a name", &[("name", "front door")]),
        Variant { second_subnet: true, ..plain("restricted subnets") },
        Variant { nodes: &["1", "3"], ..with("a selector", &[("node-selector", "pick in (me)")]) },
        Variant {
            pool: json!({"protocol": "proxyv2"}),
            ..with("the proxy protocol", &[("pool-protocol", "proxyv2")])
        },
        Variant {
            pool: json!({"algorithm": "source_ip"}),
            ..with("an algorithm", &[("pool-algorithm", "source_ip")])
        },
        Variant {
            listener: json!({"timeout_client_data_ms": 1, "timeout_member_connect_ms": 2, "timeout_member_data_ms": 3}),
            ..with(
                "timeouts",
                &[
                    ("timeout-client-data-ms", "1"),
                    ("timeout-member-connect-ms", "2"),
                    ("timeout-member-data-ms", "3"),
                ],
            )
        },
        Variant {
            listener: json!({"allowed_cidrs": ["198.51.100.0/24", "10.0.0.0/8"]}),
            ..with(
                "sources, in the user's order",
                &[("listener-allowed-cidrs", "\n [\"198.51.100.0/24\", \"10.0.0.0/8\"]")],
            )
        },
        Variant {
            monitor: json!({"delay_s": 9, "timeout_s": 8, "up_threshold": 7, "down_threshold": 6}),
            ..with(
                "numbers of checks",
                &[
                    ("health-monitor-delay-s", "9"),
                    ("health-monitor-timeout-s", "+8"),
                    ("health-monitor-up-threshold", "7"),
                    ("health-monitor-down-threshold", "6"),
                ],
            )
        },
        Variant {
            status: Some(json!([{"hostname": "web.example"}])),
            ..with("a forced hostname", &[("force-hostname", "web.example")])
        },
        with("the mode VIP", &[("ip-mode", "VIP")]),
        Variant {
            member: json!({"monitor_port": null}),
            ..plain("members whose checks go where traffic goes")
        },
        Variant {
            beside: Some(|cloud, balancer| cloud.set_status(balancer, Some("error"))),
            ..plain("a load balancer that says error")
        },
        Variant {
            spec: json!({"loadBalancerSourceRanges": ["10.0.0.0/8"]}),
            ..plain("sources that the replaced program ignored")
        },
    ]
}
