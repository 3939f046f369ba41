//! YAML bodies are turned into JSON before they are read, and JSON answers into YAML after they are made.

use bytes::Bytes;
use serde_json::Value;
use serde_saphyr::options::DuplicateKeyPolicy;

use super::render;
use super::status::{Answer, Failure};

/// A body in YAML, as JSON. Of a key that stands there twice the last one counts, as in JSON.
pub(crate) fn to_json(body: &[u8]) -> Answer<Bytes> {
    let options = serde_saphyr::options! { duplicate_keys: DuplicateKeyPolicy::LastWins };
    let value: Value = serde_saphyr::from_slice_with_options(body, options).map_err(|error| {
        let told = error.to_string();
        let first = told.lines().next().unwrap_or_default();
        Failure::bad_request(format!("error converting YAML to JSON: yaml: {first}"))
    })?;
    Ok(render::bytes(&value))
}

/// An answer in JSON, as YAML. What is not JSON stays as it is.
pub(crate) fn from_json(content: &Bytes) -> Option<Bytes> {
    let value: Value = serde_json::from_slice(content).ok()?;
    serde_saphyr::to_string(&value).ok().map(Bytes::from)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn read(text: &str) -> Answer<Value> {
        to_json(text.as_bytes()).map(|json| serde_json::from_slice(&json).unwrap())
    }

    #[test]
    fn yaml_says_the_same_as_json() {
        let table = [
            ("metadata: {name: box}\n", json!({"metadata": {"name": "box"}})),
            ("# why\na: 1\nb: [x, \"2\", true, null]\n", json!({"a": 1, "b": ["x", "2", true, null]})),
            ("a: |\n  two\n  lines\n", json!({"a": "two\nlines\n"})),
            ("a: 1\na: 2\n", json!({"a": 2})),
            ("{\"a\": {\"b\": 1.5}}", json!({"a": {"b": 1.5}})),
        ];
        for (text, want) in table {
            assert_eq!(read(text).unwrap(), want, "{text}");
        }
    }

    #[test]
    fn what_is_not_yaml_is_refused() {
        for text in ["a: [1", "a: b: c", "a: *nowhere"] {
            let failure = read(text).unwrap_err();
            assert_eq!(failure.code.as_u16(), 400, "{text}");
            assert!(
                failure.message.starts_with("error converting YAML to JSON: yaml: "),
                "{}",
                failure.message
            );
        }
    }

    #[test]
    fn an_answer_survives_the_way_there_and_back() {
        let value =
            json!({"a": "true", "b": ["", "1", 1, -0.5, null, {}], "c": {"x: y": "- z\n"}, "d": "00012"});
        let yaml = from_json(&render::bytes(&value)).unwrap();
        assert_eq!(read(std::str::from_utf8(&yaml).unwrap()).unwrap(), value);
    }
}
