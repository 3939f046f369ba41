//! A cluster that the replaced program has brought to rest stays exactly as it is.
//!
//! What is there is built request by request from the names, defaults and bodies of that program, without a line of the
//! planner: if both agree, switching over changes nothing, and neither does switching back.

use cloudberth_core::{ServiceView, view::ServiceProtocol};
use serde_json::{Value, json};

use crate::scene::{FINALIZER, PREFIX, Scene, annotated, merge};

/// One way to use the replaced program: what a user wrote, and what it made of that.
#[derive(Clone, Default)]
struct Variant {
    case: &'static str,
    annotations: Vec<(&'static str, String)>,
    spec: Value,
    /// What differs from the default in each kind of part.
    pool: Value,
    listener: Value,
    monitor: Value,
    member: Value,
    /// The nodes that it chose, by the end of their names; empty is all.
    nodes: &'static [&'static str],
    /// Nodes have addresses in two private networks, and only the second is used.
    second_subnet: bool,
    private_vip: bool,
    /// The status, where it is not the addresses with `Proxy`.
    status: Option<Value>,
    /// Something else that is there.
    beside: Option<fn(&Scene, &str)>,
}

fn plain(case: &'static str) -> Variant {
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

fn variants() -> Vec<Variant> {
    [ports_and_checks(), addresses_and_settings()].concat()
}

fn ports_and_checks() -> Vec<Variant> {
    let livez: Value = serde_json::from_str(LIVEZ).unwrap();
    let checked = json!({"url_path": "/x", "host": "h.example", "method": "GET", "expected_codes": ["200"], "version": "1.1"});
    let usual = json!({"url_path": "/", "method": "GET", "expected_codes": ["200"], "version": "1.1"});
    vec![
        plain("CS-153 plain TCP"),
        Variant {
            spec: json!({"ports": [tcp("http", 80), tcp("https", 443)]}),
            ..plain("CS-153 several ports")
        },
        Variant {
            spec: json!({"ports": [{"port": 53, "protocol": "UDP"}]}),
            monitor: json!({"type": "udp-connect", "delay_s": 3, "timeout_s": 2}),
            ..with(
                "CS-153 UDP",
                &[
                    ("health-monitor-type", "udp-connect"),
                    ("health-monitor-delay-s", "3"),
                    ("health-monitor-timeout-s", "2"),
                ],
            )
        },
        Variant {
            spec: json!({"ports": [{"name": "u", "port": 53, "protocol": "UDP"}, tcp("t", 53)]}),
            ..plain("CS-153 UDP and TCP on one port")
        },
        Variant {
            spec: json!({"externalTrafficPolicy": "Local"}),
            monitor: json!({"type": "http", "http": livez}),
            ..plain("CS-153 Local")
        },
        Variant {
            spec: json!({"externalTrafficPolicy": "Local"}),
            monitor: json!({"type": "http", "http": {"url_path": "/mine", "method": "GET", "expected_codes": ["200"], "version": "1.1"}}),
            ..with(
                "CS-153 Local with a path of the user's",
                &[("health-monitor-http", r#"{"url_path": "/mine"}"#)],
            )
        },
        Variant {
            monitor: json!({"type": "http", "http": checked}),
            ..with(
                "CS-153 HTTP with a host",
                &[
                    ("health-monitor-type", "http"),
                    ("health-monitor-http", r#"{"URL_path": "/x", "host": "h.example"}"#),
                ],
            )
        },
        Variant {
            monitor: json!({"type": "http", "http": usual}),
            ..with("CS-153 HTTP without details", &[("health-monitor-type", "http")])
        },
    ]
}

fn addresses_and_settings() -> Vec<Variant> {
    vec![
        Variant { private_vip: true, ..plain("CS-153 a private address") },
        Variant {
            private_vip: true,
            beside: Some(|scene, _| scene.cloud.edit(|stock| stock.floating_ips.clear())),
            ..plain("CS-153 a private address that is not asked for any more")
        },
        Variant {
            beside: Some(|scene, balancer| {
                for address in ["192.0.2.7", "192.0.2.8"] {
                    let body = json!({"load_balancer": balancer});
                    scene.cloud.back_door("PATCH", &format!("/v1/floating-ips/{address}"), &body).unwrap();
                }
            }),
            ..with("CS-153 floating IPs with leftovers", &[("floating-ips", r#"["192.0.2.7/32"]"#)])
        },
        with("CS-153 a name", &[("name", "front door")]),
        Variant { second_subnet: true, ..plain("CS-153 restricted subnets") },
        Variant { nodes: &["1", "3"], ..with("CS-153 a selector", &[("node-selector", "pick in (me)")]) },
        Variant {
            pool: json!({"protocol": "proxyv2"}),
            ..with("CS-153 the proxy protocol", &[("pool-protocol", "proxyv2")])
        },
        Variant {
            pool: json!({"algorithm": "source_ip"}),
            ..with("CS-153 an algorithm", &[("pool-algorithm", "source_ip")])
        },
        Variant {
            listener: json!({"timeout_client_data_ms": 1, "timeout_member_connect_ms": 2, "timeout_member_data_ms": 3}),
            ..with(
                "CS-153 timeouts",
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
                "CS-153 sources, in the user's order",
                &[("listener-allowed-cidrs", "\n [\"198.51.100.0/24\", \"10.0.0.0/8\"]")],
            )
        },
        Variant {
            monitor: json!({"delay_s": 9, "timeout_s": 8, "up_threshold": 7, "down_threshold": 6}),
            ..with(
                "CS-153 numbers of checks",
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
            ..with("CS-153 a forced hostname", &[("force-hostname", "web.example")])
        },
        with("CS-153 the mode VIP", &[("ip-mode", "VIP")]),
        Variant {
            member: json!({"monitor_port": null}),
            ..plain("CS-153 members whose checks go where traffic goes")
        },
        Variant {
            beside: Some(|scene, balancer| scene.cloud.set_status(balancer, Some("error"))),
            ..plain("CS-153 a load balancer that says error")
        },
        Variant {
            spec: json!({"loadBalancerSourceRanges": ["10.0.0.0/8"]}),
            ..plain("CS-153 sources that the replaced program ignored")
        },
    ]
}

fn post(scene: &Scene, path: &str, mut body: Value, more: &Value) -> String {
    merge(&mut body, more.clone());
    let made =
        scene.cloud.back_door("POST", path, &body).unwrap_or_else(|why| panic!("{path} {body}: {why:?}"));
    made["uuid"].as_str().unwrap().to_owned()
}

/// The addresses that the replaced program would take for members, with their subnets.
fn addresses(scene: &Scene, variant: &Variant) -> Vec<(String, String)> {
    let mut servers = scene.cloud.servers();
    servers.sort_by(|a, b| a.name.cmp(&b.name));
    let chosen = |name: &str| variant.nodes.is_empty() || variant.nodes.iter().any(|end| name.ends_with(end));
    let servers = servers.into_iter().filter(|server| chosen(&server.name));
    let private = servers.flat_map(|server| {
        let all = server.interfaces.into_iter().filter(|interface| !interface.public);
        let all: Vec<_> = all.flat_map(|interface| interface.addresses).collect();
        if variant.second_subnet { all.into_iter().skip(1).collect() } else { all }
    });
    private.map(|address| (address.address.to_string(), address.subnet.unwrap())).collect()
}

/// Builds what the replaced program would have built for a Service.
fn build(scene: &Scene, variant: &Variant, service: &ServiceView, vip: Option<&str>) -> String {
    let name = variant.annotations.iter().find(|(key, _)| *key == "name").map(|(_, value)| value.clone());
    let name = name.unwrap_or_else(|| format!("k8s-service-{}", service.uid));
    let vips = vip.map_or(json!([]), |subnet| json!([{"subnet": subnet}]));
    let body = json!({"name": name, "flavor": "lb-standard", "zone": "rma1", "vip_addresses": vips});
    let balancer = post(scene, "/v1/load-balancers", body, &json!({}));
    scene.cloud.settle();
    for port in &service.ports {
        let udp = port.protocol == ServiceProtocol::Udp;
        let protocol = if udp { "udp" } else { "tcp" };
        let pool =
            if port.name.is_empty() { protocol.to_owned() } else { format!("{protocol}/{}", port.name) };
        let mut body =
            json!({"name": pool, "load_balancer": balancer, "algorithm": "round_robin", "protocol": "tcp"});
        merge(&mut body, variant.pool.clone());
        let pool = post(
            scene,
            "/v1/load-balancers/pools",
            body,
            &if udp { json!({"protocol": "udp"}) } else { json!({}) },
        );
        let checks =
            if service.health_check_node_port > 0 { service.health_check_node_port } else { port.node_port };
        for (address, subnet) in addresses(scene, variant) {
            let body = json!({"name": format!("{address}:{}", port.node_port), "protocol_port": port.node_port,
                "monitor_port": checks, "address": address, "subnet": subnet});
            post(scene, &format!("/v1/load-balancers/pools/{pool}/members"), body, &variant.member);
        }
        let body = json!({"name": format!("{protocol}/{}", port.port), "pool": pool, "protocol": protocol,
            "protocol_port": port.port, "allowed_cidrs": [], "timeout_client_data_ms": 50000,
            "timeout_member_connect_ms": 5000, "timeout_member_data_ms": 50000});
        post(scene, "/v1/load-balancers/listeners", body, &variant.listener);
        let body = json!({"pool": pool, "type": "tcp", "delay_s": 2, "timeout_s": 1, "up_threshold": 2,
            "down_threshold": 3, "http": {}});
        post(scene, "/v1/load-balancers/health-monitors", body, &variant.monitor);
    }
    balancer
}

/// A cluster with three nodes that the replaced program has brought to rest, and that nobody looks after now.
async fn left_behind(variant: &Variant) -> Scene {
    let scene = Scene::with(|manners| manners.latency = std::time::Duration::ZERO);
    scene.killer().abort();
    for address in ["192.0.2.7/32", "192.0.2.8/32"] {
        scene.cloud.add_floating_ip(address.parse().unwrap(), None);
    }
    let second = scene.cloud.add_private_network("second", "rma1", "10.88.0.0/24".parse().unwrap());
    for number in 1..=3 {
        let id = scene.node(&format!("node-{number}")).await;
        if variant.second_subnet {
            scene.cloud.attach(&id, &second).unwrap();
        }
        if number != 2 {
            let label = json!({"metadata": {"labels": {"pick": "me"}}});
            scene.stage.merge(&scene.stage.nodes(), &format!("node-{number}"), label).await;
        }
    }
    let mut annotations: Vec<(&str, Value)> =
        variant.annotations.iter().map(|(key, value)| (*key, json!(value))).collect();
    if variant.second_subnet {
        annotations.push(("listener-allowed-subnets", json!(json!([second]).to_string())));
    }
    if variant.private_vip && variant.beside.is_none() {
        annotations.push(("vip-addresses", json!(json!([{"subnet": second}]).to_string())));
    }
    let mut body = annotated(&annotations);
    merge(&mut body, json!({"spec": variant.spec}));
    scene.create("web", body).await;
    let service = scene.get("web").await;
    let balancer = build(&scene, variant, &service, variant.private_vip.then_some(second.as_str()));
    if let Some(beside) = variant.beside {
        beside(&scene, &balancer);
    }
    let mode = if variant.case.ends_with("VIP") { "VIP" } else { "Proxy" };
    let vips = scene.cloud.balancers()[0].vips.clone();
    let shown: Vec<_> =
        vips.iter().map(|vip| json!({"ip": vip.address.to_string(), "ipMode": mode})).collect();
    let recorded = [("uuid", json!(balancer)), ("config-version", json!("1")), ("zone", json!("rma1"))];
    let mut body = annotated(&recorded);
    merge(&mut body, json!({"metadata": {"finalizers": [FINALIZER]}}));
    scene.edit("web", body).await;
    let status =
        json!({"status": {"loadBalancer": {"ingress": variant.status.clone().unwrap_or(json!(shown))}}});
    scene.stage.merge_status(&scene.stage.services(), "web", status).await;
    scene.cloud.clear_journal();
    scene
}

#[tokio::test(start_paused = true)]
async fn nothing_is_changed_by_the_switch() {
    let variants = variants();
    assert!(variants.len() >= 20);
    for variant in &variants {
        let case = variant.case;
        let mut scene = left_behind(variant).await;
        let (stock, before) = (scene.cloud.stock(), scene.get("web").await);
        let kube = scene.kube_calls();
        scene.restart();
        scene.pass(900).await;
        assert!(!scene.cloud.journal().is_empty(), "{case}: it was looked at");
        assert_eq!(scene.changes(), [""; 0], "{case}: {:?}", scene.stage.events("web"));
        let writes: Vec<_> =
            scene.stage.writes(kube).into_iter().filter(|call| call.resource == "services").collect();
        assert_eq!(writes, [], "{case}");
        assert_eq!(scene.get("web").await, before, "{case}");
        assert_eq!(scene.cloud.stock().members.len(), stock.members.len(), "{case}");
        let ours = before.annotations.keys().filter(|key| !key.starts_with(PREFIX)).count();
        assert_eq!(ours, 0, "{case}: no annotation of ours on what we did not create");
    }
    println!("{} variants", variants.len());
}

#[tokio::test(start_paused = true)]
async fn what_was_taken_over_is_looked_after() {
    let mut scene = left_behind(&plain("CS-153 plain TCP")).await;
    scene.restart();
    scene.pass(30).await;
    scene.node("node-4").await;
    scene.pass(30).await;
    assert_eq!(scene.changes(), ["members.create"], "CS-153 a node that joins costs one member");
    scene.delete("web").await;
    scene.pass(30).await;
    assert_eq!(scene.cloud.balancers().len(), 0, "CS-153");
    assert!(scene.stage.service("web").await.is_none(), "CS-153");
}

#[tokio::test(start_paused = true)]
async fn sources_that_were_ignored_are_told_of() {
    let variants = variants();
    let variant = variants.iter().find(|variant| variant.case.contains("ignored")).unwrap();
    let mut scene = left_behind(variant).await;
    scene.restart();
    scene.pass(30).await;
    let warnings = scene.warnings("web");
    assert!(warnings.iter().any(|line| line.contains("listener-allowed-cidrs")), "L8-803 {warnings:?}");
}
