//! The transport: a boxed `tower` service, the only thing that differs between production and tests.

use std::{error::Error as StdError, fmt};

use bytes::Bytes;
use cloudberth_core::error::with_causes;
use http::{Request, Response};
use http_body_util::{BodyExt, Full, combinators::UnsyncBoxBody};
use tower::{Service, ServiceExt, util::BoxCloneSyncService};

/// What is sent: the whole body at once.
pub type RequestBody = Full<Bytes>;

/// What comes back: a body that may still be on its way.
pub type AnswerBody = UnsyncBoxBody<Bytes, TransportError>;

type BoxError = Box<dyn StdError + Send + Sync>;

/// A request or its answer was lost.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{what}")]
pub struct TransportError {
    what: String,
    sent: bool,
}

impl TransportError {
    /// Nothing of the request left this host: no address, no connection, no handshake.
    pub fn not_sent(what: impl Into<String>) -> Self {
        Self { what: what.into(), sent: false }
    }

    /// The request may have reached the server.
    pub fn lost(what: impl Into<String>) -> Self {
        Self { what: what.into(), sent: true }
    }

    /// Whether the request may have reached the server.
    pub const fn may_have_been_sent(&self) -> bool {
        self.sent
    }

    /// Keeps an error of this type; with any other the request may have arrived.
    fn from_any(error: impl Into<BoxError>) -> Self {
        match error.into().downcast::<Self>() {
            Ok(own) => *own,
            Err(other) => Self::lost(with_causes(other.as_ref())),
        }
    }
}

/// A transport to a server. Clones share its connections.
#[derive(Clone)]
pub struct Transport(BoxCloneSyncService<Request<RequestBody>, Response<AnswerBody>, TransportError>);

impl Transport {
    /// Any service that speaks HTTP: a hyper client, an in-memory router, a simulated cloud.
    ///
    /// A [`TransportError`] says whether the request was sent; any other error counts as "may have been sent".
    pub fn new<S, B>(service: S) -> Self
    where
        S: Service<Request<RequestBody>, Response = Response<B>> + Clone + Send + Sync + 'static,
        S::Error: Into<BoxError>,
        S::Future: Send,
        B: http_body::Body<Data = Bytes> + Send + 'static,
        B::Error: Into<BoxError>,
    {
        Self(BoxCloneSyncService::new(
            service
                .map_response(|answer| {
                    answer.map(|body| body.map_err(TransportError::from_any).boxed_unsync())
                })
                .map_err(TransportError::from_any),
        ))
    }

    /// Waits until something can be sent.
    pub(crate) async fn ready(&self) -> Result<Ready, TransportError> {
        let mut service = self.0.clone();
        service.ready().await?;
        Ok(Ready(service))
    }
}

/// A transport with nothing left to wait for but, at most, a connection. Its holder checks the claim and then sends, so
/// that the order cannot be wrong.
pub(crate) struct Ready(BoxCloneSyncService<Request<RequestBody>, Response<AnswerBody>, TransportError>);

impl Ready {
    pub(crate) async fn send(
        mut self,
        request: Request<RequestBody>,
    ) -> Result<Response<AnswerBody>, TransportError> {
        self.0.call(request).await
    }
}

impl fmt::Debug for Transport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Transport")
    }
}

#[cfg(test)]
mod tests {
    use std::io;

    use super::*;

    #[tokio::test]
    async fn only_an_error_of_its_own_can_say_that_nothing_was_sent() {
        let request = || Request::new(RequestBody::default());
        let own = tower::service_fn(|_: Request<RequestBody>| async {
            Err::<Response<RequestBody>, _>(TransportError::not_sent("refused"))
        });
        let other = tower::service_fn(|_: Request<RequestBody>| async {
            Err::<Response<RequestBody>, _>(io::Error::other("reset"))
        });
        let send = async |transport: Transport| {
            transport.ready().await.unwrap().send(request()).await.map(|_| ()).unwrap_err()
        };
        let refused = send(Transport::new(own)).await;
        assert_eq!(refused, TransportError::not_sent("refused"));
        assert!(!refused.may_have_been_sent());
        let lost = send(Transport::new(other)).await;
        assert_eq!(lost, TransportError::lost("reset"));
        assert!(lost.may_have_been_sent());
    }
}
