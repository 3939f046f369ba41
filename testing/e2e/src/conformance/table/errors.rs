//! Requests that make no sense.

use http::Method;
use serde_json::json;

use super::nodes::node;
use super::{CONFIG_MAPS, NODE, NODES, config_map};
use crate::Request;
use crate::conformance::lens::refusal;
use crate::conformance::row::Row;

fn raw(method: Method, path: &str, content_type: &str, body: &'static str) -> Request {
    let mut request = Request::new(method, path);
    request.content_type = content_type.into();
    request.body = body.into();
    request
}

pub(super) fn rows() -> Vec<Row> {
    vec![
        Row::new("resources, groups and versions that do not exist")
            .get(404, "/api/v1/teapots")
            .get(404, "/api/v2/nodes")
            .get(404, "/apis/example.com/v1/teapots")
            .get(404, "/api/v1/namespaces/default/nodes")
            .get(404, "/api/v1/nodes/x/teapots")
            .get(404, "/nowhere"),
        Row::new("methods that a resource does not have")
            .send(405, Request::new(Method::PUT, NODES).json(&node(&json!({}))))
            .post(405, NODE, node(&json!({})))
            .send(405, Request::new(Method::PATCH, NODES).json(&json!({}))),
        Row::new("content types")
            .send(415, raw(Method::POST, NODES, "text/plain", "{}"))
            .send(415, raw(Method::POST, NODES, "application/x-www-form-urlencoded", "a=b"))
            .get_as(406, NODE, "text/html"),
        Row::new("bodies that are not JSON, or none at all")
            .send(400, raw(Method::POST, NODES, "application/json", "{"))
            .through(refusal)
            .send(400, raw(Method::POST, NODES, "application/json", ""))
            .through(refusal)
            .send(400, raw(Method::POST, NODES, "application/json", "[]"))
            .through(refusal)
            .send(400, raw(Method::POST, NODES, "application/json", "not json"))
            .through(refusal)
            .send(400, raw(Method::PATCH, NODE, "application/merge-patch+json", "{"))
            .through(refusal),
        Row::new("a malformed patch of an object that is there")
            .post(201, CONFIG_MAPS, config_map("box", &json!({})))
            .send(400, raw(Method::PATCH, "/api/v1/namespaces/${ns}/configmaps/box", "application/merge-patch+json", "{"))
            .through(refusal)
            .send(400, raw(Method::PATCH, "/api/v1/namespaces/${ns}/configmaps/box", "application/strategic-merge-patch+json", "{"))
            .through(refusal)
            .send(400, raw(Method::PATCH, "/api/v1/namespaces/${ns}/configmaps/box", "application/json-patch+json", "["))
            .through(refusal),
        Row::new("kinds that do not belong here")
            .post(400, NODES, json!({ "apiVersion": "v1", "kind": "Pod", "metadata": { "name": "x" } }))
            .through(refusal)
            .post(400, NODES, json!({ "apiVersion": "v9", "kind": "Node", "metadata": { "name": "x" } }))
            .through(refusal)
            .post(201, NODES, json!({ "metadata": { "name": "${id}" } }))
            .post(400, CONFIG_MAPS, json!({
                "apiVersion": "v1", "kind": "ConfigMap", "metadata": { "name": "x", "namespace": "other" },
            })),
        Row::new("body in YAML")
            .send(201, raw(Method::POST, CONFIG_MAPS, "application/yaml", "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: box}\n")),
        Row::new("an object with a name twice in its body is taken with its last")
            .send(201, raw(Method::POST, CONFIG_MAPS, "application/json",
                r#"{"kind":"ConfigMap","apiVersion":"v1","metadata":{"name":"a","name":"b"}}"#)),
        Row::new("creating below a name").post(405, format!("{CONFIG_MAPS}/box"), config_map("box", &json!({}))),
        Row::new("health").get(200, "/healthz").get(200, "/livez").get(200, "/readyz").get(404, "/healthz/none"),
    ]
}
