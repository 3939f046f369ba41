//! Reading JSON as the API server does: duplicate keys are noticed, and positions can be named.

use serde::de::{self, DeserializeSeed, Deserializer, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Number, Value};

/// A parsed document and the paths of the keys that stood in it more than once.
#[derive(Debug)]
pub(crate) struct Document {
    pub(crate) value: Value,
    pub(crate) duplicates: Vec<String>,
}

/// Parses a whole document; trailing text is a mistake.
pub(crate) fn parse(text: &[u8]) -> Result<Document, serde_json::Error> {
    let mut duplicates = Vec::new();
    let mut reader = serde_json::Deserializer::from_slice(text);
    let value = Node { path: String::new(), duplicates: &mut duplicates }.deserialize(&mut reader)?;
    reader.end()?;
    Ok(Document { value, duplicates })
}

/// `spec.ports` and `name` give `spec.ports.name`.
pub(crate) fn child(path: &str, name: &str) -> String {
    if path.is_empty() { name.to_owned() } else { format!("{path}.{name}") }
}

/// What Go calls the kind of a value.
pub(crate) fn kind_of(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "bool",
        Value::Number(_) => "number",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    }
}

/// A map as Go prints it: `map[a:1 b:[x y]]`.
pub(crate) fn go_map(value: &Value) -> String {
    match value {
        Value::Object(map) => {
            let mut inner: Vec<String> =
                map.iter().map(|(key, value)| format!("{key}:{}", go_map(value))).collect();
            inner.sort();
            format!("map[{}]", inner.join(" "))
        }
        Value::Array(list) => {
            let inner: Vec<String> = list.iter().map(go_map).collect();
            format!("[{}]", inner.join(" "))
        }
        Value::String(text) => text.clone(),
        Value::Null => "<nil>".to_owned(),
        other => other.to_string(),
    }
}

struct Node<'a> {
    path: String,
    duplicates: &'a mut Vec<String>,
}

impl<'de> DeserializeSeed<'de> for Node<'_> {
    type Value = Value;
    fn deserialize<D: Deserializer<'de>>(self, reader: D) -> Result<Value, D::Error> {
        reader.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Node<'_> {
    type Value = Value;

    fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("a JSON value")
    }

    fn visit_bool<E>(self, value: bool) -> Result<Value, E> {
        Ok(Value::Bool(value))
    }

    fn visit_i64<E>(self, value: i64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_u64<E>(self, value: u64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_f64<E: de::Error>(self, value: f64) -> Result<Value, E> {
        Number::from_f64(value).map(Value::Number).ok_or_else(|| E::custom("number out of range"))
    }

    fn visit_str<E>(self, value: &str) -> Result<Value, E> {
        Ok(Value::String(value.to_owned()))
    }

    fn visit_string<E>(self, value: String) -> Result<Value, E> {
        Ok(Value::String(value))
    }

    fn visit_unit<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Value, A::Error> {
        let mut list = Vec::new();
        loop {
            let path = format!("{}[{}]", self.path, list.len());
            match items.next_element_seed(Node { path, duplicates: &mut *self.duplicates })? {
                Some(item) => list.push(item),
                None => return Ok(Value::Array(list)),
            }
        }
    }

    fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> Result<Value, A::Error> {
        let mut map = Map::new();
        while let Some(key) = entries.next_key::<String>()? {
            let path = child(&self.path, &key);
            if map.contains_key(&key) {
                self.duplicates.push(path.clone());
            }
            let value = entries.next_value_seed(Node { path, duplicates: &mut *self.duplicates })?;
            map.insert(key, value);
        }
        Ok(Value::Object(map))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn duplicate_keys_are_named_and_the_last_one_counts() {
        let text = br#"{"a":1,"b":[{"c":1,"c":2}],"a":{"d":null}}"#;
        let document = parse(text).unwrap();
        assert_eq!(document.value, json!({"a": {"d": null}, "b": [{"c": 2}]}));
        assert_eq!(document.duplicates, ["b[0].c", "a"]);
    }

    #[test]
    fn half_a_document_is_refused() {
        for text in [&b"{"[..], b"", b"{} x", b"{\"a\":}"] {
            assert!(parse(text).is_err(), "{text:?}");
        }
    }
}
