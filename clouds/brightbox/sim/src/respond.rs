//! The answer to a request, as it goes out.

use bytes::Bytes;
use http::{HeaderMap, HeaderName, HeaderValue, Response, StatusCode, header};
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use serde_json::Value;
use sim_kit::{Body, Harm};

use super::{refusal::Refusal, world::Reply};

/// What stands in an answer beside its status and its body.
#[derive(Debug, Default)]
pub(crate) struct Form {
    /// The number of the request, which its id is made from.
    pub(crate) number: u64,
    /// It is about a token.
    pub(crate) token: bool,
    /// Tokens are answered with a form.
    pub(crate) encoded: bool,
}

const HTML: &str = "<html><head><title>Bad Gateway</title></head><body><h1>Bad Gateway</h1></body></html>\n";

/// The answer, with what a fault does to it.
pub(crate) fn respond(reply: Result<Reply, Refusal>, harm: Option<&Harm>, form: &Form) -> Response<Body> {
    let mut headers = HeaderMap::new();
    let mut put = |name: &'static str, value: &str| {
        if let (Ok(name), Ok(value)) = (HeaderName::try_from(name), HeaderValue::from_str(value)) {
            headers.insert(name, value);
        }
    };
    put("X-Request-Id", &format!("req-{:08}", form.number));
    put("Cache-Control", if form.token { "no-store" } else { "no-cache" });
    if let Some(Harm::Status { retry_after: Some(seconds), .. }) = harm {
        put(header::RETRY_AFTER.as_str(), &seconds.to_string());
    }
    if let Err(Refusal { headers, .. }) = &reply {
        for (name, value) in headers {
            put(name, value);
        }
    }
    let (status, text, kind) = match (harm, reply) {
        (Some(Harm::Status { code: 502, .. }), _) => (502, HTML.to_owned(), "text/html"),
        (Some(Harm::Masked { code, empty: true }), _) => (*code, String::new(), "text/html"),
        (Some(Harm::Masked { code, empty: false }), _) => (*code, HTML.to_owned(), "text/html"),
        (_, Ok(Reply { status, body })) if form.token && form.encoded => {
            (status, encode(&body), "application/x-www-form-urlencoded")
        }
        (_, Ok(Reply { status, body }) | Err(Refusal { status, body, .. })) => {
            (status, body.to_string(), "application/json")
        }
    };
    put(header::CONTENT_TYPE.as_str(), kind);
    let whole = Body::whole(Bytes::from(text));
    let mut response = Response::new(if harm == Some(&Harm::Truncated) { whole.cut() } else { whole });
    *response.status_mut() = StatusCode::from_u16(status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    *response.headers_mut() = headers;
    response
}

/// An object as a form.
fn encode(body: &Value) -> String {
    let quote = |text: &str| utf8_percent_encode(text, NON_ALPHANUMERIC).to_string();
    let fields = body.as_object().into_iter().flatten().map(|(key, value)| {
        let text = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
        format!("{}={}", quote(key), quote(&text))
    });
    fields.collect::<Vec<_>>().join("&")
}
