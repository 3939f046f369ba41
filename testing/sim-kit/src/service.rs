//! The `tower` service that clients of a simulated server are built on: it collects the bodies of requests and reports
//! broken connections.

use std::{
    pin::Pin,
    task::{Context, Poll},
};

use bytes::{Buf, Bytes, BytesMut};
use http::{HeaderValue, Request, Response, header, request::Parts};
use http_body::Body;
use http_body_util::BodyExt;
use jiff::{Timestamp, fmt::rfc2822::DateTimePrinter};

/// Any error that a request's body may end in.
pub type BoxError = Box<dyn std::error::Error + Send + Sync>;

/// The connection broke: the only way in which a call fails without an answer.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct Disconnected(String);

impl Disconnected {
    /// A connection that broke for this reason.
    pub fn new(why: &str) -> Self {
        Self(why.to_owned())
    }
}

/// A server that answers requests whose bodies are complete.
pub trait Handler: Clone + Send + 'static {
    /// The type of the bodies in its answers.
    type Body;

    /// Answers a request. An error stands for a broken connection.
    fn answer(
        self,
        parts: Parts,
        body: Bytes,
    ) -> impl Future<Output = Result<Response<Self::Body>, Disconnected>> + Send;

    /// Answers a request whose body is too large to be taken in.
    fn too_large(&self) -> Response<Self::Body>;

    /// The time on the clock of this server. Every answer says it, so that a client can see that the clocks differ.
    fn time(&self) -> Timestamp;
}

/// A time as the header `Date` has it; none outside of its calendar.
fn http_date(time: Timestamp) -> Option<HeaderValue> {
    HeaderValue::try_from(DateTimePrinter::new().timestamp_to_rfc9110_string(&time).ok()?).ok()
}

/// A simulated server as a `tower` service. Clones are the same server.
#[derive(Clone, Debug)]
pub struct SimService<S>(S);

impl<S> SimService<S> {
    /// A service in front of this server.
    pub const fn new(server: S) -> Self {
        Self(server)
    }
}

/// Resolves to the answer, or to an error if the connection breaks.
pub type ResponseFuture<B> = Pin<Box<dyn Future<Output = Result<Response<B>, Disconnected>> + Send>>;

impl<S: Handler, B> tower::Service<Request<B>> for SimService<S>
where
    B: Body + Send + 'static,
    B::Data: Send,
    B::Error: Into<BoxError>,
{
    type Response = Response<S::Body>;
    type Error = Disconnected;
    type Future = ResponseFuture<S::Body>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Disconnected>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<B>) -> Self::Future {
        let server = self.0.clone();
        Box::pin(async move {
            let (parts, body) = request.into_parts();
            match collect(body).await.map_err(|error| Disconnected::new(&error.into().to_string()))? {
                Some(body) => server.clone().answer(parts, body).await,
                None => Ok(server.too_large()),
            }
            .map(|mut answer| {
                if let Some(date) = http_date(server.time()) {
                    answer.headers_mut().insert(header::DATE, date);
                }
                answer
            })
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_date_is_as_http_has_it() {
        let date = http_date(Timestamp::from_second(784_111_777).unwrap()).unwrap();
        assert_eq!(date, "Sun, 06 Nov 1994 08:49:37 GMT");
    }
}
