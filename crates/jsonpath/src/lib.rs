//! The part of `jsonpath-rust` that the Kubernetes client uses.
//!
//! The client asks for one thing: the `token-key` and the `expiry-key` of a kubeconfig whose user has an auth provider with
//! a command, which Kubernetes 1.26 dropped. Those are paths such as `$.credential.access_token`. The public crate brings a parser
//! generator and a regex engine for it, eleven crates that everybody who builds cloudberth would wait for.
//!
//! Names with dots between them are followed. Everything else that `JSONPath` knows is an error that says so.

use std::fmt;

use serde_json::Value;

/// A path that is more than names with dots between them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NotPlain(String);

impl fmt::Display for NotPlain {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?} is not of the form $.name.name, the only one that is supported", self.0)
    }
}

impl std::error::Error for NotPlain {}

/// Values that can be asked for a part of them.
pub trait JsonPath {
    /// The part that `path` leads to, if it is there.
    fn query(&self, path: &str) -> Result<Vec<&Self>, NotPlain>;
}

impl JsonPath for Value {
    fn query(&self, path: &str) -> Result<Vec<&Self>, NotPlain> {
        let names = path.strip_prefix("$.").ok_or_else(|| NotPlain(path.to_owned()))?;
        if !names.split('.').all(is_plain) {
            return Err(NotPlain(path.to_owned()));
        }
        Ok(names.split('.').try_fold(self, |value, name| value.get(name)).into_iter().collect())
    }
}

fn is_plain(name: &str) -> bool {
    !name.is_empty() && name.chars().all(|c| c.is_alphanumeric() || c == '_' || c == '-')
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn names_are_followed() {
        let answer = json!({ "credential": { "access_token": "t", "token-expiry": "2030-01-01T00:00:00Z" }, "list": ["x"] });
        let table: &[(&str, Option<Value>)] = &[
            ("$.credential.access_token", Some(json!("t"))),
            ("$.credential.token-expiry", Some(json!("2030-01-01T00:00:00Z"))),
            ("$.list", Some(json!(["x"]))),
            ("$.credential.other", None),
            ("$.list.x", None),
            ("$.credential.access_token.more", None),
        ];
        for (path, want) in table {
            assert_eq!(answer.query(path), Ok(want.iter().collect()), "{path}");
        }
    }

    #[test]
    fn other_paths_are_refused_by_name() {
        for path in ["", "$", "$.", "$..token", "$.a[0]", "$.a.*", "$.a.", "a.b", "$['a']", "$.a[?@.b == 1]"]
        {
            let why = json!({ "a": [{ "b": 1 }] }).query(path).unwrap_err().to_string();
            assert!(why.contains(&format!("{path:?}")) && why.contains("$.name.name"), "{why}");
        }
    }
}
