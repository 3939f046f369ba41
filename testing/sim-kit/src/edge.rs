//! What every simulated server has at its edge: bodies that come in, connections that break, and the `tower` service
//! that clients are built on. Servers are asynchronous only here.

use std::{
    pin::Pin,
    task::{Context, Poll},
};

use bytes::{Buf, Bytes, BytesMut};
use http::{Request, Response, request::Parts};
use http_body::Body;
use http_body_util::BodyExt;

/// Any error, as bodies of requests bring them.
pub type BoxError = Box<dyn std::error::Error + Send + Sync>;

/// The connection broke: the one way in which a call fails without an answer.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct Broken(String);

impl Broken {
    /// A connection that broke for this reason.
    pub fn new(why: &str) -> Self {
        Self(why.to_owned())
    }
}

/// What stands behind the edge: it gets whole requests.
pub trait Behind: Clone + Send + 'static {
    /// The bodies of its answers.
    type Body;

    /// Answers a request. An error stands for a broken connection.
    fn answer(
        self,
        parts: Parts,
        body: Bytes,
    ) -> impl Future<Output = Result<Response<Self::Body>, Broken>> + Send;

    /// Answers a request whose body is too large to be taken in.
    fn too_large(&self) -> Response<Self::Body>;
}

/// A simulated server as something that a client can be built on. Clones are the same server.
#[derive(Clone, Debug)]
pub struct Edge<S>(S);

impl<S> Edge<S> {
    /// Puts the edge around a server.
    pub const fn new(server: S) -> Self {
        Self(server)
    }
}

/// An answer to come. An error stands for a broken connection.
pub type Answering<B> = Pin<Box<dyn Future<Output = Result<Response<B>, Broken>> + Send>>;

impl<S: Behind, B> tower::Service<Request<B>> for Edge<S>
where
    B: Body + Send + 'static,
    B::Data: Send,
    B::Error: Into<BoxError>,
{
    type Response = Response<S::Body>;
    type Error = Broken;
    type Future = Answering<S::Body>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Broken>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<B>) -> Self::Future {
        let server = self.0.clone();
        Box::pin(async move {
            let (parts, body) = request.into_parts();
            match collect(body).await.map_err(|error| Broken::new(&error.into().to_string()))? {
                Some(body) => server.answer(parts, body).await,
                None => Ok(server.too_large()),
            }
        })
    }
}

/// Larger bodies are refused.
pub const BODY_LIMIT: usize = 3 << 20;

/// The whole body, or nothing when it is too large.
async fn collect<B: Body>(body: B) -> Result<Option<Bytes>, B::Error> {
    let mut body = std::pin::pin!(body);
    let mut whole = BytesMut::new();
    while let Some(frame) = body.frame().await {
        if let Ok(data) = frame?.into_data() {
            if whole.len() + data.remaining() > BODY_LIMIT {
                return Ok(None);
            }
            let mut data = data;
            while data.has_remaining() {
                let chunk = data.chunk().len();
                whole.extend_from_slice(data.chunk());
                data.advance(chunk);
            }
        }
    }
    Ok(Some(whole.freeze()))
}
