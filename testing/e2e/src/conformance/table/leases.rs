//! Leases, as leader election uses them.

use serde_json::{Value, json};

use super::with;
use crate::conformance::lens::refusal;
use crate::conformance::row::Row;

const LEASES: &str = "/apis/coordination.k8s.io/v1/namespaces/${ns}/leases";
const LEAD: &str = "/apis/coordination.k8s.io/v1/namespaces/${ns}/leases/lead";

fn lease(version: Option<&str>, spec: &Value) -> Value {
    let mut metadata = json!({ "name": "lead" });
    if let Some(version) = version {
        metadata = with(metadata, &json!({ "resourceVersion": version }));
    }
    json!({ "apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": metadata, "spec": spec })
}

pub(super) fn rows() -> Vec<Row> {
    let held = |by: &str, second: u8| {
        json!({ "holderIdentity": by, "leaseDurationSeconds": 15, "leaseTransitions": 0,
            "acquireTime": "2026-01-01T00:00:00.000000Z", "renewTime": format!("2026-01-01T00:00:0{second}.000000Z") })
    };
    vec![
        Row::new("taken, renewed, lost to another")
            .get(404, LEAD)
            .post(201, LEASES, lease(None, &held("one", 0)))
            .keep("rv", "/metadata/resourceVersion")
            .post(409, LEASES, lease(None, &held("two", 0)))
            .put(200, LEAD, lease(Some("${rv}"), &held("one", 1)))
            .put(409, LEAD, lease(Some("${rv}"), &held("two", 2)))
            .get(200, LEAD)
            .keep("rv", "/metadata/resourceVersion")
            .put(200, LEAD, lease(Some("${rv}"), &held("two", 3)))
            .put(422, LEAD, lease(None, &held("three", 4))),
        Row::new("replacing a lease that is not there creates it")
            .put(201, LEAD, lease(None, &held("one", 0)))
            .put(
                201,
                "/apis/coordination.k8s.io/v1/namespaces/${ns}/leases/gone",
                json!({
                "apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": {
                    "name": "gone", "resourceVersion": "1",
                } }),
            ),
        Row::new("renewed by a patch")
            .post(201, LEASES, lease(None, &held("one", 0)))
            .merge_patch(200, LEAD, json!({ "spec": { "renewTime": "2026-01-01T00:00:09.000000Z" } }))
            .strategic_patch(200, LEAD, json!({ "spec": { "holderIdentity": "two", "leaseTransitions": 1 } }))
            .json_patch(
                200,
                LEAD,
                json!([
                    { "op": "replace", "path": "/spec/holderIdentity", "value": "three" },
                ]),
            ),
        Row::new("given back")
            .post(201, LEASES, lease(None, &held("one", 0)))
            .keep("rv", "/metadata/resourceVersion")
            .put(
                200,
                LEAD,
                lease(
                    Some("${rv}"),
                    &json!({ "holderIdentity": "", "leaseDurationSeconds": 1, "leaseTransitions": 1 }),
                ),
            )
            .delete(200, LEAD),
        Row::new("what a lease may not say")
            .post(422, LEASES, lease(None, &json!({ "leaseDurationSeconds": 0 })))
            .post(422, LEASES, lease(None, &json!({ "leaseTransitions": -1 })))
            .post(400, LEASES, lease(None, &json!({ "renewTime": "yesterday" })))
            .through(refusal)
            .post(201, LEASES, lease(None, &json!({}))),
        Row::new("times have exactly six digits of a second")
            .post(400, LEASES, lease(None, &json!({ "renewTime": "2026-01-01T00:00:00Z" })))
            .through(refusal)
            .post(400, LEASES, lease(None, &json!({ "renewTime": "2026-01-01T00:00:00.5Z" })))
            .through(refusal)
            .post(201, LEASES, lease(None, &json!({ "renewTime": "2026-01-01T01:00:00.000000+01:00" }))),
    ]
}
