//! The answer of a token endpoint.

use std::{collections::BTreeMap, time::Duration};

use cloudberth_core::{Error, Result, Secret};
use http::header;
use percent_encoding::percent_decode_str;
use serde_json::{Map, Value};

use crate::{answer::Answer, auth::Authorization};

/// What a token endpoint gave.
pub(crate) struct Granted {
    pub(crate) authorization: Authorization,
    /// How long the token lasts from when it was asked for; `None` if it does not expire.
    pub(crate) expires_in: Option<Duration>,
    pub(crate) refresh_token: Option<Secret>,
}

impl Granted {
    /// Reads JSON, or a form where the answer is declared as one. Errors name the field and quote nothing.
    pub(crate) fn read(answer: &Answer) -> Result<Self> {
        let fields =
            if is_form(answer) && !answer.is_json_object() { form(answer.body()) } else { json(answer)? };
        let field = |name| fields.get(name).map(String::as_str).filter(|text| !text.is_empty());
        let wrong = |what: &str| Error::temporary(format!("answered {} {what}", answer.status()));
        let token = field("access_token").ok_or_else(|| wrong("without an access_token"))?;
        let token = Secret::new(token).map_err(|_| wrong("with an access_token that cannot be sent"))?;
        let scheme = scheme(field("token_type")).ok_or_else(|| wrong("with an unknown token_type"))?;
        let expires_in = match field("expires_in") {
            None => None,
            Some(text) => Some(seconds(text).ok_or_else(|| wrong("with an expires_in that is no time"))?),
        };
        let refresh_token = match field("refresh_token") {
            None => None,
            Some(text) => {
                Some(Secret::new(text).map_err(|_| wrong("with a refresh_token that cannot be sent"))?)
            }
        };
        Ok(Self {
            authorization: Authorization::with_scheme(scheme, &token)?,
            expires_in: expires_in.filter(|time| !time.is_zero()),
            refresh_token,
        })
    }
}

/// The scheme of the `Authorization` header. Servers spell `bearer` in every way, and some accept only `Bearer`.
fn scheme(kind: Option<&str>) -> Option<&str> {
    match kind {
        None => Some("Bearer"),
        Some(kind) if kind.eq_ignore_ascii_case("bearer") => Some("Bearer"),
        Some(kind) => Some(kind).filter(|kind| kind.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-')),
    }
}

fn seconds(text: &str) -> Option<Duration> {
    Duration::try_from_secs_f64(text.parse().ok()?).ok()
}

fn is_form(answer: &Answer) -> bool {
    let media_type =
        answer.header(&header::CONTENT_TYPE).and_then(|text| text.split(';').next()).unwrap_or_default();
    ["application/x-www-form-urlencoded", "text/plain"]
        .iter()
        .any(|form| media_type.trim().eq_ignore_ascii_case(form))
}

fn form(body: &[u8]) -> BTreeMap<String, String> {
    let text = String::from_utf8_lossy(body).replace('+', " ");
    let decode = |part: &str| percent_decode_str(part).decode_utf8_lossy().into_owned();
    let pairs = text.trim().split('&').filter_map(|pair| pair.split_once('='));
    pairs.map(|(key, value)| (decode(key), decode(value))).collect()
}

/// The members that are text or numbers. Numbers are taken as text, because some servers quote them.
fn json(answer: &Answer) -> Result<BTreeMap<String, String>> {
    let members = answer.json::<Map<String, Value>>()?.into_iter().filter_map(|(key, value)| match value {
        Value::String(text) => Some((key, text)),
        Value::Number(number) => Some((key, number.to_string())),
        _ => None,
    });
    Ok(members.collect())
}

#[cfg(test)]
mod tests {
    use http::{HeaderMap, StatusCode};
    use proptest::prelude::*;

    use super::*;
    use crate::answer::json::any_json;

    fn answer(media_type: &str, body: &str) -> Answer {
        let headers = HeaderMap::from_iter([(header::CONTENT_TYPE, media_type.parse().unwrap())]);
        Answer::new(StatusCode::OK, headers, body.to_owned()).kept_secret(true)
    }

    /// Header, life in seconds, refresh token; or the error.
    fn read(media_type: &str, body: &str) -> Result<(String, Option<u64>, Option<String>), String> {
        let granted = Granted::read(&answer(media_type, body)).map_err(|error| error.message().to_owned())?;
        let header = granted.authorization.header().unwrap().to_str().unwrap().to_owned();
        let refresh = granted.refresh_token.map(|token| token.expose().to_owned());
        Ok((header, granted.expires_in.map(|time| time.as_secs()), refresh))
    }

    #[test]
    fn what_was_granted_is_read_in_all_its_forms() {
        const JSON: &str = "application/json; charset=utf-8";
        const FORM: &str = "application/x-www-form-urlencoded";
        let table = [
            (JSON, r#"{"access_token":"a1","expires_in":7200}"#, ("Bearer a1", Some(7200), None)),
            (
                JSON,
                r#"{"access_token":"a1","expires_in":"60","token_type":"bearer"}"#,
                ("Bearer a1", Some(60), None),
            ),
            (
                JSON,
                r#"{"access_token":"a1","token_type":"BEARER","expires_in":null}"#,
                ("Bearer a1", None, None),
            ),
            (JSON, r#"{"access_token":"a1","token_type":"","expires_in":0}"#, ("Bearer a1", None, None)),
            (JSON, r#"{"access_token":"a1","token_type":"OAuth","new":[{}]}"#, ("OAuth a1", None, None)),
            (JSON, r#"{"access_token":"a1","refresh_token":"r1"}"#, ("Bearer a1", None, Some("r1"))),
            (FORM, "access_token=a%2F1&expires_in=9&refresh_token=r+1", ("Bearer a/1", Some(9), Some("r 1"))),
            ("text/plain", "token_type=bearer&access_token=a1\n", ("Bearer a1", None, None)),
            ("text/plain", r#"{"access_token":"a1"}"#, ("Bearer a1", None, None)),
        ];
        for (media_type, body, (header, expires_in, refresh)) in table {
            let want = (header.to_owned(), expires_in, refresh.map(str::to_owned));
            assert_eq!(read(media_type, body), Ok(want), "BB-162 BB-6 {body}");
        }
    }

    #[test]
    fn what_is_no_grant_is_refused_without_a_quote() {
        let table = [
            ("application/json", r#"{"token":"s3cr3t"}"#, "without an access_token"),
            ("application/json", r#"{"access_token":{"s3cr3t":1}}"#, "without an access_token"),
            ("application/json", r#"{"access_token":"s3cr3t\n2"}"#, "an access_token that cannot be sent"),
            ("application/json", r#"{"access_token":"s3cr3t","token_type":"a b"}"#, "an unknown token_type"),
            (
                "application/json",
                r#"{"access_token":"s3cr3t","expires_in":"soon"}"#,
                "an expires_in that is no time",
            ),
            (
                "application/json",
                r#"{"access_token":"s3cr3t","expires_in":-1}"#,
                "an expires_in that is no time",
            ),
            (
                "application/json",
                r#"{"access_token":"a","refresh_token":"s3cr3t\n2"}"#,
                "a refresh_token that cannot",
            ),
            ("application/json", r#"["s3cr3t"]"#, "not what was expected"),
            ("text/html", "<html>s3cr3t</html>", "not what was expected"),
            ("text/plain", "s3cr3t", "without an access_token"),
            ("application/json", "", "an empty body"),
        ];
        for (media_type, body, why) in table {
            let error = read(media_type, body).unwrap_err();
            assert!(error.contains(why) && !error.contains("s3cr3t"), "L10-1501 {body}: {error}");
        }
    }

    proptest! {
        #[test]
        fn no_answer_upsets_the_reader(value in any_json(), form in "\\PC{0,40}|(access_token|expires_in|[=&%+0-9a-f]){0,20}") {
            let _ = read("application/json", &value.to_string());
            let _ = read("text/plain", &form);
        }
    }
}
