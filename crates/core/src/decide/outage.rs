//! Whether a cloud is away, by the one listing that everybody shares.
//!
//! ```text
//!   here ──► one failure ──► another ──► away: nobody else asks, one question now and then
//!    ▲            │                        │
//!    └────────────┴──── any answer ◄───────┘  whoever waits is woken
//! ```
//!
//! A refusal is an answer too: a cloud that refuses a token or asks to be left alone is there. Only what fails in the ways
//! of [`Category::Temporary`] (5xx, no connection, no answer) makes it look away.

use std::time::Duration;

use crate::error::{Category, Error};

/// So many failures in a row mean that the cloud is away.
const AWAY_AFTER: u32 = 2;
/// After a failure nobody asks for this long: what fails for one fails for all.
const REST: Duration = Duration::from_secs(2);
/// The same while the cloud is away. Its return is noticed this late, and somewhat more.
const REST_WHILE_AWAY: Duration = Duration::from_secs(10);
/// What was heard this long ago says nothing about now. Longer than a question and the rest before it take together: if
/// nobody has asked for so long, whoever comes next may.
const STALE: Duration = Duration::from_secs(90);
/// Whatever waited for the cloud is retried within this time after its return, spread evenly.
pub const SPREAD: Duration = Duration::from_secs(2);

/// Whether a cloud that is away fails like this.
#[must_use]
pub fn is_silence(error: &Error) -> bool {
    error.category() == Category::Temporary
}

/// What is known about a cloud's presence.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Outage {
    failures: u32,
}

impl Outage {
    /// The question was answered, or not. Returns whether the cloud was away and is back.
    pub fn heard<T>(&mut self, answer: &Result<T, Error>) -> bool {
        let was_away = self.is_away();
        match answer {
            Err(why) if is_silence(why) => self.failures = self.failures.saturating_add(1),
            _ => self.failures = 0,
        }
        was_away && !self.is_away()
    }

    /// Whether the last that was heard is that the cloud is away.
    #[must_use]
    pub const fn is_away(self) -> bool {
        self.failures >= AWAY_AFTER
    }

    /// Whether nobody needs to try, if that was heard `ago`.
    #[must_use]
    pub fn bars(self, ago: Duration) -> bool {
        self.is_away() && ago < STALE
    }

    /// How long after a failure the question is not asked again.
    #[must_use]
    pub const fn rest(self) -> Duration {
        if self.is_away() { REST_WHILE_AWAY } else { REST }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_takes_two_failures_to_be_away_and_one_answer_to_be_back() {
        let silent = || Err(Error::temporary("503"));
        let refused = |category| Err(Error::new(category, "no"));
        let throttled = Category::Throttled { retry_after: Some(Duration::from_secs(60)) };
        // (answer, away, back, rest)
        let table = [
            (Ok(()), false, false, 2),
            (silent(), false, false, 2),
            (Ok(()), false, false, 2),
            (silent(), false, false, 2),
            (silent(), true, false, 10),
            (silent(), true, false, 10),
            (Ok(()), false, true, 2),
            (silent(), false, false, 2),
            (silent(), true, false, 10),
            (refused(Category::Unauthorised), false, true, 2),
            (silent(), false, false, 2),
            (refused(throttled), false, false, 2),
            (silent(), false, false, 2),
        ];
        let mut outage = Outage::default();
        for (number, (answer, away, back, rest)) in table.into_iter().enumerate() {
            assert_eq!(outage.heard(&answer), back, "L12-837 {number}");
            assert_eq!((outage.is_away(), outage.rest().as_secs()), (away, rest), "L12-838 {number}");
            let bars = [0, 89, 90].map(|ago| outage.bars(Duration::from_secs(ago)));
            assert_eq!(bars, [away, away, false], "L12-852 {number}: what nobody looks after is tried");
        }
    }
}
