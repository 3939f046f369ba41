//! A cloud on virtual time, and a client of it.

use std::{sync::Arc, time::Duration};

use brightbox_sim::{Cloud, SimSettings};
use bytes::Bytes;
use cloudberth_core::{Clock, Random, Tick};
use http::{HeaderMap, Request};
use http_body_util::{BodyExt, Full};
use jiff::Timestamp;
use serde_json::{Value, json};
use tokio::time::Instant;
use tower::Service as _;

struct Paused(Instant);

impl Clock for Paused {
    fn now(&self) -> Tick {
        Tick(self.0.elapsed())
    }

    fn wall(&self) -> Timestamp {
        Timestamp::from_second(1_700_000_000).unwrap() + self.0.elapsed()
    }
}

/// A cloud that is closed to all but its own credentials.
pub(crate) fn closed(adjust: impl FnOnce(&mut SimSettings)) -> Cloud {
    let mut settings = SimSettings::default();
    adjust(&mut settings);
    Cloud::new(Arc::new(Paused(Instant::now())), Random::seeded(7), settings)
}

/// A cloud that takes any access token.
pub(crate) fn cloud(adjust: impl FnOnce(&mut SimSettings)) -> Cloud {
    closed(|settings| {
        settings.open = true;
        adjust(settings);
    })
}

/// A response whose body has been read.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) headers: HeaderMap,
    pub(crate) text: String,
}

impl Answer {
    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.text).unwrap_or(Value::Null)
    }

    pub(crate) fn id(&self) -> String {
        self.json()["id"].as_str().unwrap_or_else(|| panic!("no id in {self:?}")).to_owned()
    }

    pub(crate) fn header(&self, name: &str) -> &str {
        self.headers.get(name).map_or("", |value| value.to_str().unwrap())
    }

    /// The reasons of a refusal, as one text.
    pub(crate) fn errors(&self) -> String {
        let body = self.json();
        let errors = body["errors"].as_array().unwrap_or_else(|| panic!("no errors in {self:?}"));
        errors.iter().map(|error| error.as_str().unwrap()).collect::<Vec<_>>().join("; ")
    }
}

pub(crate) fn request(method: &str, path: &str, body: &Value) -> Request<Full<Bytes>> {
    let body = if body.is_null() { Bytes::new() } else { Bytes::from(body.to_string()) };
    Request::builder()
        .method(method)
        .uri(format!("https://api.example{path}"))
        .header("authorization", "Bearer any")
        .header("user-agent", "tester/1")
        .body(Full::new(body))
        .unwrap()
}

/// Sends a request; an error is a connection that broke.
pub(crate) async fn send(cloud: &Cloud, request: Request<Full<Bytes>>) -> Result<Answer, String> {
    let response = cloud.service().call(request).await.map_err(|error| error.to_string())?;
    let (parts, body) = response.into_parts();
    let bytes = body.collect().await.map_err(|error| error.to_string())?.to_bytes();
    let text = String::from_utf8(bytes.to_vec()).unwrap();
    Ok(Answer { status: parts.status.as_u16(), headers: parts.headers, text })
}

pub(crate) async fn ask(cloud: &Cloud, method: &str, path: &str, body: Value) -> Answer {
    send(cloud, request(method, path, &body)).await.unwrap()
}

pub(crate) async fn get(cloud: &Cloud, path: &str) -> Answer {
    ask(cloud, "GET", path, Value::Null).await
}

pub(crate) async fn post(cloud: &Cloud, path: &str, body: Value) -> Answer {
    ask(cloud, "POST", path, body).await
}

pub(crate) async fn delete(cloud: &Cloud, path: &str) -> Answer {
    ask(cloud, "DELETE", path, Value::Null).await
}

/// A balancer with one listener and these nodes.
pub(crate) fn balancer_body(nodes: &[&str]) -> Value {
    json!({
        "name": "web.shop.prod",
        "nodes": nodes.iter().map(|node| json!({"node": node})).collect::<Vec<_>>(),
        "listeners": [{"protocol": "tcp", "in": 80, "out": 30_080}],
        "healthcheck": {"type": "tcp", "port": 30_080, "request": "/"},
    })
}

/// The id of a balancer that is there.
pub(crate) fn seed_balancer(cloud: &Cloud, nodes: &[&str]) -> String {
    cloud.seed("load_balancers", &balancer_body(nodes)).unwrap()
}

/// The id of a Cloud IP that is there.
pub(crate) fn seed_cloud_ip(cloud: &Cloud, name: &str) -> String {
    cloud.seed("cloud_ips", &json!({"name": name})).unwrap()
}

pub(crate) async fn pass(how_long: Duration) {
    tokio::time::sleep(how_long).await;
}

pub(crate) const fn secs(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}
