//! Answers as HTTP.

use bytes::Bytes;
use http::{
    HeaderMap, HeaderValue, Response, StatusCode,
    header::{ALLOW, CONTENT_TYPE, ETAG, IF_NONE_MATCH, WWW_AUTHENTICATE},
};
use http_body_util::Full;
use serde::Serialize;

use super::ApiResponse;
use crate::refusal::Refusal;

/// A list, as all lists look.
#[derive(Debug, Serialize)]
pub(super) struct Items<T> {
    pub(super) items: Vec<T>,
}

#[derive(Debug, Serialize)]
pub(super) struct Deleted {
    pub(super) deleted: bool,
}

pub(super) fn with_type(status: StatusCode, kind: &'static str, body: String) -> ApiResponse {
    let mut response = Response::new(Full::new(Bytes::from(body)));
    *response.status_mut() = status;
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(kind));
    response
}

pub(super) fn json(status: StatusCode, body: &impl Serialize) -> ApiResponse {
    match serde_json::to_string(body) {
        Ok(text) => with_type(status, "application/json", text),
        Err(why) => with_type(StatusCode::INTERNAL_SERVER_ERROR, "text/plain", why.to_string()),
    }
}

/// An answer to a read, with its entity tag; without a body if the client has it already.
pub(super) fn tagged(request: &HeaderMap, body: &impl Serialize) -> ApiResponse {
    let text = match serde_json::to_string(body) {
        Ok(text) => text,
        Err(why) => return with_type(StatusCode::INTERNAL_SERVER_ERROR, "text/plain", why.to_string()),
    };
    let tag = format!("\"{:032x}\"", tag_hash(text.as_bytes()));
    let mut response = if is_known(request, &tag) {
        let mut response = Response::new(Full::default());
        *response.status_mut() = StatusCode::NOT_MODIFIED;
        response
    } else {
        with_type(StatusCode::OK, "application/json", text)
    };
    if let Ok(tag) = HeaderValue::from_str(&tag) {
        response.headers_mut().insert(ETAG, tag);
    }
    response
}

fn is_known(request: &HeaderMap, tag: &str) -> bool {
    let sent = request.get_all(IF_NONE_MATCH).iter().filter_map(|value| value.to_str().ok());
    let mut sent = sent.flat_map(|list| list.split(',')).map(str::trim);
    sent.any(|known| known == "*" || known.strip_prefix("W/").unwrap_or(known) == tag)
}

/// FNV-1a with 128 bits: equal bodies have equal tags, also after a restart.
fn tag_hash(bytes: &[u8]) -> u128 {
    bytes.iter().fold(0x6c62_272e_07bb_0142_62b8_2175_6295_c58d, |hash, byte| {
        (hash ^ u128::from(*byte)).wrapping_mul(0x0000_0000_0100_0000_0000_0000_0000_013b)
    })
}

#[derive(Debug, Serialize)]
struct Error<'a> {
    code: &'a str,
    message: &'a str,
}

pub(super) fn refuse(refusal: &Refusal) -> ApiResponse {
    let Refusal { status, code, message, allowed } = refusal;
    let status = StatusCode::from_u16(*status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    let mut response = json(status, &Error { code, message });
    if status == StatusCode::UNAUTHORIZED {
        response.headers_mut().insert(WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
    }
    if let Some(Ok(allowed)) = allowed.as_deref().map(HeaderValue::from_str) {
        response.headers_mut().insert(ALLOW, allowed);
    }
    response
}
