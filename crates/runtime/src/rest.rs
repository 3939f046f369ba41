//! A layer around the Kubernetes client that sets the user agent and measures requests.

use std::{
    fmt,
    sync::Arc,
    task::{Context, Poll},
};

use cloudberth_core::{Clock, Error, Result};
use futures_util::future::BoxFuture;
use http::{HeaderValue, Request, Response, header::USER_AGENT};
use http_body::Body as _;
use kube::client::Body;
use tower::{Layer, Service};

use crate::metrics::{RestMetrics, rest::VerbLabels};

/// Measures the requests of a client and names it to the server.
#[derive(Clone)]
pub struct RestLayer {
    metrics: RestMetrics,
    host: String,
    agent: HeaderValue,
    clock: Arc<dyn Clock>,
}

impl RestLayer {
    /// A layer for requests to `host` with the user agent `agent`.
    pub fn new(metrics: &RestMetrics, host: &str, agent: &str, clock: Arc<dyn Clock>) -> Result<Self> {
        let agent = HeaderValue::from_str(agent).map_err(|_| {
            Error::user_input(format!("{agent:?} cannot be a user agent: use printable ASCII"))
        })?;
        Ok(Self { metrics: metrics.clone(), host: host.to_owned(), agent, clock })
    }
}

impl fmt::Debug for RestLayer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RestLayer")
            .field("host", &self.host)
            .field("agent", &self.agent)
            .finish_non_exhaustive()
    }
}

impl<S> Layer<S> for RestLayer {
    type Service = Measured<S>;

    fn layer(&self, inner: S) -> Measured<S> {
        Measured { inner, layer: self.clone() }
    }
}

/// A service whose requests are measured.
#[derive(Clone, Debug)]
pub struct Measured<S> {
    inner: S,
    layer: RestLayer,
}

impl<S, B> Service<Request<Body>> for Measured<S>
where
    S: Service<Request<Body>, Response = Response<B>>,
    S::Future: Send + 'static,
{
    type Response = S::Response;
    type Error = S::Error;
    type Future = BoxFuture<'static, std::result::Result<S::Response, S::Error>>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<std::result::Result<(), S::Error>> {
        self.inner.poll_ready(context)
    }

    fn call(&mut self, mut request: Request<Body>) -> Self::Future {
        let RestLayer { metrics, host, agent, clock } = self.layer.clone();
        request.headers_mut().insert(USER_AGENT, agent);
        let labels = VerbLabels { verb: request.method().to_string(), host };
        let watches =
            request.uri().query().is_some_and(|query| query.split('&').any(|part| part == "watch=true"));
        let bytes = request.body().size_hint().exact();
        let begun = clock.now();
        let answer = self.inner.call(request);
        Box::pin(async move {
            let answer = answer.await;
            let took = (!watches).then(|| clock.now().since(begun));
            metrics.ended(labels, answer.as_ref().ok().map(|answer| answer.status().as_u16()), took, bytes);
            answer
        })
    }
}
