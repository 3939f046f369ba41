//! What the ports of a Service become.

use cloudberth_cloudscale::{
    Action, BackendInstances, Observed,
    wire::{HttpOptions, Server, SubnetStub},
};
use cloudberth_core::{
    lb::{Desired, Next},
    view::{ExternalTrafficPolicy, ServicePort, ServiceProtocol},
};
use serde_json::json;

use crate::fixture::*;

fn with_ports(annotations: &[(&str, &str)], ports: Vec<ServicePort>) -> Desired {
    let mut service = service(annotations);
    service.ports = ports;
    want(service, [node(1), node(2)])
}

/// Pool, algorithm, pool protocol, listener, monitor.
fn shape(want: &Desired) -> Vec<(String, String, String, String, String)> {
    let existing = built(want);
    let shape = existing.pools.iter().map(|observed| {
        let [listener] = observed.listeners.as_slice() else { panic!("{:?}", observed.listeners) };
        let [monitor] = observed.monitors.as_slice() else { panic!("{:?}", observed.monitors) };
        assert_eq!(observed.members.len(), want.backends.len());
        (
            observed.pool.name.clone(),
            observed.pool.algorithm.clone(),
            observed.pool.protocol.clone(),
            format!("{} {} {}", listener.name, listener.protocol, listener.protocol_port),
            format!("{} {:?} {:?}", monitor.kind, monitor.delay_s.unwrap(), monitor.timeout_s.unwrap()),
        )
    });
    shape.collect()
}

fn row(
    pool: &str,
    algorithm: &str,
    protocol: &str,
    listener: &str,
    monitor: &str,
) -> (String, String, String, String, String) {
    let text = str::to_owned;
    (text(pool), text(algorithm), text(protocol), text(listener), text(monitor))
}

#[test]
fn one_pool_listener_and_monitor_for_each_port() {
    let table = [
        (
            "CS-57",
            with_ports(&[], vec![tcp("", 80, 30080)]),
            vec![row("tcp", "round_robin", "tcp", "tcp/80 tcp 80", "tcp 2 1")],
        ),
        (
            "CS-57 names keep their case",
            with_ports(&[], vec![udp("foo", 53, 30053), udp("FOO", 54, 30054)]),
            vec![
                row("udp/foo", "round_robin", "udp", "udp/53 udp 53", "tcp 2 1"),
                row("udp/FOO", "round_robin", "udp", "udp/54 udp 54", "tcp 2 1"),
            ],
        ),
        (
            "CS-62 CS-59",
            with_ports(&[], vec![tcp("http", 80, 30080), tcp("https", 443, 30443)]),
            vec![
                row("tcp/http", "round_robin", "tcp", "tcp/80 tcp 80", "tcp 2 1"),
                row("tcp/https", "round_robin", "tcp", "tcp/443 tcp 443", "tcp 2 1"),
            ],
        ),
        (
            "CS-63",
            with_ports(
                &[
                    ("health-monitor-type", "udp-connect"),
                    ("health-monitor-delay-s", "3"),
                    ("health-monitor-timeout-s", "2"),
                ],
                vec![udp("", 53, 30053)],
            ),
            vec![row("udp", "round_robin", "udp", "udp/53 udp 53", "udp-connect 3 2")],
        ),
        (
            "CS-64",
            with_ports(
                &[("health-monitor-type", "ping")],
                vec![udp("udp", 53, 30053), tcp("tcp", 53, 30153)],
            ),
            vec![
                row("udp/udp", "round_robin", "udp", "udp/53 udp 53", "ping 2 1"),
                row("tcp/tcp", "round_robin", "tcp", "tcp/53 tcp 53", "ping 2 1"),
            ],
        ),
        (
            "CS-73",
            with_ports(
                &[("pool-protocol", "proxyv2"), ("pool-algorithm", "source_ip")],
                vec![udp("u", 53, 30053), tcp("t", 80, 30080)],
            ),
            vec![
                row("udp/u", "source_ip", "udp", "udp/53 udp 53", "tcp 2 1"),
                row("tcp/t", "source_ip", "proxyv2", "tcp/80 tcp 80", "tcp 2 1"),
            ],
        ),
    ];
    for (case, want, rows) in table {
        assert_eq!(shape(&want), rows, "{case}");
    }
}

#[test]
fn members_in_the_order_of_nodes_with_the_ports_of_nodes() {
    let want = with_ports(&[], vec![tcp("http", 80, 30080), tcp("https", 443, 30443)]);
    let existing = built(&want);
    let members: Vec<_> = existing
        .pools
        .iter()
        .flat_map(|pool| &pool.members)
        .map(|m| {
            assert_eq!(m.monitor_port, Some(m.protocol_port), "CS-62");
            (m.name.as_str(), m.address.as_str(), m.protocol_port, m.subnet.as_ref().unwrap().uuid.as_str())
        })
        .collect();
    assert_eq!(
        members,
        [
            ("10.0.0.1:30080", "10.0.0.1", 30080, SUBNET),
            ("10.0.0.2:30080", "10.0.0.2", 30080, SUBNET),
            ("10.0.0.1:30443", "10.0.0.1", 30443, SUBNET),
            ("10.0.0.2:30443", "10.0.0.2", 30443, SUBNET),
        ],
        "CS-58 CS-62 CS-66"
    );
    assert!(
        existing.balancer.vip_addresses.iter().all(|vip| vip.subnet.is_none()),
        "CS-62 no VIPs were asked for"
    );
}

/// A server with two private addresses, one of them IPv6, one without a subnet, and a public one.
fn broad(number: usize) -> Server {
    read(json!({"uuid": server_uuid(number), "name": "n", "zone": {"slug": "lpg1"}, "interfaces": [
        {"type": "public", "addresses": [{"address": "203.0.113.1", "subnet": {"uuid": SUBNET}}]},
        {"type": "private", "addresses": [
            {"address": format!("10.0.0.{number}"), "subnet": {"uuid": SUBNET}},
            {"address": format!("10.9.0.{number}"), "subnet": null}]},
        {"type": "private", "addresses": [{"address": format!("fd00::{number}"), "subnet": {"uuid": SUBNET_B}}]},
    ]}))
}

#[test]
fn members_are_private_addresses_in_allowed_subnets() {
    let only = format!("\n [\"{SUBNET_B}\"]");
    let table = [
        (
            "CS-65 CS-66 CS-67 CS-58",
            "[]",
            vec!["10.0.0.1:30080", "[fd00::1]:30080", "10.0.0.2:30080", "[fd00::2]:30080"],
            vec![],
        ),
        ("CS-65 one subnet", only.as_str(), vec!["[fd00::1]:30080", "[fd00::2]:30080"], vec![]),
        ("CS-65 an unknown subnet", "[\"nowhere\"]", vec![], vec!["NoValidNodes"]),
        (
            "blank",
            " ",
            vec!["10.0.0.1:30080", "[fd00::1]:30080", "10.0.0.2:30080", "[fd00::2]:30080"],
            vec![],
        ),
    ];
    for (case, subnets, members, warned) in table {
        let want = plain(&[("listener-allowed-subnets", subnets)]);
        let instances = instances_of(&want, &[broad(1), broad(2)]).unwrap();
        let way = settle(&want, Observed { existing: None, instances });
        let existing = way.existing();
        let names: Vec<_> = existing.pools[0].members.iter().map(|m| m.name.as_str()).collect();
        assert_eq!(names, members, "{case}");
        assert_eq!((way.warned(), way.refused()), (warned, vec![]), "{case}");
    }
}

#[test]
fn a_port_that_cannot_be_forwarded_is_refused_and_the_others_go_on() {
    let good = tcp("a", 80, 30080);
    let table = [
        ("CS-68", port("b", ServiceProtocol::Sctp, 81, 30081), "spec.ports[].protocol", "SCTP on port 81"),
        ("CS-69", tcp("b", 81, 0), "spec.ports[].nodePort", "port 81 has none"),
        ("a number that is no port", tcp("b", 70_000, 30081), "spec.ports[].port", "70000 is not a port"),
        ("the same name twice", tcp("a", 81, 30081), "spec.ports[].name", "two ports"),
    ];
    let before = with_ports(&[], vec![good.clone(), tcp("b", 81, 30081)]);
    let existing = built(&before);
    for (case, bad, field, text) in table {
        let want = with_ports(&[], vec![good.clone(), bad]);
        let fresh = settle(&want, absent(&want));
        assert_eq!((fresh.acts, fresh.last.refused.len()), (vec![], 1), "{case}: nothing is created");
        assert_eq!(fresh.last.refused[0].field, field, "{case}");
        assert!(fresh.last.refused[0].message.contains(text), "{case}: {}", fresh.last.refused[0].message);
        let kept = settle(&want, look(&want, Some(existing.clone())));
        assert_eq!((kept.labels.len(), kept.refused()), (0, vec![field]), "{case}: nothing is torn down");
        let more = with_ports(&[], vec![good.clone(), want.service.ports[1].clone(), tcp("c", 82, 30082)]);
        let other = settle(&more, look(&more, Some(existing.clone())));
        assert_eq!(other.labels.len(), 5, "{case}: a pool, two members, a check, a port");
    }
}

fn http(path: &str, version: &str, host: Option<&str>) -> HttpOptions {
    let text = str::to_owned;
    HttpOptions {
        expected_codes: vec![text("200")],
        method: text("GET"),
        url_path: text(path),
        version: text(version),
        host: host.map(text),
    }
}

#[test]
fn checks_follow_the_annotations_and_the_traffic_policy() {
    let local = |annotations: &[(&str, &str)]| {
        edited(&plain(annotations), |service| {
            service.external_traffic_policy = ExternalTrafficPolicy::Local;
            service.health_check_node_port = 32_000;
        })
    };
    let typed = |text: &'static str| plain(&[("health-monitor-type", "http"), ("health-monitor-http", text)]);
    let leftover = edited(&plain(&[]), |service| service.health_check_node_port = 32_000);
    let unassigned = edited(&local(&[]), |service| service.health_check_node_port = 0);
    let table = [
        ("FW-262 the default", plain(&[]), "tcp", None, 30_080, vec![]),
        ("FW-262 FW-264 a port of checks without Local", leftover, "tcp", None, 30_080, vec![]),
        ("Local without one", unassigned, "http", Some(http("/livez", "1.0", None)), 30_080, vec![]),
        ("CS-70 FW-263 FW-264", local(&[]), "http", Some(http("/livez", "1.0", None)), 32_000, vec![]),
        (
            "CS-71",
            local(&[("health-monitor-http", "{\"url_path\": \"/x\"}")]),
            "http",
            Some(http("/x", "1.1", None)),
            32_000,
            vec!["HealthCheckDetails"],
        ),
        (
            "Local with a type of its own",
            local(&[("health-monitor-type", "ping")]),
            "http",
            Some(http("/livez", "1.0", None)),
            32_000,
            vec!["AnnotationWithoutEffect"],
        ),
        ("CS-72", typed("{\"url_path\": \"/x\"}"), "http", Some(http("/x", "1.1", None)), 30_080, vec![]),
        ("gaps are filled", typed("{ }"), "http", Some(http("/", "1.1", None)), 30_080, vec![]),
        ("a host", typed("{\"HOST\": \"h\"}"), "http", Some(http("/", "1.1", Some("h"))), 30_080, vec![]),
        ("CS-55", typed("null"), "http", Some(http("/", "1.1", None)), 30_080, vec![]),
        (
            "details of a check that is none",
            plain(&[("health-monitor-http", "{\"version\": \"1.0\"}")]),
            "tcp",
            None,
            30_080,
            vec!["AnnotationWithoutEffect"],
        ),
    ];
    for (case, want, kind, options, monitor_port, warned) in table {
        let way = settle(&want, absent(&want));
        let existing = way.existing();
        let [pool] = existing.pools.as_slice() else { panic!("{case}") };
        assert_eq!(
            (pool.monitors[0].kind.as_str(), pool.monitors[0].http.clone()),
            (kind, options),
            "{case}"
        );
        assert!(pool.members.iter().all(|m| m.monitor_port == Some(monitor_port)), "{case}");
        assert_eq!(way.warned(), warned, "{case}");
    }
    // Nothing is sent for a type that has no details, and nothing but what the API fills in for one that has.
    let sent = |want: &Desired| {
        let acts = settle(want, absent(want)).acts;
        acts.into_iter().find_map(|act| {
            matches!(act, Action::CreateMonitor(_)).then(|| act.request().body.unwrap()["http"].clone())
        })
    };
    assert_eq!(sent(&typed("{}")), Some(json!({})));
    assert_eq!(sent(&typed("null")), Some(json!({})), "CS-55");
}

#[test]
fn the_zone_is_the_nodes_or_the_annotations() {
    let in_zone = |number: usize, zone: &str| Server {
        zone: Some(cloudberth_cloudscale::wire::SlugStub { slug: zone.to_owned() }),
        ..servers([number]).remove(0)
    };
    let zone_sent = |want: &Desired, servers: &[Server]| {
        let instances = if want.backends.is_empty() {
            BackendInstances::default()
        } else {
            instances_of(want, servers).unwrap()
        };
        let decision = decide(want, &Observed { existing: None, instances });
        let Next::Act(steps) = decision.next else { panic!("nothing to do") };
        let Action::CreateBalancer(new) = &steps[0].act else { panic!("{:?}", steps[0].act) };
        assert!(steps[0].creates);
        (new.zone.clone(), decision.refused.iter().map(ToString::to_string).collect::<Vec<_>>())
    };
    let same = [in_zone(1, "rma1"), in_zone(2, "rma1")];
    let mixed = [in_zone(1, "rma1"), in_zone(2, "lpg1")];
    assert_eq!(zone_sent(&plain(&[]), &same), (Some("rma1".to_owned()), vec![]));
    let (zone, refused) = zone_sent(&plain(&[]), &mixed);
    assert_eq!(zone, None, "CS-61");
    assert_eq!(refused.len(), 1, "CS-61");
    assert!(
        refused[0]
            .starts_with("k8s.cloudscale.ch/loadbalancer-zone: nodes are in several zones (lpg1, rma1)"),
        "CS-61 {refused:?}"
    );
    assert_eq!(zone_sent(&plain(&[("zone", "lpg1")]), &mixed), (Some("lpg1".to_owned()), vec![]), "CS-61");
    assert_eq!(
        zone_sent(&plain(&[("zone", "")]), &same),
        (Some("rma1".to_owned()), vec![]),
        "an empty one is none"
    );
    assert_eq!(zone_sent(&want(service(&[]), []), &[]), (None, vec![]), "nobody says where");
}

#[test]
fn the_subnet_counts_by_its_id() {
    let want = plain(&[]);
    let mut existing = built(&want);
    existing.pools[0].members[0].subnet = Some(SubnetStub { uuid: SUBNET_B.to_owned() });
    assert_eq!(
        labels(&want, &existing),
        ["remove 10.0.0.1:30080 from pool tcp", "add 10.0.0.1:30080 to pool tcp"]
    );
}
