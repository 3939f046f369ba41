//! A cluster whose clock stands still, and a plain HTTP client for it.
#![allow(dead_code, reason = "each test file uses its own part of this")]

use bytes::Bytes;
use embedded_kube::{Body, KubeApi};
use http::{Method, Request, Response, StatusCode};
use http_body_util::{BodyExt, Full};
use serde_json::Value;
use sim_kit::Surroundings;
use tower::Service;

/// An empty cluster, on 2024-01-01.
pub(crate) fn cluster() -> KubeApi {
    KubeApi::new(Surroundings::new(42, || jiff::Timestamp::from_second(1_704_067_200).unwrap()))
}

/// Sends a request; an error is a broken connection.
pub(crate) async fn send(
    api: &KubeApi,
    method: Method,
    path: &str,
    kind: &str,
    body: &Value,
) -> Result<Response<Body>, String> {
    let body = if body.is_null() { Bytes::new() } else { Bytes::from(body.to_string()) };
    let request = Request::builder()
        .method(method)
        .uri(path)
        .header("content-type", kind)
        .header("user-agent", "test/1")
        .body(Full::new(body))
        .unwrap();
    api.service().call(request).await.map_err(|error| error.to_string())
}

/// Sends a request and reads the whole answer.
pub(crate) async fn call(api: &KubeApi, method: Method, path: &str, body: &Value) -> (StatusCode, Value) {
    let kind = if method == Method::PATCH { "application/merge-patch+json" } else { "application/json" };
    let response = send(api, method, path, kind, body).await.unwrap();
    let status = response.status();
    let bytes = response.into_body().collect().await.unwrap().to_bytes();
    (status, serde_json::from_slice(&bytes).unwrap_or(Value::Null))
}

/// Opens a watch.
pub(crate) async fn watch(api: &KubeApi, path: &str) -> Body {
    let response = send(api, Method::GET, path, "application/json", &Value::Null).await.unwrap();
    assert_eq!(response.status(), 200, "{path}");
    response.into_body()
}

/// The next event of a watch, or `None` when it has ended. Panics when the connection broke.
pub(crate) async fn next(body: &mut Body) -> Option<Value> {
    let frame = body.frame().await?.unwrap();
    Some(serde_json::from_slice(frame.data_ref().unwrap()).unwrap())
}

/// The next event if there is one already.
pub(crate) async fn next_now(body: &mut Body) -> Option<Value> {
    // Paused time moves on only when everything else waits.
    tokio::time::timeout(std::time::Duration::from_millis(1), next(body)).await.ok().flatten()
}
