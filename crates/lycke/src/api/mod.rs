//! The HTTP API, as a `tower` service: in memory for tests and for a manager that embeds it, on a port for everybody else.

mod answer;
mod balancers;
mod body;
mod events;
mod machines;
mod metrics;
mod pages;
mod route;
mod token;
mod view;

use std::{
    convert::Infallible,
    fmt,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
};

use bytes::Bytes;
use cloudberth_core::Secret;
use http::{Request, Response, request::Parts};
use http_body::Body;
use http_body_util::Full;

use answer::refuse;
use body::Collected;
use route::Route;

use crate::{control::Control, refusal::Refusal};

/// The API. Clones are the same one.
#[derive(Clone)]
pub struct Api {
    control: Control,
    token: Option<Arc<Secret>>,
}

/// What the API answers.
pub type ApiResponse = Response<Full<Bytes>>;

impl Api {
    /// The API of a service. With a token, only those who send it are let in.
    pub fn new(control: Control, token: Option<Secret>) -> Self {
        Self { control, token: token.map(Arc::new) }
    }

    async fn answer<B>(self, request: Request<B>) -> ApiResponse
    where
        B: Body + Send + 'static,
        B::Data: Send,
    {
        let (parts, body) = request.into_parts();
        // The body is read whatever becomes of the request: who is still sending does not see an answer.
        let body = body::collect(body).await;
        self.respond(&parts, body).await.unwrap_or_else(|refusal| refuse(&refusal))
    }

    async fn respond(&self, parts: &Parts, body: Collected) -> Result<ApiResponse, Refusal> {
        let route = Route::find(&parts.method, parts.uri.path());
        if !matches!(route, Ok(Route::Health | Route::Ready | Route::Version)) {
            token::check(self.token.as_deref(), &parts.headers)?;
        }
        let body = match body {
            Collected::Whole(body) => body,
            Collected::TooLarge => {
                let message = format!("the body is larger than {} bytes", body::LIMIT);
                return Err(Refusal::new(413, "invalid_spec", message));
            }
            Collected::Broken => return Err(Refusal::invalid("the body did not arrive")),
        };
        let query = route::Query::new(parts.uri.query());
        let control = &self.control;
        match route? {
            Route::Health => Ok(pages::health()),
            Route::Ready => pages::ready(control),
            Route::Version => Ok(pages::version()),
            Route::Metrics => Ok(metrics::answer(control)),
            Route::Clusters => Ok(answer::tagged(&parts.headers, &machines::clusters(control))),
            Route::ListMachines => Ok(answer::tagged(&parts.headers, &machines::list(control, &query)?)),
            Route::AddMachine => machines::add(control, &body).await,
            Route::GetMachine(id) => Ok(answer::tagged(&parts.headers, &machines::get(control, &id)?)),
            Route::PatchMachine(id) => machines::patch(control, &id, &body).await,
            Route::DeleteMachine(id) => machines::delete(control, &id).await,
            Route::ListBalancers => Ok(answer::tagged(&parts.headers, &balancers::list(control, &query)?)),
            Route::GetBalancer(key) => Ok(answer::tagged(&parts.headers, &balancers::get(control, &key)?)),
            Route::PutBalancer(key) => balancers::put(control, key, &body).await,
            Route::DeleteBalancer(key) => balancers::delete(control, key, &query).await,
            Route::Stats(key) => balancers::stats(control, &key),
            Route::Events => events::answer(control, &query).await,
        }
    }
}

impl<B> tower::Service<Request<B>> for Api
where
    B: Body + Send + 'static,
    B::Data: Send,
{
    type Response = ApiResponse;
    type Error = Infallible;
    type Future = Pin<Box<dyn Future<Output = Result<ApiResponse, Infallible>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<B>) -> Self::Future {
        let api = self.clone();
        Box::pin(async move { Ok(api.answer(request).await) })
    }
}

impl fmt::Debug for Api {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Api").field("control", &self.control).finish_non_exhaustive()
    }
}
