//! Deletion: finalizers, preconditions, options, and what a terminating object still allows.

use serde_json::json;

use super::nodes::node;
use super::{CONFIG_MAPS, NODE, NODES, SERVICES, config_map};
use crate::conformance::row::Row;

const BOX: &str = "/api/v1/namespaces/${ns}/configmaps/box";

pub(super) fn rows() -> Vec<Row> {
    [finalizers(), options(), collections()].concat()
}

fn finalizers() -> Vec<Row> {
    let held = || {
        Row::new("")
            .post(201, NODES, node(&json!({ "metadata": { "finalizers": ["example.com/hold"] } })))
            .steps
    };
    let held = |name| Row { steps: held(), ..Row::new(name) };
    vec![
        held("a finalizer keeps the object until it is taken away")
            .delete(200, NODE)
            .get(200, NODE)
            .delete(200, NODE)
            .merge_patch(200, NODE, json!({ "metadata": { "finalizers": null } }))
            .get(404, NODE),
        held("a terminating object takes no new finalizer")
            .delete(200, NODE)
            .merge_patch(
                422,
                NODE,
                json!({ "metadata": { "finalizers": ["example.com/hold", "example.com/more"] } }),
            )
            .strategic_patch(422, NODE, json!({ "metadata": { "finalizers": ["example.com/more"] } }))
            .merge_patch(200, NODE, json!({ "metadata": { "labels": { "still": "changeable" } } }))
            .json_patch(200, NODE, json!([{ "op": "remove", "path": "/metadata/finalizers/0" }]))
            .get(404, NODE),
        held("a terminating object is not created anew")
            .delete(200, NODE)
            .post(409, NODES, node(&json!({})))
            .put(
                200,
                NODE,
                node(&json!({ "metadata": { "finalizers": ["example.com/hold"], "labels": { "a": "1" } } })),
            )
            .put(200, NODE, node(&json!({})))
            .get(404, NODE),
        held("the last of several finalizers")
            .merge_patch(
                200,
                NODE,
                json!({ "metadata": { "finalizers": ["example.com/a", "example.com/b"] } }),
            )
            .delete(200, NODE)
            .merge_patch(200, NODE, json!({ "metadata": { "finalizers": ["example.com/b"] } }))
            .merge_patch(200, NODE, json!({ "metadata": { "finalizers": [] } }))
            .get(404, NODE),
        held("the deletion time cannot be taken back or set")
            .merge_patch(422, NODE, json!({ "metadata": { "deletionTimestamp": "2020-01-01T00:00:00Z" } }))
            .delete(200, NODE)
            .merge_patch(200, NODE, json!({ "metadata": { "deletionTimestamp": null } }))
            .merge_patch(200, NODE, json!({ "metadata": { "finalizers": null } })),
        held("finalizers through the status end an object too")
            .delete(200, NODE)
            .merge_patch(200, format!("{NODE}/status"), json!({ "status": { "phase": "Running" } }))
            .merge_patch(200, format!("{NODE}/status"), json!({ "metadata": { "finalizers": null } }))
            .get(404, NODE),
        Row::new("names of finalizers")
            .post(422, NODES, node(&json!({ "metadata": { "finalizers": ["not a name"] } })))
            .post(422, NODES, node(&json!({ "metadata": { "finalizers": ["plain"] } })))
            .post(201, NODES, node(&json!({ "metadata": { "finalizers": ["kubernetes"] } })))
            .merge_patch(
                200,
                NODE,
                json!({ "metadata": { "finalizers": ["example.com/a", "example.com/a"] } }),
            ),
        Row::new("a service with the load balancer's finalizer")
            .post(
                201,
                SERVICES,
                json!({ "apiVersion": "v1", "kind": "Service",
                "metadata": { "name": "web", "finalizers": ["service.kubernetes.io/load-balancer-cleanup"] },
                "spec": { "type": "LoadBalancer", "ports": [{ "port": 80, "nodePort": 30040 }] } }),
            )
            .delete(200, format!("{SERVICES}/web"))
            .get(200, format!("{SERVICES}/web"))
            .merge_patch(200, format!("{SERVICES}/web"), json!({ "metadata": { "finalizers": null } }))
            .get(404, format!("{SERVICES}/web"))
            .post(
                201,
                SERVICES,
                json!({ "apiVersion": "v1", "kind": "Service", "metadata": { "name": "next" },
                "spec": { "type": "NodePort", "ports": [{ "port": 80, "nodePort": 30040 }] } }),
            ),
    ]
}

fn options() -> Vec<Row> {
    let made = || {
        Row::new("")
            .post(201, CONFIG_MAPS, config_map("box", &json!({})))
            .keep("uid", "/metadata/uid")
            .keep("rv", "/metadata/resourceVersion")
            .steps
    };
    let made = |name| Row { steps: made(), ..Row::new(name) };
    vec![
        made("deletion with a precondition on the uid")
            .delete_with(
                409,
                BOX,
                json!({ "preconditions": { "uid": "11111111-2222-3333-4444-555555555555" } }),
            )
            .delete_with(200, BOX, json!({ "preconditions": { "uid": "${uid}" } })),
        made("deletion with a precondition on the version")
            .merge_patch(200, BOX, json!({ "data": { "a": "1" } }))
            .keep("new", "/metadata/resourceVersion")
            .delete_with(409, BOX, json!({ "preconditions": { "resourceVersion": "${rv}" } }))
            .delete_with(
                200,
                BOX,
                json!({ "preconditions": { "resourceVersion": "${new}", "uid": "${uid}" } }),
            ),
        made("a dry deletion")
            .delete(200, format!("{BOX}?dryRun=All"))
            .get(200, BOX)
            .delete_with(200, BOX, json!({ "dryRun": ["All"] }))
            .get(200, BOX)
            .delete(422, format!("{BOX}?dryRun=Some")),
        made("propagation: in the background")
            .delete_with(
                200,
                BOX,
                json!({ "kind": "DeleteOptions", "apiVersion": "v1", "propagationPolicy": "Background" }),
            )
            .get(404, BOX),
        made("propagation: in the foreground, by a finalizer")
            .delete_with(200, BOX, json!({ "propagationPolicy": "Foreground" }))
            .get(200, BOX)
            .merge_patch(200, BOX, json!({ "metadata": { "finalizers": null } }))
            .get(404, BOX),
        made("propagation: orphan, and an unknown word")
            .delete_with(422, BOX, json!({ "propagationPolicy": "Sideways" }))
            .delete(200, format!("{BOX}?propagationPolicy=Orphan"))
            .get(200, BOX),
        made("a grace period of none").delete(200, format!("{BOX}?gracePeriodSeconds=0")).get(404, BOX),
        made("malformed options")
            .delete_with(400, BOX, json!({ "preconditions": 7 }))
            .through(crate::conformance::lens::refusal)
            .delete_with(400, BOX, json!({ "kind": "Pod", "apiVersion": "v1" }))
            .through(crate::conformance::lens::refusal)
            .get(200, BOX),
    ]
}

fn collections() -> Vec<Row> {
    vec![
        Row::new("a collection is deleted by its labels")
            .post(201, CONFIG_MAPS, config_map("a", &json!({ "go": "yes" })))
            .post(201, CONFIG_MAPS, config_map("b", &json!({ "go": "no" })))
            .post(201, CONFIG_MAPS, config_map("c", &json!({ "go": "yes" })))
            .delete(200, format!("{CONFIG_MAPS}?labelSelector=go%3Dyes"))
            .get(200, CONFIG_MAPS)
            .delete(200, CONFIG_MAPS)
            .get(200, CONFIG_MAPS),
        Row::new("services cannot be deleted all at once by name of none")
            .delete(404, format!("{SERVICES}/none")),
    ]
}
