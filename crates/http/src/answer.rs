//! A complete answer of a server.

use std::fmt;

use bytes::Bytes;
use cloudberth_core::{Error, Result};
use http::{
    HeaderMap, StatusCode,
    header::{DATE, HeaderName},
};
use jiff::Timestamp;
use serde::{Deserialize, de::DeserializeOwned};

/// A status, headers and a complete body. Its `Debug` shows only the size of the body.
#[derive(Clone, PartialEq, Eq)]
pub struct Answer {
    status: StatusCode,
    headers: HeaderMap,
    body: Bytes,
    secret: bool,
}

impl Answer {
    /// An answer of these parts.
    pub fn new(status: StatusCode, headers: HeaderMap, body: impl Into<Bytes>) -> Self {
        Self { status, headers, body: body.into(), secret: false }
    }

    /// Says whether errors must not quote its content.
    pub(crate) fn kept_secret(mut self, secret: bool) -> Self {
        self.secret = secret;
        self
    }

    /// The same under another status.
    pub(crate) fn with_status(&self, status: StatusCode) -> Self {
        Self { status, ..self.clone() }
    }

    /// The status that the server sent.
    pub const fn status(&self) -> StatusCode {
        self.status
    }

    /// A header's first value, if it is text.
    pub fn header(&self, name: &HeaderName) -> Option<&str> {
        self.headers.get(name)?.to_str().ok()
    }

    /// All values of a header that are text.
    pub fn headers(&self, name: &HeaderName) -> impl Iterator<Item = &str> {
        self.headers.get_all(name).iter().filter_map(|value| value.to_str().ok())
    }

    /// The time of day at the server, from the `Date` header.
    pub fn server_time(&self) -> Option<Timestamp> {
        let said = httpdate::parse_http_date(self.header(&DATE)?).ok()?;
        Timestamp::try_from(said).ok()
    }

    /// The body, byte for byte.
    pub fn body(&self) -> &[u8] {
        &self.body
    }

    /// Whether the body is empty or blank.
    pub fn is_empty(&self) -> bool {
        self.body.iter().all(u8::is_ascii_whitespace)
    }

    /// Whether the body is one JSON object, as an API sends and a proxy in front of it does not.
    pub fn is_json_object(&self) -> bool {
        serde_json::from_slice::<serde_json::Map<String, serde_json::Value>>(&self.body).is_ok()
    }

    /// The body as one JSON document. Unknown fields are ignored; an empty body or anything else is an error.
    pub fn json<T: DeserializeOwned>(&self) -> Result<T> {
        self.body_as()
    }

    /// As [`json`](Self::json), borrowing from the body.
    ///
    /// The error is `Temporary`, because the answer may be that of a proxy.
    pub(crate) fn body_as<'a, T: Deserialize<'a>>(&'a self) -> Result<T> {
        if self.is_empty() {
            return Err(Error::temporary(format!("answered {} with an empty body", self.status)));
        }
        serde_json::from_slice(&self.body).map_err(|e| {
            let status = self.status;
            let why =
                if self.secret { format!("line {}, column {}", e.line(), e.column()) } else { e.to_string() };
            Error::temporary(format!("answered {status} with a body that is not what was expected: {why}"))
        })
    }
}

impl fmt::Debug for Answer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Answer({}, {} bytes)", self.status.as_u16(), self.body.len())
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    pub(crate) fn answer(status: u16, body: &str) -> Answer {
        Answer::new(StatusCode::from_u16(status).unwrap(), HeaderMap::new(), body.to_owned())
    }

    #[derive(serde::Deserialize)]
    struct Thing {
        id: u32,
    }

    #[test]
    fn nothing_is_never_an_answer() {
        let table = [
            (r#"{"id": 7, "new": {"x": [1]}}"#, Some(7)),
            ("", None),
            (" \n", None),
            ("<html></html>", None),
            (r#"{"id": 7"#, None),
            (r#"{"id": 7} {"id": 8}"#, None),
            (r#"{"name": "x"}"#, None),
            (r#"{"id": "7"}"#, None),
            ("null", None),
        ];
        for (body, want) in table {
            let got = answer(200, body).json::<Thing>().map(|thing| thing.id).ok();
            assert_eq!(got, want, "L1-306 BL-128 BB-156 {body}");
        }
    }

    #[test]
    fn an_api_speaks_in_objects() {
        assert!(answer(404, r#"{"detail":"Not found."}"#).is_json_object());
        for body in ["", "[]", "null", "<html>", "\"x\"", "{"] {
            assert!(!answer(404, body).is_json_object(), "{body}");
        }
        assert_eq!(format!("{:?}", answer(404, "secret")), "Answer(404, 6 bytes)");
    }
}

/// Random JSON that looks a little like what clouds send.
#[cfg(test)]
pub(crate) mod json {
    use proptest::prelude::*;
    use serde_json::Value;

    pub(crate) fn any_json() -> impl Strategy<Value = Value> {
        let key = prop_oneof![
            Just("errors".to_owned()),
            Just("error".to_owned()),
            Just("message".to_owned()),
            Just("detail".to_owned()),
            Just("servers".to_owned()),
            Just("links".to_owned()),
            Just("pages".to_owned()),
            Just("next".to_owned()),
            Just("meta".to_owned()),
            Just("total".to_owned()),
            Just("id".to_owned()),
            "\\PC{0,6}",
        ];
        let leaf = prop_oneof![
            Just(Value::Null),
            any::<bool>().prop_map(Value::from),
            any::<i64>().prop_map(Value::from),
            any::<f64>().prop_map(Value::from),
            "(https?://)?[a-z./?=\\n\\x00]{0,12}".prop_map(Value::from),
        ];
        leaf.prop_recursive(8, 64, 6, move |inner| {
            prop_oneof![
                proptest::collection::vec(inner.clone(), 0..6).prop_map(Value::from),
                proptest::collection::btree_map(key.clone(), inner, 0..6)
                    .prop_map(|map| Value::Object(map.into_iter().collect())),
            ]
        })
    }
}
