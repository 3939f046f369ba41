//! What the replaced program leaves behind at cloudscale.ch, for tests of the switch.
//!
//! What is there is built request by request from the names, defaults and bodies of that program, without a line of the
//! planner: where the planner finds nothing to do, both agree, and switching over changes nothing, nor does switching
//! back.

#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "a test that cannot set up its fixture has failed"
)]

mod variants;

use serde_json::{Value, json};
use sim_kit::{LeftBehind, merge};

use crate::{Cloud, Server};
pub use variants::{Variant, plain, variants};

/// What the replaced program puts before its annotations.
pub const PREFIX: &str = "k8s.cloudscale.ch/loadbalancer-";
/// What keeps a Service until its load balancer is gone.
const FINALIZER: &str = "service.kubernetes.io/load-balancer-cleanup";
/// The private network beside the usual one.
const SECOND: &str = "10.88.0.0/24";

/// A patch with annotations, given without their prefix; null removes one.
pub fn annotated(annotations: &[(&str, Value)]) -> Value {
    let all: serde_json::Map<_, _> =
        annotations.iter().map(|(key, value)| (format!("{PREFIX}{key}"), value.clone())).collect();
    json!({"metadata": {"annotations": all}})
}

fn post(cloud: &Cloud, path: &str, mut body: Value, more: &Value) -> String {
    merge(&mut body, more.clone());
    let made = cloud.back_door("POST", path, &body).map_err(|why| format!("{path} {body}: {why:?}")).unwrap();
    made["uuid"].as_str().unwrap().to_owned()
}

/// The id of the second private subnet.
fn second_subnet(cloud: &Cloud) -> String {
    let subnets = cloud.resources().subnets;
    subnets.into_values().find(|subnet| subnet.cidr.to_string() == SECOND).unwrap().uuid
}

/// The addresses that the replaced program would take for members, with their subnets.
fn addresses(cloud: &Cloud, variant: &Variant) -> Vec<(String, String)> {
    let mut servers = cloud.servers();
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

/// One port with its pool, members, listener and health monitor.
fn build_port(cloud: &Cloud, variant: &Variant, balancer: &str, service: &Value, port: &Value) {
    let udp = port["protocol"] == "UDP";
    let protocol = if udp { "udp" } else { "tcp" };
    let pool = port["name"].as_str().map_or(protocol.to_owned(), |name| format!("{protocol}/{name}"));
    let mut body =
        json!({"name": pool, "load_balancer": balancer, "algorithm": "round_robin", "protocol": "tcp"});
    merge(&mut body, variant.pool.clone());
    let udp = if udp { json!({"protocol": "udp"}) } else { json!({}) };
    let pool = post(cloud, "/v1/load-balancers/pools", body, &udp);
    let node_port = &port["nodePort"];
    let checks = service["spec"].get("healthCheckNodePort").unwrap_or(node_port);
    for (address, subnet) in addresses(cloud, variant) {
        let body = json!({"name": format!("{address}:{node_port}"), "protocol_port": node_port,
            "monitor_port": checks, "address": address, "subnet": subnet});
        post(cloud, &format!("/v1/load-balancers/pools/{pool}/members"), body, &variant.member);
    }
    let body = json!({"name": format!("{protocol}/{}", port["port"]), "pool": pool, "protocol": protocol,
        "protocol_port": port["port"], "allowed_cidrs": [], "timeout_client_data_ms": 50000,
        "timeout_member_connect_ms": 5000, "timeout_member_data_ms": 50000});
    post(cloud, "/v1/load-balancers/listeners", body, &variant.listener);
    let body = json!({"pool": pool, "type": "tcp", "delay_s": 2, "timeout_s": 1, "up_threshold": 2,
        "down_threshold": 3, "http": {}});
    post(cloud, "/v1/load-balancers/health-monitors", body, &variant.monitor);
}

/// A node as the kubelet and the replaced program leave it.
fn node(server: &Server, labels: &[(&str, &str)]) -> Value {
    let region = server.zone.trim_end_matches(|c: char| c.is_ascii_digit());
    let mut all = serde_json::Map::new();
    for (kind, value) in [
        ("node.kubernetes.io/instance-type", server.flavor.as_str()),
        ("beta.kubernetes.io/instance-type", server.flavor.as_str()),
        ("topology.kubernetes.io/zone", server.zone.as_str()),
        ("failure-domain.beta.kubernetes.io/zone", server.zone.as_str()),
        ("topology.kubernetes.io/region", region),
        ("failure-domain.beta.kubernetes.io/region", region),
    ] {
        all.insert(kind.to_owned(), json!(value));
    }
    all.extend(labels.iter().map(|(key, value)| ((*key).to_owned(), json!(value))));
    let mut addresses = vec![json!({"type": "Hostname", "address": server.name})];
    for interface in &server.interfaces {
        let kind = if interface.public { "ExternalIP" } else { "InternalIP" };
        let own = interface.addresses.iter().map(|own| json!({"type": kind, "address": own.address}));
        addresses.extend(own);
    }
    let id = format!("cloudscale://{}", server.uuid);
    json!({"metadata": {"labels": all}, "spec": {"providerID": id}, "status": {"addresses": addresses}})
}

impl LeftBehind for Variant {
    type Cloud = Cloud;

    fn case(&self) -> &str {
        self.case
    }

    fn nodes(&self, cloud: &Cloud) -> Vec<(String, Value)> {
        for address in ["192.0.2.7/32", "192.0.2.8/32"] {
            cloud.add_floating_ip(address.parse().unwrap(), None);
        }
        let second = cloud.add_private_network("second", "rma1", SECOND.parse().unwrap());
        let one = |number| {
            let name = format!("node-{number}");
            let id = cloud.add_server(&name, "rma1").uuid;
            if self.second_subnet {
                cloud.attach(&id, &second).unwrap();
            }
            let labels: &[_] = if number == 2 { &[] } else { &[("pick", "me")] };
            (name, node(&cloud.resources().servers[&id], labels))
        };
        (1..=3).map(one).collect()
    }

    fn service(&self, cloud: &Cloud) -> Value {
        let mut annotations: Vec<(&str, Value)> =
            self.annotations.iter().map(|(key, value)| (*key, json!(value))).collect();
        let second = second_subnet(cloud);
        if self.second_subnet {
            annotations.push(("listener-allowed-subnets", json!(json!([second]).to_string())));
        }
        if self.private_vip && self.beside.is_none() {
            annotations.push(("vip-addresses", json!(json!([{"subnet": second}]).to_string())));
        }
        let mut body = annotated(&annotations);
        let ports = json!([{"port": 80, "protocol": "TCP"}]);
        merge(&mut body, json!({"spec": {"type": "LoadBalancer", "ports": ports}}));
        merge(&mut body, json!({"spec": self.spec}));
        body
    }

    fn build(&self, cloud: &Cloud, service: &Value) -> Value {
        let name = self.annotations.iter().find(|(key, _)| *key == "name").map(|(_, value)| value.clone());
        let uid = service["metadata"]["uid"].as_str().unwrap();
        let name = name.unwrap_or_else(|| format!("k8s-service-{uid}"));
        let vips = if self.private_vip { json!([{"subnet": second_subnet(cloud)}]) } else { json!([]) };
        let body = json!({"name": name, "flavor": "lb-standard", "zone": "rma1", "vip_addresses": vips});
        let balancer = post(cloud, "/v1/load-balancers", body, &json!({}));
        cloud.settle();
        for port in service["spec"]["ports"].as_array().unwrap() {
            build_port(cloud, self, &balancer, service, port);
        }
        if let Some(beside) = self.beside {
            beside(cloud, &balancer);
        }
        let recorded = [("uuid", json!(balancer)), ("config-version", json!("1")), ("zone", json!("rma1"))];
        let mut wrote = annotated(&recorded);
        merge(&mut wrote, json!({"metadata": {"finalizers": [FINALIZER]}}));
        merge(&mut wrote, json!({"status": {"loadBalancer": {"ingress": self.shown(cloud)}}}));
        wrote
    }

    fn is_usual(&self) -> bool {
        // Members without a port for checks are from an earlier version of that program.
        self.beside.is_none() && self.member == json!({})
    }
}

impl Variant {
    /// What the status says.
    fn shown(&self, cloud: &Cloud) -> Value {
        let asked = self.annotations.iter().find(|(key, _)| *key == "ip-mode");
        let mode = asked.map_or("Proxy", |(_, mode)| mode);
        let vips = cloud.balancers()[0].vips.clone();
        let shown = vips.iter().map(|vip| json!({"ip": vip.address.to_string(), "ipMode": mode}));
        self.status.clone().unwrap_or_else(|| shown.collect())
    }
}
