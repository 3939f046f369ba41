//! Reads the fields of a request's body and collects all mistakes. Unknown fields are ignored.

use serde_json::{Map, Value};

use crate::refusal::{Mistakes, Refusal};

/// A body that is being read. Getters return a placeholder for what is wrong or missing; call [`Fields::finish`] before
/// using the values.
#[derive(Debug)]
pub(crate) struct Fields {
    body: Map<String, Value>,
    mistakes: Mistakes,
}

impl Fields {
    /// Fails for a body that is no object.
    pub(crate) fn new(body: &[u8]) -> Result<Self, Refusal> {
        if body.is_empty() {
            return Err(Refusal::field("", "A non-empty request body is required."));
        }
        match serde_json::from_slice(body) {
            Ok(Value::Object(body)) => Ok(Self { body, mistakes: Mistakes::new() }),
            Ok(_) | Err(_) => Err(Refusal::field("$", "The body must be an object in JSON.")),
        }
    }

    pub(crate) fn mistake(&mut self, field: &str, why: impl Into<String>) {
        self.mistakes.entry(field.to_owned()).or_default().push(why.into());
    }

    /// Fails with all mistakes, if there are any.
    pub(crate) fn finish(&self) -> Result<(), Refusal> {
        if self.mistakes.is_empty() { Ok(()) } else { Err(Refusal::fields(self.mistakes.clone())) }
    }

    /// The raw value, unless it is missing or `null`.
    pub(crate) fn value(&self, field: &str) -> Option<Value> {
        self.body.get(field).filter(|value| !value.is_null()).cloned()
    }

    /// A value of one type; `None` if it is missing or wrong.
    fn typed<T>(&mut self, field: &str, what: &str, read: impl FnOnce(&Value) -> Option<T>) -> Option<T> {
        let value = self.value(field)?;
        let typed = read(&value);
        if typed.is_none() {
            self.mistake(field, format!("The value must be {what}."));
        }
        typed
    }

    pub(crate) fn text(&mut self, field: &str) -> Option<String> {
        self.typed(field, "a string", |value| value.as_str().map(str::to_owned))
    }

    pub(crate) fn integer(&mut self, field: &str) -> Option<i64> {
        self.typed(field, "an integer", Value::as_i64)
    }

    pub(crate) fn flag(&mut self, field: &str) -> Option<bool> {
        self.typed(field, "true or false", Value::as_bool)
    }

    pub(crate) fn integers(&mut self, field: &str) -> Option<Vec<i64>> {
        let read = |value: &Value| value.as_array()?.iter().map(Value::as_i64).collect();
        self.typed(field, "a list of integers", read)
    }

    pub(crate) fn objects(&mut self, field: &str) -> Option<Vec<Map<String, Value>>> {
        let read = |value: &Value| value.as_array()?.iter().map(|item| item.as_object().cloned()).collect();
        self.typed(field, "a list of objects", read)
    }

    pub(crate) fn object(&mut self, field: &str) -> Option<Map<String, Value>> {
        self.typed(field, "an object", |value| value.as_object().cloned())
    }

    /// Notes that a field is missing that must be there.
    pub(crate) fn require(&mut self, field: &str) {
        if self.value(field).is_none() {
            self.mistake(field, format!("The {field} field is required."));
        }
    }

    /// A text of at least one character.
    pub(crate) fn required_text(&mut self, field: &str) -> String {
        self.require(field);
        let text = self.text(field);
        if text.as_deref() == Some("") {
            self.mistake(field, format!("The {field} field is required."));
        }
        text.unwrap_or_default()
    }

    /// A name that could be a host's.
    pub(crate) fn host_name(&mut self, field: &str) -> Option<String> {
        let name = self.text(field)?;
        if !name.chars().all(|char| char.is_ascii_alphanumeric() || matches!(char, '-' | '.')) {
            self.mistake(field, "Only letters, digits, '-' and '.' are allowed.");
        }
        Some(name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_mistakes_are_told_at_once() {
        let mut fields =
            Fields::new(br#"{"a": 1, "b": "x", "c": ["x"], "d": "", "e": null, "f": "a_b", "g": {}}"#)
                .unwrap();
        fields.text("a");
        fields.integer("b");
        fields.integers("c");
        fields.required_text("d");
        fields.require("e");
        fields.host_name("f");
        fields.objects("g");
        let body = fields.finish().unwrap_err().body.unwrap();
        let told: Vec<_> = body["errors"].as_object().unwrap().keys().map(String::as_str).collect();
        assert_eq!(told, ["a", "b", "c", "d", "e", "f", "g"]);
    }

    #[test]
    fn bodies_are_objects() {
        for bad in ["", "[]", "1", "{", "null"] {
            assert_eq!(Fields::new(bad.as_bytes()).unwrap_err().status, 400, "{bad:?}");
        }
    }
}
