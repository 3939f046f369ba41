//! What goes over the wire.

use cloudberth_cloudscale::{
    Act, Method,
    wire::{
        FloatingIp, HealthMonitor, HttpChange, Listener, ListenerChange, LoadBalancer, Member, MonitorChange,
        NewBalancer, NewHttp, NewListener, NewMember, NewMonitor, NewPool, NewVip, Pool, Server,
    },
};
use serde_json::{Value, json};

fn text(text: &str) -> String {
    text.to_owned()
}

#[test]
fn every_mutation_is_one_request() {
    let balancer = NewBalancer {
        name: text("n"),
        flavor: text("lb-standard"),
        zone: None,
        vip_addresses: vec![NewVip { address: Some(text("10.0.0.5")), subnet: None }],
    };
    let listener = NewListener {
        name: text("tcp/80"),
        pool: text("p"),
        protocol: text("tcp"),
        protocol_port: 80,
        allowed_cidrs: vec![],
        timeout_client_data_ms: 50_000,
        timeout_member_connect_ms: 5_000,
        timeout_member_data_ms: 50_001,
    };
    let http = NewHttp {
        expected_codes: vec![text("200"), text("201")],
        method: text("GET"),
        url_path: text("/"),
        version: text("1.1"),
        host: Some(text("h")),
    };
    let monitor = NewMonitor {
        pool: text("p"),
        kind: text("https"),
        delay_s: 2,
        timeout_s: 1,
        up_threshold: 3,
        down_threshold: 4,
        http,
    };
    let update_listener = |change| Act::UpdateListener { listener: text("l"), change };
    let update_monitor = |change| Act::UpdateMonitor { monitor: text("m"), change };
    let post = |body| (Method::Post, Some(body));
    let patch = |body: Value| (Method::Patch, Some(body));
    let gone = || (Method::Delete, None);
    let lb = "v1/load-balancers";
    let table = [
        (
            "CS-103",
            Act::CreateBalancer(balancer),
            lb,
            post(json!({"name": "n", "flavor": "lb-standard", "vip_addresses": [{"address": "10.0.0.5"}]})),
        ),
        (
            "CS-104",
            Act::RenameBalancer { balancer: text("b"), name: text("x") },
            "v1/load-balancers/b",
            patch(json!({"name": "x"})),
        ),
        (
            "CS-108",
            Act::CreatePool(NewPool {
                name: text("tcp"),
                load_balancer: text("b"),
                algorithm: text("a"),
                protocol: text("p"),
            }),
            "v1/load-balancers/pools",
            post(json!({"name": "tcp", "load_balancer": "b", "algorithm": "a", "protocol": "p"})),
        ),
        (
            "CS-109",
            Act::CreateMember {
                pool: text("p"),
                member: NewMember {
                    name: text("m"),
                    protocol_port: 1,
                    monitor_port: 2,
                    address: text("10.0.0.1"),
                    subnet: text("s"),
                },
            },
            "v1/load-balancers/pools/p/members",
            post(
                json!({"name": "m", "protocol_port": 1, "monitor_port": 2, "address": "10.0.0.1", "subnet": "s"}),
            ),
        ),
        (
            "CS-110",
            Act::CreateListener(listener),
            "v1/load-balancers/listeners",
            post(
                json!({"name": "tcp/80", "pool": "p", "protocol": "tcp", "protocol_port": 80, "allowed_cidrs": [],
                "timeout_client_data_ms": 50000, "timeout_member_connect_ms": 5000, "timeout_member_data_ms": 50001}),
            ),
        ),
        (
            "CS-111",
            update_listener(ListenerChange::AllowedCidrs(vec![text("::/0")])),
            "v1/load-balancers/listeners/l",
            patch(json!({"allowed_cidrs": ["::/0"]})),
        ),
        (
            "CS-111",
            update_listener(ListenerChange::TimeoutClientData(1)),
            "v1/load-balancers/listeners/l",
            patch(json!({"timeout_client_data_ms": 1})),
        ),
        (
            "CS-111",
            update_listener(ListenerChange::TimeoutMemberConnect(1)),
            "v1/load-balancers/listeners/l",
            patch(json!({"timeout_member_connect_ms": 1})),
        ),
        (
            "CS-111",
            update_listener(ListenerChange::TimeoutMemberData(1)),
            "v1/load-balancers/listeners/l",
            patch(json!({"timeout_member_data_ms": 1})),
        ),
        (
            "CS-112",
            Act::CreateMonitor(monitor),
            "v1/load-balancers/health-monitors",
            post(
                json!({"pool": "p", "type": "https", "delay_s": 2, "timeout_s": 1, "up_threshold": 3, "down_threshold": 4,
                "http": {"expected_codes": ["200", "201"], "method": "GET", "url_path": "/", "version": "1.1", "host": "h"}}),
            ),
        ),
        (
            "CS-113",
            update_monitor(MonitorChange::Http(HttpChange::Method(text("HEAD")))),
            "v1/load-balancers/health-monitors/m",
            patch(json!({"http": {"method": "HEAD"}})),
        ),
        (
            "CS-113",
            update_monitor(MonitorChange::Http(HttpChange::Host(text("h")))),
            "v1/load-balancers/health-monitors/m",
            patch(json!({"http": {"host": "h"}})),
        ),
        (
            "CS-113",
            update_monitor(MonitorChange::Http(HttpChange::UrlPath(text("/x")))),
            "v1/load-balancers/health-monitors/m",
            patch(json!({"http": {"url_path": "/x"}})),
        ),
        (
            "CS-113",
            update_monitor(MonitorChange::Http(HttpChange::ExpectedCodes(vec![text("204")]))),
            "v1/load-balancers/health-monitors/m",
            patch(json!({"http": {"expected_codes": ["204"]}})),
        ),
        (
            "CS-113",
            update_monitor(MonitorChange::Delay(1)),
            "v1/load-balancers/health-monitors/m",
            patch(json!({"delay_s": 1})),
        ),
        (
            "CS-113",
            update_monitor(MonitorChange::Timeout(1)),
            "v1/load-balancers/health-monitors/m",
            patch(json!({"timeout_s": 1})),
        ),
        (
            "CS-113",
            update_monitor(MonitorChange::UpThreshold(1)),
            "v1/load-balancers/health-monitors/m",
            patch(json!({"up_threshold": 1})),
        ),
        (
            "CS-113",
            update_monitor(MonitorChange::DownThreshold(1)),
            "v1/load-balancers/health-monitors/m",
            patch(json!({"down_threshold": 1})),
        ),
        (
            "CS-114",
            Act::AssignFloatingIp {
                address: text("100.1.1.1"),
                network: text("100.1.1.1/32"),
                balancer: text("b"),
            },
            "v1/floating-ips/100.1.1.1",
            patch(json!({"load_balancer": "b"})),
        ),
        ("", Act::DeleteListener { listener: text("l") }, "v1/load-balancers/listeners/l", gone()),
        (
            "",
            Act::DeleteMember { pool: text("p"), member: text("m") },
            "v1/load-balancers/pools/p/members/m",
            gone(),
        ),
        ("", Act::DeleteMonitor { monitor: text("m") }, "v1/load-balancers/health-monitors/m", gone()),
        ("", Act::DeletePool { pool: text("p") }, "v1/load-balancers/pools/p", gone()),
        ("", Act::DeleteBalancer { balancer: text("b") }, "v1/load-balancers/b", gone()),
    ];
    for (case, act, path, (method, body)) in table {
        let request = act.request();
        assert_eq!(
            (request.path.join("/").as_str(), request.method, request.body),
            (path, method, body),
            "{case} {act:?}"
        );
        assert!(!request.operation.is_empty());
    }
}

#[test]
fn answers_are_read_with_unknown_keys_and_nulls() {
    let member: Member = serde_json::from_value(
        json!({"uuid": "m", "name": "n", "enabled": null, "address": "a", "protocol_port": 1,
        "monitor_port": null, "subnet": null, "monitor_status": "up", "new": {"x": 1}}),
    )
    .unwrap();
    assert!(member.enabled);
    assert_eq!((member.monitor_port, member.subnet), (None, None));
    let listener: Listener =
        serde_json::from_value(json!({"uuid": "l", "name": "n", "protocol": "tcp", "protocol_port": 1,
        "pool": null, "allowed_cidrs": null, "timeout_client_data_ms": null}))
        .unwrap();
    assert_eq!(
        (listener.pool, listener.allowed_cidrs.len(), listener.timeout_client_data_ms),
        (None, 0, None)
    );
    let monitor: HealthMonitor = serde_json::from_value(
        json!({"uuid": "m", "type": "tcp", "pool": {"uuid": "p", "href": "x"}, "http": null}),
    )
    .unwrap();
    assert_eq!((monitor.http, monitor.pool.unwrap().uuid.as_str()), (None, "p"));
    let server: Server = serde_json::from_value(
        json!({"uuid": "s", "name": "n", "zone": null, "interfaces": null, "tags": {}}),
    )
    .unwrap();
    assert_eq!((server.zone, server.interfaces.len(), server.status.as_str()), (None, 0, ""));
    let ip: FloatingIp =
        serde_json::from_value(json!({"network": "192.0.2.7/32", "server": null, "region": null})).unwrap();
    assert_eq!((ip.load_balancer, ip.server), (None, None));
}

#[test]
fn what_lacks_its_identity_cannot_be_read() {
    fn readable<T: serde::de::DeserializeOwned>(value: &Value) -> bool {
        serde_json::from_value::<T>(value.clone()).is_ok()
    }
    type Read = fn(&Value) -> bool;
    let pool = json!({"uuid": "p", "name": "n", "load_balancer": {"uuid": "b"}, "algorithm": "a", "protocol": "tcp"});
    let member = json!({"uuid": "m", "name": "n", "address": "a", "protocol_port": 1});
    let listener = json!({"uuid": "l", "name": "n", "protocol": "tcp", "protocol_port": 1});
    let table: [(Value, Read); 7] = [
        (json!({"uuid": "b", "name": "n"}), readable::<LoadBalancer>),
        (pool, readable::<Pool>),
        (member, readable::<Member>),
        (listener, readable::<Listener>),
        (json!({"uuid": "m", "type": "tcp"}), readable::<HealthMonitor>),
        (json!({"network": "192.0.2.7/32"}), readable::<FloatingIp>),
        (json!({"uuid": "s", "name": "n"}), readable::<Server>),
    ];
    for (whole, read) in table {
        assert!(read(&whole), "{whole}");
        for key in whole.as_object().unwrap().keys() {
            let mut part = whole.clone();
            part[key] = Value::Null;
            assert!(!read(&part), "L1-201 {part}: {key} is null");
            part.as_object_mut().unwrap().remove(key);
            assert!(!read(&part), "L1-201 {part}: {key} is missing");
        }
    }
}
