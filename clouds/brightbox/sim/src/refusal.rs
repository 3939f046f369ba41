//! Why a request is refused: a status and a body, as the API words them.

use serde_json::{Value, json};

/// An answer that is no success.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Refusal {
    pub(crate) status: u16,
    pub(crate) body: Value,
    /// Headers that go with it.
    pub(crate) headers: Vec<(&'static str, String)>,
}

impl Refusal {
    fn new(status: u16, body: Value) -> Self {
        Self { status, body, headers: Vec::new() }
    }

    /// The form in which the API words its errors.
    pub(crate) fn named(status: u16, name: &str, errors: &[String]) -> Self {
        Self::new(status, json!({"error_name": name, "errors": errors}))
    }

    /// 400: this is no request.
    pub(crate) fn bad_request(why: &str) -> Self {
        Self::named(400, "bad_request", &[why.to_owned()])
    }

    /// 403: not with this token.
    pub(crate) fn forbidden(why: &str) -> Self {
        Self::named(403, "Forbidden", &[why.to_owned()])
    }

    /// 403: the account has as many as it may.
    pub(crate) fn limit(what: &str) -> Self {
        Self::named(403, "account_limit_reached", &[format!("Your account may not have more {what}")])
    }

    /// 404: there is no such thing.
    pub(crate) fn not_found(id: &str) -> Self {
        Self::named(404, "missing_resource", &[format!("Resource {id} not found")])
    }

    /// 409: not in this state.
    pub(crate) fn conflict(why: &str) -> Self {
        Self::named(409, "resource_conflict", &[why.to_owned()])
    }

    /// 422: all that is wrong with a body.
    pub(crate) fn invalid(errors: &[String]) -> Self {
        Self::named(422, "unprocessable_entity", errors)
    }

    /// The form of the token endpoint.
    pub(crate) fn token(status: u16, error: &str, why: &str) -> Self {
        let refusal = Self::new(status, json!({"error": error, "error_description": why}));
        match status {
            401 => refusal.with("WWW-Authenticate", r#"Basic realm="Brightbox API""#),
            _ => refusal,
        }
    }

    /// 401: the access token is `invalid_token` or `expired_token`.
    pub(crate) fn unauthorised(error: &'static str) -> Self {
        let why =
            if error == "expired_token" { "The access token expired" } else { "The access token is unknown" };
        let refusal = Self::new(401, json!({"error": error, "error_description": why}));
        refusal.with("WWW-Authenticate", &format!("OAuth error=\"{error}\""))
    }

    /// The error that a fault asks for, in the form that its status has at this place.
    pub(crate) fn injected(status: u16, for_token: bool) -> Self {
        let why = "The cloud was told to fail this request";
        match status {
            401 if for_token => Self::token(401, "invalid_client", why),
            401 => Self::unauthorised("invalid_token"),
            _ if for_token => Self::token(status, "server_error", why),
            403 => Self::forbidden(why),
            404 => Self::named(404, "missing_resource", &[why.to_owned()]),
            409 => Self::conflict(why),
            422 => Self::invalid(&[why.to_owned()]),
            _ => Self::named(status, "failure", &[why.to_owned()]),
        }
    }

    pub(crate) fn with(mut self, name: &'static str, value: &str) -> Self {
        self.headers.push((name, value.to_owned()));
        self
    }
}
