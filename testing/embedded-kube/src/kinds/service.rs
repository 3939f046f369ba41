//! Services: defaults, the fields that belong to a type, and what a change of type removes.

use serde_json::{Value, json};

use super::super::status::Answer;
use super::super::value::{at, at_mut, default, int, list, put, set, text, texts, unset};
use super::Setting;
use super::service_allocation as allocation;

pub(super) fn kind(service: &Value) -> &str {
    text(service, "spec.type")
}

pub(super) fn needs_cluster_ip(service: &Value) -> bool {
    kind(service) != "ExternalName"
}

pub(super) fn needs_node_port(service: &Value) -> bool {
    matches!(kind(service), "NodePort" | "LoadBalancer")
}

pub(super) fn needs_health_port(service: &Value) -> bool {
    kind(service) == "LoadBalancer" && text(service, "spec.externalTrafficPolicy") == "Local"
}

pub(super) fn externally_accessible(service: &Value) -> bool {
    needs_node_port(service)
        || (kind(service) == "ClusterIP" && !list(service, "spec.externalIPs").is_empty())
}

pub(super) fn is_headless(service: &Value) -> bool {
    texts(service, "spec.clusterIPs").as_slice() == ["None"]
}

pub(super) fn defaults(service: &mut Value) {
    default(service, "spec.sessionAffinity", "None");
    match text(service, "spec.sessionAffinity") {
        "None" => unset(service, "spec.sessionAffinityConfig"),
        "ClientIP" if at(service, "spec.sessionAffinityConfig.clientIP.timeoutSeconds").is_none() => {
            set(service, "spec.sessionAffinityConfig", json!({"clientIP": {"timeoutSeconds": 10_800}}));
        }
        _ => {}
    }
    default(service, "spec.type", "ClusterIP");
    for port in at_mut(service, "spec.ports").and_then(Value::as_array_mut).into_iter().flatten() {
        default(port, "protocol", "TCP");
        if matches!(at(port, "targetPort"), None | Some(Value::Null))
            || port["targetPort"] == 0
            || port["targetPort"] == ""
        {
            let number = int(port, "port");
            set(port, "targetPort", number);
        }
    }
    if externally_accessible(service) {
        default(service, "spec.externalTrafficPolicy", "Cluster");
    }
    if matches!(kind(service), "NodePort" | "LoadBalancer" | "ClusterIP") {
        default(service, "spec.internalTrafficPolicy", "Cluster");
    }
    if kind(service) == "LoadBalancer" {
        default(service, "spec.allocateLoadBalancerNodePorts", true);
        for ingress in
            at_mut(service, "status.loadBalancer.ingress").and_then(Value::as_array_mut).into_iter().flatten()
        {
            if !text(ingress, "ip").is_empty() {
                default(ingress, "ipMode", "VIP");
            }
        }
    }
}

/// A new Service has no status, and gets its addresses and ports.
pub(super) fn prepare_create(service: &mut Value, setting: &mut Setting<'_>) -> Answer<()> {
    let (single, plural) = (text(service, "spec.clusterIP").to_owned(), texts(service, "spec.clusterIPs"));
    if !single.is_empty() && plural.is_empty() {
        set(service, "spec.clusterIPs", json!([single]));
    }
    allocation::create(service, setting)?;
    set(service, "status", json!({"loadBalancer": {}}));
    Ok(())
}

/// Fills in what was allocated before, then allocates what is new.
pub(super) fn allocate_update(new: &mut Value, old: &Value, setting: &mut Setting<'_>) -> Answer<()> {
    keep_allocated(new, old);
    align_cluster_ips(new, old);
    allocation::update(new, old, setting)
}

/// Keeps the server's choices when a client applies its manifest again.
fn keep_allocated(new: &mut Value, old: &Value) {
    if needs_cluster_ip(old) && needs_cluster_ip(new) {
        if text(new, "spec.clusterIP").is_empty() {
            put(new, "spec.clusterIP", at(old, "spec.clusterIP").cloned());
        }
        if list(new, "spec.clusterIPs").is_empty() {
            put(new, "spec.clusterIPs", at(old, "spec.clusterIPs").cloned());
        }
    }
    if needs_node_port(old) && needs_node_port(new) {
        keep_node_ports(new, old);
    }
    if needs_health_port(old) && needs_health_port(new) && int(new, "spec.healthCheckNodePort") == 0 {
        put(new, "spec.healthCheckNodePort", at(old, "spec.healthCheckNodePort").cloned());
    }
}

fn keep_node_ports(new: &mut Value, old: &Value) {
    let before = node_ports(old);
    let mut used: Vec<i64> = node_ports(new).into_iter().filter(|port| before.contains(port)).collect();
    let by_name: Vec<(String, i64)> =
        list(old, "spec.ports").iter().map(|p| (text(p, "name").to_owned(), int(p, "nodePort"))).collect();
    for port in at_mut(new, "spec.ports").and_then(Value::as_array_mut).into_iter().flatten() {
        if int(port, "nodePort") != 0 {
            continue;
        }
        let name = text(port, "name").to_owned();
        // The last port of a name counts, as in a map built in order.
        let known = by_name.iter().rev().find(|(other, _)| *other == name).map_or(0, |(_, number)| *number);
        if known != 0 && !used.contains(&known) {
            used.push(known);
            set(port, "nodePort", known);
        }
    }
}

/// `clusterIP` and `clusterIPs` follow each other when only one of them was changed.
fn align_cluster_ips(new: &mut Value, old: &Value) {
    let same_plural = at(new, "spec.clusterIPs") == at(old, "spec.clusterIPs");
    let (before, after) = (text(old, "spec.clusterIP").to_owned(), text(new, "spec.clusterIP").to_owned());
    if before == after {
        if list(new, "spec.clusterIPs").is_empty() {
            put(new, "spec.clusterIPs", at(old, "spec.clusterIPs").cloned());
        }
        return;
    }
    if same_plural {
        let plural = (!after.is_empty()).then(|| json!([after]));
        put(new, "spec.clusterIPs", plural);
    }
}

pub(super) fn node_ports(service: &Value) -> Vec<i64> {
    list(service, "spec.ports").iter().map(|port| int(port, "nodePort")).filter(|port| *port != 0).collect()
}

/// Removes the fields of the old type, unless the client changed them too (then validation complains).
pub(super) fn prepare_update(new: &mut Value, old: &Value) {
    put(new, "status", at(old, "status").cloned());
    let same = |new: &Value, path: &str| at(new, path) == at(old, path);
    if needs_cluster_ip(old) && !needs_cluster_ip(new) {
        if same(new, "spec.clusterIP") && same(new, "spec.clusterIPs") {
            unset(new, "spec.clusterIP");
            unset(new, "spec.clusterIPs");
        }
        for path in ["spec.ipFamilies", "spec.ipFamilyPolicy"] {
            if same(new, path) {
                unset(new, path);
            }
        }
    }
    if needs_node_port(old) && !needs_node_port(new) {
        let before = node_ports(old);
        if node_ports(new).iter().all(|port| before.contains(port)) {
            for port in at_mut(new, "spec.ports").and_then(Value::as_array_mut).into_iter().flatten() {
                unset(port, "nodePort");
            }
        }
    }
    let after = new_facts(new);
    let mut drop_if = |no_longer: bool, path: &str| {
        if no_longer && same(new, path) {
            unset(new, path);
        }
    };
    drop_if(needs_health_port(old) && !after.health_port, "spec.healthCheckNodePort");
    drop_if(kind(old) == "LoadBalancer" && !after.balancer, "spec.allocateLoadBalancerNodePorts");
    drop_if(kind(old) == "LoadBalancer" && !after.balancer, "spec.loadBalancerClass");
    drop_if(externally_accessible(old) && !after.external, "spec.externalTrafficPolicy");
    if !after.balancer {
        set(new, "status.loadBalancer", json!({}));
    }
    if kind(new) == "ExternalName" {
        unset(new, "spec.internalTrafficPolicy");
    }
}

struct Facts {
    health_port: bool,
    balancer: bool,
    external: bool,
}

fn new_facts(new: &Value) -> Facts {
    Facts {
        health_port: needs_health_port(new),
        balancer: kind(new) == "LoadBalancer",
        external: externally_accessible(new),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn defaults_depend_on_the_type() {
        let table = [
            (
                json!({"spec": {"ports": [{"port": 80, "targetPort": 0}]}}),
                json!({"sessionAffinity": "None", "type": "ClusterIP", "internalTrafficPolicy": "Cluster",
                       "ports": [{"port": 80, "protocol": "TCP", "targetPort": 80}]}),
            ),
            (
                json!({"spec": {"type": "LoadBalancer", "sessionAffinity": "ClientIP"}}),
                json!({"sessionAffinity": "ClientIP", "sessionAffinityConfig": {"clientIP": {"timeoutSeconds": 10800}},
                       "type": "LoadBalancer", "internalTrafficPolicy": "Cluster", "externalTrafficPolicy": "Cluster",
                       "allocateLoadBalancerNodePorts": true}),
            ),
            (
                json!({"spec": {"type": "ExternalName", "externalName": "x.y"}}),
                json!({"sessionAffinity": "None", "type": "ExternalName", "externalName": "x.y"}),
            ),
        ];
        for (mut given, want) in table {
            defaults(&mut given);
            assert_eq!(given["spec"], want);
        }
        let mut ingress = json!({"spec": {"type": "LoadBalancer"}, "status": {"loadBalancer": {"ingress": [{"ip": "1.2.3.4"}, {"hostname": "h"}]}}});
        defaults(&mut ingress);
        assert_eq!(
            ingress["status"]["loadBalancer"]["ingress"],
            json!([{"ip": "1.2.3.4", "ipMode": "VIP"}, {"hostname": "h"}])
        );
    }

    #[test]
    fn a_change_of_type_takes_its_fields_away() {
        let old = json!({"spec": {
            "type": "LoadBalancer", "clusterIP": "10.96.0.9", "clusterIPs": ["10.96.0.9"], "ipFamilies": ["IPv4"],
            "ipFamilyPolicy": "SingleStack", "externalTrafficPolicy": "Local", "healthCheckNodePort": 31000,
            "allocateLoadBalancerNodePorts": true, "loadBalancerClass": "x/y",
            "ports": [{"port": 80, "nodePort": 30001}]},
            "status": {"loadBalancer": {"ingress": [{"ip": "1.2.3.4"}]}}});
        let mut new = old.clone();
        set(&mut new, "spec.type", "ClusterIP");
        prepare_update(&mut new, &old);
        assert_eq!(
            new,
            json!({"spec": {"type": "ClusterIP", "clusterIP": "10.96.0.9", "clusterIPs": ["10.96.0.9"],
                "ipFamilies": ["IPv4"], "ipFamilyPolicy": "SingleStack", "ports": [{"port": 80}]},
                "status": {"loadBalancer": {}}})
        );
        let mut external = old.clone();
        set(&mut external, "spec.type", "ExternalName");
        prepare_update(&mut external, &old);
        assert_eq!(external["spec"], json!({"type": "ExternalName", "ports": [{"port": 80}]}));
    }

    #[test]
    fn a_manifest_that_is_applied_again_keeps_what_was_allocated() {
        let old = json!({"spec": {"type": "NodePort", "clusterIP": "10.96.0.9", "clusterIPs": ["10.96.0.9"],
            "ports": [{"name": "a", "port": 80, "nodePort": 30001}, {"name": "b", "port": 81, "nodePort": 30002}]}});
        let mut new = json!({"spec": {"type": "NodePort", "ports": [{"name": "b", "port": 8181}, {"name": "c", "port": 82}]}});
        keep_allocated(&mut new, &old);
        assert_eq!(new["spec"]["clusterIP"], "10.96.0.9");
        assert_eq!(
            new["spec"]["ports"],
            json!([{"name": "b", "port": 8181, "nodePort": 30002}, {"name": "c", "port": 82}])
        );
    }
}
