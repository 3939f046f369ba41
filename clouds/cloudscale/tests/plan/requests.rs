//! What goes over the wire.

use cloudberth_cloudscale::{
    Action, Method,
    wire::{
        FloatingIp, HealthMonitor, HttpChange, HttpOptions, Interface, InterfaceAddress, Listener,
        ListenerChange, LoadBalancer, Member, MonitorChange, NewBalancer, NewHttp, NewListener, NewMember,
        NewMonitor, NewPool, NewVip, Pool, Server,
    },
};
use serde_json::{Value, json};

fn text(text: &str) -> String {
    text.to_owned()
}

/// Asserts what goes over the wire for `act`; the path is below `load-balancers`.
fn sends(case: &str, act: &Action, method: Method, path: &str, body: Option<Value>) {
    let request = act.request();
    let whole = format!("load-balancers{path}");
    assert_eq!(
        (request.path.join("/"), request.method, request.body),
        (whole, method, body),
        "{case} {act:?}"
    );
    assert!(!request.operation.is_empty());
}

#[test]
fn creations() {
    let balancer = NewBalancer {
        name: text("n"),
        flavor: text("lb-standard"),
        zone: None,
        vip_addresses: vec![NewVip { address: Some(text("10.0.0.5")), subnet: None }],
    };
    let body = json!({"name": "n", "flavor": "lb-standard", "vip_addresses": [{"address": "10.0.0.5"}]});
    sends("CS-103", &Action::CreateBalancer(balancer), Method::Post, "", Some(body));
    let (name, load_balancer) = (text("tcp"), text("b"));
    let pool = NewPool { name, load_balancer, algorithm: text("a"), protocol: text("p") };
    let body = json!({"name": "tcp", "load_balancer": "b", "algorithm": "a", "protocol": "p"});
    sends("CS-108", &Action::CreatePool(pool), Method::Post, "/pools", Some(body));
    let (address, subnet) = (text("10.0.0.1"), text("s"));
    let member = NewMember { name: text("m"), protocol_port: 1, monitor_port: 2, address, subnet };
    let body =
        json!({"name": "m", "protocol_port": 1, "monitor_port": 2, "address": "10.0.0.1", "subnet": "s"});
    let act = Action::CreateMember { pool: text("p"), member };
    sends("CS-109", &act, Method::Post, "/pools/p/members", Some(body));
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
    let body = json!({"name": "tcp/80", "pool": "p", "protocol": "tcp", "protocol_port": 80, "allowed_cidrs": [],
        "timeout_client_data_ms": 50000, "timeout_member_connect_ms": 5000, "timeout_member_data_ms": 50001});
    sends("CS-110", &Action::CreateListener(listener), Method::Post, "/listeners", Some(body));
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
    let body = json!({"pool": "p", "type": "https", "delay_s": 2, "timeout_s": 1, "up_threshold": 3,
        "down_threshold": 4, "http": {"expected_codes": ["200", "201"], "method": "GET", "url_path": "/",
            "version": "1.1", "host": "h"}});
    sends("CS-112", &Action::CreateMonitor(monitor), Method::Post, "/health-monitors", Some(body));
}

#[test]
fn changes_of_one_attribute() {
    use {HttpChange as Http, ListenerChange as Listener, MonitorChange as Monitor};
    let listeners = [
        (Listener::AllowedCidrs(vec![text("::/0")]), json!({"allowed_cidrs": ["::/0"]})),
        (Listener::AllowedCidrs(vec![]), json!({"allowed_cidrs": []})),
        (Listener::TimeoutClientData(1), json!({"timeout_client_data_ms": 1})),
        (Listener::TimeoutMemberConnect(1), json!({"timeout_member_connect_ms": 1})),
        (Listener::TimeoutMemberData(1), json!({"timeout_member_data_ms": 1})),
    ];
    for (change, body) in listeners {
        let act = Action::UpdateListener { listener: text("l"), change };
        sends("CS-111", &act, Method::Patch, "/listeners/l", Some(body));
    }
    let monitors = [
        (Monitor::Http(Http::Method(text("HEAD"))), json!({"http": {"method": "HEAD"}})),
        (Monitor::Http(Http::Host(text("h"))), json!({"http": {"host": "h"}})),
        (Monitor::Http(Http::UrlPath(text("/x"))), json!({"http": {"url_path": "/x"}})),
        (Monitor::Http(Http::ExpectedCodes(vec![text("204")])), json!({"http": {"expected_codes": ["204"]}})),
        (Monitor::Delay(1), json!({"delay_s": 1})),
        (Monitor::Timeout(1), json!({"timeout_s": 1})),
        (Monitor::UpThreshold(1), json!({"up_threshold": 1})),
        (Monitor::DownThreshold(1), json!({"down_threshold": 1})),
    ];
    for (change, body) in monitors {
        let act = Action::UpdateMonitor { monitor: text("m"), change };
        sends("CS-113", &act, Method::Patch, "/health-monitors/m", Some(body));
    }
    let rename = Action::RenameBalancer { balancer: text("b"), name: text("x") };
    sends("CS-104", &rename, Method::Patch, "/b", Some(json!({"name": "x"})));
    let (address, network) = (text("100.1.1.1"), text("100.1.1.1/32"));
    let request = Action::AssignFloatingIp { address, network, balancer: text("b") }.request();
    assert_eq!(request.path, ["floating-ips", "100.1.1.1"], "CS-114");
    assert_eq!(
        (request.method, request.body),
        (Method::Patch, Some(json!({"load_balancer": "b"}))),
        "CS-114"
    );
}

#[test]
fn deletions() {
    let table = [
        (Action::DeleteListener { listener: text("l") }, "/listeners/l"),
        (Action::DeleteMember { pool: text("p"), member: text("m") }, "/pools/p/members/m"),
        (Action::DeleteMonitor { monitor: text("m") }, "/health-monitors/m"),
        (Action::DeletePool { pool: text("p") }, "/pools/p"),
        (Action::DeleteBalancer { balancer: text("b") }, "/b"),
    ];
    for (act, path) in table {
        sends("", &act, Method::Delete, path, None);
    }
}

#[test]
fn answers_are_read_with_unknown_keys_and_nulls() {
    let member: Member = serde_json::from_value(
        json!({"uuid": "m", "name": "n", "enabled": null, "address": "a", "protocol_port": 1,
        "monitor_port": null, "subnet": {"uuid": "s"}, "monitor_status": "up", "new": {"x": 1}}),
    )
    .unwrap();
    assert!(member.enabled);
    let said = |enabled: Value| {
        let mut body = json!({"uuid": "m", "name": "n", "address": "a", "protocol_port": 1, "monitor_port": null,
            "subnet": {"uuid": "s"}});
        if !enabled.is_null() {
            body["enabled"] = enabled;
        }
        serde_json::from_value::<Member>(body).unwrap().enabled
    };
    assert!(said(Value::Null) && !said(json!(false)));
    assert_eq!(member.monitor_port, None);
    let listener: Listener =
        serde_json::from_value(json!({"uuid": "l", "name": "n", "protocol": "tcp", "protocol_port": 1,
        "pool": null, "allowed_cidrs": [], "timeout_client_data_ms": null}))
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
        json!({"uuid": "s", "name": "n", "zone": {"slug": "z"}, "flavor": null, "status": null, "interfaces": [
            {"type": "private", "addresses": [{"address": "10.0.0.1", "subnet": null}]}], "tags": {}}),
    )
    .unwrap();
    let address = &server.interfaces[0].addresses[0];
    assert_eq!((&address.subnet, &server.flavor, server.status.as_str()), (&None, &None, ""));
    let ip: FloatingIp = serde_json::from_value(
        json!({"network": "192.0.2.7/32", "server": null, "load_balancer": null, "region": null}),
    )
    .unwrap();
    assert_eq!((ip.load_balancer, ip.server), (None, None));
}

#[test]
fn what_is_not_told_is_not_none() {
    fn readable<T: serde::de::DeserializeOwned>(value: &Value) -> bool {
        serde_json::from_value::<T>(value.clone()).is_ok()
    }
    type Read = fn(&Value) -> bool;
    let pool = json!({"uuid": "p", "name": "n", "load_balancer": {"uuid": "b"}, "algorithm": "a", "protocol": "tcp"});
    let stub = || json!({"uuid": "x"});
    let balancer = json!({"uuid": "b", "name": "n", "status": "running", "vip_addresses": []});
    let member = json!({"uuid": "m", "name": "n", "address": "a", "protocol_port": 1, "monitor_port": 2, "subnet": stub()});
    let listener = json!({"uuid": "l", "name": "n", "pool": stub(), "protocol": "tcp", "protocol_port": 1,
        "allowed_cidrs": []});
    let http =
        json!({"expected_codes": ["200"], "method": "GET", "url_path": "/", "version": "1.1", "host": "h"});
    let monitor = json!({"uuid": "m", "type": "http", "pool": stub(), "http": http.clone()});
    let ip = json!({"network": "192.0.2.7/32", "server": stub(), "load_balancer": stub()});
    let address = json!({"address": "10.0.0.1", "subnet": stub()});
    let interface = json!({"type": "private", "addresses": [address.clone()]});
    let server = json!({"uuid": "s", "name": "n", "zone": {"slug": "z"}, "interfaces": [interface.clone()]});
    // With the fields where `null` is the API's word for none.
    let table: [(Value, Read, &[&str]); 10] = [
        (balancer, readable::<LoadBalancer>, &[]),
        (pool, readable::<Pool>, &[]),
        (member, readable::<Member>, &["monitor_port"]),
        (listener, readable::<Listener>, &["pool"]),
        (monitor, readable::<HealthMonitor>, &["http"]),
        (http, readable::<HttpOptions>, &["host"]),
        (ip, readable::<FloatingIp>, &["server", "load_balancer"]),
        (server, readable::<Server>, &[]),
        (interface, readable::<Interface>, &[]),
        (address, readable::<InterfaceAddress>, &["subnet"]),
    ];
    for (whole, read, nullable) in table {
        assert!(read(&whole), "{whole}");
        for key in whole.as_object().unwrap().keys() {
            let mut part = whole.clone();
            part[key] = Value::Null;
            assert_eq!(read(&part), nullable.contains(&key.as_str()), "L1-201 {part}: {key} is null");
            part.as_object_mut().unwrap().remove(key);
            assert!(!read(&part), "L1-201 {part}: {key} is missing");
        }
    }
}
