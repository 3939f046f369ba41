//! What happens to a key when its work ends.

use std::time::Duration;

use crate::error::{Error, Retry, SLOW_RETRY};

/// The wait of a key whose object must change first, in case the cause disappeared without a change that we see. Also the
/// longest wait that a server can ask for.
pub const SAFETY_CHECK: Duration = Duration::from_secs(30 * 60);

/// What the queue does with a key when its work ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Requeue {
    /// Nothing more to do: the failure count is cleared.
    Forget,
    /// The object must change first: the failure count is cleared, and the key comes back after this long anyway.
    After(Duration),
    /// It comes back after exactly this long; the failure count is neither raised nor cleared.
    Exactly(Duration),
    /// It comes back after the limiter's wait, which raises the failure count.
    RateLimited,
    /// The same, but earlier failures do not count: the work got further than they did.
    Anew,
}

impl Requeue {
    /// The same for work that failed, but got further than in all failures before.
    #[must_use]
    pub const fn further(self) -> Self {
        match self {
            Self::RateLimited => Self::Anew,
            other => other,
        }
    }
}

/// What to do with a key after this outcome.
///
/// The category of the error alone decides. A wait that a server asked for is kept exactly, up to [`SAFETY_CHECK`].
#[must_use]
pub fn requeue(outcome: Result<(), &Error>) -> Requeue {
    outcome.map_or_else(|error| error.category().retry().into(), |()| Requeue::Forget)
}

impl From<Retry> for Requeue {
    fn from(retry: Retry) -> Self {
        match retry {
            Retry::Never => Self::Forget,
            Retry::OnChange => Self::After(SAFETY_CHECK),
            Retry::After(wait) => Self::Exactly(wait.min(SAFETY_CHECK)),
            Retry::Slowly => Self::Exactly(SLOW_RETRY),
            Retry::Backoff => Self::RateLimited,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::Category;

    const fn exactly(secs: u64) -> Requeue {
        Requeue::Exactly(Duration::from_secs(secs))
    }

    #[test]
    fn the_category_decides_when_a_key_comes_back() {
        let throttled = |secs| Category::Throttled { retry_after: Some(Duration::from_secs(secs)) };
        let table = [
            ("a wrong object", Category::UserInput, Requeue::After(Duration::from_secs(1_800))),
            ("FW-251 something is missing", Category::NotFound, Requeue::RateLimited),
            ("FW-251 somebody else was there", Category::Conflict, Requeue::RateLimited),
            ("FW-251 it may work next time", Category::Temporary, Requeue::RateLimited),
            ("throttled, no wait named", Category::Throttled { retry_after: None }, Requeue::RateLimited),
            ("FW-252 a wait was named", throttled(42), exactly(42)),
            ("L12-102 a wait of a day is cut", throttled(86_400), exactly(1_800)),
            ("a token must be mended", Category::Unauthorised, exactly(60)),
            ("the cloud refuses", Category::Permanent, exactly(60)),
            ("we stopped ourselves", Category::Cancelled, Requeue::Forget),
        ];
        for (case, category, want) in table {
            assert_eq!(requeue(Err(&Error::new(category, "x"))), want, "{case}");
        }
        assert_eq!(requeue(Ok(())), Requeue::Forget, "FW-250");
    }

    #[test]
    fn only_a_back_off_begins_anew() {
        assert_eq!(Requeue::RateLimited.further(), Requeue::Anew, "L12-832");
        for other in [Requeue::Forget, exactly(60), Requeue::After(SAFETY_CHECK), Requeue::Anew] {
            assert_eq!(other.further(), other, "L12-833 a wait that was asked for is kept");
        }
    }
}
