//! The HTTP side of the server: faults, requests and responses.

use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::Bytes;
use http::{HeaderValue, Response, StatusCode, header, request::Parts};
use http_body::{Body as HttpBody, Frame};
use jiff::Timestamp;

use super::KubeApi;
use super::render::{bytes, with_newline};
use super::router::{Incoming, Reply};
use super::status::Failure;
use super::watch::WatchBody;
use super::yaml;
use sim_kit::{BODY_LIMIT, Body as WholeBody, Decision, Disconnected, Handler, Harm, Outcome, SimService};

const JSON: &str = "application/json";

/// The body of an answer: whole, or a watch that goes on.
#[derive(Debug)]
pub struct Body(Inner);

#[derive(Debug)]
enum Inner {
    Whole(WholeBody),
    Watch(Box<WatchBody>),
}

impl HttpBody for Body {
    type Data = Bytes;
    type Error = Disconnected;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Disconnected>>> {
        match &mut self.0 {
            Inner::Whole(body) => Pin::new(body).poll_frame(context),
            Inner::Watch(watch) => watch.poll(context),
        }
    }

    fn size_hint(&self) -> http_body::SizeHint {
        match &self.0 {
            Inner::Whole(body) => body.size_hint(),
            Inner::Watch(_) => http_body::SizeHint::default(),
        }
    }
}

/// The embedded API as a `tower` service.
pub type KubeService = SimService<KubeApi>;

impl Handler for KubeApi {
    type Body = Body;

    async fn answer(self, parts: Parts, body: Bytes) -> Result<Response<Body>, Disconnected> {
        answer(self, parts, body).await
    }

    fn too_large(&self) -> Response<Body> {
        respond(self, Reply::failure(&Failure::too_large(BODY_LIMIT)))
    }

    fn time(&self) -> Timestamp {
        self.lock().world.now()
    }
}

async fn answer(api: KubeApi, parts: Parts, body: Bytes) -> Result<Response<Body>, Disconnected> {
    let prefix = api.path_prefix();
    let Some(incoming) = Incoming::new(parts, body, &prefix) else {
        return Ok(respond(&api, Reply::text(StatusCode::NOT_FOUND, "404 page not found\n")));
    };
    let Decision { delay, harm } = api.lock().decide_fault(&incoming);
    if !delay.is_zero() {
        tokio::time::sleep(delay).await;
    }
    match harm {
        Some(Harm::LostCall) => {
            api.lock().record(&incoming, Outcome::Dropped);
            Err(Disconnected::new("the connection broke before the call arrived"))
        }
        Some(Harm::Status { code, retry_after }) => {
            let reply = Reply::failure(&injected(code, retry_after));
            api.lock().record(&incoming, Outcome::Answered(reply.status.as_u16()));
            Ok(respond(&api, reply))
        }
        _ => {
            // One step: the log has the calls in the order in which they took effect.
            let reply = api.lock().handle_and_record(&incoming, harm.as_ref());
            if harm == Some(Harm::LostAnswer) {
                return Err(Disconnected::new("the connection broke before the answer arrived"));
            }
            Ok(respond(&api, reply))
        }
    }
}

/// The error of [`Harm::Status`].
fn injected(code: u16, retry_after: Option<u32>) -> Failure {
    let status = StatusCode::from_u16(code).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    let message = "the server was told to fail this request";
    match status {
        StatusCode::TOO_MANY_REQUESTS => Failure::too_many_requests(message, retry_after.unwrap_or(1)),
        other => {
            let reason = match other.as_u16() {
                401 => "Unauthorized",
                403 => "Forbidden",
                404 => "NotFound",
                409 => "Conflict",
                410 => "Expired",
                503 => "ServiceUnavailable",
                504 => "Timeout",
                _ => "InternalError",
            };
            let mut failure = Failure::new(other, reason, message);
            failure.details = retry_after.map(|seconds| serde_json::json!({"retryAfterSeconds": seconds}));
            failure
        }
    }
}

fn respond(api: &KubeApi, reply: Reply) -> Response<Body> {
    let Reply { status, content, content_type, warnings, retry_after, watch } = reply;
    let body = match watch {
        Some(plan) => Body(Inner::Watch(Box::new(WatchBody::new(api.clone(), *plan)))),
        None => Body(Inner::Whole(WholeBody::whole(content))),
    };
    let mut response = Response::new(body);
    *response.status_mut() = status;
    let headers = response.headers_mut();
    if !content_type.is_empty() {
        headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(content_type));
    }
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-cache, private"));
    for warning in warnings {
        let quoted = serde_json::to_string(&warning).unwrap_or_default();
        if let Ok(value) = HeaderValue::from_str(&format!("299 - {quoted}")) {
            headers.append(header::WARNING, value);
        }
    }
    if let Some(seconds) = retry_after {
        headers.insert(header::RETRY_AFTER, HeaderValue::from(seconds));
    }
    response
}

impl Reply {
    pub(crate) fn failure(failure: &Failure) -> Self {
        let retry_after = failure.wait();
        Self { retry_after, ..Self::json(failure.code, bytes(&failure.body())) }
    }

    pub(crate) fn json(status: StatusCode, content: Bytes) -> Self {
        Self {
            status,
            // For clients that read line by line.
            content: with_newline(content),
            content_type: JSON,
            warnings: Vec::new(),
            retry_after: None,
            watch: None,
        }
    }

    /// Turns a JSON answer into YAML; watches and other content stay as they are.
    pub(crate) fn turn_into_yaml(&mut self) {
        if self.watch.is_none()
            && self.content_type == JSON
            && let Some(content) = yaml::from_json(&self.content)
        {
            self.content = content;
            self.content_type = "application/yaml";
        }
    }

    pub(crate) fn text(status: StatusCode, text: &'static str) -> Self {
        let content = Bytes::from_static(text.as_bytes());
        Self { content, content_type: "text/plain; charset=utf-8", ..Self::json(status, Bytes::new()) }
    }
}
