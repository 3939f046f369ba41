//! Values: whether they changed since they were last applied.

use ring::digest::{SHA256, digest};
use serde_json::Value;

/// What the description of a release begins with that was written by us.
const MARK: &str = "cloudberth, values sha256:";

/// Nothing but white space: Helm then keeps what it has.
pub(super) fn is_blank(text: &str) -> bool {
    text.trim().is_empty()
}

/// A fingerprint of the text, in hexadecimal.
pub(super) fn hash(text: &str) -> String {
    use std::fmt::Write as _;
    digest(&SHA256, text.as_bytes()).as_ref().iter().fold(String::with_capacity(64), |mut hex, byte| {
        let _ = write!(hex, "{byte:02x}");
        hex
    })
}

/// What a release is described as, so that the next look knows which values it was made with.
pub(super) fn description(hash: &str) -> String {
    format!("{MARK}{hash}")
}

/// The fingerprint in a description that [`description`] made.
pub(super) fn hash_in(description: &str) -> Option<&str> {
    let hash = description.strip_prefix(MARK)?.trim_end();
    (hash.len() == 64 && hash.bytes().all(|b| b.is_ascii_hexdigit())).then_some(hash)
}

/// Whether the text says what a release already has. Text that cannot be read does not.
pub(super) fn says(text: &str, config: &Value) -> bool {
    serde_saphyr::from_str::<Value>(text).is_ok_and(|want| same(&want, config))
}

/// Equal, with `1` and `1.0` being one number and nothing being an empty mapping: so it comes back from Helm.
fn same(a: &Value, b: &Value) -> bool {
    match (a, b) {
        (Value::Number(a), Value::Number(b)) => a == b || a.as_f64() == b.as_f64(),
        (Value::Array(a), Value::Array(b)) => a.len() == b.len() && a.iter().zip(b).all(|(a, b)| same(a, b)),
        (Value::Object(a), Value::Object(b)) => {
            a.len() == b.len() && a.iter().all(|(key, a)| b.get(key).is_some_and(|b| same(a, b)))
        }
        (Value::Null, Value::Object(map)) | (Value::Object(map), Value::Null) => map.is_empty(),
        _ => a == b,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn what_is_written_is_found_again() {
        let hash = hash("a: 1\n");
        assert_eq!(hash_in(&description(&hash)), Some(hash.as_str()));
        for other in [
            "Upgrade complete",
            "Rollback to 3",
            "",
            "cloudberth, values sha256:",
            "cloudberth, values sha256:zz",
        ] {
            assert_eq!(hash_in(other), None, "{other}");
        }
        assert_eq!(hash.len(), 64);
    }

    #[test]
    fn values_are_compared_by_meaning() {
        let table = [
            ("a: 1\nb: [x, 'y']\n", json!({"b": ["x", "y"], "a": 1}), true),
            ("a: 1.0", json!({"a": 1}), true),
            ("a: {}", json!({"a": null}), true),
            ("{}", json!(null), true),
            ("a: 1", json!({"a": 2}), false),
            ("a: 1", json!({"a": 1, "b": 2}), false),
            ("a: 1", json!(null), false),
            ("a: [1", json!({"a": [1]}), false),
        ];
        for (text, config, want) in table {
            assert_eq!(says(text, &config), want, "{text} {config}");
        }
    }
}
