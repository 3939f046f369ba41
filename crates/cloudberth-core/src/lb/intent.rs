//! The mark that keeps a lost answer from becoming a second load balancer (law 6).
//!
//! Before anything is created the Service carries the intent. While it is young and nothing is found, the thing may
//! still be on its way into being: nothing is created a second time, and nothing lets go of the Service.

use std::time::Duration;

use jiff::{SignedDuration, Timestamp};

use crate::error::{Error, Result};

/// The annotation; its value is the time at which the intent was recorded.
pub const INTENT_ANNOTATION: &str = "cloudberth.dev/intent";

/// What a recorded intent allows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Intent {
    /// None is pending: whoever wants to create records a new one first; whoever wants to let go may.
    Free,
    /// One is pending for this much longer.
    Pending(Duration),
}

/// Judges the annotation's value at `now`, for a cloud that settles within `settle`.
///
/// A time in the future was written by a clock that is ahead of ours; it pends until it is really over. A value that
/// is not a time is an error: it may hide a creation, so a person has to look.
pub fn judge_intent(value: Option<&str>, now: Timestamp, settle: Duration) -> Result<Intent> {
    let Some(text) = value else { return Ok(Intent::Free) };
    let recorded: Timestamp = text.parse().map_err(|_| {
        Error::user_input(format!(
            "annotation {INTENT_ANNOTATION}: {text:?} is not a time; \
             remove it once you are sure that no load balancer is being created"
        ))
    })?;
    let settle = SignedDuration::try_from(settle).unwrap_or(SignedDuration::MAX);
    let left = settle.saturating_sub(now.duration_since(recorded));
    Ok(match Duration::try_from(left) {
        Ok(left) if !left.is_zero() => Intent::Pending(left),
        _ => Intent::Free,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const SETTLE: Duration = Duration::from_secs(120);

    fn judge(value: Option<&str>) -> Result<Intent> {
        judge_intent(value, "2026-03-02T04:05:00Z".parse().unwrap(), SETTLE)
    }

    #[test]
    fn a_young_intent_holds_and_an_old_one_does_not() {
        let pending = |s| Intent::Pending(Duration::from_secs(s));
        let table = [
            ("L6-1 none", None, Intent::Free),
            ("L6-2 recorded this moment", Some("2026-03-02T04:05:00Z"), pending(120)),
            ("L6-3 a minute old", Some("2026-03-02T04:04:00Z"), pending(60)),
            ("L6-4 one second left", Some("2026-03-02T04:03:01Z"), pending(1)),
            ("L6-5 just over", Some("2026-03-02T04:03:00Z"), Intent::Free),
            ("L6-6 long ago", Some("2025-01-01T00:00:00Z"), Intent::Free),
            ("L6-7 written by a clock that is ahead", Some("2026-03-02T04:06:00Z"), pending(180)),
        ];
        for (case, value, want) in table {
            assert_eq!(judge(value), Ok(want), "{case}");
        }
    }

    #[test]
    fn a_value_that_is_no_time_is_never_taken_for_an_old_one() {
        for bad in ["", "yes", "2026-13-01T00:00:00Z"] {
            let error = judge(Some(bad)).unwrap_err();
            assert!(error.message().contains(INTENT_ANNOTATION), "L6-8 {bad:?}: {error}");
        }
    }
}
