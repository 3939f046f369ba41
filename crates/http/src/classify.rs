//! What a status means: the category of the error, whether a retry is safe, whether a write took effect.

use std::time::Duration;

use cloudberth_core::Category;
use http::StatusCode;

use crate::{answer::Answer, retry::Effect};

/// How one cloud's answers are read.
#[derive(Clone, Copy, Debug)]
pub struct Dialect {
    /// Whether this 404 or 410 is the API's statement that the object does not exist (law 1). By default the body must be
    /// a JSON object: an HTML page of a proxy says nothing about the object.
    pub absent: fn(&Answer) -> bool,
    /// The category of a refusal, where this cloud deviates from the usual meaning.
    pub category: fn(&Answer) -> Option<Category>,
    /// Whether this 5xx is the API's statement that nothing was done, so that even a creation may be retried. By default
    /// none is, because a gateway may answer 503 to a request that it passed on. Set it only for a cloud that is known
    /// to mean it.
    pub undone: fn(&Answer) -> bool,
}

impl Default for Dialect {
    fn default() -> Self {
        Self { absent: Answer::is_json_object, category: |_| None, undone: |_| false }
    }
}

impl Dialect {
    /// Whether the API itself says that the object does not exist.
    pub(crate) fn is_absence(self, answer: &Answer) -> bool {
        matches!(answer.status(), StatusCode::NOT_FOUND | StatusCode::GONE) && (self.absent)(answer)
    }

    /// The category of an answer that is not a success, and what it says about the effect of a write.
    pub(crate) fn read(self, answer: &Answer, asked: Option<Duration>) -> (Category, Effect) {
        let (usual, mut effect) = usual(answer.status(), asked);
        if effect == Effect::Doubtful && (self.undone)(answer) {
            effect = Effect::Undone;
        }
        ((self.category)(answer).unwrap_or(usual), effect)
    }
}

fn usual(status: StatusCode, asked: Option<Duration>) -> (Category, Effect) {
    match status.as_u16() {
        401 | 403 => (Category::Unauthorised, Effect::None),
        404 | 410 => (Category::NotFound, Effect::None),
        // The server gave up on us, or a proxy on the server.
        408 => (Category::Temporary, Effect::Doubtful),
        409 => (Category::Conflict, Effect::None),
        400 | 422 => (Category::UserInput, Effect::None),
        429 => (Category::Throttled { retry_after: asked }, Effect::Throttled),
        // These redirects come before anything is done. They are not followed: the token would go along.
        301 | 307 | 308 | 402..500 => (Category::Permanent, Effect::None),
        // Maintenance with a known end: the caller waits that long and does not count it as a failure.
        503 if asked.is_some() => (Category::Throttled { retry_after: asked }, Effect::Doubtful),
        501 | 505 => (Category::Permanent, Effect::DoubtfulForGood),
        500.. => (Category::Temporary, Effect::Doubtful),
        // Other redirects may come after the change was made.
        _ => (Category::Permanent, Effect::DoubtfulForGood),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::answer::tests::answer;

    #[test]
    fn the_status_decides() {
        let wait = Some(Duration::from_secs(3));
        let throttled = |retry_after| Category::Throttled { retry_after };
        let table = [
            (400, None, Category::UserInput, Effect::None),
            (401, None, Category::Unauthorised, Effect::None),
            (402, None, Category::Permanent, Effect::None),
            (403, None, Category::Unauthorised, Effect::None),
            (404, None, Category::NotFound, Effect::None),
            (405, None, Category::Permanent, Effect::None),
            (408, None, Category::Temporary, Effect::Doubtful),
            (409, None, Category::Conflict, Effect::None),
            (410, None, Category::NotFound, Effect::None),
            (422, None, Category::UserInput, Effect::None),
            (429, None, throttled(None), Effect::Throttled),
            (429, wait, throttled(wait), Effect::Throttled),
            (451, None, Category::Permanent, Effect::None),
            (500, wait, Category::Temporary, Effect::Doubtful),
            (501, None, Category::Permanent, Effect::DoubtfulForGood),
            (502, None, Category::Temporary, Effect::Doubtful),
            (503, None, Category::Temporary, Effect::Doubtful),
            (503, wait, throttled(wait), Effect::Doubtful),
            (504, None, Category::Temporary, Effect::Doubtful),
            (599, None, Category::Temporary, Effect::Doubtful),
            (301, None, Category::Permanent, Effect::None),
            (303, None, Category::Permanent, Effect::DoubtfulForGood),
            (304, None, Category::Permanent, Effect::DoubtfulForGood),
        ];
        for (status, asked, category, effect) in table {
            let got = Dialect::default().read(&answer(status, ""), asked);
            assert_eq!(got, (category, effect), "{status}");
        }
    }

    #[test]
    fn a_page_from_in_between_denies_nothing() {
        let table = [
            ("L1-307 the API says so", 404, r#"{"detail":"Not found."}"#, true),
            ("L1-308 gone for good", 410, r#"{"code":"machine_not_found"}"#, true),
            ("L1-309 a proxy's page", 404, "<html><title>404</title></html>", false),
            ("L1-310 no such path", 404, "", false),
            ("L1-311 refused", 403, r#"{"detail":"Not found."}"#, false),
            ("L1-312 an outage that speaks JSON", 503, r#"{"detail":"Not found."}"#, false),
        ];
        for (case, status, body, want) in table {
            assert_eq!(Dialect::default().is_absence(&answer(status, body)), want, "{case}");
        }
    }

    #[test]
    fn a_cloud_may_mean_something_else() {
        let busy = |a: &Answer| a.body().windows(4).any(|w| w == b"busy").then_some(Category::Conflict);
        let dialect = Dialect { category: busy, ..Dialect::default() };
        assert_eq!(dialect.read(&answer(400, "busy"), None).0, Category::Conflict);
        assert_eq!(dialect.read(&answer(400, "wrong"), None).0, Category::UserInput);
    }

    #[test]
    fn a_cloud_may_say_that_nothing_was_done() {
        let dialect = Dialect { undone: |a| a.status() == 503 && a.is_json_object(), ..Dialect::default() };
        let table = [
            ("L6-823 its own word", 503, "{}", Effect::Undone),
            ("L6-824 a page", 503, "<html>", Effect::Doubtful),
            ("another status", 500, "{}", Effect::Doubtful),
            ("for good", 501, "{}", Effect::DoubtfulForGood),
        ];
        for (case, status, body, want) in table {
            assert_eq!(dialect.read(&answer(status, body), None).1, want, "{case}");
        }
    }
}
