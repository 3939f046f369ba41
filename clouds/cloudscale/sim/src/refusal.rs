//! Why a request is refused: a status and a body, as the API words them.

use serde_json::{Map, Value, json};

/// An answer that is no success.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Refusal {
    pub(crate) status: u16,
    pub(crate) body: Value,
}

impl Refusal {
    pub(crate) fn new(status: u16, detail: &str) -> Self {
        Self { status, body: json!({"detail": detail}) }
    }

    /// 400 about one field.
    pub(crate) fn field(field: &str, why: impl Into<Value>) -> Self {
        Self::fields(Map::from_iter([(field.to_owned(), why.into())]))
    }

    /// 400 about several fields.
    pub(crate) fn fields(errors: Map<String, Value>) -> Self {
        Self { status: 400, body: Value::Object(errors) }
    }

    pub(crate) fn not_found() -> Self {
        Self::new(404, "Not found.")
    }

    /// 400 about a reference to something that does not exist.
    pub(crate) fn dangling(field: &str, id: &str) -> Self {
        Self::field(field, format!("Object with uuid={id} does not exist."))
    }

    /// 400 about an attribute that cannot be changed.
    pub(crate) fn fixed(field: &str) -> Self {
        Self::field(field, "This field can not be changed.")
    }

    pub(crate) fn limit(what: &str) -> Self {
        Self::new(400, &format!("The limit of your project is reached: {what}."))
    }

    /// The same with every text in a list, the other form that the real API uses.
    #[must_use]
    pub(crate) fn in_lists(mut self) -> Self {
        if let Value::Object(fields) = &mut self.body {
            for (_, value) in fields.iter_mut().filter(|(key, value)| *key != "detail" && value.is_string()) {
                *value = json!([value.take()]);
            }
        }
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_other_form_has_lists_for_fields_and_leaves_the_rest() {
        let table = [
            (Refusal::field("name", "blank"), json!({"name": ["blank"]})),
            (Refusal::not_found(), json!({"detail": "Not found."})),
            (Refusal::field("vips", json!([{"subnet": "x"}])), json!({"vips": [{"subnet": "x"}]})),
        ];
        for (refusal, want) in table {
            assert_eq!(refusal.in_lists().body, want);
        }
    }
}
