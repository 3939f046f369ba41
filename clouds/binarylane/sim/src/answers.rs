//! Answers as HTTP.

use bytes::Bytes;
use http::{HeaderName, HeaderValue, Response, StatusCode, header};
use serde_json::Value;
use sim_kit::{Body, Harm};

use crate::{refusal::Refusal, world::Reply};

/// What a gateway shows.
const PAGE: &str =
    "<html><head><title>Gateway</title></head><body><h1>Please try again later</h1></body></html>\n";

const JSON: &str = "application/json";
const PROBLEM: &str = "application/problem+json";

fn answer(status: u16, kind: Option<&'static str>, content: String) -> Response<Body> {
    let mut response = Response::new(Body::whole(Bytes::from(content)));
    *response.status_mut() = StatusCode::from_u16(status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    if let Some(kind) = kind {
        response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static(kind));
    }
    response
}

/// An answer of the control port.
pub(crate) fn control(status: StatusCode, body: &Value) -> Response<Body> {
    answer(status.as_u16(), Some(JSON), body.to_string())
}

/// An answer of the API, or what was made of it.
pub(crate) fn respond(reply: Result<Reply, Refusal>, harm: Option<&Harm>, version: &str) -> Response<Body> {
    let mut response = match (harm, reply) {
        (Some(Harm::Masked { code, empty: true }), _) => answer(*code, None, String::new()),
        (Some(Harm::Masked { code, .. }), _) => answer(*code, Some("text/html"), PAGE.to_owned()),
        (Some(Harm::Status { code, retry_after }), _) => injected(*code, *retry_after),
        (_, Ok(Reply { status, body })) => {
            let kind = body.as_ref().map(|_| JSON);
            answer(status, kind, body.map_or_else(String::new, |body| body.to_string()))
        }
        (_, Err(Refusal { status, body })) => {
            let kind = body.as_ref().map(|_| PROBLEM);
            answer(status, kind, body.map_or_else(String::new, |body| body.to_string()))
        }
    };
    if harm == Some(&Harm::Truncated) {
        response = response.map(Body::cut);
    }
    if let Ok(version) = HeaderValue::from_str(version) {
        response.headers_mut().insert(HeaderName::from_static("x-spec-version"), version);
    }
    response
}

/// The answer to a request that was told to fail: each status as it comes in the field.
fn injected(code: u16, retry_after: Option<u32>) -> Response<Body> {
    let mut response = match code {
        400 => answer(code, Some("text/plain"), "Bad Request".to_owned()),
        401 => answer(code, None, String::new()),
        429 => answer(code, Some("text/plain"), "Too Many Requests".to_owned()),
        502..=504 => answer(code, Some("text/html"), PAGE.to_owned()),
        _ => {
            let body = Refusal::problem(code, "The cloud was told to fail this request.").body;
            answer(code, Some(PROBLEM), body.unwrap_or_default().to_string())
        }
    };
    if let Some(seconds) = retry_after {
        response.headers_mut().insert(header::RETRY_AFTER, HeaderValue::from(seconds));
    }
    response
}
