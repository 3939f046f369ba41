//! The HTTP responses.

use bytes::Bytes;
use http::{
    HeaderValue, Response, StatusCode,
    header::{CACHE_CONTROL, CONTENT_TYPE, X_CONTENT_TYPE_OPTIONS},
};
use http_body_util::Full;
use serde_json::{Value, json};

use crate::auth::Denied;

pub(crate) type Answer = Response<Full<Bytes>>;

const PLAIN: &str = "text/plain; charset=utf-8";
const JSON: &str = "application/json";

/// A response that nobody may cache, and whose type no browser guesses.
pub(crate) fn answer(status: StatusCode, kind: &'static str, body: impl Into<Bytes>) -> Answer {
    let mut answer = Response::new(Full::new(body.into()));
    *answer.status_mut() = status;
    let headers = answer.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static(kind));
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-cache, private"));
    headers.insert(X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    answer
}

pub(crate) fn text(status: StatusCode, body: impl Into<Bytes>) -> Answer {
    answer(status, PLAIN, body)
}

pub(crate) fn json(value: &Value) -> Answer {
    answer(StatusCode::OK, JSON, value.to_string())
}

pub(crate) fn not_found() -> Answer {
    text(StatusCode::NOT_FOUND, "404 page not found\n")
}

pub(crate) fn denied(denied: &Denied, path: &str) -> Answer {
    match denied {
        Denied::Unauthorized => status(StatusCode::UNAUTHORIZED, "Unauthorized", "Unauthorized"),
        Denied::Forbidden(message) => status(StatusCode::FORBIDDEN, "Forbidden", message),
        Denied::Failed(why) => {
            text(StatusCode::INTERNAL_SERVER_ERROR, format!("Internal Server Error: {path:?}: {why}\n"))
        }
    }
}

fn status(code: StatusCode, reason: &str, message: &str) -> Answer {
    let mut body = json!({
        "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure",
        "message": message, "reason": reason, "code": code.as_u16(),
    });
    if code == StatusCode::FORBIDDEN
        && let Some(fields) = body.as_object_mut()
    {
        fields.insert("details".to_owned(), json!({}));
    }
    answer(code, JSON, format!("{body}\n"))
}
