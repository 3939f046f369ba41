//! What the Kubernetes API answered, in the closed set of categories.

use std::time::Duration;

use cloudberth_core::{Category, Error};

/// Reads an error of the Kubernetes client.
#[must_use]
pub fn translate(error: &kube::Error) -> Error {
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

#[cfg(test)]
mod tests {
    use super::*;
    use kube::core::Status;

    #[test]
    fn a_status_code_leads_to_its_category() {
        let throttled = Category::Throttled { retry_after: None };
        let table = [
            (401, Category::Unauthorised),
            (403, Category::Unauthorised),
            (404, Category::NotFound),
            (409, Category::Conflict),
            (422, Category::Permanent),
            (429, throttled),
            (500, Category::Temporary),
            (503, Category::Temporary),
        ];
        for (code, want) in table {
            let status = Status::failure("no", "Reason").with_code(code);
            assert_eq!(translate(&kube::Error::Api(Box::new(status))).category(), want, "{code}");
        }
    }
}
