//! What the Kubernetes API answered, in the closed set of categories.

use std::time::Duration;

use cloudberth_core::{Category, Error};

/// Reads an error of the Kubernetes client.
pub(crate) fn translate(error: &kube::Error) -> Error {
    let kube::Error::Api(status) = error else { return Error::temporary(error.to_string()) };
    let seconds = status.details.as_ref().map_or(0, |details| details.retry_after_seconds);
    let retry_after = (seconds > 0).then(|| Duration::from_secs(seconds.into()));
    let category = match status.code {
        404 => Category::NotFound,
        409 => Category::Conflict,
        401 | 403 => Category::Unauthorised,
        429 => Category::Throttled { retry_after },
        400..=499 => Category::Permanent,
        _ => Category::Temporary,
    };
    Error::new(category, status.message.clone())
}
