//! Objects of custom kinds: what their schema keeps and refuses, and one store for several versions.

use serde_json::{Value, json};

use super::definitions::{DEFINITIONS, ESTABLISHED, pools};
use super::with;
use crate::conformance::lens::refusal;
use crate::conformance::row::Row;

const POOLS: &str = "/apis/${id}.example/v1/namespaces/${ns}/pools";
const POOL: &str = "/apis/${id}.example/v1/namespaces/${ns}/pools/a";
const STATUS: &str = "/apis/${id}.example/v1/namespaces/${ns}/pools/a/status";
const OLD: &str = "/apis/${id}.example/v1beta1/namespaces/${ns}/pools";

pub(super) fn rows() -> Vec<Row> {
    [life(), schemas(), refusals(), versions()].concat()
}

fn schema(status: &Value) -> Value {
    json!({ "openAPIV3Schema": { "type": "object", "properties": {
        "spec": { "type": "object", "required": ["pool"], "properties": {
            "pool": { "type": "string" }, "used": { "type": "integer" }, "share": { "type": "number" },
            "port": { "x-kubernetes-int-or-string": true },
            "maybe": { "type": "string", "nullable": true },
            "flag": { "type": "boolean" },
            "exclude": { "type": "array", "items": { "type": "object", "required": ["ip"], "properties": { "ip": { "type": "string" } } } },
            "quota": { "type": "object", "additionalProperties": { "type": "integer" } },
            "free": { "type": "object", "x-kubernetes-preserve-unknown-fields": true, "properties": {
                "tight": { "type": "object", "properties": { "a": { "type": "string" } } },
            } },
        } },
        "status": { "type": "object", "properties": status },
    } } })
}

/// A kind with a status of its own in two versions, the older one of which knows less.
fn definition() -> Value {
    let newer = json!({ "state": { "type": "string" }, "group": { "type": "string" },
        "conditions": { "type": "array", "items": { "type": "object", "x-kubernetes-preserve-unknown-fields": true } } });
    let older = json!({ "state": { "type": "string" } });
    pools(
        "${id}.example",
        "Namespaced",
        &json!([
            { "name": "v1", "served": true, "storage": true, "subresources": { "status": {} }, "schema": schema(&newer) },
            { "name": "v1beta1", "served": true, "storage": false, "deprecated": true, "subresources": { "status": {} }, "schema": schema(&older) },
        ]),
    )
}

fn defined(name: &'static str) -> Row {
    Row::new(name)
        .post(201, DEFINITIONS, definition())
        .until_says(format!("{DEFINITIONS}/pools.${{id}}.example"), ESTABLISHED)
        .until(200, POOLS)
        .until(200, OLD)
}

fn pool(spec: &Value) -> Value {
    json!({ "apiVersion": "${id}.example/v1", "kind": "Pool", "metadata": { "name": "a" }, "spec": spec })
}

fn simple() -> Value {
    pool(&json!({ "pool": "p" }))
}

fn life() -> Vec<Row> {
    vec![
        defined("an object is made, read, changed and deleted")
            .post(201, POOLS, simple())
            .post(409, POOLS, simple())
            .get(200, POOL)
            .get(200, POOLS)
            .table(200, POOL)
            .table(200, POOLS)
            .merge_patch(200, POOL, json!({ "spec": { "used": 1 } }))
            .merge_patch(200, POOL, json!({ "metadata": { "labels": { "a": "b" } } }))
            .merge_patch(200, POOL, json!({ "status": { "state": "ignored" } }))
            .json_patch(200, POOL, json!([{ "op": "replace", "path": "/spec/pool", "value": "q" }]))
            .strategic_patch(415, POOL, json!({ "spec": { "used": 1 } }))
            // There is no server-side apply here, and the refusal says so.
            .through(refusal)
            .get(200, "/apis/${id}.example/v1/pools?labelSelector=a%3Db")
            .get(200, format!("{POOLS}?fieldSelector=metadata.name%3Db"))
            .get(400, format!("{POOLS}?fieldSelector=spec.pool%3Dq"))
            .delete(200, POOL)
            .get(404, POOL),
        defined("replacing")
            .post(201, POOLS, simple())
            .keep("rv", "/metadata/resourceVersion")
            .put(422, POOL, simple())
            .put(409, POOL, with(simple(), &json!({ "metadata": { "resourceVersion": "1" } })))
            .put(200, POOL, with(pool(&json!({ "pool": "q" })), &json!({
                "metadata": { "resourceVersion": "${rv}" }, "status": { "state": "ignored" },
            })))
            .put(404, format!("{POOLS}/b"), with(simple(), &json!({ "metadata": { "name": "b" } })))
            .put(400, format!("{POOLS}/b"), simple()),
        defined("the status has a path of its own")
            .post(201, POOLS, with(simple(), &json!({ "status": { "state": "ignored" } })))
            .merge_patch(200, STATUS, json!({
                "metadata": { "labels": { "a": "b" } }, "spec": { "pool": "ignored" }, "status": { "state": "up", "unknown": 1 },
            }))
            .get(200, STATUS)
            .merge_patch(422, STATUS, json!({ "status": { "state": 1 } }))
            .merge_patch(200, STATUS, json!({ "status": null }))
            .get(404, format!("{POOL}/scale")),
        defined("finalizers that name nobody")
            .post(201, POOLS, with(simple(), &json!({ "metadata": { "finalizers": ["wait"] } })))
            .merge_patch(200, POOL, json!({ "metadata": { "finalizers": ["wait", "example.com"] } }))
            .merge_patch(200, POOL, json!({ "spec": { "used": 1 } }))
            .merge_patch(422, POOL, json!({ "metadata": { "finalizers": ["not this"] } })),
        defined("finalizers")
            .post(201, POOLS, with(simple(), &json!({ "metadata": { "finalizers": ["example.com/wait"] } })))
            .delete(200, POOL)
            .merge_patch(200, POOL, json!({ "metadata": { "finalizers": [] } }))
            .get(404, POOL),
        defined("collections")
            .post(201, POOLS, with(simple(), &json!({ "metadata": { "name": "b", "labels": { "x": "y" } } })))
            .post(201, POOLS, simple())
            .get(200, format!("{POOLS}?limit=1"))
            .delete(200, format!("{POOLS}?labelSelector=x%3Dy"))
            .get(200, POOLS)
            .post(404, "/apis/${id}.example/v1/pools", simple())
            .delete(404, "/apis/${id}.example/v1/pools"),
        Row::new("a kind without namespaces and without a status of its own")
            .post(201, DEFINITIONS, pools("${id}.example", "Cluster", &json!([{
                "name": "v1", "served": true, "storage": true, "schema": schema(&json!({ "state": { "type": "string" } })),
            }])))
            .until_says(format!("{DEFINITIONS}/pools.${{id}}.example"), ESTABLISHED)
            .until(200, "/apis/${id}.example/v1/pools")
            .post(201, "/apis/${id}.example/v1/pools", with(simple(), &json!({ "status": { "state": "kept" } })))
            .merge_patch(200, "/apis/${id}.example/v1/pools/a", json!({ "status": { "state": "changed" } }))
            .get(404, "/apis/${id}.example/v1/pools/a/status")
            .get(404, POOL)
            .delete(200, "/apis/${id}.example/v1/pools/a"),
    ]
}

fn schemas() -> Vec<Row> {
    let strange = pool(
        &json!({ "pool": "p", "unknown": 1, "exclude": [{ "ip": "x", "y": {} }], "maybe": null, "used": null,
        "free": { "any": { "thing": [1] }, "tight": { "a": "b", "c": "d" } }, "quota": { "p": 1 }, "port": "http" }),
    );
    vec![
        defined("unknown fields are dropped")
            .post(201, POOLS, with(strange.clone(), &json!({ "more": 1, "metadata": { "unknown": 1 } })))
            .get(200, POOL)
            .merge_patch(200, POOL, json!({ "spec": { "unknown": 2, "used": 3 } }))
            .merge_patch(200, POOL, json!({ "spec": { "unknown": 2 } }))
            .post(400, format!("{POOLS}?fieldValidation=Strict"), strange.clone())
            .merge_patch(422, format!("{POOL}?fieldValidation=Strict"), json!({ "spec": { "unknown": 2 } }))
            .through(refusal)
            .post(409, format!("{POOLS}?fieldValidation=Ignore"), strange),
        defined("numbers of all kinds")
            .post(201, POOLS, pool(&json!({ "pool": "p", "used": 0, "share": 1, "port": 80, "flag": false })))
            .merge_patch(200, POOL, json!({ "spec": { "share": 1.5 } })),
    ]
}

fn refusals() -> Vec<Row> {
    let with_spec = |change: Value| pool(&with(json!({ "pool": "p" }), &change));
    vec![
        defined("values of the wrong type and fields that lack")
            .post(422, POOLS, pool(&json!({})))
            .post(422, POOLS, pool(&json!({ "pool": 1 })))
            .post(422, POOLS, pool(&json!("p")))
            .post(422, POOLS, with_spec(json!({ "used": "1" })))
            .post(422, POOLS, with_spec(json!({ "used": 1.5 })))
            .post(422, POOLS, with_spec(json!({ "share": "1" })))
            .post(422, POOLS, with_spec(json!({ "port": true })))
            .post(422, POOLS, with_spec(json!({ "flag": "true" })))
            .post(422, POOLS, with_spec(json!({ "maybe": 1 })))
            .post(422, POOLS, with_spec(json!({ "exclude": {} })))
            .post(422, POOLS, with_spec(json!({ "exclude": [{ "ip": "x" }, {}] })))
            .post(422, POOLS, with_spec(json!({ "exclude": [{ "ip": ["x"] }] })))
            .post(422, POOLS, with_spec(json!({ "exclude": [null] })))
            .post(422, POOLS, with_spec(json!({ "quota": { "p": "1" } })))
            .post(422, POOLS, with_spec(json!({ "free": [] })))
            .post(201, POOLS, simple())
            .merge_patch(422, POOL, json!({ "spec": { "pool": null } }))
            .merge_patch(422, POOL, json!({ "spec": { "pool": true } })),
        defined("other things than are asked for")
            .post(400, POOLS, json!({ "apiVersion": "${id}.example/v7", "kind": "Pool", "metadata": { "name": "a" } }))
            .post(400, POOLS, with(simple(), &json!({ "apiVersion": "${id}.example/v1beta1" })))
            .post(422, POOLS, with(simple(), &json!({ "kind": "Pond" })))
            .post(422, POOLS, with(simple(), &json!({ "metadata": { "name": "A_B" } })))
            .post(400, POOLS, json!({ "apiVersion": "${id}.example/v1", "metadata": { "name": "a" }, "spec": { "pool": "p" } }))
            .post(400, POOLS, json!({ "kind": "Pool", "metadata": { "name": "a" }, "spec": { "pool": "p" } }))
            .post(400, POOLS, json!([])),
    ]
}

fn versions() -> Vec<Row> {
    let full = json!({ "status": { "state": "up", "group": "g", "conditions": [{ "type": "Ready", "more": { "x": 1 } }] } });
    let made = |name| defined(name).post(201, POOLS, simple()).merge_patch(200, STATUS, full.clone());
    let old = format!("{OLD}/a");
    vec![
        made("an object has every version")
            .get(200, old.clone())
            .get(200, OLD)
            .table(200, OLD)
            .get(404, format!("{OLD}/b"))
            .post(201, OLD, with(simple(), &json!({ "apiVersion": "${id}.example/v1beta1", "metadata": { "name": "b" } })))
            .get(200, format!("{POOLS}/b"))
            .get(200, POOLS),
        made("a change through an old version loses what that does not know")
            .merge_patch(200, old.clone(), json!({ "metadata": { "labels": { "a": "b" } } }))
            .get(200, POOL),
        made("so does a replacement")
            .get(200, old.clone())
            .keep("rv", "/metadata/resourceVersion")
            .put(200, old.clone(), with(simple(), &json!({ "apiVersion": "${id}.example/v1beta1", "metadata": { "resourceVersion": "${rv}" } })))
            .get(200, POOL),
        made("watches are in the version that is asked for")
            .get(200, POOLS)
            .keep("rv", "/metadata/resourceVersion")
            .watch("new", format!("{POOLS}?watch=1&resourceVersion=${{rv}}"))
            .watch("old", format!("{OLD}?watch=1&resourceVersion=${{rv}}"))
            .watch_table("rows", format!("{POOLS}?watch=1&resourceVersion=${{rv}}"))
            .merge_patch(200, POOL, json!({ "spec": { "used": 1 } }))
            .delete(200, old)
            .take("new", 2)
            .take("old", 2)
            .take("rows", 2),
    ]
}
