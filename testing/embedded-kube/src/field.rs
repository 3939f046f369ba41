//! Mistakes in an object's fields: the causes of a 422, each with the path of the field it is about.

use std::fmt::Write as _;

use serde_json::{Value, json};

/// The kinds of mistakes, with their machine-readable reason and their human name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Mistake {
    Required,
    Duplicate,
    Invalid,
    TypeInvalid,
    NotSupported,
    Forbidden,
    TooLong,
    TooMany,
}

impl Mistake {
    fn reason(self) -> &'static str {
        match self {
            Self::Required => "FieldValueRequired",
            Self::Duplicate => "FieldValueDuplicate",
            Self::Invalid => "FieldValueInvalid",
            Self::TypeInvalid => "FieldValueTypeInvalid",
            Self::NotSupported => "FieldValueNotSupported",
            Self::Forbidden => "FieldValueForbidden",
            Self::TooLong => "FieldValueTooLong",
            Self::TooMany => "FieldValueTooMany",
        }
    }

    fn title(self) -> &'static str {
        match self {
            Self::Required => "Required value",
            Self::Duplicate => "Duplicate value",
            Self::Invalid | Self::TypeInvalid => "Invalid value",
            Self::NotSupported => "Unsupported value",
            Self::Forbidden => "Forbidden",
            Self::TooLong => "Too long",
            Self::TooMany => "Too many",
        }
    }
}

/// One mistake: which field, what is wrong, and what to do about it.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct FieldError {
    pub(crate) mistake: Mistake,
    pub(crate) field: String,
    pub(crate) body: String,
}

/// All mistakes of one object, in the order in which they were found.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct FieldErrors(Vec<FieldError>);

impl FieldErrors {
    fn push(&mut self, mistake: Mistake, field: &str, value: Option<String>, detail: &str) {
        let mut body = mistake.title().to_owned();
        if let Some(value) = value {
            let _ = write!(body, ": {value}");
        }
        if !detail.is_empty() {
            let _ = write!(body, ": {detail}");
        }
        let error = FieldError { mistake, field: field.to_owned(), body };
        // Rules that overlap complain once.
        if !self.0.contains(&error) {
            self.0.push(error);
        }
    }

    pub(crate) fn required(&mut self, field: &str, detail: &str) {
        self.push(Mistake::Required, field, None, detail);
    }

    pub(crate) fn forbidden(&mut self, field: &str, detail: &str) {
        self.push(Mistake::Forbidden, field, None, detail);
    }

    pub(crate) fn invalid(&mut self, field: &str, value: impl Into<Value>, detail: &str) {
        self.push(Mistake::Invalid, field, Some(printed(&value.into())), detail);
    }

    /// A value that is not of the type that a custom kind's schema asks for.
    pub(crate) fn type_invalid(&mut self, field: &str, found: &str, detail: &str) {
        self.push(Mistake::TypeInvalid, field, Some(printed(&found.into())), detail);
    }

    pub(crate) fn duplicate(&mut self, field: &str, value: impl Into<Value>) {
        self.push(Mistake::Duplicate, field, Some(printed(&value.into())), "");
    }

    /// As [`Self::duplicate`], for a value whose fields are printed in an order of their own.
    pub(crate) fn duplicate_shown(&mut self, field: &str, shown: String, detail: &str) {
        self.push(Mistake::Duplicate, field, Some(shown), detail);
    }

    pub(crate) fn not_supported(&mut self, field: &str, value: impl Into<Value>, supported: &[&str]) {
        let names: Vec<String> = supported.iter().map(|s| format!("{s:?}")).collect();
        let detail = format!("supported values: {}", names.join(", "));
        self.push(Mistake::NotSupported, field, Some(printed(&value.into())), &detail);
    }

    pub(crate) fn too_long(&mut self, field: &str, limit: usize) {
        self.push(Mistake::TooLong, field, None, &format!("may not be more than {limit} bytes"));
    }

    pub(crate) fn too_many(&mut self, field: &str, count: usize, limit: usize) {
        let detail = format!("must have at most {limit} items");
        self.push(Mistake::TooMany, field, Some(count.to_string()), &detail);
    }

    /// The same complaint for every message in `messages`.
    pub(crate) fn invalid_each(&mut self, field: &str, value: &str, messages: Vec<String>) {
        for message in messages {
            self.invalid(field, value, &message);
        }
    }

    pub(crate) fn append(&mut self, other: Self) {
        for error in other.0 {
            if !self.0.contains(&error) {
                self.0.push(error);
            }
        }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The mistakes as one sentence: one alone, several in brackets.
    pub(crate) fn summary(&self) -> Option<String> {
        let lines: Vec<String> = self.0.iter().map(|e| format!("{}: {}", e.field, e.body)).collect();
        match lines.as_slice() {
            [] => None,
            [one] => Some(one.clone()),
            many => Some(format!("[{}]", many.join(", "))),
        }
    }

    /// The mistakes as a `Status` lists them.
    pub(crate) fn causes(&self) -> Value {
        self.0
            .iter()
            .map(|e| json!({"reason": e.mistake.reason(), "message": e.body, "field": e.field}))
            .collect()
    }
}

/// A value as messages show it: strings quoted, everything else as JSON.
fn printed(value: &Value) -> String {
    match value {
        Value::String(s) => format!("{s:?}"),
        other => other.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mistakes_read_as_the_api_server_words_them() {
        let mut errors = FieldErrors::default();
        errors.required("spec.ports", "");
        errors.invalid("spec.ports[0].port", 0, "must be between 1 and 65535, inclusive");
        errors.invalid("spec.clusterIPs", json!(["a", "b"]), "may not change once set");
        errors.not_supported("spec.type", "Foo", &["ClusterIP", "NodePort"]);
        errors.required("spec.ports", "");
        assert_eq!(
            errors.summary().unwrap(),
            "[spec.ports: Required value, \
             spec.ports[0].port: Invalid value: 0: must be between 1 and 65535, inclusive, \
             spec.clusterIPs: Invalid value: [\"a\",\"b\"]: may not change once set, \
             spec.type: Unsupported value: \"Foo\": supported values: \"ClusterIP\", \"NodePort\"]"
        );
        assert_eq!(errors.causes().as_array().unwrap().len(), 4, "nothing is said twice");
    }
}
