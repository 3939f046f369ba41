//! Services: what the server fills in, and what it gives out.

use serde_json::{Value, json};

use super::SERVICES;
use crate::conformance::row::Row;

const WEB: &str = "/api/v1/namespaces/${ns}/services/web";
const STATUS: &str = "/api/v1/namespaces/${ns}/services/web/status";

/// A service with this spec.
pub(super) fn service(spec: &Value) -> Value {
    json!({ "apiVersion": "v1", "kind": "Service", "metadata": { "name": "web" }, "spec": spec })
}

pub(super) fn rows() -> Vec<Row> {
    [defaults(), types(), status()].concat()
}

fn defaults() -> Vec<Row> {
    let port = json!([{ "port": 80 }]);
    vec![
        Row::new("a service with one port")
            .post(201, SERVICES, service(&json!({ "selector": { "app": "web" }, "ports": port })))
            .get(200, WEB)
            .delete(200, WEB)
            .get(404, WEB),
        Row::new("ports: protocol and target are filled in")
            .post(201, SERVICES, service(&json!({ "ports": [
                { "name": "a", "port": 80, "targetPort": 8080 }, { "name": "b", "port": 53, "protocol": "UDP" },
                { "name": "c", "port": 443, "targetPort": "tls", "appProtocol": "https" },
            ] }))),
        Row::new("a headless service")
            .post(201, SERVICES, service(&json!({ "clusterIP": "None", "selector": { "app": "web" } }))),
        Row::new("a service with a chosen address")
            .post(201, SERVICES, service(&json!({ "clusterIP": "10.96.0.77", "ports": port })))
            .post(422, SERVICES, json!({ "apiVersion": "v1", "kind": "Service", "metadata": {
                "name": "other",
            },
                "spec": { "clusterIP": "10.96.0.77", "ports": port } }))
            .delete(200, WEB)
            .post(201, SERVICES, json!({ "apiVersion": "v1", "kind": "Service", "metadata": {
                "name": "other",
            },
                "spec": { "clusterIP": "10.96.0.77", "ports": port } }))
            .delete(200, format!("{SERVICES}/other")),
        Row::new("node ports are given out")
            .post(201, SERVICES, service(&json!({
                "type": "NodePort", "ports": [{ "name": "a", "port": 80 }, { "name": "b", "port": 443 }],
            })))
            .get(200, WEB),
        Row::new("a chosen node port is nobody else's")
            .post(201, SERVICES, service(&json!({
                "type": "NodePort", "ports": [{ "port": 80, "nodePort": 30080 }],
            })))
            .post(422, SERVICES, json!({ "apiVersion": "v1", "kind": "Service", "metadata": {
                "name": "other",
            },
                "spec": { "type": "NodePort", "ports": [{ "port": 80, "nodePort": 30080 }] } }))
            .delete(200, WEB)
            .post(201, SERVICES, json!({ "apiVersion": "v1", "kind": "Service", "metadata": {
                "name": "other",
            },
                "spec": { "type": "NodePort", "ports": [{ "port": 80, "nodePort": 30080 }] } })),
        Row::new("a load balancer, as completed by the server")
            .post(201, SERVICES, service(&json!({ "type": "LoadBalancer", "ports": port })))
            .get(200, WEB),
        Row::new("a load balancer with local traffic gets a health check port")
            .post(201, SERVICES, service(&json!({
                "type": "LoadBalancer", "externalTrafficPolicy": "Local", "ports": port,
            })))
            .merge_patch(200, WEB, json!({ "spec": { "externalTrafficPolicy": "Cluster" } }))
            .merge_patch(200, WEB, json!({
                "spec": { "externalTrafficPolicy": "Local", "healthCheckNodePort": 30020 },
            }))
            .merge_patch(422, WEB, json!({ "spec": { "healthCheckNodePort": 30021 } })),
        Row::new("a load balancer without node ports")
            .post(201, SERVICES, service(&json!({
                "type": "LoadBalancer", "allocateLoadBalancerNodePorts": false, "ports": port,
            })))
            .merge_patch(200, WEB, json!({ "spec": { "allocateLoadBalancerNodePorts": true } })),
        Row::new("an external name")
            .post(201, SERVICES, service(&json!({
                "type": "ExternalName", "externalName": "db.example.com",
            }))),
        Row::new("session affinity")
            .post(201, SERVICES, service(&json!({ "sessionAffinity": "ClientIP", "ports": port })))
            .merge_patch(200, WEB, json!({
                "spec": { "sessionAffinityConfig": { "clientIP": { "timeoutSeconds": 60 } } },
            }))
            .merge_patch(200, WEB, json!({ "spec": { "sessionAffinity": "None" } })),
    ]
}

fn types() -> Vec<Row> {
    let port = json!([{ "port": 80 }]);
    vec![
        Row::new("a service changes its type and back")
            .post(201, SERVICES, service(&json!({ "ports": port })))
            .merge_patch(200, WEB, json!({ "spec": { "type": "LoadBalancer" } }))
            .merge_patch(200, WEB, json!({ "spec": { "type": "NodePort" } }))
            .merge_patch(200, WEB, json!({ "spec": { "type": "ClusterIP" } })),
        Row::new("a service becomes an external name and back")
            .post(201, SERVICES, service(&json!({ "ports": port })))
            .merge_patch(
                200,
                WEB,
                json!({ "spec": { "type": "ExternalName", "externalName": "a.example.com" } }),
            )
            .merge_patch(200, WEB, json!({ "spec": { "type": "ClusterIP", "externalName": null } })),
        Row::new("replacing a service that is not there creates it")
            .put(201, WEB, service(&json!({ "ports": port })))
            .put(200, WEB, service(&json!({ "ports": port }))),
        Row::new("replacing a service keeps its addresses and ports")
            .post(201, SERVICES, service(&json!({ "type": "NodePort", "ports": port })))
            .put(
                200,
                WEB,
                service(&json!({ "type": "NodePort", "ports": port, "selector": { "app": "web" } })),
            )
            .put(200, WEB, service(&json!({ "type": "ClusterIP", "ports": port }))),
        Row::new("load balancer class: set at creation, kept, gone with the type")
            .post(
                201,
                SERVICES,
                service(
                    &json!({ "type": "LoadBalancer", "loadBalancerClass": "example.com/lb", "ports": port }),
                ),
            )
            .merge_patch(422, WEB, json!({ "spec": { "loadBalancerClass": "example.com/other" } }))
            .merge_patch(422, WEB, json!({ "spec": { "loadBalancerClass": null } }))
            .merge_patch(200, WEB, json!({ "spec": { "type": "ClusterIP" } }))
            .merge_patch(
                200,
                WEB,
                json!({ "spec": { "type": "LoadBalancer", "loadBalancerClass": "example.com/other" } }),
            ),
        Row::new("load balancer class: not added to a running load balancer, and only for load balancers")
            .post(201, SERVICES, service(&json!({ "type": "LoadBalancer", "ports": port })))
            .merge_patch(422, WEB, json!({ "spec": { "loadBalancerClass": "example.com/lb" } }))
            .post(
                422,
                SERVICES,
                json!({ "apiVersion": "v1", "kind": "Service", "metadata": { "name": "other" },
                "spec": { "type": "NodePort", "loadBalancerClass": "example.com/lb", "ports": port } }),
            )
            .post(
                422,
                SERVICES,
                json!({ "apiVersion": "v1", "kind": "Service", "metadata": { "name": "other" },
                "spec": { "type": "LoadBalancer", "loadBalancerClass": "Not A Class", "ports": port } }),
            ),
        Row::new("families: what is filled in, and what this cluster cannot do")
            .post(201, SERVICES, service(&json!({ "ipFamilyPolicy": "PreferDualStack", "ports": port })))
            .post(
                422,
                SERVICES,
                json!({ "apiVersion": "v1", "kind": "Service", "metadata": { "name": "six" },
                "spec": { "ipFamilies": ["IPv6"], "ports": port } }),
            )
            .post(
                422,
                SERVICES,
                json!({ "apiVersion": "v1", "kind": "Service", "metadata": { "name": "both" },
                "spec": { "ipFamilyPolicy": "RequireDualStack", "ports": port } }),
            ),
    ]
}

fn status() -> Vec<Row> {
    let load_balancer = json!({ "type": "LoadBalancer", "ports": [{ "port": 80 }] });
    vec![
        Row::new("the status of a load balancer, and nothing else, through the status")
            .post(201, SERVICES, service(&load_balancer))
            .put(
                200,
                STATUS,
                json!({ "apiVersion": "v1", "kind": "Service", "metadata": {
                "name": "web", "labels": { "a": "1" },
            },
                "spec": { "type": "LoadBalancer", "ports": [{ "port": 1 }] },
                "status": { "loadBalancer": { "ingress": [{ "ip": "192.0.2.1" }] } } }),
            )
            .get(200, WEB)
            .merge_patch(
                200,
                WEB,
                json!({
                    "status": { "loadBalancer": { "ingress": [{ "ip": "192.0.2.2" }] } },
                }),
            )
            .get(200, STATUS),
        Row::new("ingress: modes, host names, ports, and mistakes")
            .post(201, SERVICES, service(&load_balancer))
            .merge_patch(
                200,
                STATUS,
                json!({ "status": { "loadBalancer": { "ingress": [
                { "ip": "192.0.2.1", "ipMode": "Proxy" }, { "hostname": "lb.example.com" },
                { "ip": "192.0.2.3", "ports": [{ "port": 80, "protocol": "TCP" }] },
            ] } } }),
            )
            .merge_patch(
                422,
                STATUS,
                json!({
                    "status": { "loadBalancer": { "ingress": [{ "ip": "not an address" }] } },
                }),
            )
            .merge_patch(
                422,
                STATUS,
                json!({
                    "status": { "loadBalancer": { "ingress": [{ "hostname": "192.0.2.1" }] } },
                }),
            )
            .merge_patch(
                422,
                STATUS,
                json!({
                    "status": { "loadBalancer": { "ingress": [{ "ip": "192.0.2.1", "ipMode": "Odd" }] } },
                }),
            )
            .merge_patch(
                422,
                STATUS,
                json!({
                    "status": {
                        "loadBalancer": { "ingress": [{ "hostname": "a.example.com", "ipMode": "VIP" }] },
                    },
                }),
            ),
        Row::new("ingress: only a load balancer has one")
            .post(201, SERVICES, service(&json!({ "ports": [{ "port": 80 }] })))
            .merge_patch(
                422,
                STATUS,
                json!({
                    "status": { "loadBalancer": { "ingress": [{ "ip": "192.0.2.1" }] } },
                }),
            ),
        Row::new("ingress goes with the type")
            .post(201, SERVICES, service(&load_balancer))
            .merge_patch(
                200,
                STATUS,
                json!({
                    "status": { "loadBalancer": { "ingress": [{ "ip": "192.0.2.1" }] } },
                }),
            )
            .merge_patch(200, WEB, json!({ "spec": { "type": "ClusterIP" } })),
        Row::new("conditions of a service")
            .post(201, SERVICES, service(&load_balancer))
            .merge_patch(
                200,
                STATUS,
                json!({ "status": { "conditions": [{ "type": "Ready", "status": "True", "reason": "Good",
                "message": "", "lastTransitionTime": "2026-01-01T00:00:00Z" }] } }),
            )
            .merge_patch(
                200,
                STATUS,
                json!({
                    "status": { "conditions": [{ "type": "Ready", "status": "Maybe" }] },
                }),
            ),
    ]
}
