//! A client in the same process: requests go straight into the API's service.

use bytes::Bytes;
use embedded_kube::{Body, Disconnected, KubeApi};
use http::{Method, Request, Response};
use http_body_util::{BodyExt, Full};
use serde_json::Value;
use tower::Service as _;

/// Why a measurement failed.
#[derive(Debug, thiserror::Error)]
pub(crate) enum BenchError {
    #[error("the connection broke: {0}")]
    Disconnected(#[from] Disconnected),
    #[error("no request can be made: {0}")]
    Request(#[from] http::Error),
    #[error("an answer is not JSON: {0}")]
    Json(#[from] serde_json::Error),
    #[error("{asked} was answered with {status}: {said}")]
    Refused { asked: String, status: u16, said: String },
    #[error("a watch went wrong: {0}")]
    Watch(String),
    #[error("the watchers did not catch up")]
    Behind,
    #[error("a client panicked")]
    Panicked,
}

/// Clones talk to the same API.
#[derive(Clone, Debug)]
pub(crate) struct Client {
    api: KubeApi,
}

impl Client {
    pub(crate) fn new(api: KubeApi) -> Self {
        Self { api }
    }

    async fn ask(
        &self,
        method: Method,
        path: &str,
        kind: &str,
        body: Bytes,
    ) -> Result<Response<Body>, BenchError> {
        let asked = || format!("{method} {path}");
        let request = Request::builder()
            .method(&method)
            .uri(path)
            .header("content-type", kind)
            .header("accept", "application/json")
            .header("user-agent", "bench")
            .body(Full::new(body))?;
        let answer = self.api.service().call(request).await?;
        if answer.status().is_success() {
            return Ok(answer);
        }
        let (asked, status) = (asked(), answer.status().as_u16());
        let said = answer.into_body().collect().await?.to_bytes();
        Err(BenchError::Refused { asked, status, said: String::from_utf8_lossy(&said).into_owned() })
    }

    /// The whole answer, undecoded.
    pub(crate) async fn get(&self, path: &str) -> Result<Bytes, BenchError> {
        let answer = self.ask(Method::GET, path, "", Bytes::new()).await?;
        Ok(answer.into_body().collect().await?.to_bytes())
    }

    pub(crate) async fn get_json(&self, path: &str) -> Result<Value, BenchError> {
        Ok(serde_json::from_slice(&self.get(path).await?)?)
    }

    pub(crate) async fn post(&self, path: &str, body: &Value) -> Result<(), BenchError> {
        self.ask(Method::POST, path, "application/json", body.to_string().into()).await.map(drop)
    }

    /// A JSON merge patch; the answer is read to its end, as any client would.
    pub(crate) async fn patch(&self, path: &str, body: &Value) -> Result<(), BenchError> {
        let kind = "application/merge-patch+json";
        let answer = self.ask(Method::PATCH, path, kind, body.to_string().into()).await?;
        answer.into_body().collect().await?;
        Ok(())
    }

    pub(crate) async fn watch(&self, path: &str, version: u64) -> Result<Body, BenchError> {
        let path = format!("{path}?watch=true&allowWatchBookmarks=true&resourceVersion={version}");
        Ok(self.ask(Method::GET, &path, "", Bytes::new()).await?.into_body())
    }
}
