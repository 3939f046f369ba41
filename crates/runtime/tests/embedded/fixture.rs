//! A cluster in memory and on virtual time.

use std::{sync::Arc, time::Duration};

use cloudberth_core::{Clock, Tick, call::Unguarded};
use cloudberth_runtime::cluster::Cluster;
use embedded_kube::{Call, KubeApi};
use jiff::Timestamp;
use kube::Client;
use serde_json::{Value, json};
use sim_kit::Surroundings;
use tokio::time::Instant;

struct Paused(Instant);

impl Clock for Paused {
    fn now(&self) -> Tick {
        Tick(self.0.elapsed())
    }

    fn wall(&self) -> Timestamp {
        Timestamp::from_second(1_700_000_000).unwrap() + self.0.elapsed()
    }
}

/// The embedded API, and a client's view of it.
pub(crate) struct Fixture {
    pub(crate) api: KubeApi,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) client: Client,
    pub(crate) cluster: Cluster,
}

impl Fixture {
    pub(crate) fn new() -> Self {
        let clock: Arc<dyn Clock> = Arc::new(Paused(Instant::now()));
        let wall = Arc::clone(&clock);
        let api = KubeApi::new(Surroundings::new(7, move || wall.wall()));
        let client = Client::new(api.service(), "default");
        let cluster = Cluster::new(client.clone(), Arc::clone(&clock), Arc::new(Unguarded));
        Self { api, clock, client, cluster }
    }

    /// Somebody sends a request that must succeed.
    pub(crate) async fn send(&self, method: &str, path: &str, body: Option<Value>) -> Value {
        let bytes = body.map_or_else(Vec::new, |body| serde_json::to_vec(&body).unwrap());
        let kind = if method == "PATCH" { "application/merge-patch+json" } else { "application/json" };
        let request = http::Request::builder().method(method).uri(path).header("content-type", kind);
        self.client.request(request.body(bytes).unwrap()).await.unwrap()
    }

    pub(crate) async fn create_node(&self, name: &str) -> Value {
        let node = json!({"apiVersion": "v1", "kind": "Node", "metadata": {"name": name}});
        self.send("POST", "/api/v1/nodes", Some(node)).await
    }

    pub(crate) async fn delete_node(&self, name: &str) {
        self.send("DELETE", &format!("/api/v1/nodes/{name}"), None).await;
    }

    pub(crate) async fn label_node(&self, name: &str, value: &str) {
        let body = json!({"metadata": {"labels": {"test": value}}});
        self.send("PATCH", &format!("/api/v1/nodes/{name}"), Some(body)).await;
    }

    /// The calls of a verb on a resource so far.
    pub(crate) fn calls(&self, verb: &str, resource: &str) -> Vec<Call> {
        let fits = |call: &Call| call.verb == verb && call.resource == resource;
        self.api.calls(0).into_iter().filter(fits).collect()
    }
}

pub(crate) async fn pass(seconds: u64) {
    tokio::time::sleep(Duration::from_secs(seconds)).await;
}
