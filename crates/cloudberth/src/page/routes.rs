//! What is answered to a request that was let in, and the headers that every answer has.

use std::{convert::Infallible, sync::Arc};

use bytes::Bytes;
use http::{
    HeaderValue, Method, Request, Response, StatusCode,
    header::{ALLOW, CACHE_CONTROL, CONTENT_SECURITY_POLICY, CONTENT_TYPE, HeaderName, SET_COOKIE},
};
use http_body::Body;
use http_body_util::{BodyExt as _, Full, Limited, StreamBody, combinators::UnsyncBoxBody};
use serde_json::{Value, json};
use tokio::{sync::Semaphore, time::timeout};

use super::{
    assets,
    door::{Door, Verdict},
    port::{Limits, Pulse},
    stream::Reader,
};
use crate::world::{Command, Watched};

/// The body of an answer.
pub(super) type Answer = Response<UnsyncBoxBody<Bytes, Infallible>>;

/// A manifest that somebody pasted is the largest thing that is sent.
pub(super) const MAX_BODY: usize = 256 << 10;

const JSON: &str = "application/json";
const TEXT: &str = "text/plain; charset=utf-8";

/// On every answer. Scripts and styles are files of the page; nothing may frame it, and it sends nothing elsewhere.
const HEADERS: [(HeaderName, &str); 6] = [
    (
        CONTENT_SECURITY_POLICY,
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; \
         base-uri 'none'; form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'",
    ),
    (CACHE_CONTROL, "no-store"),
    (HeaderName::from_static("x-content-type-options"), "nosniff"),
    (HeaderName::from_static("referrer-policy"), "no-referrer"),
    (HeaderName::from_static("cross-origin-resource-policy"), "same-origin"),
    (HeaderName::from_static("cross-origin-opener-policy"), "same-origin"),
];

/// Leads to the page without the token. A redirect would be caused by whatever page the link was in, and then the browser
/// holds a strict cookie back; this step is caused by us.
const ENTER: &str = "<!doctype html><html lang=\"en\"><meta charset=\"utf-8\">\
    <meta name=\"color-scheme\" content=\"light dark\"><meta http-equiv=\"refresh\" content=\"0;url=/\">\
    <link rel=\"icon\" href=\"/icon.svg\">\
    <title>cloudberth sandbox</title><p><a href=\"/\">Open the sandbox</a></p></html>\n";

/// What all connections share.
pub(super) struct Shared {
    world: Arc<dyn Watched>,
    door: Door,
    pub(super) limits: Limits,
    readers: Arc<Semaphore>,
}

impl Shared {
    pub(super) fn new(world: Arc<dyn Watched>, door: Door, limits: Limits) -> Self {
        Self { world, door, limits, readers: Arc::new(Semaphore::new(limits.readers)) }
    }
}

/// Answers a request.
pub(super) async fn answer<B>(shared: &Shared, request: Request<B>, pulse: Arc<Pulse>) -> Answer
where
    B: Body + Send,
    B::Data: Send,
    B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
{
    let (parts, body) = request.into_parts();
    let mut answer = match shared.door.admit(&parts) {
        Verdict::Refused(why) => text(StatusCode::FORBIDDEN, why),
        Verdict::Tidy => whole(StatusCode::OK, assets::HTML, ENTER),
        Verdict::Exchange => {
            let mut answer = whole(StatusCode::OK, assets::HTML, ENTER);
            if let Ok(cookie) = HeaderValue::from_str(&shared.door.set_cookie()) {
                answer.headers_mut().insert(SET_COOKIE, cookie);
            }
            answer
        }
        Verdict::Welcome => match (&parts.method, parts.uri.path()) {
            (&Method::GET, "/events") => events(shared, &parts, pulse),
            (&Method::POST, "/do") => {
                let kind = parts.headers.get(CONTENT_TYPE);
                if kind.is_some_and(|kind| kind == JSON) {
                    command(shared, body).await
                } else {
                    refused(StatusCode::UNSUPPORTED_MEDIA_TYPE, "A command is sent as application/json.")
                }
            }
            (_, "/do") => not_allowed("POST"),
            (_, "/events") => not_allowed("GET"),
            (&Method::GET | &Method::HEAD, path) => match assets::find(path) {
                Some(asset) => whole(StatusCode::OK, asset.kind, asset.text),
                None => text(StatusCode::NOT_FOUND, "There is no such file."),
            },
            _ => not_allowed("GET, HEAD"),
        },
    };
    for (name, value) in HEADERS {
        answer.headers_mut().insert(name, HeaderValue::from_static(value));
    }
    answer
}

fn events(shared: &Shared, request: &http::request::Parts, pulse: Arc<Pulse>) -> Answer {
    let Ok(place) = Arc::clone(&shared.readers).try_acquire_owned() else {
        return text(
            StatusCode::SERVICE_UNAVAILABLE,
            "The page is open too often; close one of its windows.",
        );
    };
    let after = request.headers.get("last-event-id").and_then(|id| id.to_str().ok()?.parse().ok());
    let reader =
        Reader::new(Arc::clone(&shared.world), after.unwrap_or_default(), shared.limits, pulse, place);
    let body = StreamBody::new(Box::pin(reader.pieces()));
    typed(StatusCode::OK, "text/event-stream", UnsyncBoxBody::new(body))
}

/// A command that was understood is answered with 200 whether or not it could be carried out: that it could not is an
/// answer for a person and no fault of the page.
async fn command<B>(shared: &Shared, body: B) -> Answer
where
    B: Body + Send,
    B::Data: Send,
    B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
{
    let body = match timeout(shared.limits.header, Limited::new(body, MAX_BODY).collect()).await {
        Ok(Ok(body)) => body.to_bytes(),
        Ok(Err(why)) if why.is::<http_body_util::LengthLimitError>() => {
            return refused(StatusCode::PAYLOAD_TOO_LARGE, "The command is larger than 256 KiB.");
        }
        Ok(Err(why)) => {
            return refused(StatusCode::BAD_REQUEST, &format!("The command cannot be read: {why}."));
        }
        Err(_) => return refused(StatusCode::REQUEST_TIMEOUT, "The command did not arrive in time."),
    };
    let command: Command = match serde_json::from_slice(&body) {
        Ok(command) => command,
        Err(why) => return refused(StatusCode::BAD_REQUEST, &format!("This is no command: {why}.")),
    };
    match timeout(shared.limits.command, shared.world.run(command)).await {
        Ok(Ok(done)) => object(StatusCode::OK, &json!({"done": done})),
        Ok(Err(why)) => refused(StatusCode::OK, &why),
        Err(_) => refused(
            StatusCode::OK,
            "It takes longer than it should; what becomes of it shows up in the picture.",
        ),
    }
}

fn not_allowed(allow: &'static str) -> Answer {
    let mut answer = text(StatusCode::METHOD_NOT_ALLOWED, "This cannot be done here.");
    answer.headers_mut().insert(ALLOW, HeaderValue::from_static(allow));
    answer
}

fn refused(status: StatusCode, why: &str) -> Answer {
    object(status, &json!({"refused": why}))
}

fn object(status: StatusCode, value: &Value) -> Answer {
    whole(status, JSON, value.to_string())
}

fn text(status: StatusCode, words: &str) -> Answer {
    whole(status, TEXT, format!("{words}\n"))
}

fn whole(status: StatusCode, kind: &'static str, body: impl Into<Bytes>) -> Answer {
    typed(status, kind, UnsyncBoxBody::new(Full::new(body.into())))
}

fn typed(status: StatusCode, kind: &'static str, body: UnsyncBoxBody<Bytes, Infallible>) -> Answer {
    let mut answer = Response::new(body);
    *answer.status_mut() = status;
    answer.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(kind));
    answer
}
