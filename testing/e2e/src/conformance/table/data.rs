//! Objects that are only data to us: secrets, accounts, pods, endpoints.

use serde_json::{Value, json};

use super::{CONFIG_MAPS, with};
use crate::conformance::lens::{nothing, refusal};
use crate::conformance::row::Row;

const SECRETS: &str = "/api/v1/namespaces/${ns}/secrets";
const ACCOUNTS: &str = "/api/v1/namespaces/${ns}/serviceaccounts";
const PODS: &str = "/api/v1/namespaces/${ns}/pods";
const ENDPOINTS: &str = "/api/v1/namespaces/${ns}/endpoints";
const SLICES: &str = "/apis/discovery.k8s.io/v1/namespaces/${ns}/endpointslices";

pub(super) fn rows() -> Vec<Row> {
    [secrets(), config_maps(), accounts(), pods(), endpoints()].concat()
}

/// What of a pod matters to us: who and where, not how it runs.
fn where_it_runs(body: &Value) -> Value {
    json!({ "kind": body.get("kind"), "metadata": body.get("metadata"),
        "nodeName": body.pointer("/spec/nodeName"), "phase": body.pointer("/status/phase") })
}

fn secrets() -> Vec<Row> {
    let secret = |fields: &Value| {
        with(json!({ "apiVersion": "v1", "kind": "Secret", "metadata": { "name": "key" } }), fields)
    };
    vec![
        Row::new("a secret, plain and encoded")
            .post(
                201,
                SECRETS,
                secret(&json!({ "stringData": { "a": "plain" }, "data": { "b": "YmFzZTY0" } })),
            )
            .get(200, format!("{SECRETS}/key"))
            .merge_patch(200, format!("{SECRETS}/key"), json!({ "stringData": { "b": "over" } }))
            .delete(200, format!("{SECRETS}/key")),
        Row::new("what a secret may not say")
            .post(400, SECRETS, secret(&json!({ "data": { "a": "not base64!" } })))
            .through(refusal)
            .post(422, SECRETS, secret(&json!({ "data": { "a b": "" } })))
            .post(422, SECRETS, secret(&json!({ "type": "kubernetes.io/tls" }))),
        Row::new("the type of a secret stays; an immutable one stays altogether")
            .post(201, SECRETS, secret(&json!({ "data": { "a": "YQ==" } })))
            .merge_patch(422, format!("{SECRETS}/key"), json!({ "type": "example.com/other" }))
            .merge_patch(200, format!("{SECRETS}/key"), json!({ "immutable": true }))
            .merge_patch(422, format!("{SECRETS}/key"), json!({ "data": { "a": "Yg==" } }))
            .merge_patch(422, format!("{SECRETS}/key"), json!({ "immutable": false })),
    ]
}

fn config_maps() -> Vec<Row> {
    let path = format!("{CONFIG_MAPS}/box");
    let box_with = |fields: &Value| {
        with(json!({ "apiVersion": "v1", "kind": "ConfigMap", "metadata": { "name": "box" } }), fields)
    };
    vec![
        Row::new("a config map with text and bytes")
            .post(201, CONFIG_MAPS, box_with(&json!({ "data": { "a": "1" }, "binaryData": { "b": "AAE=" } })))
            .put(200, path.clone(), box_with(&json!({ "data": { "c": "3" } })))
            .merge_patch(200, path.clone(), json!({ "immutable": true }))
            .merge_patch(422, path.clone(), json!({ "data": { "c": "4" } })),
        Row::new("what a config map may not say")
            .post(422, CONFIG_MAPS, box_with(&json!({ "data": { "a b": "1" } })))
            .post(422, CONFIG_MAPS, box_with(&json!({ "data": { "a": "1" }, "binaryData": { "a": "AAE=" } })))
            .post(
                422,
                CONFIG_MAPS,
                json!({ "apiVersion": "v1", "kind": "ConfigMap", "metadata": { "name": "Bad_Name" } }),
            ),
        Row::new("creating with dry run")
            .post(201, format!("{CONFIG_MAPS}?dryRun=All"), box_with(&json!({})))
            .get(404, path.clone())
            .post(422, format!("{CONFIG_MAPS}?dryRun=Some"), box_with(&json!({})))
            .post(201, CONFIG_MAPS, box_with(&json!({ "data": { "a": "1" } })))
            .put(200, format!("{path}?dryRun=All"), box_with(&json!({ "data": { "a": "2" } })))
            .get(200, path),
    ]
}

fn accounts() -> Vec<Row> {
    vec![
        Row::new("a service account and a token for it")
            .post(
                201,
                ACCOUNTS,
                json!({ "apiVersion": "v1", "kind": "ServiceAccount", "metadata": { "name": "robot" } }),
            )
            .get(200, format!("{ACCOUNTS}/robot"))
            .merge_patch(200, format!("{ACCOUNTS}/robot"), json!({ "automountServiceAccountToken": false }))
            .put(
                200,
                format!("{ACCOUNTS}/robot"),
                json!({ "apiVersion": "v1", "kind": "ServiceAccount",
                "metadata": { "name": "robot", "labels": { "a": "1" } }, "secrets": [{ "name": "key" }] }),
            )
            .delete(200, format!("{ACCOUNTS}/robot"))
            .post(
                201,
                ACCOUNTS,
                json!({ "apiVersion": "v1", "kind": "ServiceAccount", "metadata": { "name": "robot" } }),
            )
            .post(
                201,
                format!("{ACCOUNTS}/robot/token"),
                json!({ "apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {} }),
            )
            .through(nothing)
            .post(
                404,
                format!("{ACCOUNTS}/nobody/token"),
                json!({ "apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {} }),
            ),
    ]
}

fn pods() -> Vec<Row> {
    let pod = json!({ "apiVersion": "v1", "kind": "Pod", "metadata": {
        "name": "p", "labels": { "app": "web" },
    },
        "spec": { "nodeName": "n", "containers": [{ "name": "c", "image": "i" }] } });
    vec![
        Row::new("a pod as data")
            .post(201, PODS, pod)
            .through(where_it_runs)
            .merge_patch(
                200,
                format!("{PODS}/p/status"),
                json!({
                    "status": { "phase": "Running", "podIP": "10.2.0.1", "podIPs": [{ "ip": "10.2.0.1" }] },
                }),
            )
            .through(where_it_runs)
            .get(200, format!("{PODS}?fieldSelector=spec.nodeName%3Dn"))
            .through(crate::conformance::lens::names)
            .get(200, format!("{PODS}?fieldSelector=status.phase%3DPending"))
            .through(crate::conformance::lens::names)
            .delete(200, format!("{PODS}/p?gracePeriodSeconds=0"))
            .through(where_it_runs)
            .get(404, format!("{PODS}/p")),
    ]
}

fn endpoints() -> Vec<Row> {
    let slice = |fields: &Value| {
        with(
            json!({ "apiVersion": "discovery.k8s.io/v1", "kind": "EndpointSlice",
            "metadata": { "name": "web-1", "labels": { "kubernetes.io/service-name": "web" } },
            "addressType": "IPv4", "endpoints": [], "ports": [] }),
            fields,
        )
    };
    vec![
        Row::new("endpoints as data, with their warning")
            .post(
                201,
                ENDPOINTS,
                json!({ "apiVersion": "v1", "kind": "Endpoints", "metadata": {
                "name": "web",
            },
                "subsets": [{
                    "addresses": [{ "ip": "10.2.0.1", "nodeName": "n" }],
                    "ports": [{ "name": "http", "port": 80 }],
                }] }),
            )
            .get(200, format!("{ENDPOINTS}/web"))
            .delete(200, format!("{ENDPOINTS}/web")),
        Row::new("endpoint slices as data")
            .post(
                201,
                SLICES,
                slice(&json!({
                    "endpoints": [{
                        "addresses": ["10.2.0.1"], "conditions": { "ready": true }, "nodeName": "n",
                    }],
                    "ports": [{ "name": "http", "port": 80 }],
                })),
            )
            .get(200, format!("{SLICES}?labelSelector=kubernetes.io%2Fservice-name%3Dweb"))
            .merge_patch(200, format!("{SLICES}/web-1"), json!({ "endpoints": null }))
            .merge_patch(422, format!("{SLICES}/web-1"), json!({ "addressType": "IPv6" }))
            .delete(200, format!("{SLICES}/web-1")),
    ]
}
