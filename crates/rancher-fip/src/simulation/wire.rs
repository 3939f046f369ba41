//! The wire between the program and a cluster. It says who calls, and can be the wire of a careless program.

use std::{
    future::ready,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
};

use bytes::Bytes;
use embedded_kube::{Disconnected, KubeApi, KubeService};
use http::{HeaderValue, Request, Response, StatusCode, header::USER_AGENT};
use http_body_util::{Either, Full};
use kube::{Client, client::Body};
use serde_json::Value;
use tower::Service;

/// Who calls: the program, and the Helm that it runs.
pub(super) const PROGRAM: &str = "cloudberth";
pub(super) const HELM: &str = "cloudberth-helm";

/// Answers some requests in place of the cluster, with a status and a body: so a program sees the cluster that does not look
/// properly.
pub(super) type Tamper = Arc<dyn Fn(&KubeApi, &Request<Body>) -> Option<(u16, Value)> + Send + Sync>;

/// A client of a cluster, over such a wire.
pub(super) fn client(api: &KubeApi, agent: &'static str, tamper: Option<Tamper>) -> Client {
    Client::new(Wire { inner: api.service(), api: api.clone(), agent, tamper }, "default")
}

#[derive(Clone)]
struct Wire {
    inner: KubeService,
    api: KubeApi,
    agent: &'static str,
    tamper: Option<Tamper>,
}

type Answer = Response<Either<Full<Bytes>, embedded_kube::Body>>;

impl Service<Request<Body>> for Wire {
    type Response = Answer;
    type Error = Disconnected;
    type Future = Pin<Box<dyn Future<Output = Result<Answer, Disconnected>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Disconnected>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, mut request: Request<Body>) -> Self::Future {
        request.headers_mut().insert(USER_AGENT, HeaderValue::from_static(self.agent));
        let tampered = self.tamper.as_ref().and_then(|tamper| tamper(&self.api, &request));
        if let Some((status, body)) = tampered {
            let mut response = Response::new(Either::Left(Full::from(serde_json::to_vec(&body).unwrap())));
            *response.status_mut() = StatusCode::from_u16(status).unwrap();
            return Box::pin(ready(Ok(response)));
        }
        let sent = self.inner.call(request);
        Box::pin(async move { Ok(sent.await?.map(Either::Right)) })
    }
}
