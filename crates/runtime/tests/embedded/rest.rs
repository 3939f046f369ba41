//! Calls to the API, as they are seen from both ends.

use cloudberth_runtime::{
    metrics::{Registry, RestMetrics, render},
    rest::RestLayer,
};
use embedded_kube::{Fault, Harm};
use kube::{Client, client::ClientBuilder};
use serde_json::Value;

use crate::fixture::Fixture;

#[tokio::test(start_paused = true)]
async fn every_call_says_who_it_is_from_and_is_counted() {
    let fixture = Fixture::new();
    let (mut registry, metrics) = (Registry::default(), RestMetrics::default());
    metrics.register(&mut registry);
    let clock = fixture.clock.clone();
    let layer =
        RestLayer::new(&metrics, "api.example:6443", "cloudberth/1.0/node-controller", clock).unwrap();
    let client: Client = ClientBuilder::new(fixture.api.service(), "default").with_layer(&layer).build();
    fixture.create_node("n1").await;
    let before = fixture.api.calls(0).len();

    let get = |path: &str| http::Request::get(path).body(Vec::new()).unwrap();
    fixture.api.add_fault(Fault::new(Harm::Latency { millis: 300 }).on("get", "nodes").times(1));
    client.request::<Value>(get("/api/v1/nodes/n1")).await.unwrap();
    assert!(client.request::<Value>(get("/api/v1/nodes/n2")).await.is_err());
    let patch =
        http::Request::patch("/api/v1/nodes/n1").header("content-type", "application/merge-patch+json");
    let body = br#"{"metadata":{"labels":{"a":"b"}}}"#.to_vec();
    client.request::<Value>(patch.body(body).unwrap()).await.unwrap();
    fixture.api.add_fault(Fault::new(Harm::LostCall).on("get", "nodes").times(1));
    assert!(client.request::<Value>(get("/api/v1/nodes/n1")).await.is_err());
    let watch = "/api/v1/nodes?allowWatchBookmarks=true&watch=true";
    let _watch = client.send(http::Request::get(watch).body(Vec::new().into()).unwrap()).await.unwrap();

    let calls = fixture.api.calls(0);
    assert!(
        calls[before..].iter().all(|call| call.user_agent == "cloudberth/1.0/node-controller"),
        "{calls:?}"
    );
    let page = render(&registry);
    let host = "host=\"api.example:6443\"";
    let want = [
        format!("rest_client_requests_total{{code=\"200\",method=\"GET\",{host}}} 2"),
        format!("rest_client_requests_total{{code=\"404\",method=\"GET\",{host}}} 1"),
        format!("rest_client_requests_total{{code=\"200\",method=\"PATCH\",{host}}} 1"),
        format!("rest_client_requests_total{{code=\"<error>\",method=\"GET\",{host}}} 1"),
        // The watch is counted, but its duration says nothing.
        format!("rest_client_request_duration_seconds_count{{verb=\"GET\",{host}}} 3"),
        format!("rest_client_request_duration_seconds_bucket{{le=\"0.25\",verb=\"GET\",{host}}} 2"),
        format!("rest_client_request_duration_seconds_bucket{{le=\"0.5\",verb=\"GET\",{host}}} 3"),
        format!("rest_client_request_size_bytes_bucket{{le=\"64\",verb=\"PATCH\",{host}}} 1"),
        format!("rest_client_request_size_bytes_sum{{verb=\"PATCH\",{host}}} 33.0"),
        "# TYPE rest_client_requests_total counter".to_owned(),
    ];
    for line in want {
        assert!(page.lines().any(|other| other == line), "{line}\n{page}");
    }
    assert!(page.contains("# HELP rest_client_request_duration_seconds [ALPHA] "));
    assert!(RestLayer::new(&metrics, "h", "two\nlines", fixture.clock.clone()).is_err());
}
