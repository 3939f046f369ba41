//! Custom kinds: their definitions come and go with the cluster's state.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing, missing_docs)]

mod common;

use common::{call, cluster, next, watch};
use embedded_kube::KubeApi;
use http::Method;
use serde_json::{Value, json};

const DEFINITIONS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
const POOLS: &str = "/apis/example.com/v1/pools";

async fn define(api: &KubeApi) {
    let schema = json!({"type": "object", "properties": {"spec": {"type": "object", "properties": {
        "size": {"type": "integer", "minimum": 1}, "names": {"type": "array", "items": {"type": "string"}},
    }}}});
    let definition = json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": "pools.example.com"},
        "spec": {
            "group": "example.com", "scope": "Cluster", "names": {"kind": "Pool", "plural": "pools"},
            "versions": [{"name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema": schema}}],
        },
    });
    let response =
        common::send(api, Method::POST, DEFINITIONS, "application/json", &definition).await.unwrap();
    assert_eq!(response.status(), 201);
    let warning = response.headers()["warning"].to_str().unwrap();
    assert!(warning.contains("properties[size].minimum has no effect on this server"), "{warning}");
    let pool = json!({"apiVersion": "example.com/v1", "kind": "Pool", "metadata": {"name": "a"}, "spec": {"size": 1}});
    assert_eq!(call(api, Method::POST, POOLS, &pool).await.0, 201);
}

async fn status(api: &KubeApi, path: &str) -> u16 {
    call(api, Method::GET, path, &Value::Null).await.0.as_u16()
}

#[tokio::test(start_paused = true)]
async fn a_backup_holds_definitions_too_and_a_reset_forgets_them() {
    let api = cluster();
    let empty = api.snapshot();
    define(&api).await;
    let full = api.snapshot();
    api.restore(&empty);
    assert_eq!((status(&api, POOLS).await, status(&api, "/apis/example.com").await), (404, 404));
    api.restore(&full);
    assert_eq!(status(&api, &format!("{POOLS}/a")).await, 200);
    api.reset();
    assert_eq!((status(&api, POOLS).await, status(&api, "/apis/example.com").await), (404, 404));
}

#[tokio::test(start_paused = true)]
async fn watches_see_the_last_object_go_and_end() {
    let api = cluster();
    define(&api).await;
    let mut pools = watch(&api, &format!("{POOLS}?watch=1")).await;
    assert_eq!(next(&mut pools).await.unwrap()["type"], "ADDED");
    assert_eq!(
        call(&api, Method::DELETE, &format!("{DEFINITIONS}/pools.example.com"), &Value::Null).await.0,
        200
    );
    assert_eq!(next(&mut pools).await.unwrap()["type"], "DELETED");
    assert_eq!(next(&mut pools).await, None);
    assert_eq!(status(&api, POOLS).await, 404);
    assert!(api.objects("pools.example.com").is_empty());
}

#[tokio::test(start_paused = true)]
async fn clients_find_the_schema_in_the_description() {
    let api = cluster();
    define(&api).await;
    let (_, document) = call(&api, Method::GET, "/openapi/v3/apis/example.com/v1", &Value::Null).await;
    let pool = &document["components"]["schemas"]["com.example.v1.Pool"];
    assert_eq!(pool["properties"]["spec"]["properties"]["size"]["type"], "integer");
    assert_eq!(pool["properties"]["kind"]["type"], "string");
    assert_eq!(pool["x-kubernetes-group-version-kind"][0]["kind"], "Pool");
    let (_, index) = call(&api, Method::GET, "/openapi/v3", &Value::Null).await;
    assert!(index["paths"]["apis/example.com/v1"].is_object());
}
