//! What the replaced programs leave behind at BinaryLane, for tests of the switch.
//!
//! There were two generations: the first had nodes and load balancers, the second has nodes and routes. What is there is
//! built from the names, defaults and bodies of those programs, without a line of the planner: where the planner finds
//! nothing to do, both agree.

#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "a test that cannot set up its fixture has failed"
)]

mod variants;

use serde_json::{Value, json};
use sim_kit::{LeftBehind, merge};

use crate::{Cloud, RouteEntry, Server};
pub use variants::{Variant, first_generation, plain, second_generation};

/// What the first generation puts before its annotations.
pub const PREFIX: &str = "service.beta.kubernetes.io/binarylane-loadbalancer-";
/// What keeps a Service until its load balancer is gone.
const FINALIZER: &str = "service.kubernetes.io/load-balancer-cleanup";

/// A patch with annotations, given without their prefix; null removes one.
pub fn annotated(annotations: &[(&str, Value)]) -> Value {
    let key = |key: &str| if key.contains('/') { key.to_owned() } else { format!("{PREFIX}{key}") };
    let all: serde_json::Map<_, _> = annotations.iter().map(|(k, value)| (key(k), value.clone())).collect();
    json!({"metadata": {"annotations": all}})
}

/// A patch with these ports, all over TCP.
pub fn ports(numbers: &[u16]) -> Value {
    let port = |number: &u16| json!({"name": format!("p{number}"), "port": number, "protocol": "TCP"});
    json!({"spec": {"ports": numbers.iter().map(port).collect::<Vec<_>>()}})
}

/// A node as the kubelet and the replaced program leave it. The first generation knew neither type nor host.
fn node(server: &Server, number: usize, routed: bool) -> Value {
    let region = server.region.as_str();
    let mut labels = vec![
        ("topology.kubernetes.io/region", region),
        ("topology.kubernetes.io/zone", region),
        ("failure-domain.beta.kubernetes.io/region", region),
        ("failure-domain.beta.kubernetes.io/zone", region),
    ];
    if routed {
        labels.extend([
            ("node.kubernetes.io/instance-type", server.size.as_str()),
            ("beta.kubernetes.io/instance-type", &server.size),
            ("binarylane.com/host", &server.host),
        ]);
    }
    let labels: serde_json::Map<_, _> = labels.into_iter().map(|(k, v)| (k.to_owned(), json!(v))).collect();
    let address = |kind: &str, text: String| json!({"type": kind, "address": text});
    let mut addresses = vec![address("Hostname", server.name.clone())];
    addresses.extend(
        server.v4.iter().map(|own| {
            address(if own.public { "ExternalIP" } else { "InternalIP" }, own.address.to_string())
        }),
    );
    addresses.extend(server.v6.iter().map(|own| address("ExternalIP", own.to_string())));
    let cidr = cidr(number);
    let mut spec = json!({"providerID": format!("binarylane://{}", server.id)});
    let mut status = json!({"addresses": addresses});
    if routed {
        merge(&mut spec, json!({"podCIDR": cidr, "podCIDRs": [cidr]}));
        let told = json!({"type": "NetworkUnavailable", "status": "False", "reason": "RouteCreated",
            "message": "RouteController created a route"});
        merge(&mut status, json!({"conditions": [told]}));
    }
    json!({"metadata": {"labels": labels}, "spec": spec, "status": status})
}

/// The network of a node's pods.
fn cidr(number: usize) -> String {
    format!("10.244.{number}.0/24")
}

/// The entry that the second generation wrote for a node.
fn entry(server: &Server, number: usize) -> RouteEntry {
    RouteEntry {
        router: server.private_address().unwrap().to_string(),
        destination: cidr(number),
        description: Some(format!("Kubernetes route for node {}", server.name)),
    }
}

impl LeftBehind for Variant {
    type Cloud = Cloud;

    fn case(&self) -> &str {
        self.case
    }

    fn nodes(&self, cloud: &Cloud) -> Vec<(String, Value)> {
        let vpc = cloud.first_vpc();
        let one = |number| {
            let name = format!("node-{number}");
            let server = cloud.add_server(&name, "bne");
            if self.routed {
                let new = entry(&server, number);
                cloud.edit(|all| all.vpcs.get_mut(&vpc).unwrap().route_entries.push(new));
            }
            (name, node(&server, number, self.routed))
        };
        (1..=3).map(one).collect()
    }

    fn service(&self, _: &Cloud) -> Value {
        if self.routed {
            return Value::Null;
        }
        let mut body = json!({"spec": {"type": "LoadBalancer", "ports": [{"port": 80, "protocol": "TCP"}]}});
        merge(&mut body, self.service.clone());
        body
    }

    fn build(&self, cloud: &Cloud, _: &Value) -> Value {
        let servers: Vec<_> = cloud.servers().iter().map(|server| server.id).collect();
        let rules: Vec<_> = self.rules.iter().map(|word| json!({"entry_protocol": word})).collect();
        let body = json!({"name": self.name, "forwarding_rules": rules, "region": self.region,
            "health_check": {"protocol": self.check.0, "path": self.check.1}, "server_ids": servers});
        let id = cloud.seed("load_balancers", &body).map_err(|why| format!("{body}: {why:?}")).unwrap();
        let ip = cloud.balancer(id).unwrap().ip.unwrap().to_string();
        let mut wrote = json!({"metadata": {"finalizers": [FINALIZER]}});
        if self.recorded {
            merge(&mut wrote, annotated(&[("id", json!(id.to_string()))]));
        }
        merge(&mut wrote, json!({"status": {"loadBalancer": {"ingress": [{"ip": ip}]}}}));
        wrote
    }

    fn is_usual(&self) -> bool {
        self.usual
    }
}
