//! What a service may not say: each mistake with its field and its reason.

use serde_json::{Value, json};

use super::SERVICES;
use super::services::service;
use crate::conformance::row::Row;

const WEB: &str = "/api/v1/namespaces/${ns}/services/web";

pub(super) fn rows() -> Vec<Row> {
    [ports_and_addresses(), load_balancing_and_names(), changes()].concat()
}

/// Tries to create a service with each spec.
fn each(status: u16, name: &'static str, specs: &[Value]) -> Row {
    specs.iter().enumerate().fold(Row::new(name), |row, (number, spec)| {
        row.post(status, SERVICES, named(&format!("web-{number}"), spec))
    })
}

fn refused(name: &'static str, specs: &[Value]) -> Row {
    each(422, name, specs)
}

fn named(name: &str, spec: &Value) -> Value {
    json!({ "apiVersion": "v1", "kind": "Service", "metadata": { "name": name }, "spec": spec })
}

fn ports_and_addresses() -> Vec<Row> {
    let port = json!([{ "port": 80 }]);
    vec![
        refused(
            "ports",
            &[
                json!({}),
                json!({ "ports": [] }),
                json!({ "ports": [{ "port": 0 }] }),
                json!({ "ports": [{ "port": 65536 }] }),
                json!({ "ports": [{ "port": 80 }, { "port": 81 }] }),
                json!({ "ports": [{ "name": "a", "port": 80 }, { "name": "a", "port": 81 }] }),
                json!({ "ports": [{ "name": "a", "port": 80 }, { "name": "b", "port": 80 }] }),
                json!({ "ports": [{ "name": "Not_Good", "port": 80 }] }),
                json!({ "ports": [{ "port": 80, "protocol": "ICMP" }] }),
                json!({ "ports": [{ "port": 80, "targetPort": "way-too-long-a-name" }] }),
                json!({ "ports": [{ "port": 80, "appProtocol": "not ok" }] }),
            ],
        ),
        refused(
            "node ports",
            &[
                json!({ "ports": [{ "port": 80, "nodePort": 30080 }] }),
                json!({ "type": "NodePort", "ports": [{ "port": 80, "nodePort": 80 }] }),
                json!({ "type": "NodePort", "ports": [{ "port": 80, "nodePort": 40000 }] }),
                json!({
                    "type": "NodePort",
                    "ports": [{ "name": "a", "port": 80, "nodePort": 30081 }, { "name": "b", "port": 81, "nodePort": 30081 }],
                }),
            ],
        ),
        refused(
            "types and addresses",
            &[
                json!({ "type": "Teapot", "ports": port }),
                json!({ "type": "ExternalName" }),
                json!({ "type": "ExternalName", "externalName": "Not A Host" }),
                json!({ "type": "ExternalName", "externalName": "a.example.com", "clusterIP": "10.96.0.5" }),
                json!({ "type": "LoadBalancer", "clusterIP": "None", "ports": port }),
                json!({ "clusterIP": "172.16.0.1", "ports": port }),
                json!({ "clusterIP": "not an address", "ports": port }),
                json!({ "clusterIP": "10.96.0.5", "clusterIPs": ["10.96.0.6"], "ports": port }),
                json!({ "externalIPs": ["127.0.0.1", "x"], "ports": port }),
                json!({ "selector": { "a b": "c" }, "ports": port }),
            ],
        ),
    ]
}

fn load_balancing_and_names() -> Vec<Row> {
    let port = json!([{ "port": 80 }]);
    vec![
        refused(
            "load balancers",
            &[
                json!({ "type": "LoadBalancer", "loadBalancerSourceRanges": ["not a range"], "ports": port }),
                json!({ "loadBalancerSourceRanges": ["192.0.2.0/24"], "ports": port }),
                json!({ "type": "ClusterIP", "allocateLoadBalancerNodePorts": true, "ports": port }),
                json!({ "type": "LoadBalancer", "externalTrafficPolicy": "Sometimes", "ports": port }),
                json!({ "externalTrafficPolicy": "Local", "ports": port }),
                json!({ "type": "LoadBalancer", "healthCheckNodePort": 30990, "ports": port }),
                json!({ "internalTrafficPolicy": "Sometimes", "ports": port }),
                json!({ "trafficDistribution": "Sometimes", "ports": port }),
            ],
        ),
        refused(
            "session affinity",
            &[
                json!({ "sessionAffinity": "Cookie", "ports": port }),
                json!({
                    "sessionAffinity": "ClientIP",
                    "sessionAffinityConfig": { "clientIP": { "timeoutSeconds": 86401 } }, "ports": port,
                }),
            ],
        ),
        each(
            201,
            "what is put right without a word",
            &[
                json!({ "ports": [{ "port": 80, "targetPort": 0 }] }),
                json!({ "ports": [{ "port": 80, "targetPort": "" }] }),
                json!({
                    "sessionAffinity": "None", "sessionAffinityConfig": { "clientIP": { "timeoutSeconds": 1 } },
                    "ports": port,
                }),
                json!({ "type": "", "ports": port }),
                json!({ "externalName": "ignored.example.com", "ports": port }),
            ],
        ),
        each(
            500,
            "a health check port out of range",
            &[json!({
                "type": "LoadBalancer", "externalTrafficPolicy": "Local", "healthCheckNodePort": 80,
                "ports": port,
            })],
        ),
        [
            "Upper",
            "dots.in.it",
            "under_score",
            "-dash",
            "way-too-long-a-name-for-a-service-since-it-becomes-a-label-of-dns-which",
        ]
        .into_iter()
        .fold(Row::new("names"), |row, name| {
            row.post(
                422,
                SERVICES,
                named(
                    name,
                    &json!({
                        "ports": port,
                    }),
                ),
            )
        }),
        Row::new("a name may begin with a digit").post(
            201,
            SERVICES,
            named(
                "1st",
                &json!({
                    "ports": port,
                }),
            ),
        ),
        Row::new("several mistakes are reported at once").post(
            422,
            SERVICES,
            json!({ "apiVersion": "v1", "kind": "Service",
                "metadata": { "name": "Bad_Name", "labels": { "a b": "" } },
                "spec": {
                    "type": "Teapot", "sessionAffinity": "Cookie",
                    "ports": [{ "port": 0, "protocol": "ICMP" }],
                } }),
        ),
        Row::new("the source range annotation is checked too").post(
            422,
            SERVICES,
            json!({ "apiVersion": "v1", "kind": "Service",
                "metadata": {
                    "name": "web",
                    "annotations": { "service.beta.kubernetes.io/load-balancer-source-ranges": "x" },
                },
                "spec": { "type": "LoadBalancer", "ports": port } }),
        ),
    ]
}

fn changes() -> Vec<Row> {
    let port = json!([{ "port": 80 }]);
    vec![
        Row::new("a cluster IP stays")
            .post(201, SERVICES, service(&json!({ "clusterIP": "10.96.0.88", "ports": port })))
            .merge_patch(
                422,
                WEB,
                json!({
                    "spec": { "clusterIP": "10.96.0.89", "clusterIPs": ["10.96.0.89"] },
                }),
            )
            .merge_patch(422, WEB, json!({ "spec": { "clusterIP": "None", "clusterIPs": ["None"] } }))
            .merge_patch(200, WEB, json!({ "spec": { "clusterIP": null, "clusterIPs": null } }))
            .delete(200, WEB),
        Row::new("a change is held to the rules of creation")
            .post(201, SERVICES, service(&json!({ "ports": port })))
            .merge_patch(422, WEB, json!({ "spec": { "ports": [] } }))
            .merge_patch(422, WEB, json!({ "spec": { "ports": [{ "port": 80 }, { "port": 81 }] } }))
            .merge_patch(422, WEB, json!({ "spec": { "externalTrafficPolicy": "Local" } }))
            .merge_patch(422, WEB, json!({ "spec": { "type": "ExternalName" } })),
        Row::new("source ranges of a load balancer change freely")
            .post(
                201,
                SERVICES,
                service(&json!({
                    "type": "LoadBalancer", "loadBalancerSourceRanges": ["192.0.2.0/24"], "ports": port,
                })),
            )
            .merge_patch(
                200,
                WEB,
                json!({
                    "spec": { "loadBalancerSourceRanges": ["198.51.100.0/24", "203.0.113.0/24"] },
                }),
            )
            .merge_patch(
                200,
                WEB,
                json!({
                    "spec": { "loadBalancerSourceRanges": null, "loadBalancerIP": "192.0.2.9" },
                }),
            ),
        Row::new("a node port can be chosen later")
            .post(201, SERVICES, service(&json!({ "type": "NodePort", "ports": port })))
            .strategic_patch(200, WEB, json!({ "spec": { "ports": [{ "port": 80, "nodePort": 30022 }] } }))
            // A server whose cache is behind takes the port twice for one patch, and refuses the second time.
            .settled(SERVICES)
            .strategic_patch(200, WEB, json!({ "spec": { "ports": [{ "port": 80, "nodePort": 30023 }] } })),
    ]
}
