//! The `data` of Secrets, and hashes of it.

use base64::{Engine as _, engine::general_purpose::STANDARD};
use ring::digest::{Context, SHA256};
use serde_json::{Map, Value};

/// The bytes of a key; `None` if it is missing or no base64.
pub fn bytes(secret: &Value, key: &str) -> Option<Vec<u8>> {
    STANDARD.decode(secret.get("data")?.get(key)?.as_str()?).ok()
}

/// The text of a key; empty if it is missing or no text.
pub fn text(secret: &Value, key: &str) -> String {
    bytes(secret, key).and_then(|bytes| String::from_utf8(bytes).ok()).unwrap_or_default()
}

/// Bytes as `data` holds them.
pub fn encode(bytes: impl AsRef<[u8]>) -> Value {
    STANDARD.encode(bytes).into()
}

/// The map at `field` of an object, made if it is not there. Nothing if the object is not what it should be.
pub fn map_mut<'a>(object: &'a mut Value, field: &str) -> Option<&'a mut Map<String, Value>> {
    let map = object.as_object_mut()?.entry(field).or_insert_with(|| Value::Object(Map::new()));
    if map.is_null() {
        *map = Value::Object(Map::new());
    }
    map.as_object_mut()
}

/// Sets an annotation, or another text in a map below `metadata`.
pub fn set_entry(object: &mut Value, map: &str, key: &str, value: &str) {
    let metadata = object.get_mut("metadata");
    if let Some(map) = metadata.and_then(|metadata| map_mut(metadata, map)) {
        map.insert(key.to_owned(), value.into());
    }
}

/// A hash over texts, each with its length, so that no two lists share one.
#[derive(Clone)]
pub struct Hasher(Context);

impl Default for Hasher {
    fn default() -> Self {
        Self(Context::new(&SHA256))
    }
}

impl Hasher {
    /// Adds a text.
    pub fn add(&mut self, text: impl AsRef<[u8]>) -> &mut Self {
        let text = text.as_ref();
        self.0.update(&(text.len() as u64).to_be_bytes());
        self.0.update(text);
        self
    }

    /// The hash, in hex. Nothing can be read from it.
    pub fn end(&self) -> String {
        hex(self.0.clone().finish().as_ref())
    }
}

impl std::fmt::Debug for Hasher {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Hasher")
    }
}

/// Lower-case hex.
pub fn hex(bytes: &[u8]) -> String {
    const DIGITS: [char; 16] =
        ['0', '1', '2', '3', '4', '5', '6', '7', '8', '9', 'a', 'b', 'c', 'd', 'e', 'f'];
    let digit = |half: u8| DIGITS.get(usize::from(half)).copied().unwrap_or_default();
    bytes.iter().flat_map(|byte| [digit(byte >> 4), digit(byte & 15)]).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn data_is_read_and_written_as_base64() {
        let secret = json!({"data": {"a": "eA==", "b": "???", "c": "/w==", "d": 4}});
        assert_eq!(text(&secret, "a"), "x");
        assert_eq!((text(&secret, "b"), text(&secret, "d"), text(&secret, "e")), Default::default());
        assert_eq!((bytes(&secret, "c"), text(&secret, "c")), (Some(vec![255]), String::new()));
        assert_eq!(encode("x"), "eA==");
    }

    #[test]
    fn a_hash_knows_where_texts_end() {
        let of = |texts: &[&str]| {
            let mut hasher = Hasher::default();
            for text in texts {
                hasher.add(text);
            }
            hasher.end()
        };
        assert_eq!(of(&["ab", "c"]), of(&["ab", "c"]));
        assert_ne!(of(&["ab", "c"]), of(&["a", "bc"]));
        assert_eq!(of(&[]).len(), 64);
    }

    #[test]
    fn a_map_that_is_missing_or_null_is_made() {
        let mut object = json!({"metadata": {"annotations": null}});
        set_entry(&mut object, "annotations", "a", "1");
        set_entry(&mut object, "labels", "b", "2");
        assert_eq!(object, json!({"metadata": {"annotations": {"a": "1"}, "labels": {"b": "2"}}}));
    }
}
