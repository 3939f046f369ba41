//! A cloud on virtual time, and a client of it.

use std::{sync::Arc, time::Duration};

use binarylane_sim::{Cloud, SimSettings};
use bytes::Bytes;
use cloudberth_core::{Clock, Random, Tick};
use http::{HeaderMap, Request};
use http_body_util::{BodyExt, Full};
use jiff::Timestamp;
use serde_json::Value;
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

pub(crate) fn cloud(adjust: impl FnOnce(&mut SimSettings)) -> Cloud {
    let mut settings = SimSettings::default();
    adjust(&mut settings);
    Cloud::new(Arc::new(Paused(Instant::now())), Random::seeded(7), settings)
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

    /// The fields that a validation problem names.
    pub(crate) fn mistakes(&self) -> Vec<String> {
        self.json()["errors"].as_object().map(|errors| errors.keys().cloned().collect()).unwrap_or_default()
    }
}

pub(crate) fn request(method: &str, path: &str, body: &Value) -> Request<Full<Bytes>> {
    let body = if body.is_null() { Bytes::new() } else { Bytes::from(body.to_string()) };
    Request::builder()
        .method(method)
        .uri(format!("https://api.example{path}"))
        .header("authorization", "Bearer secret")
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

pub(crate) const fn secs(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

/// Lets virtual time pass.
pub(crate) async fn pass(seconds: u64) {
    tokio::time::sleep(secs(seconds)).await;
}
