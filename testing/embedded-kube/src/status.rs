//! Failures, worded as kube-apiserver words them: clients match on the reason, people read the message.

use http::StatusCode;
use serde_json::{Map, Value, json};

use super::field::FieldErrors;

/// A failed request: everything that goes into a `Status` object.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Failure {
    pub(crate) code: StatusCode,
    pub(crate) reason: &'static str,
    pub(crate) message: String,
    pub(crate) details: Option<Value>,
    /// A token with which an expired list can be continued.
    pub(crate) resume: Option<String>,
}

pub(crate) type Answer<T> = Result<T, Failure>;

/// A group and resource (or kind) as messages print it: `leases.coordination.k8s.io`, `services`.
pub(crate) fn qualified(group: &str, resource: &str) -> String {
    if group.is_empty() { resource.to_owned() } else { format!("{resource}.{group}") }
}

/// The `details` of a `Status`; empty members are left out.
pub(crate) fn details(group: &str, kind: &str, name: &str) -> Map<String, Value> {
    [("group", group), ("kind", kind), ("name", name)]
        .into_iter()
        .filter(|(_, value)| !value.is_empty())
        .map(|(key, value)| (key.to_owned(), json!(value)))
        .collect()
}

impl Failure {
    pub(crate) fn new(code: StatusCode, reason: &'static str, message: impl Into<String>) -> Self {
        Self { code, reason, message: message.into(), details: None, resume: None }
    }

    fn about(mut self, group: &str, kind: &str, name: &str) -> Self {
        self.details = Some(Value::Object(details(group, kind, name)));
        self
    }

    fn retry_after(mut self, seconds: u32) -> Self {
        let mut map = match self.details.take() {
            Some(Value::Object(map)) => map,
            _ => Map::new(),
        };
        if seconds > 0 {
            map.insert("retryAfterSeconds".to_owned(), json!(seconds));
        }
        self.details = Some(Value::Object(map));
        self
    }

    pub(crate) fn not_found(group: &str, resource: &str, name: &str) -> Self {
        let message = format!("{} {name:?} not found", qualified(group, resource));
        Self::new(StatusCode::NOT_FOUND, "NotFound", message).about(group, resource, name)
    }

    /// No such path at all.
    pub(crate) fn no_such_path() -> Self {
        let mut failure =
            Self::new(StatusCode::NOT_FOUND, "NotFound", "the server could not find the requested resource");
        failure.details = Some(json!({}));
        failure
    }

    pub(crate) fn already_exists(group: &str, resource: &str, name: &str) -> Self {
        let message = format!("{} {name:?} already exists", qualified(group, resource));
        Self::new(StatusCode::CONFLICT, "AlreadyExists", message).about(group, resource, name)
    }

    pub(crate) fn generated_name_exists(group: &str, resource: &str, name: &str) -> Self {
        let message = format!(
            "{} {name:?} already exists, the server was not able to generate a unique name for the object",
            qualified(group, resource)
        );
        Self::new(StatusCode::CONFLICT, "AlreadyExists", message).about(group, resource, name).retry_after(1)
    }

    pub(crate) fn conflict(group: &str, resource: &str, name: &str, why: &str) -> Self {
        let message =
            format!("Operation cannot be fulfilled on {} {name:?}: {why}", qualified(group, resource));
        Self::new(StatusCode::CONFLICT, "Conflict", message).about(group, resource, name)
    }

    /// The writer saw an older version of the object.
    pub(crate) fn stale_write(group: &str, resource: &str, name: &str) -> Self {
        const WHY: &str =
            "the object has been modified; please apply your changes to the latest version and try again";
        Self::conflict(group, resource, name, WHY)
    }

    pub(crate) fn unauthorized() -> Self {
        Self::new(StatusCode::UNAUTHORIZED, "Unauthorized", "Unauthorized")
    }

    pub(crate) fn forbidden(group: &str, resource: &str, name: &str, why: &str) -> Self {
        let subject = qualified(group, resource);
        let message = match (resource.is_empty(), name.is_empty()) {
            (true, _) => format!("forbidden: {why}"),
            (false, true) => format!("{subject} is forbidden: {why}"),
            (false, false) => format!("{subject} {name:?} is forbidden: {why}"),
        };
        Self::new(StatusCode::FORBIDDEN, "Forbidden", message).about(group, resource, name)
    }

    pub(crate) fn invalid(group: &str, kind: &str, name: &str, errors: &FieldErrors) -> Self {
        // Both event APIs share one kind.
        let group = if group == "events.k8s.io" { "" } else { group };
        let message = match errors.summary() {
            Some(summary) => format!("{} {name:?} is invalid: {summary}", qualified(group, kind)),
            None => format!("{} {name:?} is invalid", qualified(group, kind)),
        };
        let mut map = details(group, kind, name);
        if !errors.is_empty() {
            map.insert("causes".to_owned(), errors.causes());
        }
        let mut failure = Self::new(StatusCode::UNPROCESSABLE_ENTITY, "Invalid", message);
        failure.details = Some(Value::Object(map));
        failure
    }

    pub(crate) fn bad_request(message: impl Into<String>) -> Self {
        Self::new(StatusCode::BAD_REQUEST, "BadRequest", message)
    }

    pub(crate) fn method_not_allowed() -> Self {
        const MESSAGE: &str = "the server does not allow this method on the requested resource";
        let mut failure = Self::new(StatusCode::METHOD_NOT_ALLOWED, "MethodNotAllowed", MESSAGE);
        failure.details = Some(json!({}));
        failure
    }

    /// The request was understood, but the patch does not fit the object.
    pub(crate) fn unprocessable() -> Self {
        const MESSAGE: &str = "the server rejected our request due to an error in our request";
        let mut failure = Self::new(StatusCode::UNPROCESSABLE_ENTITY, "Invalid", MESSAGE);
        failure.details = Some(json!({}));
        failure
    }

    /// The resource version is too old to be served.
    pub(crate) fn expired(message: impl Into<String>) -> Self {
        Self::new(StatusCode::GONE, "Expired", message)
    }

    pub(crate) fn not_acceptable(supported: &[&str]) -> Self {
        let message = format!(
            "406: Not Acceptable

Available representations: {}",
            supported.join(", ")
        );
        let mut failure = Self::new(StatusCode::NOT_ACCEPTABLE, "NotAcceptable", message);
        failure.details = Some(json!({}));
        failure
    }

    pub(crate) fn unsupported_media_type(supported: &[&str]) -> Self {
        let message = format!(
            "the body of the request was in an unknown format - accepted media types include: {}",
            supported.join(", ")
        );
        Self::new(StatusCode::UNSUPPORTED_MEDIA_TYPE, "UnsupportedMediaType", message)
    }

    /// A patch of an unsupported media type.
    pub(crate) fn unknown_patch_type() -> Self {
        let message = "415: Unsupported Media Type";
        let mut failure = Self::new(StatusCode::UNSUPPORTED_MEDIA_TYPE, "UnsupportedMediaType", message);
        failure.details = Some(json!({}));
        failure
    }

    pub(crate) fn too_large(limit: usize) -> Self {
        let message = format!("Request entity is too large: limit is {limit}");
        Self::new(StatusCode::PAYLOAD_TOO_LARGE, "RequestEntityTooLarge", message)
    }

    /// A resource version that has not happened yet.
    pub(crate) fn too_large_version(asked: u64, current: u64) -> Self {
        let message = format!("Timeout: Too large resource version: {asked}, current: {current}");
        let mut failure = Self::new(StatusCode::GATEWAY_TIMEOUT, "Timeout", message);
        failure.details = Some(json!({
            "causes": [{"reason": "ResourceVersionTooLarge", "message": "Too large resource version"}],
            "retryAfterSeconds": 1,
        }));
        failure
    }

    pub(crate) fn too_many_requests(message: &str, seconds: u32) -> Self {
        Self::new(StatusCode::TOO_MANY_REQUESTS, "TooManyRequests", message).retry_after(seconds)
    }

    pub(crate) fn internal(why: &str) -> Self {
        let message = format!("Internal error occurred: {why}");
        let mut failure = Self::new(StatusCode::INTERNAL_SERVER_ERROR, "InternalError", message);
        failure.details = Some(json!({"causes": [{"message": why}]}));
        failure
    }

    /// An error that has no reason of its own.
    pub(crate) fn unexplained(message: impl Into<String>) -> Self {
        Self::new(StatusCode::INTERNAL_SERVER_ERROR, "", message)
    }

    /// The seconds a client is asked to wait, for the `Retry-After` header.
    pub(crate) fn wait(&self) -> Option<u64> {
        self.details.as_ref()?.get("retryAfterSeconds")?.as_u64()
    }

    /// The `Status` object.
    pub(crate) fn body(&self) -> Value {
        let mut body = json!({
            "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure",
            "message": self.message, "code": self.code.as_u16(),
        });
        if let Some(resume) = &self.resume {
            super::value::set(&mut body, "metadata.continue", resume.as_str());
        }
        if let Some(map) = body.as_object_mut() {
            if !self.reason.is_empty() {
                map.insert("reason".to_owned(), json!(self.reason));
            }
            if let Some(details) = &self.details {
                map.insert("details".to_owned(), details.clone());
            }
        }
        body
    }
}
