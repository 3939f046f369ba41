//! Nodes: their life, their status, and what may not be changed.

use serde_json::{Value, json};

use super::{NODE, NODES, with};
use crate::conformance::lens::refusal;
use crate::conformance::row::Row;

const STATUS: &str = "/api/v1/nodes/${id}/status";

/// A node of the row's own name with these further fields.
pub(super) fn node(fields: &Value) -> Value {
    with(json!({ "apiVersion": "v1", "kind": "Node", "metadata": { "name": "${id}" } }), fields)
}

/// What a client needs to see that the object is not the one that it meant.
fn uid_refused(body: &Value) -> Value {
    let causes = body.pointer("/details/causes").and_then(Value::as_array);
    let about_uid =
        causes.into_iter().flatten().any(|cause| cause.get("field") == Some(&json!("metadata.uid")));
    json!({ "code": body.get("code"), "reason": body.get("reason"), "about_uid": about_uid })
}

pub(super) fn rows() -> Vec<Row> {
    [life(), status(), validation()].concat()
}

fn life() -> Vec<Row> {
    vec![
        Row::new("a bare node is completed, read, and deleted")
            .post(201, NODES, node(&json!({})))
            .get(200, NODE)
            .delete(200, NODE)
            .get(404, NODE)
            .delete(404, NODE),
        Row::new("a node as a kubelet registers it")
            .post(201, NODES, node(&json!({
                "metadata": { "labels": { "kubernetes.io/hostname": "h", "kubernetes.io/os": "linux" } },
                "spec": { "taints": [
                    {
                        "key": "node.cloudprovider.kubernetes.io/uninitialized", "value": "true",
                        "effect": "NoSchedule",
                    },
                ] },
                "status": {
                    "capacity": { "cpu": "2", "memory": "4Gi", "pods": "110" },
                    "allocatable": { "cpu": "1900m", "memory": "4194304Ki", "pods": 110 },
                    "conditions": [{ "type": "Ready", "status": "True", "reason": "KubeletReady", "message": "ok",
                        "lastHeartbeatTime": "2026-01-01T00:00:00Z", "lastTransitionTime": "2026-01-01T00:00:00Z" }],
                    "addresses": [{ "type": "Hostname", "address": "h" }, { "type": "InternalIP", "address": "10.1.0.1" }],
                    "nodeInfo": {
                        "kubeletVersion": "v1.37.1", "osImage": "Debian",
                        "containerRuntimeVersion": "containerd://2",
                    },
                },
            })))
            .get(200, NODE),
        Row::new("creating a node twice is a conflict")
            .post(201, NODES, node(&json!({})))
            .post(409, NODES, node(&json!({}))),
        Row::new("a node is replaced, with and without its version")
            .post(201, NODES, node(&json!({})))
            .keep("rv", "/metadata/resourceVersion")
            .put(200, NODE, node(&json!({ "metadata": { "labels": { "a": "1" } } })))
            .put(409, NODE, node(&json!({
                "metadata": { "resourceVersion": "${rv}", "labels": { "a": "2" } },
            })))
            .get(200, NODE)
            .keep("rv", "/metadata/resourceVersion")
            .put(200, NODE, node(&json!({
                "metadata": { "resourceVersion": "${rv}", "labels": { "a": "3" } },
            })))
            .keep("rv", "/metadata/resourceVersion")
            .put(200, NODE, node(&json!({
                "metadata": { "resourceVersion": "${rv}", "labels": { "a": "3" } },
            }))),
        Row::new("replacing a node that is not there does not create it")
            .put(404, NODE, node(&json!({})))
            .put(404, NODE, node(&json!({ "metadata": { "resourceVersion": "1" } }))),
        Row::new("the name in the body must be the name in the path")
            .post(201, NODES, node(&json!({})))
            .put(400, NODE, node(&json!({ "metadata": { "name": "another" } })))
            .put(409, NODE, node(&json!({ "metadata": { "uid": "11111111-2222-3333-4444-555555555555" } })))
            .through(refusal),
        Row::new("a patch that names the UID of another node is refused for that")
            .post(201, NODES, node(&json!({})))
            .strategic_patch(422, NODE, json!({ "metadata": {
                "uid": "11111111-2222-3333-4444-555555555555", "labels": { "a": "1" },
            } }))
            .through(uid_refused)
            .strategic_patch(422, STATUS, json!({
                "metadata": { "uid": "11111111-2222-3333-4444-555555555555" },
                "status": { "addresses": [{ "type": "InternalIP", "address": "10.0.0.1" }] },
            }))
            .through(uid_refused),
        Row::new("a generated name")
            .post(201, NODES, json!({
                "apiVersion": "v1", "kind": "Node", "metadata": { "generateName": "${id}-" },
            }))
            .keep("name", "/metadata/name")
            .get(200, "/api/v1/nodes/${name}")
            .post(422, NODES, json!({ "apiVersion": "v1", "kind": "Node", "metadata": {} })),
        Row::new("what a client says about server-side fields is passed over")
            .post(201, NODES, node(&json!({ "metadata": {
                "uid": "11111111-2222-3333-4444-555555555555", "generation": 7, "selfLink": "/somewhere",
                "creationTimestamp": "2020-01-01T00:00:00Z", "deletionTimestamp": "2020-01-01T00:00:00Z",
            } })))
            .post(500, NODES, json!({ "apiVersion": "v1", "kind": "Node",
                "metadata": { "name": "${id}-b", "resourceVersion": "5" } })),
        Row::new("the pod range of a node: the single one counts")
            .post(201, NODES, node(&json!({ "spec": { "podCIDR": "10.244.1.0/24" } })))
            .merge_patch(422, NODE, json!({ "spec": { "podCIDR": "10.244.2.0/24" } }))
            .merge_patch(200, NODE, json!({ "spec": { "podCIDRs": ["10.244.3.0/24"] } })),
        Row::new("unschedulable, and the spec's way back")
            .post(201, NODES, node(&json!({})))
            .merge_patch(200, NODE, json!({ "spec": { "unschedulable": true } }))
            .merge_patch(200, NODE, json!({ "spec": { "unschedulable": null } })),
    ]
}

fn status() -> Vec<Row> {
    let addresses = json!({ "addresses": [{ "type": "InternalIP", "address": "10.1.0.2" }] });
    vec![
        Row::new("a status write leaves the spec alone, and the other way round")
            .post(201, NODES, node(&json!({ "spec": { "providerID": "fake://1" } })))
            .put(200, STATUS, node(&json!({
                "spec": { "unschedulable": true }, "status": addresses,
            })))
            .put(200, NODE, node(&json!({ "spec": { "providerID": "fake://1", "unschedulable": true } })))
            .get(200, STATUS)
            .put(200, NODE, node(&json!({
                "spec": { "providerID": "fake://1" }, "status": { "phase": "Running" },
            })))
            .get(200, NODE),
        Row::new("labels, annotations and finalizers through the status")
            .post(201, NODES, node(&json!({ "metadata": { "labels": { "a": "1" } } })))
            .merge_patch(200, STATUS, json!({ "metadata": {
                "labels": { "b": "2" }, "annotations": { "c": "3" }, "finalizers": ["example.com/f"],
            } })),
        Row::new("addresses are merged by type")
            .post(201, NODES, node(&json!({})))
            .strategic_patch(200, STATUS, json!({ "status": { "addresses": [
                { "type": "InternalIP", "address": "10.1.0.1" }, { "type": "ExternalIP", "address": "192.0.2.1" },
            ] } }))
            .strategic_patch(200, STATUS, json!({ "status": addresses }))
            .strategic_patch(200, STATUS, json!({
                "status": { "addresses": [{ "$patch": "delete", "type": "ExternalIP" }] },
            }))
            .strategic_patch(200, STATUS, json!({ "status": { "addresses": [
                { "type": "Hostname", "address": "h" }, { "$patch": "replace" },
            ] } })),
        Row::new("two internal addresses (dual stack) with a replace directive")
            .post(201, NODES, node(&json!({})))
            .strategic_patch(200, STATUS, json!({ "status": { "addresses": [
                { "$patch": "replace" },
                { "type": "InternalIP", "address": "10.1.0.1" }, { "type": "InternalIP", "address": "fd00::1" },
            ] } }))
            .strategic_patch(200, STATUS, json!({
                "status": { "addresses": [{ "type": "InternalIP", "address": "10.1.0.9" }] },
            })),
        Row::new("conditions are merged by type")
            .post(201, NODES, node(&json!({})))
            .strategic_patch(200, STATUS, json!({ "status": { "conditions": [
                { "type": "Ready", "status": "True" }, { "type": "DiskPressure", "status": "False" },
            ] } }))
            .strategic_patch(200, STATUS, json!({ "status": { "conditions": [
                { "type": "NetworkUnavailable", "status": "False", "reason": "RouteCreated", "message": "ok",
                  "lastHeartbeatTime": "2026-01-01T00:00:00Z", "lastTransitionTime": "2026-01-01T00:00:00Z" },
                { "type": "Ready", "status": "Unknown" },
            ] } }))
            .strategic_patch(200, STATUS, json!({ "status": {
                "$setElementOrder/conditions": [{ "type": "NetworkUnavailable" }, { "type": "Ready" }, { "type": "DiskPressure" }],
                "conditions": [{ "type": "DiskPressure", "status": "True" }],
            } })),
        Row::new("a status write with a version is conditional, too")
            .put(404, STATUS, node(&json!({})))
            .post(201, NODES, node(&json!({})))
            .keep("rv", "/metadata/resourceVersion")
            .put(200, STATUS, node(&json!({
                "metadata": { "resourceVersion": "${rv}" }, "status": { "phase": "Running" },
            })))
            .put(409, STATUS, node(&json!({
                "metadata": { "resourceVersion": "${rv}" }, "status": { "phase": "Pending" },
            })))
            .merge_patch(409, STATUS, json!({
                "metadata": { "resourceVersion": "${rv}" }, "status": { "phase": "Pending" },
            }))
            .post(405, STATUS, node(&json!({})))
            .delete(405, STATUS),
        Row::new("an unchanged status is not a write")
            .post(201, NODES, node(&json!({})))
            .merge_patch(200, STATUS, json!({ "status": { "phase": "Running" } }))
            .merge_patch(200, STATUS, json!({ "status": { "phase": "Running" } }))
            .get(200, NODE),
    ]
}

fn validation() -> Vec<Row> {
    let taint = |key: &str, effect: &str| json!({ "key": key, "effect": effect });
    let named = |name: &str| json!({ "apiVersion": "v1", "kind": "Node", "metadata": { "name": name } });
    vec![
        Row::new("a provider id can be set once")
            .post(201, NODES, node(&json!({})))
            .strategic_patch(200, NODE, json!({ "spec": { "providerID": "fake://1" } }))
            .strategic_patch(200, NODE, json!({ "spec": { "providerID": "fake://1" } }))
            .strategic_patch(422, NODE, json!({ "spec": { "providerID": "fake://2" } }))
            .merge_patch(422, NODE, json!({ "spec": { "providerID": null } }))
            .put(422, NODE, node(&json!({}))),
        Row::new("taints: no pair twice, known effects, well-formed keys")
            .post(
                422,
                NODES,
                node(&json!({
                    "spec": { "taints": [taint("a", "NoSchedule"), taint("a", "NoSchedule")] },
                })),
            )
            .post(422, NODES, node(&json!({ "spec": { "taints": [taint("a", "Sometimes")] } })))
            .post(422, NODES, node(&json!({ "spec": { "taints": [taint("", "NoSchedule")] } })))
            .post(
                422,
                NODES,
                node(&json!({
                    "spec": { "taints": [taint("a b", "NoSchedule"), { "key": "c" }] },
                })),
            )
            .post(
                201,
                NODES,
                node(&json!({
                    "spec": { "taints": [taint("a", "NoSchedule"), taint("a", "NoExecute")] },
                })),
            ),
        Row::new("names of nodes")
            .post(422, NODES, named("Upper"))
            .post(422, NODES, named("under_score"))
            .post(422, NODES, named("-dash"))
            .post(422, NODES, named("a/b"))
            .post(201, NODES, named("${id}.dots.are.fine"))
            .post(422, NODES, named(&"x".repeat(254))),
        Row::new("labels and annotations")
            .post(422, NODES, node(&json!({ "metadata": { "labels": { "a b": "1" } } })))
            .post(422, NODES, node(&json!({ "metadata": { "labels": { "a": "not a value" } } })))
            .post(422, NODES, node(&json!({ "metadata": { "labels": { "a/b/c": "" } } })))
            .post(422, NODES, node(&json!({ "metadata": { "annotations": { "a b": "1" } } })))
            .post(
                201,
                NODES,
                node(&json!({
                    "metadata": { "labels": { "example.com/a": "" }, "annotations": { "x": "any thing" } },
                })),
            )
            .merge_patch(422, NODE, json!({ "metadata": { "labels": { "UPPER.example.com/": "1" } } })),
        Row::new("quantities and addresses of the status")
            .post(201, NODES, node(&json!({})))
            .merge_patch(
                200,
                STATUS,
                json!({
                    "status": { "capacity": { "cpu": "0.5", "memory": "1024Mi", "pods": 110 } },
                }),
            )
            .merge_patch(422, STATUS, json!({ "status": { "capacity": { "cpu": "many" } } }))
            .through(refusal)
            .merge_patch(422, STATUS, json!({ "status": { "capacity": { "cpu": "-1" } } })),
        Row::new("fields of the wrong type, and unknown ones")
            .post(400, NODES, node(&json!({ "spec": { "providerID": 7 } })))
            .through(refusal)
            .post(400, NODES, node(&json!({ "spec": { "taints": {} } })))
            .through(refusal)
            .post(201, NODES, node(&json!({ "spec": { "noSuchField": 1 } })))
            .post(
                400,
                "/api/v1/nodes?fieldValidation=Strict",
                json!({ "apiVersion": "v1", "kind": "Node",
                "metadata": { "name": "${id}-b" }, "spec": { "noSuchField": 1 } }),
            )
            .post(
                201,
                "/api/v1/nodes?fieldValidation=Warn",
                json!({ "apiVersion": "v1", "kind": "Node",
                "metadata": { "name": "${id}-c" }, "spec": { "noSuchField": 1 } }),
            )
            .post(
                201,
                "/api/v1/nodes?fieldValidation=Ignore",
                json!({ "apiVersion": "v1", "kind": "Node",
                "metadata": { "name": "${id}-d" }, "spec": { "noSuchField": 1 } }),
            ),
    ]
}
