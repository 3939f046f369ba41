//! The cloud at its edge: what it makes of whole requests.

use std::sync::Arc;

use bytes::Bytes;
use http::{HeaderValue, Response, StatusCode, header, request::Parts};
use tokio::sync::oneshot;

use super::{control, exchange::Exchange, shared::Shared};
use sim_kit::{Behind, Body, Broken, Control, Edge};

/// The cloud's API as something that a client can be built on. Clones are the same cloud.
pub type CloudService = Edge<Asker>;

/// Somebody who asks the cloud.
#[derive(Clone, Debug)]
pub struct Asker {
    shared: Arc<Shared>,
    /// Who it is, whatever the requests say.
    who: Option<String>,
}

impl Asker {
    pub(crate) const fn new(shared: Arc<Shared>, who: Option<String>) -> Self {
        Self { shared, who }
    }
}

impl Behind for Asker {
    type Body = Body;

    async fn answer(self, parts: Parts, body: Bytes) -> Result<Response<Body>, Broken> {
        let Self { shared, who } = self;
        if let Some(control) = Control::of(&parts.method, parts.uri.path()) {
            let (status, body) = control::answer(&shared, control, &parts, &body);
            return Ok(json(status, body.to_string()));
        }
        let (sender, answer) = oneshot::channel();
        tokio::spawn(Exchange::new(&parts, body, who).run(shared, sender));
        answer.await.unwrap_or_else(|_| Err(Broken::new("the connection broke before the answer arrived")))
    }

    fn too_large(&self) -> Response<Body> {
        json(StatusCode::PAYLOAD_TOO_LARGE, r#"{"detail":"The body is too large."}"#.to_owned())
    }
}

fn json(status: StatusCode, text: String) -> Response<Body> {
    let mut response = Response::new(Body::whole(Bytes::from(text)));
    *response.status_mut() = status;
    response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
    response
}
