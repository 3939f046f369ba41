//! Why a request is refused: a status and a body, as the API words them.

use std::collections::BTreeMap;

use serde_json::{Value, json};

/// An answer that is no success.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Refusal {
    pub(crate) status: u16,
    /// Nothing for 401 and for paths that do not exist.
    pub(crate) body: Option<Value>,
}

/// What is wrong with which field.
pub(crate) type Mistakes = BTreeMap<String, Vec<String>>;

impl Refusal {
    /// Without a body.
    pub(crate) const fn empty(status: u16) -> Self {
        Self { status, body: None }
    }

    /// With the usual description of a problem.
    pub(crate) fn problem(status: u16, title: &str) -> Self {
        let body = json!({"type": "about:blank", "title": title, "status": status, "traceId": "00-51b1-01"});
        Self { status, body: Some(body) }
    }

    /// An id that is unknown, or that belongs to another account.
    pub(crate) fn not_found() -> Self {
        Self::problem(404, "Not Found")
    }

    /// 400 about one field.
    pub(crate) fn field(field: &str, why: impl Into<String>) -> Self {
        Self::fields(Mistakes::from([(field.to_owned(), vec![why.into()])]))
    }

    /// 400 about several fields. The title is always the same.
    #[expect(clippy::needless_pass_by_value, reason = "the mistakes become the answer")]
    pub(crate) fn fields(errors: Mistakes) -> Self {
        let title = "One or more validation errors occurred.";
        let body = json!({"title": title, "status": 400, "errors": errors, "traceId": "00-51b1-02"});
        Self { status: 400, body: Some(body) }
    }
}
