//! The network between a program and the embedded API.
//!
//! The world owns the task that handles a request: a program that dies while it waits loses the answer, and what it
//! asked for still happens, perhaps after its successor has started.

use std::{
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
    time::Duration,
};

use cloudberth_core::Dice;

use cloudberth_sim::kube::{Body, KubeService};
use http::{HeaderValue, Request, header::USER_AGENT};
use tokio::{sync::oneshot, time};
use tower::Service;

type BoxError = Box<dyn std::error::Error + Send + Sync>;

/// A client's connection.
#[derive(Clone)]
pub(crate) struct Wire {
    pub(crate) api: KubeService,
    pub(crate) who: HeaderValue,
    pub(crate) dice: Arc<Dice>,
    pub(crate) latency: Duration,
}

impl Wire {
    fn leg(&self) -> Duration {
        self.latency.mul_f64(self.dice.fraction())
    }
}

impl Service<Request<kube::client::Body>> for Wire {
    type Response = http::Response<Body>;
    type Error = BoxError;
    type Future = Pin<Box<dyn Future<Output = Result<Self::Response, BoxError>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, mut request: Request<kube::client::Body>) -> Self::Future {
        request.headers_mut().insert(USER_AGENT, self.who.clone());
        let (there, back) = (self.leg(), self.leg());
        let mut api = self.api.clone();
        let (answer, waiting) = oneshot::channel();
        tokio::spawn(async move {
            time::sleep(there).await;
            let result = api.call(request).await;
            time::sleep(back).await;
            // Nobody waiting any more is no concern of the server.
            let _ = answer.send(result);
        });
        Box::pin(async move { Ok(waiting.await??) })
    }
}
