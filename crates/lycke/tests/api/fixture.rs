//! The service in memory: the demo inventory, a plane that a test looks into, virtual time.

use std::{
    path::Path,
    sync::{Arc, Mutex},
};

use bytes::Bytes;
use cloudberth_core::{Clock, Secret};
use cloudberth_http::surroundings::SystemClock;
use cloudberth_lycke::{
    api::Api,
    control::{Control, Parts},
    events::EventLog,
    inventory::{self, Demo},
    plane::{Answer, BalancerKey},
    state::Balancers,
    store::Store,
    testing::MemoryPlane,
};
use http::{HeaderMap, Method, Request};
use http_body_util::{BodyExt as _, Full};
use serde_json::{Value, json};
use tower::Service as _;

/// A store that keeps the latest text, or fails.
#[derive(Clone, Debug, Default)]
pub(crate) struct TestStore {
    pub(crate) text: Arc<Mutex<Option<String>>>,
    pub(crate) fails: Arc<Mutex<bool>>,
}

impl Store for TestStore {
    fn save(&self, text: String) -> Answer<std::io::Result<()>> {
        let store = self.clone();
        Box::pin(async move {
            if *store.fails.lock().unwrap() {
                return Err(std::io::Error::other("the disk is full"));
            }
            *store.text.lock().unwrap() = Some(text);
            Ok(())
        })
    }
}

pub(crate) struct Fixture {
    pub(crate) api: Api,
    pub(crate) control: Control,
    pub(crate) plane: MemoryPlane,
    pub(crate) store: TestStore,
}

pub(crate) struct Reply {
    pub(crate) status: u16,
    pub(crate) headers: HeaderMap,
    pub(crate) text: String,
}

impl Reply {
    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.text).unwrap_or_else(|why| panic!("{why}: {}", self.text))
    }

    pub(crate) fn code(&self) -> (u16, String) {
        (self.status, self.json()["code"].as_str().unwrap_or_default().to_owned())
    }

    pub(crate) fn message(&self) -> String {
        self.json()["message"].as_str().unwrap_or_default().to_owned()
    }

    pub(crate) fn tag(&self) -> String {
        self.headers["etag"].to_str().unwrap().to_owned()
    }
}

pub(crate) fn demo() -> String {
    Demo { clusters: 2, workers: 2, loopback: true }.inventory().unwrap()
}

pub(crate) async fn service() -> Fixture {
    service_with(&demo(), None).await
}

pub(crate) async fn service_with(text: &str, token: Option<&str>) -> Fixture {
    let clock: Arc<dyn Clock> = Arc::new(SystemClock::starting_at("2024-05-02T08:00:00Z".parse().unwrap()));
    let events = EventLog::new(Arc::clone(&clock));
    let plane = MemoryPlane::new(Arc::new(events.clone()), Arc::clone(&clock));
    let store = TestStore::default();
    let parts = Parts {
        inventory: inventory::read(text, Path::new("inv.yaml")).unwrap(),
        file: "inv.yaml".into(),
        balancers: Balancers::default(),
        plane: Arc::new(plane.clone()),
        store: Arc::new(store.clone()),
        events,
    };
    let control = Control::new(parts, clock);
    control.restore().await;
    let api = Api::new(control.clone(), token.map(|token| Secret::new(token).unwrap()));
    Fixture { api, control, plane, store }
}

impl Fixture {
    pub(crate) async fn send(
        &self,
        method: &str,
        path: &str,
        headers: &[(&str, &str)],
        body: Vec<u8>,
    ) -> Reply {
        let mut request = Request::builder().method(Method::from_bytes(method.as_bytes()).unwrap()).uri(path);
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        let request = request.body(Full::new(Bytes::from(body))).unwrap();
        let response = self.api.clone().call(request).await.unwrap();
        let (parts, body) = response.into_parts();
        let text = String::from_utf8(body.collect().await.unwrap().to_bytes().to_vec()).unwrap();
        Reply { status: parts.status.as_u16(), headers: parts.headers, text }
    }

    pub(crate) async fn get(&self, path: &str) -> Reply {
        self.send("GET", path, &[], Vec::new()).await
    }

    pub(crate) async fn send_json(&self, method: &str, path: &str, body: &Value) -> Reply {
        self.send(method, path, &[], body.to_string().into_bytes()).await
    }

    pub(crate) async fn put(&self, name: &str, spec: &Value) -> Reply {
        self.send_json("PUT", &lb(name), spec).await
    }

    pub(crate) async fn delete(&self, path: &str) -> Reply {
        self.send("DELETE", path, &[], Vec::new()).await
    }

    /// The events after `since`, without waiting.
    pub(crate) async fn events(&self, since: u64) -> Value {
        self.get(&format!("/v1/events?since={since}&timeout=0")).await.json()
    }
}

pub(crate) fn lb(name: &str) -> String {
    format!("/v1/loadbalancers/c2/default/{name}")
}

pub(crate) fn key(name: &str) -> BalancerKey {
    BalancerKey { cluster: "c2".into(), namespace: "default".into(), name: name.into() }
}

pub(crate) fn spec(uid: &str) -> Value {
    json!({
        "uid": uid,
        "listeners": [
            {"protocol": "TCP", "port": 8080, "nodePort": 30080},
            {"protocol": "UDP", "port": 53, "nodePort": 31053},
        ],
        "backends": [
            {"machine": "n-c2-1", "address": "127.0.20.11"},
            {"machine": "n-c2-2", "address": "127.0.20.12"},
        ],
    })
}
