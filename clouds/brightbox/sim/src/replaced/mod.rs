//! What the replaced program leaves behind at Brightbox, for tests of the switch.
//!
//! What is there is built request by request from the names, defaults and bodies of that program, without a line of the
//! planner: where the planner finds nothing to do, both agree. The way back is judged by what that program compares.

#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "a test that cannot set up its fixture has failed"
)]

mod judge;
mod variants;
mod wanted;

use serde_json::{Value, json};
use sim_kit::{LeftBehind, merge};

use crate::{Cloud, CloudIp, Server};
pub use judge::would_write;
pub use variants::{Variant, plain, variants};

/// What the replaced program puts before its annotations.
pub const PREFIX: &str = "service.beta.kubernetes.io/brightbox-load-balancer-";
/// The name of the cluster, which is a part of every name.
pub const CLUSTER: &str = "test";
/// A domain that leads to the Cloud IP that a user has chosen.
const DOMAIN: &str = "shop.example.org";
/// The name of a Cloud IP that a user has chosen.
const GIVEN: &str = "theirs";
/// What keeps a Service until its load balancer is gone.
const FINALIZER: &str = "service.kubernetes.io/load-balancer-cleanup";

/// A patch with annotations, given without their prefix; null removes one.
pub fn annotated(annotations: &[(&str, Value)]) -> Value {
    let all: serde_json::Map<_, _> =
        annotations.iter().map(|(key, value)| (format!("{PREFIX}{key}"), value.clone())).collect();
    json!({"metadata": {"annotations": all}})
}

/// The name of everything that is made for a Service.
fn name_of(service: &Value) -> String {
    let text = |key: &str| service["metadata"][key].as_str().unwrap().to_owned();
    format!("{}.{}.{CLUSTER}", text("name"), text("namespace"))
}

fn seed(cloud: &Cloud, collection: &str, body: &Value) -> String {
    cloud.seed(collection, body).map_err(|why| format!("{collection} {body}: {why:?}")).unwrap()
}

fn post(cloud: &Cloud, path: &str, body: &Value) {
    cloud.back_door("POST", path, body).map_err(|why| format!("{path} {body}: {why:?}")).unwrap();
}

/// The servers in the order in which the replaced program happened to hand them over.
fn members(cloud: &Cloud) -> Vec<String> {
    let mut servers = cloud.servers();
    servers.sort_by(|a, b| b.name.cmp(&a.name));
    servers.into_iter().map(|server| server.id).collect()
}

/// A node as the kubelet and the replaced program leave it. It is called after its server.
fn node(server: &Server) -> (String, Value) {
    let zone = server.zone.clone().unwrap();
    let region = zone.rsplit_once('-').unwrap().0;
    let kind = server.server_type.clone().unwrap();
    let labels = json!({
        "node.kubernetes.io/instance-type": kind, "beta.kubernetes.io/instance-type": kind,
        "topology.kubernetes.io/zone": zone, "failure-domain.beta.kubernetes.io/zone": zone,
        "topology.kubernetes.io/region": region, "failure-domain.beta.kubernetes.io/region": region,
    });
    let address = |kind: &str, text: &str| json!({"type": kind, "address": text});
    let mut addresses = vec![address("Hostname", &server.hostname), address("ExternalDNS", &server.fqdn)];
    for interface in &server.interfaces {
        let own = interface.ipv4_address.iter().chain(&interface.ipv6_address);
        addresses.extend(own.map(|text| address("ExternalIP", text)));
    }
    let id = format!("brightbox://{}", server.id);
    let body = json!({"metadata": {"labels": labels}, "spec": {"providerID": id}, "status": {"addresses": addresses}});
    (server.id.clone(), body)
}

fn cloud_ip(cloud: &Cloud, name: &str) -> Option<CloudIp> {
    cloud.cloud_ips().into_iter().find(|ip| ip.name.as_deref() == Some(name))
}

impl LeftBehind for Variant {
    type Cloud = Cloud;

    fn case(&self) -> &str {
        self.case
    }

    fn nodes(&self, cloud: &Cloud) -> Vec<(String, Value)> {
        cloud.change_settings(|settings| settings.acme_in_lists = self.acme_in_lists);
        if self.given {
            seed(cloud, "cloud_ips", &json!({"name": GIVEN}));
            let addresses: Vec<_> = cloud_ip(cloud, GIVEN).unwrap().addresses().collect();
            cloud.set_domain(DOMAIN, &addresses);
        }
        (1..=self.nodes).map(|number| node(&cloud.add_server(&format!("node-{number}"), "gb1-a"))).collect()
    }

    fn service(&self, cloud: &Cloud) -> Value {
        let mut annotations: Vec<(&str, Value)> =
            self.annotations.iter().map(|(key, value)| (*key, json!(value))).collect();
        if self.given {
            annotations.push(("cloudip-allocations", json!(cloud_ip(cloud, GIVEN).unwrap().id)));
        }
        let mut body = annotated(&annotations);
        let ports = json!([{"name": "http", "port": 80, "protocol": "TCP"}]);
        merge(&mut body, json!({"spec": {"type": "LoadBalancer", "ports": ports}}));
        merge(&mut body, json!({"spec": self.spec}));
        body
    }

    fn build(&self, cloud: &Cloud, service: &Value) -> Value {
        let name = name_of(service);
        if !self.given {
            seed(cloud, "cloud_ips", &json!({"name": name}));
        }
        let own = cloud_ip(cloud, if self.given { GIVEN } else { &name }).unwrap();
        let group = seed(cloud, "server_groups", &json!({"name": name}));
        let ids = members(cloud);
        let servers: Vec<_> = ids.iter().map(|id| json!({"server": id})).collect();
        post(cloud, &format!("/1.0/server_groups/{group}/add_servers"), &json!({"servers": servers}));
        let policy = seed(cloud, "firewall_policies", &json!({"name": name, "server_group": group}));
        let mut rule = wanted::rule(service);
        merge(&mut rule, json!({"firewall_policy": policy}));
        seed(cloud, "firewall_rules", &rule);
        let mut body = wanted::balancer(service, &own, &ids);
        (self.left)(&mut body);
        let balancer = seed(cloud, "load_balancers", &body);
        post(cloud, &format!("/1.0/cloud_ips/{}/map", own.id), &json!({"destination": balancer}));
        cloud.settle();
        if let Some(beside) = self.beside {
            beside(cloud, &balancer);
        }
        let shown: Vec<_> =
            own.reverse_dns.iter().chain([&own.fqdn]).map(|name| json!({"hostname": name})).collect();
        json!({
            "metadata": {"finalizers": [FINALIZER]},
            "status": {"loadBalancer": {"ingress": shown}},
        })
    }

    fn is_usual(&self) -> bool {
        self.is_usual
    }
}
