//! The cloud as a `tower` service.

use std::{
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
};

use bytes::Bytes;
use http::{HeaderValue, Request, Response, StatusCode, header, request::Parts};
use http_body::Body as HttpBody;
use tokio::sync::oneshot;

use super::{body::Body, control, exchange::Exchange, shared::Shared};
use crate::edge::{BoxError, Broken, collect};

/// The cloud's API as something that a client can be built on. Clones are the same cloud.
#[derive(Clone, Debug)]
pub struct CloudService {
    shared: Arc<Shared>,
    /// Who asks, whatever the requests say.
    who: Option<String>,
}

impl CloudService {
    pub(crate) const fn new(shared: Arc<Shared>) -> Self {
        Self { shared, who: None }
    }

    /// The same, for a client that is called `who` in the journal and in plans of faults.
    #[must_use]
    pub fn named(&self, who: &str) -> Self {
        Self { shared: Arc::clone(&self.shared), who: Some(who.to_owned()) }
    }
}

/// An answer to come. An error stands for a broken connection.
pub type Answering = Pin<Box<dyn Future<Output = Result<Response<Body>, Broken>> + Send>>;

impl<B> tower::Service<Request<B>> for CloudService
where
    B: HttpBody + Send + 'static,
    B::Data: Send,
    B::Error: Into<BoxError>,
{
    type Response = Response<Body>;
    type Error = Broken;
    type Future = Answering;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Broken>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<B>) -> Answering {
        let Self { shared, who } = self.clone();
        Box::pin(async move {
            let (parts, body) = request.into_parts();
            match collect(body).await.map_err(|error| Broken::new(&error.into().to_string()))? {
                Some(body) => answer(shared, who, parts, body).await,
                None => Ok(json(
                    StatusCode::PAYLOAD_TOO_LARGE,
                    r#"{"detail":"The body is too large."}"#.to_owned(),
                )),
            }
        })
    }
}

async fn answer(
    shared: Arc<Shared>,
    who: Option<String>,
    parts: Parts,
    body: Bytes,
) -> Result<Response<Body>, Broken> {
    if control::is_control(parts.uri.path()) {
        let (status, body) = control::answer(&shared, &parts, &body);
        return Ok(json(status, body.to_string()));
    }
    let (sender, answer) = oneshot::channel();
    tokio::spawn(Exchange::new(&parts, body, who).run(shared, sender));
    answer.await.unwrap_or_else(|_| Err(Broken::new("the connection broke before the answer arrived")))
}

fn json(status: StatusCode, text: String) -> Response<Body> {
    let mut response = Response::new(Body::whole(Bytes::from(text)));
    *response.status_mut() = status;
    response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
    response
}
