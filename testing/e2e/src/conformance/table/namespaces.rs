//! Namespaces: their phases and their end.

use serde_json::json;

use super::{NAMESPACES, config_map};
use crate::conformance::row::Row;

const MINE: &str = "/api/v1/namespaces/${id}";

pub(super) fn rows() -> Vec<Row> {
    let body = || json!({ "apiVersion": "v1", "kind": "Namespace", "metadata": { "name": "${id}" } });
    vec![
        Row::new("a namespace is completed, labelled, and read")
            .post(201, NAMESPACES, body())
            .post(409, NAMESPACES, body())
            .get(200, MINE)
            .merge_patch(200, MINE, json!({ "metadata": { "labels": { "a": "1" } } }))
            .merge_patch(200, format!("{MINE}/status"), json!({ "status": { "phase": "Active" } }))
            .get(200, format!("{NAMESPACES}?fieldSelector=metadata.name%3D${{id}}")),
        Row::new("a namespace that is being deleted takes nothing new, and goes when it is finalized")
            .post(201, NAMESPACES, body())
            .post(201, format!("{MINE}/configmaps"), config_map("before", &json!({})))
            .delete(200, MINE)
            .get(200, MINE)
            .post(403, format!("{MINE}/configmaps"), config_map("after", &json!({})))
            .merge_patch(
                200,
                format!("{MINE}/configmaps/before"),
                json!({ "data": { "still": "changeable" } }),
            )
            .delete(200, format!("{MINE}/configmaps/before"))
            .put(
                200,
                format!("{MINE}/finalize"),
                json!({ "apiVersion": "v1", "kind": "Namespace",
                "metadata": { "name": "${id}" }, "spec": { "finalizers": [] } }),
            )
            .get(404, MINE),
        Row::new("names of namespaces")
            .post(
                422,
                NAMESPACES,
                json!({ "apiVersion": "v1", "kind": "Namespace", "metadata": { "name": "a.b" } }),
            )
            .post(
                422,
                NAMESPACES,
                json!({ "apiVersion": "v1", "kind": "Namespace", "metadata": { "name": "Upper" } }),
            ),
        Row::new("the namespaces that every cluster has")
            .get(200, "/api/v1/namespaces/default")
            .get(200, "/api/v1/namespaces/kube-system")
            .get(200, "/api/v1/namespaces/kube-node-lease")
            .get(200, "/api/v1/namespaces/kube-public")
            .delete(403, "/api/v1/namespaces/default")
            .get(404, MINE),
    ]
}
