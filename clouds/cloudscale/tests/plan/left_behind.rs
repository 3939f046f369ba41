//! What the Go program leaves behind in the cloud, written down as JSON, without a line of our own planner.
//!
//! Two nodes, `10.0.0.1` and `10.0.0.2`. Everything that a variant does not say is as that program has it by default.

use std::collections::BTreeMap;

use cloudberth_cloudscale::{ObservedBalancer, Parts, wire::Member};
use serde_json::{Value, json};

use crate::fixture::{LB, SUBNET, UID, read};

/// A pool with everything below it.
pub(crate) struct Left {
    pub(crate) name: &'static str,
    pub(crate) algorithm: &'static str,
    pub(crate) protocol: &'static str,
    /// Address, subnet, port, port of checks.
    pub(crate) members: Vec<(&'static str, &'static str, i64, Value)>,
    pub(crate) listener: Value,
    pub(crate) monitor: Value,
}

pub(crate) fn members(port: i64, check: i64) -> Vec<(&'static str, &'static str, i64, Value)> {
    vec![("10.0.0.1", SUBNET, port, json!(check)), ("10.0.0.2", SUBNET, port, json!(check))]
}

pub(crate) fn listener(name: &str, protocol: &str, port: i64) -> Value {
    json!({"name": name, "protocol": protocol, "protocol_port": port, "allowed_cidrs": [],
        "timeout_client_data_ms": 50000, "timeout_member_connect_ms": 5000, "timeout_member_data_ms": 50000})
}

pub(crate) fn monitor(kind: &str, http: impl Into<Value>) -> Value {
    json!({"type": kind, "delay_s": 2, "timeout_s": 1, "up_threshold": 2, "down_threshold": 3, "http": http.into()})
}

pub(crate) fn http(path: &str, version: &str, host: impl Into<Value>) -> Value {
    json!({"expected_codes": ["200"], "method": "GET", "url_path": path, "version": version, "host": host.into()})
}

/// The plain one: port 80 to node port 30080.
pub(crate) fn tcp80() -> Left {
    Left {
        name: "tcp",
        algorithm: "round_robin",
        protocol: "tcp",
        members: members(30080, 30080),
        listener: listener("tcp/80", "tcp", 80),
        monitor: monitor("tcp", Value::Null),
    }
}

/// The load balancer with the public pair of addresses.
pub(crate) fn go_balancer() -> Value {
    json!({
        "href": format!("https://api.cloudscale.ch/v1/load-balancers/{LB}"), "uuid": LB,
        "name": format!("k8s-service-{UID}"), "created_at": "2026-01-14T09:02:44.731004Z", "status": "running",
        "zone": {"slug": "lpg1"}, "flavor": {"slug": "lb-standard", "name": "LB-Standard"},
        "vip_addresses": [
            {"version": 4, "address": "203.0.113.90", "subnet": {"href": "x", "uuid": "22bb", "cidr": "203.0.113.0/24"}},
            {"version": 6, "address": "2001:db8:10::90", "subnet": {"href": "x", "uuid": "33cc", "cidr": "2001:db8:10::/64"}}],
        "tags": {},
    })
}

fn with(mut object: Value, extra: Value) -> Value {
    if let (Value::Object(object), Value::Object(extra)) = (&mut object, extra) {
        object.extend(extra);
    }
    object
}

/// Reads it as a look would. Another load balancer and a listener without a pool stand beside it.
pub(crate) fn existing(
    balancer: Value,
    left: &[Left],
    floating_ips: &[(&str, Option<&str>)],
) -> ObservedBalancer {
    let stub = |uuid: &str| json!({"href": "x", "uuid": uuid, "name": "y"});
    let mut parts = Parts::default();
    let mut below: BTreeMap<String, Vec<Member>> = BTreeMap::new();
    for (at, pool) in left.iter().enumerate() {
        let uuid = format!("pool-{at}");
        parts.pools.push(read(json!({"uuid": uuid, "name": pool.name, "load_balancer": stub(LB),
            "algorithm": pool.algorithm, "protocol": pool.protocol, "tags": {}, "created_at": "x"})));
        let member = |(number, (address, subnet, port, check)): (usize, &(&str, &str, i64, Value))| {
            let name = if address.contains(':') {
                format!("[{address}]:{port}")
            } else {
                format!("{address}:{port}")
            };
            read(
                json!({"uuid": format!("member-{at}-{number}"), "name": name, "enabled": true, "pool": stub(&uuid),
                "load_balancer": stub(LB), "subnet": {"href": "x", "uuid": subnet, "cidr": "10.0.0.0/24"},
                "address": address, "protocol_port": port, "monitor_port": check, "monitor_status": "up", "tags": {}}),
            )
        };
        below.insert(uuid.clone(), pool.members.iter().enumerate().map(member).collect());
        let owner =
            json!({"uuid": format!("part-{at}"), "pool": stub(&uuid), "load_balancer": stub(LB), "tags": {}});
        if !pool.listener.is_null() {
            parts.listeners.push(read(with(pool.listener.clone(), owner.clone())));
        }
        if !pool.monitor.is_null() {
            parts.monitors.push(read(with(pool.monitor.clone(), owner)));
        }
    }
    let foreign = json!({"uuid": "foreign", "name": "tcp", "load_balancer": stub("foreign-lb"),
        "algorithm": "source_ip", "protocol": "proxy"});
    parts.pools.push(read(foreign));
    parts
        .listeners
        .push(read(with(listener("tcp/9999", "tcp", 9999), json!({"uuid": "stray", "pool": null}))));
    for (network, target) in floating_ips {
        let target = target.map_or(Value::Null, stub);
        parts.floating_ips.push(read(
            json!({"network": network, "load_balancer": target, "server": null, "ip_version": 4}),
        ));
    }
    ObservedBalancer::assemble(read(balancer), &parts, below).unwrap()
}
