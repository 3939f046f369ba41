//! The HTTP side of the cloud.

use std::sync::Arc;

use bytes::Bytes;
use http::{HeaderValue, Response, StatusCode, header, request::Parts};
use tokio::sync::oneshot;

use super::{control, exchange::Exchange, shared::Shared};
use sim_kit::{Body, Control, Disconnected, Handler, SimService};

/// The cloud's API as a `tower` service. Clones are the same cloud.
pub type CloudService = SimService<CloudHandler>;

/// Answers the requests of one client.
#[derive(Clone, Debug)]
pub struct CloudHandler {
    shared: Arc<Shared>,
    /// The client's name, whatever its requests say.
    who: Option<String>,
}

impl CloudHandler {
    pub(crate) const fn new(shared: Arc<Shared>, who: Option<String>) -> Self {
        Self { shared, who }
    }
}

impl Handler for CloudHandler {
    type Body = Body;

    async fn answer(self, parts: Parts, body: Bytes) -> Result<Response<Body>, Disconnected> {
        let Self { shared, who } = self;
        if let Some(control) = Control::of(&parts.method, parts.uri.path()) {
            let (status, body) = control::answer(&shared, control, &parts, &body);
            return Ok(json(status, body.to_string()));
        }
        let (sender, answer) = oneshot::channel();
        tokio::spawn(Exchange::new(&parts, body, who).run(shared, sender));
        answer
            .await
            .unwrap_or_else(|_| Err(Disconnected::new("the connection broke before the answer arrived")))
    }

    fn too_large(&self) -> Response<Body> {
        json(
            StatusCode::PAYLOAD_TOO_LARGE,
            r#"{"error_name":"payload_too_large","errors":["The body is too large"]}"#.to_owned(),
        )
    }
}

fn json(status: StatusCode, text: String) -> Response<Body> {
    let mut response = Response::new(Body::whole(Bytes::from(text)));
    *response.status_mut() = status;
    response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
    response
}
