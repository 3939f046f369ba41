//! Taking over from the Go program, and giving back: what it left at rest is at rest.

use cloudberth_cloudscale::{Action, Observed, wire::Server};
use cloudberth_core::{
    NodeView, ServiceView,
    decide::service::patch,
    lb::{Desired, Next},
    view::{ExternalTrafficPolicy, Ingress, IpMode, ServicePort},
};
use serde_json::{Value, json};

use crate::{fixture::*, left_behind::*};

/// A cluster that the Go program has brought to rest.
struct Variant {
    case: &'static str,
    annotations: Vec<(&'static str, &'static str)>,
    edit: fn(&mut ServiceView),
    ports: Vec<ServicePort>,
    balancer: Value,
    left: Vec<Left>,
    floating_ips: Vec<(&'static str, Option<&'static str>)>,
    ingress: Vec<Ingress>,
    /// Reasons of warnings; nothing is ever refused.
    warned: Vec<&'static str>,
}

fn ip(address: &str, mode: IpMode) -> Ingress {
    Ingress { ip: Some(address.to_owned()), ip_mode: Some(mode), ..Ingress::default() }
}

fn public(mode: &IpMode) -> Vec<Ingress> {
    vec![ip("203.0.113.90", mode.clone()), ip("2001:db8:10::90", mode.clone())]
}

fn variant(case: &'static str) -> Variant {
    Variant {
        case,
        annotations: Vec::new(),
        edit: |_| {},
        ports: vec![tcp("", 80, 30080)],
        balancer: go_balancer(),
        left: vec![tcp80()],
        floating_ips: Vec::new(),
        ingress: public(&IpMode::Proxy),
        warned: Vec::new(),
    }
}

fn patched(mut value: Value, key: &str, with: Value) -> Value {
    value[key] = with;
    value
}

fn local(service: &mut ServiceView) {
    service.external_traffic_policy = ExternalTrafficPolicy::Local;
    service.health_check_node_port = 32_000;
}

fn private(vips: Value) -> (Value, Vec<Ingress>) {
    (patched(go_balancer(), "vip_addresses", vips), vec![ip("10.0.0.200", IpMode::Proxy)])
}

fn ports_and_protocols() -> Vec<Variant> {
    let udp53 = || Left {
        name: "udp/dns",
        protocol: "udp",
        members: members(30053, 30053),
        listener: listener("udp/53", "udp", 53),
        ..tcp80()
    };
    let tcp53 = || Left {
        name: "tcp/dns-tcp",
        members: members(30054, 30054),
        listener: listener("tcp/53", "tcp", 53),
        ..tcp80()
    };
    vec![
        variant("CS-153 plain TCP"),
        Variant {
            ports: vec![tcp("http", 80, 30080), tcp("https", 443, 30443)],
            left: vec![
                Left {
                    name: "tcp/https",
                    members: members(30443, 30443),
                    listener: listener("tcp/443", "tcp", 443),
                    ..tcp80()
                },
                Left { name: "tcp/http", ..tcp80() },
            ],
            ..variant("CS-153 several ports, listed in another order")
        },
        Variant { ports: vec![udp("dns", 53, 30053)], left: vec![udp53()], ..variant("CS-153 UDP") },
        Variant {
            annotations: vec![
                ("health-monitor-type", "udp-connect"),
                ("health-monitor-delay-s", "3"),
                ("health-monitor-timeout-s", "2"),
            ],
            ports: vec![udp("dns", 53, 30053)],
            left: vec![Left {
                monitor: patched(
                    patched(monitor("udp-connect", Value::Null), "delay_s", json!(3)),
                    "timeout_s",
                    json!(2),
                ),
                ..udp53()
            }],
            ..variant("CS-153 UDP with checks of its own")
        },
        Variant {
            ports: vec![udp("dns", 53, 30053), tcp("dns-tcp", 53, 30054)],
            left: vec![udp53(), tcp53()],
            ..variant("CS-153 TCP and UDP on one port")
        },
        Variant {
            annotations: vec![("pool-protocol", "proxyv2"), ("pool-algorithm", "source_ip")],
            ports: vec![udp("dns", 53, 30053), tcp("dns-tcp", 53, 30054)],
            left: vec![
                Left { algorithm: "source_ip", ..udp53() },
                Left { algorithm: "source_ip", protocol: "proxyv2", ..tcp53() },
            ],
            ..variant("CS-153 PROXY protocol")
        },
        Variant {
            ports: vec![tcp("HTTP-x", 80, 30080)],
            left: vec![Left { name: "tcp/HTTP-x", ..tcp80() }],
            ..variant("CS-153 a name with capitals")
        },
        Variant {
            annotations: vec![
                ("listener-allowed-cidrs", "[\"10.0.0.0/8\", \"2001:db8::/32\"]"),
                ("timeout-client-data-ms", "1"),
                ("timeout-member-connect-ms", "2"),
                ("timeout-member-data-ms", "3"),
            ],
            left: vec![Left {
                listener: json!({"name": "tcp/80", "protocol": "tcp", "protocol_port": 80, "allowed_cidrs": ["2001:DB8::/32", "10.0.0.0/8"],
                    "timeout_client_data_ms": 1, "timeout_member_connect_ms": 2, "timeout_member_data_ms": 3}),
                ..tcp80()
            }],
            ..variant("CS-153 sources and time-outs, normalised by the API")
        },
        Variant {
            edit: |s| s.source_ranges = Some(vec!["10.0.0.0/8".to_owned()]),
            warned: vec!["SourceRangesIgnored"],
            ..variant("CS-153 source ranges, which were never carried out")
        },
        Variant {
            left: vec![Left {
                members: vec![
                    ("10.0.0.1", SUBNET, 30080, Value::Null),
                    ("10.0.0.2", SUBNET, 30080, json!(30080)),
                ],
                ..tcp80()
            }],
            ..variant("CS-153 no port of checks")
        },
    ]
}

fn checks() -> Vec<Variant> {
    let checked = |case, annotations, http: Value| Variant {
        annotations,
        left: vec![Left { monitor: monitor("http", http), ..tcp80() }],
        ..variant(case)
    };
    let asks_proxy =
        |http: Value| Left { members: members(30080, 32000), monitor: monitor("http", http), ..tcp80() };
    vec![
        Variant {
            edit: local,
            left: vec![asks_proxy(http("/livez", "1.0", Value::Null))],
            ..variant("CS-153 Local")
        },
        Variant {
            annotations: vec![("health-monitor-http", "{\"url_path\":\"/mine\"}")],
            edit: local,
            left: vec![asks_proxy(http("/mine", "1.1", Value::Null))],
            warned: vec!["HealthCheckDetails"],
            ..variant("CS-153 Local with details of its own")
        },
        checked(
            "CS-153 HTTP checks with a host",
            vec![
                ("health-monitor-type", "http"),
                ("health-monitor-http", "{\"host\":\"example.org\",\"url_path\":\"/healthz\"}"),
            ],
            http("/healthz", "1.1", json!("example.org")),
        ),
        checked(
            "CS-153 HTTP checks without details",
            vec![("health-monitor-type", "http")],
            http("/whatever", "1.1", json!("set.by.hand")),
        ),
        checked(
            "CS-153 HTTP 1.0 checks",
            vec![
                ("health-monitor-type", "http"),
                ("health-monitor-http", "{\"version\": \"1.0\", \"expected_codes\": [\"200\"]}"),
            ],
            http("/", "1.0", Value::Null),
        ),
        Variant {
            annotations: vec![("health-monitor-http", "{\"url_path\": \"/x\"}")],
            warned: vec!["AnnotationWithoutEffect"],
            ..variant("CS-153 details for checks that are not HTTP")
        },
        Variant {
            annotations: vec![
                ("health-monitor-delay-s", "10"),
                ("health-monitor-timeout-s", "9"),
                ("health-monitor-up-threshold", "8"),
                ("health-monitor-down-threshold", "7"),
            ],
            left: vec![Left {
                monitor: json!({"type": "tcp", "delay_s": 10, "timeout_s": 9, "up_threshold": 8, "down_threshold": 7, "http": null}),
                ..tcp80()
            }],
            ..variant("CS-153 numbers of checks")
        },
    ]
}

fn places_and_addresses() -> Vec<Variant> {
    let vips =
        json!([{"version": 4, "address": "10.0.0.200", "subnet": {"uuid": SUBNET, "cidr": "10.0.0.0/24"}}]);
    let (lb, ingress) = private(vips);
    vec![
        Variant {
            annotations: vec![("vip-addresses", "[{\"subnet\": \"55ee0000-0000-4000-8000-000000000001\"}]")],
            balancer: lb.clone(),
            ingress: ingress.clone(),
            ..variant("CS-153 a private VIP")
        },
        Variant { balancer: lb, ingress, ..variant("CS-153 a private VIP whose annotation was removed") },
        Variant {
            annotations: vec![("floating-ips", "[\"192.0.2.7/32\", \"2001:db8::7/128\"]")],
            floating_ips: vec![
                ("192.0.2.7/32", Some(LB)),
                ("2001:db8::7/128", Some(LB)),
                ("192.0.2.9/32", Some(LB)),
                ("192.0.2.8/32", None),
            ],
            ..variant("CS-153 floating IPs with leftovers")
        },
        Variant {
            annotations: vec![("name", "my-lb")],
            balancer: patched(go_balancer(), "name", json!("my-lb")),
            ..variant("CS-153 a name of its own")
        },
        Variant {
            annotations: vec![("flavor", "lb-flex-4-2")],
            balancer: patched(go_balancer(), "flavor", json!({"slug": "lb-flex-4-2"})),
            ..variant("CS-153 another flavor")
        },
        Variant {
            annotations: vec![("listener-allowed-subnets", "[\"55ee0000-0000-4000-8000-000000000001\"]")],
            ..variant("CS-153 restricted subnets")
        },
        Variant {
            annotations: vec![("node-selector", "pool=a")],
            left: vec![Left { members: vec![("10.0.0.1", SUBNET, 30080, json!(30080))], ..tcp80() }],
            ..variant("CS-153 a selector")
        },
        Variant {
            annotations: vec![("node-selector", "pool=none")],
            left: vec![Left { members: vec![], ..tcp80() }],
            warned: vec!["NoValidNodes"],
            ..variant("CS-153 a selector that matches nothing")
        },
        Variant {
            annotations: vec![("force-hostname", "lb.example"), ("ip-mode", "nonsense")],
            ingress: vec![Ingress { hostname: Some("lb.example".to_owned()), ..Ingress::default() }],
            ..variant("CS-153 a forced host name")
        },
        Variant {
            annotations: vec![("ip-mode", "VIP")],
            ingress: public(&IpMode::Vip),
            ..variant("CS-153 IP mode VIP")
        },
        Variant {
            balancer: patched(go_balancer(), "status", json!("error")),
            ..variant("CS-153 every member is down")
        },
        Variant {
            left: vec![Left { listener: Value::Null, ..tcp80() }, tcp80()],
            ..variant("CS-153 a twin of a pool")
        },
    ]
}

fn cluster() -> Vec<NodeView> {
    let mut nodes = nodes(1..=2);
    nodes[0].labels.insert("pool", "a");
    nodes
}

fn taken_over(variant: &Variant) -> (Desired, Observed) {
    let recorded = [("uuid", LB), ("config-version", "1"), ("zone", "lpg1")];
    let mut service = service(&[&recorded[..], &variant.annotations].concat());
    service.ports.clone_from(&variant.ports);
    service.ingress.clone_from(&variant.ingress);
    service.finalizers = vec!["service.kubernetes.io/load-balancer-cleanup".to_owned()];
    (variant.edit)(&mut service);
    let want = want(service, cluster());
    let servers: Vec<Server> = servers(1..=2);
    let instances = instances_of(&want, &servers).unwrap();
    let existing = existing(variant.balancer.clone(), &variant.left, &variant.floating_ips);
    (want, Observed { existing: Some(existing), instances })
}

#[test]
fn what_the_go_program_left_at_rest_is_at_rest() {
    let variants = [ports_and_protocols(), checks(), places_and_addresses()].concat_all();
    assert!(variants.len() >= 20, "{}", variants.len());
    for variant in &variants {
        let case = variant.case;
        let (want, observed) = taken_over(variant);
        let decision = decide(&want, &observed);
        assert_eq!(decision.next, Next::Converged, "{case}");
        assert_eq!(decision.refused, [], "{case}");
        let warned: Vec<_> = decision.notices.iter().map(|notice| notice.reason).collect();
        assert_eq!(warned, variant.warned, "{case}: {:?}", decision.notices);
        let patch = patch::record(&want.service, &decision.publish.unwrap(), false);
        assert_eq!(patch, None, "{case}: no patch of the Service");
    }
}

#[test]
fn every_variant_is_sensitive_to_what_it_shows() {
    // The same states with one thing out of place are not at rest: the fixtures say what they seem to say.
    for variant in [ports_and_protocols(), checks(), places_and_addresses()].concat_all() {
        let (want, observed) = taken_over(&variant);
        let existing = observed.existing.clone().unwrap();
        for at in 0..existing.pools.len() {
            let mut without = observed.clone();
            if let Some(existing) = &mut without.existing {
                let twin = existing.pools[at].listeners.is_empty();
                if twin {
                    continue;
                }
                existing.pools[at].monitors.clear();
            }
            let way = settle(&want, without);
            assert!(
                matches!(way.acts.as_slice(), [Action::CreateMonitor(_)]),
                "{}: {:?}",
                variant.case,
                way.labels
            );
        }
    }
}

trait Concat<T> {
    fn concat_all(self) -> Vec<T>;
}

impl<T, const N: usize> Concat<T> for [Vec<T>; N] {
    fn concat_all(self) -> Vec<T> {
        self.into_iter().flatten().collect()
    }
}
