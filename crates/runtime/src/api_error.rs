//! Errors of the Kubernetes API, translated into our categories.

use std::time::Duration;

use cloudberth_core::{Category, Error, error::with_causes};
use kube::core::response::StatusCause;

/// Translates an error of the Kubernetes client.
pub fn translate(error: &kube::Error) -> Error {
    if let Some(ours) = refused_here(error) {
        return ours.clone();
    }
    let kube::Error::Api(status) = error else { return Error::temporary(with_causes(error)) };
    let seconds = status.details.as_ref().map_or(0, |details| details.retry_after_seconds);
    let retry_after = (seconds > 0).then(|| Duration::from_secs(seconds.into()));
    // Our patches carry the UID of the object that they are for. If another object has its name now, the API server sees
    // an attempt to change the UID.
    let about_uid = |cause: &StatusCause| cause.field == "metadata.uid";
    let another = status.details.as_ref().is_some_and(|details| details.causes.iter().any(about_uid));
    let category = match status.code {
        422 if another => Category::NotFound,
        404 => Category::NotFound,
        409 => Category::Conflict,
        401 | 403 => Category::Unauthorised,
        429 => Category::Throttled { retry_after },
        400..=499 => Category::Permanent,
        _ => Category::Temporary,
    };
    Error::new(category, status.message.clone())
}

/// The error of our own layer that did not send the request.
fn refused_here(error: &kube::Error) -> Option<&Error> {
    match error {
        kube::Error::Service(why) => why.downcast_ref::<Error>(),
        _ => None,
    }
}

/// Whether the server knows who asks, and refuses for want of a right. Whom it does not know gets 401.
pub(crate) fn is_forbidden(error: &kube::Error) -> bool {
    matches!(error, kube::Error::Api(status) if status.code == 403)
}

/// Whether a write that failed this way cannot take effect later: the server is done with it, or never saw it. After a
/// gateway timeout or a lost connection it still can.
pub(crate) fn is_over(error: &kube::Error) -> bool {
    match error {
        kube::Error::Api(status) => !matches!(status.code, 502 | 504),
        kube::Error::SerdeError(_) | kube::Error::FromUtf8(_) => true,
        _ => refused_here(error).is_some(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug)]
    struct Outer(std::io::Error);
    impl std::fmt::Display for Outer {
        fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
            f.write_str("client error (Connect)")
        }
    }
    impl std::error::Error for Outer {
        fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
            Some(&self.0)
        }
    }

    #[test]
    fn an_error_is_told_with_its_causes_and_nothing_twice() {
        let refused = std::io::Error::from_raw_os_error(111);
        let error = kube::Error::Service(Box::new(std::io::Error::other(refused)));
        let text = translate(&error).message().to_owned();
        assert_eq!(text, "ServiceError: Connection refused (os error 111)");

        let error = kube::Error::Service(Box::new(Outer(std::io::Error::from_raw_os_error(111))));
        let text = translate(&error).message().to_owned();
        assert_eq!(text, "ServiceError: client error (Connect): Connection refused (os error 111)");
    }
    use kube::core::Status;

    #[test]
    fn a_write_is_over_when_the_server_is_done_with_it() {
        let api = |code| kube::Error::Api(Box::new(Status::failure("no", "Reason").with_code(code)));
        let ours = kube::Error::Service(Box::new(Error::cancelled("this replica does not lead")));
        assert_eq!(translate(&ours), Error::cancelled("this replica does not lead"), "L9-516");
        let broken = kube::Error::Service(Box::new(Outer(std::io::Error::other("reset"))));
        let table = [
            ("refused", api(422), true),
            ("failed", api(500), true),
            ("the server's time is over", api(504), false),
            ("a gateway lost the server", api(502), false),
            ("the connection broke", broken, false),
            ("held back by us", ours, true),
        ];
        for (case, error, want) in table {
            assert_eq!(is_over(&error), want, "L9-517 {case}");
        }
    }

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
        // The answer to a patch whose UID is that of an object before this one, as a real API server writes it.
        let answer = r#"{"kind":"Status","apiVersion":"v1","metadata":{},"status":"Failure","reason":"Invalid","code":422,
            "message":"Node \"n\" is invalid: metadata.uid: Invalid value: \"1\": field is immutable",
            "details":{"name":"n","kind":"Node","causes":[{"reason":"FieldValueInvalid",
            "message":"Invalid value: \"1\": field is immutable","field":"metadata.uid"}]}}"#;
        let status: Status = serde_json::from_str(answer).unwrap();
        assert_eq!(translate(&kube::Error::Api(Box::new(status))).category(), Category::NotFound, "L2-605");
    }
}
