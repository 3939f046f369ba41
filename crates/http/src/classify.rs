//! What a status means: for the error, for a repetition, and for whether a write took effect.

use std::time::Duration;

use cloudberth_core::Category;
use http::StatusCode;

use crate::{answer::Answer, retry::Effect};

/// How one cloud's answers are read. Plain functions, because a dialect has no state.
#[derive(Clone, Copy, Debug)]
pub struct Dialect {
    /// Whether this 404 or 410 is the API's statement that the object is not there (law 1). The usual rule wants a
    /// JSON object in the body: a page from something in front of the API says nothing about the object.
    pub absent: fn(&Answer) -> bool,
    /// The category of a refusal, where this cloud means something else by it than the rest of the world.
    pub category: fn(&Answer) -> Option<Category>,
    /// Whether this 5xx is the API's own word that nothing was done, so that even a creation may be sent again. Usually
    /// none is: a gateway may say 503 about a request that it has passed on. Say it only of a cloud that is known to
    /// mean it.
    pub undone: fn(&Answer) -> bool,
}

impl Default for Dialect {
    fn default() -> Self {
        Self { absent: Answer::is_json_object, category: |_| None, undone: |_| false }
    }
}

impl Dialect {
    /// Whether the answer says, with authority, that the object is not there.
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
        // The server gave up on us, or something in between gave up on the server.
        408 => (Category::Temporary, Effect::Doubtful),
        409 => (Category::Conflict, Effect::None),
        400 | 422 => (Category::UserInput, Effect::None),
        429 => (Category::Throttled { retry_after: asked }, Effect::Throttled),
        // "Go elsewhere" is said before anything was done. It is not followed: the token would go along.
        301 | 307 | 308 | 402..500 => (Category::Permanent, Effect::None),
        // Maintenance with an end: the caller waits exactly that long, without counting it as a failure.
        503 if asked.is_some() => (Category::Throttled { retry_after: asked }, Effect::Doubtful),
        501 | 505 => (Category::Permanent, Effect::DoubtfulForGood),
        500.. => (Category::Temporary, Effect::Doubtful),
        // "See elsewhere" may be said after the deed.
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
