//! Reads a Service from its JSON.
//!
//! Leniently: unknown fields are ignored, and a part of the wrong type never makes the whole object unreadable. Where
//! skipping such a part would widen what the Service asks for (a source range, a class, a policy), it is kept as its JSON
//! text, so that it is refused by name where it is used.

use std::collections::BTreeMap;

use serde_json::Value;

use crate::{
    error::{Error, Result},
    net::IpFamily,
    view::{
        ExternalTrafficPolicy, Ingress, IngressPort, IpFamilyPolicy, IpMode, ServicePort, ServiceProtocol,
        ServiceType, ServiceView, SessionAffinity, TargetPort, filled, items, pairs,
    },
};

impl ServiceView {
    /// Reads the JSON of a Service. The only error is a missing name.
    pub fn from_json(object: &Value) -> Result<Self> {
        let meta = &object["metadata"];
        let (spec, status) = (&object["spec"], &object["status"]);
        let balancer = &status["loadBalancer"];
        let Some(name) = filled(&meta["name"]) else {
            return Err(Error::permanent("a Service came without metadata.name"));
        };
        Ok(Self {
            namespace: filled(&meta["namespace"]).unwrap_or_default(),
            name,
            uid: filled(&meta["uid"]).unwrap_or_default(),
            resource_version: filled(&meta["resourceVersion"]).unwrap_or_default(),
            generation: number(&meta["generation"]),
            deleting: filled(&meta["deletionTimestamp"]).is_some(),
            finalizers: texts(&meta["finalizers"]),
            labels: pairs::texts(&meta["labels"]).collect(),
            annotations: map(&meta["annotations"]),
            service_type: service_type(spec),
            class: given(&spec["loadBalancerClass"]),
            ports: items(&spec["ports"]).map(service_port).collect(),
            allocate_node_ports: spec["allocateLoadBalancerNodePorts"].as_bool(),
            external_traffic_policy: traffic_policy(&spec["externalTrafficPolicy"]),
            health_check_node_port: number(&spec["healthCheckNodePort"]),
            source_ranges: source_ranges(&spec["loadBalancerSourceRanges"]),
            load_balancer_ip: filled(&spec["loadBalancerIP"]),
            external_ips: texts(&spec["externalIPs"]),
            session_affinity: session_affinity(spec),
            ip_families: texts(&spec["ipFamilies"]).iter().filter_map(|name| ip_family(name)).collect(),
            ip_family_policy: given(&spec["ipFamilyPolicy"]).map(ip_family_policy),
            cluster_ips: texts(&spec["clusterIPs"]),
            internal_traffic_policy: filled(&spec["internalTrafficPolicy"]),
            publish_not_ready_addresses: spec["publishNotReadyAddresses"].as_bool().unwrap_or_default(),
            traffic_distribution: filled(&spec["trafficDistribution"]),
            ingress: items(&balancer["ingress"]).filter(|entry| entry.is_object()).map(ingress).collect(),
        })
    }
}

/// The value as text; one of a wrong type as its JSON.
fn given(value: &Value) -> Option<String> {
    match value {
        Value::Null => None,
        Value::String(text) => Some(text.clone()),
        other => Some(other.to_string()),
    }
}

fn number(value: &Value) -> i64 {
    value.as_i64().unwrap_or_default()
}

fn texts(value: &Value) -> Vec<String> {
    items(value).filter_map(filled).collect()
}

fn map(value: &Value) -> BTreeMap<String, String> {
    pairs::texts(value).map(|(key, value)| (key.to_owned(), value.to_owned())).collect()
}

/// Kubernetes always sets the type, so an object without a spec says nothing about it; reading it as `ClusterIP` would
/// remove its load balancer.
fn service_type(spec: &Value) -> ServiceType {
    if !spec.is_object() {
        return ServiceType::Other(String::new());
    }
    match given(&spec["type"]).as_deref() {
        None | Some("ClusterIP") => ServiceType::ClusterIp,
        Some("NodePort") => ServiceType::NodePort,
        Some("LoadBalancer") => ServiceType::LoadBalancer,
        Some("ExternalName") => ServiceType::ExternalName,
        Some(other) => ServiceType::Other(other.to_owned()),
    }
}

fn protocol(value: &Value) -> ServiceProtocol {
    match given(value).as_deref() {
        None | Some("TCP") => ServiceProtocol::Tcp,
        Some("UDP") => ServiceProtocol::Udp,
        Some("SCTP") => ServiceProtocol::Sctp,
        Some(other) => ServiceProtocol::Other(other.to_owned()),
    }
}

/// An entry that is not an object becomes a port without a number, which every provider refuses.
fn service_port(value: &Value) -> ServicePort {
    let target_port = match &value["targetPort"] {
        Value::Number(n) => n.as_i64().map(TargetPort::Number),
        Value::String(name) => Some(TargetPort::Name(name.clone())),
        _ => None,
    };
    ServicePort {
        name: filled(&value["name"]).unwrap_or_default(),
        protocol: protocol(&value["protocol"]),
        port: number(&value["port"]),
        node_port: number(&value["nodePort"]),
        target_port,
        app_protocol: given(&value["appProtocol"]),
    }
}

fn traffic_policy(value: &Value) -> ExternalTrafficPolicy {
    match given(value).as_deref() {
        None | Some("" | "Cluster") => ExternalTrafficPolicy::Cluster,
        Some("Local") => ExternalTrafficPolicy::Local,
        Some(other) => ExternalTrafficPolicy::Other(other.to_owned()),
    }
}

fn source_ranges(value: &Value) -> Option<Vec<String>> {
    match value {
        Value::Null => None,
        Value::Array(entries) => Some(entries.iter().map(|e| given(e).unwrap_or_default()).collect()),
        other => Some(vec![given(other).unwrap_or_default()]),
    }
}

fn session_affinity(spec: &Value) -> SessionAffinity {
    match given(&spec["sessionAffinity"]).as_deref() {
        None | Some("" | "None") => SessionAffinity::None,
        Some("ClientIP") => {
            let config = &spec["sessionAffinityConfig"];
            let config = &config["clientIP"];
            SessionAffinity::ClientIp { timeout_seconds: config["timeoutSeconds"].as_i64() }
        }
        Some(other) => SessionAffinity::Other(other.to_owned()),
    }
}

fn ip_family(name: &str) -> Option<IpFamily> {
    [IpFamily::V4, IpFamily::V6].into_iter().find(|family| family.as_str() == name)
}

fn ip_family_policy(name: String) -> IpFamilyPolicy {
    match name.as_str() {
        "SingleStack" => IpFamilyPolicy::SingleStack,
        "PreferDualStack" => IpFamilyPolicy::PreferDualStack,
        "RequireDualStack" => IpFamilyPolicy::RequireDualStack,
        _ => IpFamilyPolicy::Other(name),
    }
}

fn ingress(value: &Value) -> Ingress {
    let ip_mode = given(&value["ipMode"]).map(|mode| match mode.as_str() {
        "VIP" => IpMode::Vip,
        "Proxy" => IpMode::Proxy,
        _ => IpMode::Other(mode),
    });
    let port = |value: &Value| IngressPort {
        port: number(&value["port"]),
        protocol: protocol(&value["protocol"]),
        error: filled(&value["error"]),
    };
    Ingress {
        ip: filled(&value["ip"]),
        hostname: filled(&value["hostname"]),
        ip_mode,
        ports: items(&value["ports"]).map(port).collect(),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    fn everything() -> Value {
        json!({
            "apiVersion": "v1", "kind": "Service",
            "metadata": {
                "namespace": "shop", "name": "web", "uid": "u-1", "resourceVersion": "77", "generation": 3,
                "deletionTimestamp": "2026-03-02T04:05:00Z", "finalizers": ["a/b", "c/d"],
                "labels": {"app": "web"}, "annotations": {"k": "v", "empty": ""}, "managedFields": [{}],
            },
            "spec": {
                "type": "LoadBalancer", "loadBalancerClass": "example.com/class",
                "ports": [
                    {"name": "http", "protocol": "TCP", "port": 80, "nodePort": 30080, "targetPort": 8080,
                     "appProtocol": "http"},
                    {"port": 53, "protocol": "UDP", "targetPort": "dns"},
                    {"port": 9, "protocol": "SCTP"},
                    {"port": 10, "protocol": "QUIC"},
                ],
                "allocateLoadBalancerNodePorts": false, "externalTrafficPolicy": "Local",
                "healthCheckNodePort": 32000, "loadBalancerSourceRanges": ["10.0.0.0/8"],
                "loadBalancerIP": "192.0.2.1", "externalIPs": ["192.0.2.2"],
                "sessionAffinity": "ClientIP", "sessionAffinityConfig": {"clientIP": {"timeoutSeconds": 60}},
                "ipFamilies": ["IPv6", "IPv9", "IPv4"], "ipFamilyPolicy": "RequireDualStack",
                "clusterIPs": ["10.96.0.1"], "internalTrafficPolicy": "Cluster",
                "publishNotReadyAddresses": true, "trafficDistribution": "PreferClose",
            },
            "status": {"loadBalancer": {"ingress": [
                {"ip": "192.0.2.3", "ipMode": "Proxy", "ports": [{"port": 80, "protocol": "TCP", "error": "x/Down"}]},
                {"hostname": "lb.example.com", "ipMode": "VIP"},
                {"ip": "192.0.2.4", "ipMode": "Odd"},
            ]}},
        })
    }

    fn port(number: i64, protocol: ServiceProtocol, target_port: Option<TargetPort>) -> ServicePort {
        ServicePort { port: number, protocol, target_port, ..ServicePort::default() }
    }

    #[test]
    fn every_field_is_read() {
        let text = str::to_owned;
        let want = ServiceView {
            namespace: text("shop"),
            name: text("web"),
            uid: text("u-1"),
            resource_version: text("77"),
            generation: 3,
            deleting: true,
            finalizers: vec![text("a/b"), text("c/d")],
            labels: [(text("app"), text("web"))].into(),
            annotations: [(text("k"), text("v")), (text("empty"), text(""))].into(),
            service_type: ServiceType::LoadBalancer,
            class: Some(text("example.com/class")),
            ports: vec![
                ServicePort {
                    name: text("http"),
                    node_port: 30080,
                    app_protocol: Some(text("http")),
                    ..port(80, ServiceProtocol::Tcp, Some(TargetPort::Number(8080)))
                },
                port(53, ServiceProtocol::Udp, Some(TargetPort::Name(text("dns")))),
                port(9, ServiceProtocol::Sctp, None),
                port(10, ServiceProtocol::Other(text("QUIC")), None),
            ],
            allocate_node_ports: Some(false),
            external_traffic_policy: ExternalTrafficPolicy::Local,
            health_check_node_port: 32000,
            source_ranges: Some(vec![text("10.0.0.0/8")]),
            load_balancer_ip: Some(text("192.0.2.1")),
            external_ips: vec![text("192.0.2.2")],
            session_affinity: SessionAffinity::ClientIp { timeout_seconds: Some(60) },
            ip_families: vec![IpFamily::V6, IpFamily::V4],
            ip_family_policy: Some(IpFamilyPolicy::RequireDualStack),
            cluster_ips: vec![text("10.96.0.1")],
            internal_traffic_policy: Some(text("Cluster")),
            publish_not_ready_addresses: true,
            traffic_distribution: Some(text("PreferClose")),
            ingress: vec![
                Ingress {
                    ip: Some(text("192.0.2.3")),
                    ip_mode: Some(IpMode::Proxy),
                    ports: vec![IngressPort {
                        port: 80,
                        protocol: ServiceProtocol::Tcp,
                        error: Some(text("x/Down")),
                    }],
                    ..Ingress::default()
                },
                Ingress {
                    hostname: Some(text("lb.example.com")),
                    ip_mode: Some(IpMode::Vip),
                    ..Ingress::default()
                },
                Ingress {
                    ip: Some(text("192.0.2.4")),
                    ip_mode: Some(IpMode::Other(text("Odd"))),
                    ..Ingress::default()
                },
            ],
        };
        assert_eq!(ServiceView::from_json(&everything()), Ok(want));
    }

    #[test]
    fn what_is_not_set_has_its_kubernetes_default() {
        let bare = ServiceView::from_json(&json!({"metadata": {"name": "web"}, "spec": {}})).unwrap();
        assert_eq!(bare, ServiceView { name: "web".to_owned(), ..ServiceView::default() });
    }

    /// Reads a Service whose spec has this one field.
    fn with(field: &str, value: &Value) -> ServiceView {
        ServiceView::from_json(&json!({"metadata": {"name": "web"}, "spec": {field: value}})).unwrap()
    }

    #[test]
    fn each_word_of_a_closed_set_is_known_and_others_are_kept() {
        let types = [
            (json!("ClusterIP"), ServiceType::ClusterIp),
            (json!("NodePort"), ServiceType::NodePort),
            (json!("ExternalName"), ServiceType::ExternalName),
            (json!("Magic"), ServiceType::Other("Magic".to_owned())),
            (json!(7), ServiceType::Other("7".to_owned())),
            (json!(null), ServiceType::ClusterIp),
        ];
        for (value, want) in types {
            assert_eq!(with("type", &value).service_type, want, "{value}");
        }
        let policies = [
            (json!("Cluster"), ExternalTrafficPolicy::Cluster),
            (json!(""), ExternalTrafficPolicy::Cluster),
            (json!("Near"), ExternalTrafficPolicy::Other("Near".to_owned())),
        ];
        for (value, want) in policies {
            assert_eq!(with("externalTrafficPolicy", &value).external_traffic_policy, want, "{value}");
        }
        let affinities = [
            (json!("None"), SessionAffinity::None),
            (json!(""), SessionAffinity::None),
            (json!("ClientIP"), SessionAffinity::ClientIp { timeout_seconds: None }),
            (json!("Cookie"), SessionAffinity::Other("Cookie".to_owned())),
        ];
        for (value, want) in affinities {
            assert_eq!(with("sessionAffinity", &value).session_affinity, want, "{value}");
        }
        let families = [
            (json!("SingleStack"), IpFamilyPolicy::SingleStack),
            (json!("PreferDualStack"), IpFamilyPolicy::PreferDualStack),
            (json!("Triple"), IpFamilyPolicy::Other("Triple".to_owned())),
        ];
        for (value, want) in families {
            assert_eq!(with("ipFamilyPolicy", &value).ip_family_policy, Some(want), "{value}");
        }
    }

    #[test]
    fn an_object_without_a_spec_is_not_taken_for_a_cluster_ip() {
        let bare = ServiceView::from_json(&json!({"metadata": {"name": "web"}})).unwrap();
        assert_eq!(bare.service_type, ServiceType::Other(String::new()), "L5-101");
    }

    #[test]
    fn a_wrong_type_never_widens_what_is_asked_for() {
        let ranges = [
            (json!(null), None),
            (json!([]), Some(vec![])),
            (json!("10.0.0.0/8"), Some(vec!["10.0.0.0/8".to_owned()])),
            (json!([7, null, "10.0.0.0/8"]), Some(vec!["7".into(), String::new(), "10.0.0.0/8".into()])),
            (json!({"a": 1}), Some(vec!["{\"a\":1}".to_owned()])),
        ];
        for (value, want) in ranges {
            assert_eq!(with("loadBalancerSourceRanges", &value).source_ranges, want, "L8-101 {value}");
        }
        assert_eq!(with("loadBalancerClass", &json!(true)).class, Some("true".to_owned()), "L3-101");
        assert_eq!(with("loadBalancerClass", &json!("")).class, Some(String::new()), "L3-102");
        assert_eq!(with("loadBalancerIP", &json!("")).load_balancer_ip, None);
        assert_eq!(with("ports", &json!([80])).ports, [ServicePort::default()], "L8-102");
        assert_eq!(with("ports", &json!([{"targetPort": true}])).ports, [ServicePort::default()]);
        assert_eq!(with("externalIPs", &json!([1, "", "192.0.2.1"])).external_ips, ["192.0.2.1"]);
    }

    #[test]
    fn metadata_of_the_wrong_type_is_skipped() {
        let meta = json!({"name": "web", "deletionTimestamp": true, "labels": {"a": 1, "b": "2"},
                          "annotations": [], "finalizers": "x"});
        let view = ServiceView::from_json(&json!({"metadata": meta, "spec": {}})).unwrap();
        assert!(!view.deleting, "L5-102");
        assert_eq!(view.labels, [("b".to_owned(), "2".to_owned())].into());
        assert!(view.annotations.is_empty() && view.finalizers.is_empty());
        let odd = json!({"metadata": {"name": "web"}, "status": {"loadBalancer": {"ingress": [3, {}]}}});
        assert_eq!(ServiceView::from_json(&odd).unwrap().ingress, [Ingress::default()]);
    }

    #[test]
    fn a_name_is_the_one_thing_that_must_be_there() {
        for bad in
            [json!(null), json!({}), json!({"metadata": {"name": ""}}), json!({"metadata": {"name": 5}})]
        {
            let error = ServiceView::from_json(&bad).unwrap_err();
            assert!(error.message().contains("metadata.name"), "{bad}");
        }
    }

    fn any_json() -> impl Strategy<Value = Value> {
        let leaf = prop_oneof![
            Just(Value::Null),
            any::<bool>().prop_map(Value::from),
            any::<i64>().prop_map(Value::from),
            any::<f64>().prop_map(Value::from),
            ".{0,8}".prop_map(Value::from),
        ];
        leaf.prop_recursive(4, 32, 6, |inner| {
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..6).prop_map(Value::from),
                prop::collection::btree_map("[a-zA-Z]{0,8}", inner, 0..6)
                    .prop_map(|entries| Value::Object(entries.into_iter().collect())),
            ]
        })
    }

    /// Every place in a value, as JSON pointers.
    fn places(value: &Value, at: &str, out: &mut Vec<String>) {
        out.push(at.to_owned());
        match value {
            Value::Object(map) => map.iter().for_each(|(k, v)| places(v, &format!("{at}/{k}"), out)),
            Value::Array(list) => {
                list.iter().enumerate().for_each(|(i, v)| places(v, &format!("{at}/{i}"), out));
            }
            _ => {}
        }
    }

    proptest! {
        #[test]
        fn random_json_never_panics(value in any_json()) {
            let _ = ServiceView::from_json(&value);
        }

        #[test]
        fn a_service_with_one_broken_part_is_still_read(pick in any::<prop::sample::Index>(), junk in any_json()) {
            let mut object = everything();
            let mut all = Vec::new();
            places(&object, "", &mut all);
            let place = &all[pick.index(all.len())];
            if let Some(slot) = object.pointer_mut(place) {
                *slot = junk;
            }
            let read = ServiceView::from_json(&object);
            let about_the_name = matches!(place.as_str(), "" | "/metadata" | "/metadata/name");
            prop_assert!(about_the_name || read.is_ok_and(|view| view.name == "web"), "{}", place);
        }
    }
}
