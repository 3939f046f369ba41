//! The HTTP side of the cloud.

use std::sync::Arc;

use bytes::Bytes;
use http::{Response, StatusCode, request::Parts};
use serde_json::json;
use sim_kit::{Body, Control, Disconnected, Handler, SimService};
use tokio::sync::oneshot;

use crate::{answers, control, exchange::Exchange, shared::Shared};

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
            return Ok(answers::control(status, &body));
        }
        let (sender, answer) = oneshot::channel();
        tokio::spawn(Exchange::new(&parts, body, who).run(shared, sender));
        answer
            .await
            .unwrap_or_else(|_| Err(Disconnected::new("the connection broke before the answer arrived")))
    }

    fn too_large(&self) -> Response<Body> {
        answers::control(StatusCode::PAYLOAD_TOO_LARGE, &json!({"title": "Payload Too Large", "status": 413}))
    }
}
