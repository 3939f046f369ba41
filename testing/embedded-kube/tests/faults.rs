//! Faults on demand, and the log of calls that shows what they did.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing, missing_docs)]

mod common;

use std::time::Duration;

use common::{call, cluster, next, send, watch};
use embedded_kube::{Fault, Harm, Outcome};
use http::Method;
use http_body_util::BodyExt;
use serde_json::{Value, json};

const NODES: &str = "/api/v1/nodes";

fn node(name: &str) -> Value {
    json!({"metadata": {"name": name}})
}

#[tokio::test(start_paused = true)]
async fn an_answer_is_lost_after_the_write_was_made() {
    let api = cluster();
    api.add_fault(Fault::new(Harm::LostAnswer).on("create", "nodes").times(1));
    let lost = send(&api, Method::POST, NODES, "application/json", &node("n")).await;
    assert!(lost.unwrap_err().contains("before the answer arrived"));
    assert_eq!(call(&api, Method::POST, NODES, &node("n")).await.0, 409, "it was made all the same");
    let outcomes: Vec<_> = api.calls(0).into_iter().map(|call| call.outcome).collect();
    assert_eq!(outcomes, [Outcome::Lost(201), Outcome::Answered(409)]);
}

#[tokio::test(start_paused = true)]
async fn a_call_is_lost_before_anything_happened() {
    let api = cluster();
    api.add_fault(Fault::new(Harm::LostCall).on("create", "nodes").times(1));
    assert!(send(&api, Method::POST, NODES, "application/json", &node("n")).await.is_err());
    assert_eq!(call(&api, Method::POST, NODES, &node("n")).await.0, 201);
    assert_eq!(api.calls(0)[0].outcome, Outcome::Dropped);
}

#[tokio::test(start_paused = true)]
async fn errors_conflicts_and_delays_happen_as_ordered() {
    let api = cluster();
    call(&api, Method::POST, NODES, &node("n")).await;
    api.add_fault(Fault::new(Harm::Status { code: 429, retry_after: Some(3) }).on("get", "nodes").times(1));
    api.add_fault(Fault::new(Harm::Status { code: 503, retry_after: None }).on("list", "").times(1));
    api.add_fault(Fault::new(Harm::Conflict).on("patch", "nodes").times(1));
    api.add_fault(Fault::new(Harm::Latency { millis: 1500 }).on("delete", "nodes"));
    let busy = send(&api, Method::GET, "/api/v1/nodes/n", "", &Value::Null).await.unwrap();
    assert_eq!((busy.status().as_u16(), busy.headers()["retry-after"].to_str().unwrap()), (429, "3"));
    assert_eq!(call(&api, Method::GET, NODES, &Value::Null).await.0, 503);
    let patch = json!({"metadata": {"labels": {"a": "b"}}});
    let (status, body) = call(&api, Method::PATCH, "/api/v1/nodes/n", &patch).await;
    assert_eq!((status.as_u16(), &body["reason"]), (409, &json!("Conflict")));
    assert_eq!(call(&api, Method::PATCH, "/api/v1/nodes/n", &patch).await.0, 200);
    let started = tokio::time::Instant::now();
    assert_eq!(call(&api, Method::DELETE, "/api/v1/nodes/n", &Value::Null).await.0, 200);
    assert_eq!(started.elapsed(), Duration::from_millis(1500));
}

#[tokio::test(start_paused = true)]
async fn watches_are_dropped_and_stalled() {
    let api = cluster();
    call(&api, Method::POST, NODES, &node("a")).await;
    api.add_fault(Fault::new(Harm::DropWatch { after_events: 1 }).times(1));
    let mut dropped = watch(&api, "/api/v1/nodes?watch=true").await;
    assert_eq!(next(&mut dropped).await.unwrap()["type"], "ADDED");
    assert!(dropped.frame().await.unwrap().is_err(), "then the connection breaks");

    api.add_fault(Fault::new(Harm::StallWatch { after_events: 1 }).times(1));
    let mut stalled = watch(&api, "/api/v1/nodes?watch=true").await;
    assert_eq!(next(&mut stalled).await.unwrap()["type"], "ADDED");
    call(&api, Method::POST, NODES, &node("b")).await;
    assert!(tokio::time::timeout(Duration::from_hours(1), next(&mut stalled)).await.is_err(), "silence");
    api.restart();
    assert!(next(&mut stalled).await.is_none(), "a restart ends it");
}

#[tokio::test(start_paused = true)]
async fn a_restart_ends_watches_but_not_versions() {
    let api = cluster();
    let from = api.revision();
    let mut old = watch(&api, &format!("/api/v1/nodes?watch=true&resourceVersion={from}")).await;
    call(&api, Method::POST, NODES, &node("a")).await;
    api.restart();
    assert!(next(&mut old).await.is_none());
    let mut new = watch(&api, &format!("/api/v1/nodes?watch=true&resourceVersion={from}")).await;
    assert_eq!(next(&mut new).await.unwrap()["object"]["metadata"]["name"], "a");
    api.compact();
    let mut late = watch(&api, &format!("/api/v1/nodes?watch=true&resourceVersion={from}")).await;
    assert_eq!(next(&mut late).await.unwrap()["object"]["code"], 410);
}

#[tokio::test(start_paused = true)]
async fn a_skewed_clock_shows_in_timestamps() {
    let api = cluster();
    api.set_clock_skew(jiff::SignedDuration::from_secs(-3600));
    let (_, made) = call(&api, Method::POST, NODES, &node("a")).await;
    assert_eq!(made["metadata"]["creationTimestamp"], "2023-12-31T23:00:00Z");
}

#[tokio::test(start_paused = true)]
async fn the_log_says_who_did_what() {
    let api = cluster();
    call(&api, Method::POST, NODES, &node("a")).await;
    call(&api, Method::PATCH, "/api/v1/nodes/a/status", &json!({"status": {"phase": "Running"}})).await;
    call(&api, Method::GET, "/api/v1/namespaces/default/services?watch=true&timeoutSeconds=1", &Value::Null)
        .await;
    call(&api, Method::POST, "/api/v1/nodes?dryRun=All", &node("b")).await;
    call(&api, Method::GET, "/version", &Value::Null).await;
    let lines: Vec<String> = api
        .calls(0)
        .iter()
        .map(|c| {
            let Outcome::Answered(code) = c.outcome else { panic!("{:?}", c.outcome) };
            format!(
                "{} {} {} {}/{} {} {code} {}",
                c.user_agent,
                c.verb,
                c.resource,
                c.namespace,
                c.name,
                c.subresource,
                c.is_write()
            )
        })
        .collect();
    assert_eq!(
        lines,
        [
            "test/1 create nodes /  201 true",
            "test/1 patch nodes /a status 200 true",
            "test/1 watch services default/  200 false",
            "test/1 create nodes /  201 false",
            "test/1 get /version /  200 false",
        ]
    );
    assert_eq!(api.calls(3).len(), 2, "from a number on");
}

#[tokio::test(start_paused = true)]
async fn the_control_port_sets_faults_and_resets() {
    let api = cluster();
    let order = json!({"faults": [{"verb": "get", "harm": {"status": {"code": 500}}, "times": 1}]});
    assert_eq!(call(&api, Method::POST, "/_sim/faults", &order).await.0, 200);
    assert_eq!(call(&api, Method::GET, "/api/v1/namespaces/default", &Value::Null).await.0, 500);
    let (_, log) = call(&api, Method::GET, "/_sim/calls", &Value::Null).await;
    assert_eq!(log["calls"].as_array().unwrap().len(), 1, "the control paths are not in the log");
    assert_eq!(log["calls"][0]["outcome"], json!({"answered": 500}));
    for wrong in [
        json!({"nonsense": 1}),
        json!({"faults": [{"nonsense": 1, "harm": "conflict"}]}),
        json!({"clear": true, "faults": [{"harm": "conflict"}, {"harm": "truncated"}]}),
    ] {
        assert_eq!(call(&api, Method::POST, "/_sim/faults", &wrong).await.0, 400, "{wrong}");
    }
    let (_, set) = call(&api, Method::GET, "/_sim/faults", &Value::Null).await;
    assert_eq!(set, json!({"faults": [], "watches": 0}), "an order that is refused changes nothing");
    call(&api, Method::POST, NODES, &node("a")).await;
    assert_eq!(call(&api, Method::POST, "/_sim/reset", &Value::Null).await.0, 200);
    assert_eq!(call(&api, Method::GET, "/api/v1/nodes/a", &Value::Null).await.0, 404);
    assert_eq!(call(&api, Method::GET, "/api/v1/namespaces/default", &Value::Null).await.0, 200);
}
