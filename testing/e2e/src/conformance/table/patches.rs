//! Every kind of patch, and every directive of the strategic one.

use serde_json::{Value, json};

use super::nodes::node;
use super::{CONFIG_MAPS, NODE, NODES, SERVICES};
use crate::conformance::lens::refusal;
use crate::conformance::row::Row;

const SERVICE: &str = "/api/v1/namespaces/${ns}/services/web";
const CONFIG_MAP: &str = "/api/v1/namespaces/${ns}/configmaps/box";

pub(super) fn rows() -> Vec<Row> {
    [json_patches(), merge_patches(), strategic_maps(), strategic_lists(), conditions()].concat()
}

fn box_with(data: &Value) -> Value {
    json!({ "apiVersion": "v1", "kind": "ConfigMap", "metadata": { "name": "box" }, "data": data })
}

fn service(ports: &Value) -> Value {
    json!({
        "apiVersion": "v1", "kind": "Service", "metadata": { "name": "web" }, "spec": { "ports": ports },
    })
}

fn json_patches() -> Vec<Row> {
    let a = |data: &Value| Row::new("").post(201, CONFIG_MAPS, box_with(data)).steps;
    let from = |name, data: &Value| Row { steps: a(data), ..Row::new(name) };
    vec![
        from("JSON patch: add, replace, remove", &json!({ "a": "1", "b": "2" })).json_patch(
            200,
            CONFIG_MAP,
            json!([
                { "op": "add", "path": "/data/c", "value": "3" },
                { "op": "replace", "path": "/data/a", "value": "one" },
                { "op": "remove", "path": "/data/b" },
            ]),
        ),
        from("JSON patch: test, move, copy", &json!({ "a": "1" }))
            .json_patch(
                200,
                CONFIG_MAP,
                json!([
                    { "op": "test", "path": "/data/a", "value": "1" },
                    { "op": "move", "from": "/data/a", "path": "/data/b" },
                    { "op": "copy", "from": "/data/b", "path": "/data/c" },
                ]),
            )
            .json_patch(422, CONFIG_MAP, json!([{ "op": "test", "path": "/data/b", "value": "2" }]))
            .get(200, CONFIG_MAP),
        from("JSON patch: what is not there can be replaced, but not removed", &json!({ "a": "1" }))
            .json_patch(422, CONFIG_MAP, json!([{ "op": "remove", "path": "/data/x" }]))
            .json_patch(200, CONFIG_MAP, json!([{ "op": "replace", "path": "/data/x", "value": "1" }]))
            .json_patch(422, CONFIG_MAP, json!([{ "op": "add", "path": "/nowhere/x", "value": "1" }])),
        from("JSON patch: malformed", &json!({}))
            .json_patch(400, CONFIG_MAP, json!({ "op": "remove", "path": "/data" }))
            .through(refusal)
            .json_patch(422, CONFIG_MAP, json!([{ "op": "jump", "path": "/data" }])),
        from("JSON patch: escaped names, and the metadata", &json!({}))
            .json_patch(
                200,
                CONFIG_MAP,
                json!([
                    { "op": "add", "path": "/metadata/annotations", "value": {} },
                    { "op": "add", "path": "/metadata/annotations/example.com~1a", "value": "1" },
                ]),
            )
            .json_patch(
                200,
                CONFIG_MAP,
                json!([{ "op": "remove", "path": "/metadata/annotations/example.com~1a" }]),
            ),
        Row::new("JSON patch: positions in lists")
            .post(201, NODES, node(&json!({ "metadata": { "finalizers": ["example.com/a"] } })))
            .json_patch(
                200,
                NODE,
                json!([{ "op": "add", "path": "/metadata/finalizers/-", "value": "example.com/b" }]),
            )
            .json_patch(
                200,
                NODE,
                json!([{ "op": "add", "path": "/metadata/finalizers/0", "value": "example.com/c" }]),
            )
            .json_patch(200, NODE, json!([{ "op": "remove", "path": "/metadata/finalizers/1" }]))
            .json_patch(422, NODE, json!([{ "op": "remove", "path": "/metadata/finalizers/9" }])),
    ]
}

fn merge_patches() -> Vec<Row> {
    vec![
        Row::new("merge patch: null removes, maps merge, lists are replaced")
            .post(
                201,
                NODES,
                node(&json!({
                    "metadata": {
                        "labels": { "a": "1", "b": "2" }, "finalizers": ["example.com/a", "example.com/b"],
                    },
                })),
            )
            .merge_patch(
                200,
                NODE,
                json!({
                    "metadata": { "labels": { "a": null, "c": "3" }, "finalizers": ["example.com/c"] },
                }),
            )
            .merge_patch(200, NODE, json!({ "metadata": { "labels": null, "finalizers": null } })),
        Row::new("merge patch: nothing to do is not a write")
            .post(201, CONFIG_MAPS, box_with(&json!({ "a": "1" })))
            .merge_patch(200, CONFIG_MAP, json!({ "data": { "a": "1" } }))
            .merge_patch(200, CONFIG_MAP, json!({ "data": { "none": null } }))
            .merge_patch(200, CONFIG_MAP, json!({})),
        Row::new("merge patch: of a missing object").merge_patch(
            404,
            NODE,
            json!({ "metadata": { "labels": { "a": "1" } } }),
        ),
        Row::new("merge patch: immutable metadata")
            .post(201, CONFIG_MAPS, box_with(&json!({})))
            .merge_patch(400, CONFIG_MAP, json!({ "metadata": { "name": "other" } }))
            .merge_patch(400, CONFIG_MAP, json!({ "metadata": { "namespace": "other" } }))
            .merge_patch(
                422,
                CONFIG_MAP,
                json!({
                    "metadata": { "uid": "11111111-2222-3333-4444-555555555555" },
                }),
            )
            .merge_patch(
                200,
                CONFIG_MAP,
                json!({
                    "metadata": { "creationTimestamp": "2020-01-01T00:00:00Z" },
                }),
            )
            .merge_patch(422, CONFIG_MAP, json!({ "kind": "Secret" }))
            .through(refusal),
        Row::new("merge patch: malformed or of the wrong type")
            .post(201, CONFIG_MAPS, box_with(&json!({})))
            .merge_patch(400, CONFIG_MAP, json!([1]))
            .through(refusal)
            .merge_patch(422, CONFIG_MAP, json!({ "data": { "a": 1 } }))
            .through(refusal),
    ]
}

fn strategic_maps() -> Vec<Row> {
    vec![
        Row::new("strategic: maps merge, null removes")
            .post(201, CONFIG_MAPS, box_with(&json!({ "a": "1", "b": "2" })))
            .strategic_patch(200, CONFIG_MAP, json!({ "data": { "a": null, "c": "3" } })),
        Row::new("strategic: $patch replace and delete on maps")
            .post(201, CONFIG_MAPS, box_with(&json!({ "a": "1", "b": "2" })))
            .strategic_patch(200, CONFIG_MAP, json!({ "data": { "$patch": "replace", "c": "3" } }))
            .strategic_patch(200, CONFIG_MAP, json!({ "data": { "$patch": "delete" } })),
        Row::new("strategic: $retainKeys on a map")
            .post(201, CONFIG_MAPS, box_with(&json!({ "a": "1", "b": "2", "c": "3" })))
            .strategic_patch(200, CONFIG_MAP, json!({ "data": { "$retainKeys": ["a", "d"], "d": "4" } })),
        Row::new("strategic: $retainKeys must name what it sets")
            .post(201, CONFIG_MAPS, box_with(&json!({ "a": "1" })))
            .strategic_patch(400, CONFIG_MAP, json!({ "data": { "$retainKeys": ["a"], "d": "4" } })),
        Row::new("strategic: an unknown directive")
            .post(201, CONFIG_MAPS, box_with(&json!({ "a": "1" })))
            .strategic_patch(500, CONFIG_MAP, json!({ "data": { "$patch": "invert" } }))
            .through(refusal)
            .strategic_patch(400, CONFIG_MAP, json!([1]))
            .through(refusal),
        Row::new("strategic: $deleteFromPrimitiveList on finalizers")
            .post(
                201,
                NODES,
                node(&json!({ "metadata": { "finalizers": ["example.com/a", "example.com/b"] } })),
            )
            .strategic_patch(200, NODE, json!({ "metadata": { "finalizers": ["example.com/c"] } }))
            .strategic_patch(200, NODE, json!({ "metadata": { "finalizers": ["example.com/a"] } }))
            .strategic_patch(
                200,
                NODE,
                json!({ "metadata": { "$deleteFromPrimitiveList/finalizers": ["example.com/b"] } }),
            )
            .strategic_patch(
                200,
                NODE,
                json!({ "metadata": {
                "$setElementOrder/finalizers": ["example.com/d", "example.com/c"],
                "$deleteFromPrimitiveList/finalizers": ["example.com/a"], "finalizers": ["example.com/d"],
            } }),
            ),
    ]
}

fn strategic_lists() -> Vec<Row> {
    let ports = json!([{ "name": "http", "port": 80 }, { "name": "https", "port": 443 }]);
    vec![
        Row::new("strategic: ports of a service are merged by port")
            .post(201, SERVICES, service(&ports))
            .strategic_patch(200, SERVICE, json!({
                "spec": { "ports": [{ "port": 443, "targetPort": 8443 }] },
            }))
            .strategic_patch(200, SERVICE, json!({ "spec": { "ports": [{ "name": "extra", "port": 81 }] } })),
        Row::new("strategic: $patch delete, merge and replace in a list")
            .post(201, SERVICES, service(&ports))
            .strategic_patch(200, SERVICE, json!({
                "spec": { "ports": [{ "$patch": "delete", "port": 80 }] },
            }))
            .strategic_patch(500, SERVICE, json!({
                "spec": { "ports": [{ "$patch": "merge", "port": 443, "targetPort": "web" }] },
            }))
            .strategic_patch(200, SERVICE, json!({
                "spec": { "ports": [{ "$patch": "replace" }, { "port": 82 }] },
            })),
        Row::new("strategic: $setElementOrder of ports")
            .post(201, SERVICES, service(&ports))
            .strategic_patch(200, SERVICE, json!({ "spec": {
                "$setElementOrder/ports": [{ "port": 443 }, { "port": 81 }, { "port": 80 }],
                "ports": [{ "name": "extra", "port": 81 }],
            } })),
        Row::new("strategic: an element without its merge key")
            .post(201, SERVICES, service(&ports))
            .strategic_patch(500, SERVICE, json!({ "spec": { "ports": [{ "name": "nokey" }] } }))
            .through(refusal),
        Row::new("strategic: taints are replaced as a whole")
            .post(201, NODES, node(&json!({
                "spec": { "taints": [{ "key": "a", "effect": "NoSchedule" }] },
            })))
            .strategic_patch(200, NODE, json!({
                "spec": { "taints": [{ "key": "b", "effect": "NoExecute" }] },
            }))
            .strategic_patch(200, NODE, json!({ "spec": { "taints": null } })),
        Row::new("strategic: owner references are merged by uid")
            .post(201, NODES, node(&json!({ "metadata": { "ownerReferences": [
                { "apiVersion": "v1", "kind": "Node", "name": "o", "uid": "uid-one" },
            ] } })))
            .strategic_patch(200, NODE, json!({ "metadata": { "ownerReferences": [
                { "apiVersion": "v1", "kind": "Node", "name": "p", "uid": "uid-two" }, { "uid": "uid-one", "controller": true },
            ] } }))
            .strategic_patch(200, NODE, json!({
                "metadata": { "ownerReferences": [{ "$patch": "delete", "uid": "uid-one" }] },
            })),
        Row::new("strategic: ingress of a load balancer is replaced as a whole")
            .post(201, SERVICES, json!({ "apiVersion": "v1", "kind": "Service", "metadata": { "name": "web" },
                "spec": { "type": "LoadBalancer", "ports": [{ "port": 80 }] } }))
            .strategic_patch(200, format!("{SERVICE}/status"), json!({
                "status": { "loadBalancer": { "ingress": [{ "ip": "192.0.2.1" }] } },
            }))
            .strategic_patch(200, format!("{SERVICE}/status"), json!({
                "status": { "loadBalancer": { "ingress": [{ "hostname": "lb.example.com" }] } },
            }))
            .strategic_patch(200, format!("{SERVICE}/status"), json!({ "status": { "loadBalancer": null } })),
    ]
}

fn conditions() -> Vec<Row> {
    vec![
        Row::new("a patch with a version is conditional")
            .post(201, CONFIG_MAPS, box_with(&json!({ "a": "1" })))
            .keep("rv", "/metadata/resourceVersion")
            .merge_patch(200, CONFIG_MAP, json!({ "data": { "a": "2" } }))
            .merge_patch(
                409,
                CONFIG_MAP,
                json!({ "metadata": { "resourceVersion": "${rv}" }, "data": { "a": "3" } }),
            )
            .strategic_patch(
                409,
                CONFIG_MAP,
                json!({ "metadata": { "resourceVersion": "${rv}" }, "data": { "a": "3" } }),
            )
            .json_patch(
                409,
                CONFIG_MAP,
                json!([{ "op": "replace", "path": "/metadata/resourceVersion", "value": "${rv}" }]),
            )
            .get(200, CONFIG_MAP)
            .keep("rv", "/metadata/resourceVersion")
            .merge_patch(
                200,
                CONFIG_MAP,
                json!({ "metadata": { "resourceVersion": "${rv}" }, "data": { "a": "3" } }),
            ),
        Row::new("a patch of an unknown type")
            .post(201, CONFIG_MAPS, box_with(&json!({})))
            .patch(415, CONFIG_MAP, json!({}), "application/json")
            .patch(415, CONFIG_MAP, json!({}), "text/plain"),
        Row::new("a patch as kubectl sends it: strict about fields it does not know")
            .post(201, CONFIG_MAPS, box_with(&json!({ "a": "1" })))
            .merge_patch(
                200,
                format!("{CONFIG_MAP}?fieldManager=kubectl-patch&fieldValidation=Strict"),
                json!({ "data": { "a": "2" } }),
            )
            .merge_patch(
                422,
                format!("{CONFIG_MAP}?fieldManager=kubectl-patch&fieldValidation=Strict"),
                json!({ "dota": { "a": "2" } }),
            )
            .through(refusal)
            .merge_patch(
                200,
                format!("{CONFIG_MAP}?fieldManager=kubectl-patch&fieldValidation=Warn"),
                json!({ "dota": { "a": "2" } }),
            )
            .merge_patch(422, format!("{CONFIG_MAP}?fieldValidation=Perhaps"), json!({})),
        Row::new("a patch with dry run changes nothing")
            .post(201, CONFIG_MAPS, box_with(&json!({ "a": "1" })))
            .merge_patch(200, format!("{CONFIG_MAP}?dryRun=All"), json!({ "data": { "a": "2" } }))
            .get(200, CONFIG_MAP),
    ]
}
