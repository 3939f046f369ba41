//! A request for a token, as it is read: who asks, and for what.

use base64::{Engine as _, engine::general_purpose::STANDARD};
use percent_encoding::percent_decode_str;
use serde_json::{Map, Value};

/// What a request for a token says. It holds secrets, so it has no `Debug`.
pub(crate) struct TokenRequest {
    /// The client's id and secret, from the header or else from the fields.
    pub(crate) client: Option<(String, String)>,
    fields: Map<String, Value>,
}

impl TokenRequest {
    /// Reads the header and the body, which is a form or JSON.
    pub(crate) fn read(authorization: Option<&str>, body: &[u8]) -> Self {
        let fields = serde_json::from_slice(body).unwrap_or_else(|_| form(&String::from_utf8_lossy(body)));
        let text = |name: &str| fields.get(name).and_then(Value::as_str).map(str::to_owned);
        let in_fields = || Some((text("client_id")?, text("client_secret").unwrap_or_default()));
        let client = authorization.and_then(basic).or_else(in_fields);
        Self { client, fields }
    }

    /// A field of the body; nothing if it is missing.
    pub(crate) fn field(&self, name: &str) -> &str {
        self.fields.get(name).and_then(Value::as_str).unwrap_or_default()
    }

    /// The fields for the journal, without what is secret in them.
    pub(crate) fn journal(&self) -> Value {
        let mut fields = self.fields.clone();
        for secret in ["client_secret", "password", "refresh_token"] {
            if let Some(value) = fields.get_mut(secret) {
                *value = Value::from("(secret)");
            }
        }
        Value::Object(fields)
    }
}

/// The id and the secret in a `Basic` header, each of which is encoded like a form.
fn basic(header: &str) -> Option<(String, String)> {
    let decoded = STANDARD.decode(header.strip_prefix("Basic ")?).ok()?;
    let text = String::from_utf8(decoded).ok()?;
    let (id, secret) = text.split_once(':')?;
    Some((decode(id), decode(secret)))
}

fn form(text: &str) -> Map<String, Value> {
    let pairs = text.split('&').filter_map(|pair| pair.split_once('='));
    pairs.map(|(key, value)| (decode(key), Value::from(decode(value)))).collect()
}

fn decode(text: &str) -> String {
    percent_decode_str(&text.replace('+', " ")).decode_utf8_lossy().into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_client_is_in_the_header_or_else_in_the_body() {
        let some = |id: &str, secret: &str| Some((id.to_owned(), secret.to_owned()));
        let header = format!("Basic {}", STANDARD.encode("cli-1:s%3Ae+c"));
        let table = [
            (Some(header.as_str()), "client_id=x&client_secret=y", some("cli-1", "s:e c")),
            (None, "client_id=x&client_secret=y%26", some("x", "y&")),
            (None, r#"{"client_id":"x","client_secret":"y"}"#, some("x", "y")),
            (None, "client_id=x", some("x", "")),
            (Some("Basic ?"), "grant_type=password", None),
            (Some("Bearer x"), "", None),
        ];
        for (header, body, want) in table {
            assert_eq!(TokenRequest::read(header, body.as_bytes()).client, want, "{header:?} {body}");
        }
    }

    #[test]
    fn the_journal_has_no_secrets() {
        let body =
            b"grant_type=password&username=a%40b&password=pw1&client_secret=pw2&refresh_token=pw3&scope=x+y";
        let request = TokenRequest::read(None, body);
        let shown = request.journal();
        assert!(!shown.to_string().contains("pw"), "{shown}");
        assert_eq!((shown["username"].as_str(), shown["scope"].as_str()), (Some("a@b"), Some("x y")));
        assert_eq!(request.field("password"), "pw1");
    }
}
