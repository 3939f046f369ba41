//! When a request is retried, and after how long. Pure.

use std::time::{Duration, SystemTime};

use cloudberth_core::{Random, rate::Backoff};
use jiff::Timestamp;

/// The longest pause that a server can ask for: a mistake in a header must not stop a credential for a year.
const LONGEST_PAUSE: Duration = Duration::from_secs(3_600);

/// A write that would have to wait longer than this fails instead: its caller can do something else meanwhile, and what
/// it was to change may look different by then.
const LONGEST_WAIT_OF_A_WRITE: Duration = Duration::from_secs(1);

/// The limits of a client.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Policy {
    /// The most attempts, the first included.
    pub attempts: u32,
    /// The wait before a retry.
    pub backoff: Backoff,
    /// How much is added to each wait at random, as a fraction of it.
    pub jitter: f64,
    /// How long one attempt to read may take.
    pub read_attempt: Duration,
    /// How long one attempt to write may take.
    pub write_attempt: Duration,
    /// The longest body that is taken.
    pub body_limit: usize,
    /// The most pages that one listing may have.
    pub page_limit: u32,
}

impl Default for Policy {
    fn default() -> Self {
        Self {
            attempts: 4,
            backoff: Backoff { first: Duration::from_millis(500), longest: Duration::from_secs(8) },
            jitter: 0.5,
            read_attempt: Duration::from_secs(30),
            // Just above the minute after which gateways give up, so that their answer is still heard.
            write_attempt: Duration::from_secs(65),
            // Some clouds list everything at once: 10,000 servers are 17 MiB.
            body_limit: 64 * 1024 * 1024,
            page_limit: 1_000,
        }
    }
}

/// Whether a request may be retried.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Repeat {
    /// Always: it changes nothing.
    Safe,
    /// Always: it was declared that twice is the same as once.
    Declared,
    /// Only if it had no effect for certain.
    IfUndone,
    /// Only if it was never sent.
    Never,
}

/// What a failed attempt says about the effect of the request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Effect {
    /// None, and a retry would not help.
    None,
    /// None, because nothing was sent.
    NotSent,
    /// None, because of the server's rate limit.
    Throttled,
    /// None: the API itself says that nothing was done.
    Undone,
    /// It may have had an effect; a retry may be answered.
    Doubtful,
    /// It may have had an effect, and a retry is useless or not allowed.
    DoubtfulForGood,
}

impl Effect {
    pub(crate) const fn is_doubtful(self) -> bool {
        matches!(self, Self::Doubtful | Self::DoubtfulForGood)
    }
}

impl Policy {
    /// The wait before attempt `sent + 1`; `None` if there is no retry. The wait is never shorter than `asked`, the one that
    /// the server asked for.
    pub(crate) fn again(
        &self,
        repeat: Repeat,
        effect: Effect,
        sent: u32,
        asked: Option<Duration>,
        random: &Random,
    ) -> Option<Duration> {
        let allowed = match effect {
            Effect::None | Effect::DoubtfulForGood => false,
            Effect::NotSent => true,
            Effect::Throttled | Effect::Undone => match repeat {
                Repeat::Safe | Repeat::Declared => true,
                Repeat::IfUndone => asked.is_none_or(|wait| wait <= LONGEST_WAIT_OF_A_WRITE),
                Repeat::Never => false,
            },
            Effect::Doubtful => matches!(repeat, Repeat::Safe | Repeat::Declared),
        };
        if !allowed || sent >= self.attempts {
            return None;
        }
        Some(random.jitter(self.backoff.after(sent), self.jitter).max(asked.unwrap_or_default()))
    }
}

/// The wait that a `Retry-After` header asks for, in seconds or as an HTTP date; an hour at most.
///
/// `None` if it cannot be read or asks for no wait; the usual back-off applies then.
pub fn retry_after(header: &str, wall: Timestamp) -> Option<Duration> {
    let header = header.trim();
    let wait = if header.bytes().all(|b| b.is_ascii_digit()) && !header.is_empty() {
        // More digits than fit is a long time too.
        header.parse().map_or(LONGEST_PAUSE, Duration::from_secs)
    } else {
        let then = httpdate::parse_http_date(header).ok()?;
        then.duration_since(SystemTime::from(wall)).ok()?
    };
    Some(wait.min(LONGEST_PAUSE)).filter(|wait| !wait.is_zero())
}

#[cfg(test)]
mod tests {
    use super::{
        Effect::{Doubtful, DoubtfulForGood, NotSent, Throttled, Undone},
        Repeat::*,
        *,
    };

    const NEVER_ASKED: Option<Duration> = None;

    #[test]
    fn only_what_is_safe_is_repeated() {
        let table = [
            // effect, safe, declared, if undone, never
            (Effect::None, [false, false, false, false]),
            (NotSent, [true, true, true, true]),
            (Throttled, [true, true, true, false]),
            (Undone, [true, true, true, false]),
            (Doubtful, [true, true, false, false]),
            (DoubtfulForGood, [false, false, false, false]),
        ];
        for (effect, want) in table {
            let got = [Safe, Declared, IfUndone, Never].map(|repeat| {
                Policy::default().again(repeat, effect, 1, NEVER_ASKED, &Random::seeded(1)).is_some()
            });
            assert_eq!(got, want, "L12-302 {effect:?}");
        }
    }

    #[test]
    fn a_write_that_had_no_effect_waits_a_moment_but_not_long() {
        let again = |repeat, effect, asked| {
            let asked = Some(Duration::from_millis(asked));
            Policy::default().again(repeat, effect, 1, asked, &Random::seeded(1))
        };
        for effect in [Throttled, Undone] {
            let wait = again(IfUndone, effect, 1_000).expect("it is worth waiting for");
            assert!(
                wait >= Duration::from_secs(1),
                "L12-827 {effect:?}: not before the time that was asked for"
            );
            assert_eq!(again(IfUndone, effect, 1_001), None, "L12-828 {effect:?}");
            assert!(again(Safe, effect, 60_000).is_some(), "a read holds nobody up");
        }
    }

    #[test]
    fn waits_double_up_to_a_limit_and_end() {
        let policy = Policy {
            attempts: 8,
            jitter: 0.0,
            backoff: Backoff { longest: Duration::from_secs(5), ..Policy::default().backoff },
            ..Policy::default()
        };
        let asked = Some(Duration::from_secs(3));
        let waits = |asked| {
            (1..=8)
                .map(|sent| {
                    let wait = policy.again(Safe, Doubtful, sent, asked, &Random::seeded(1));
                    wait.map(|w| w.as_millis())
                })
                .collect::<Vec<_>>()
        };
        let want = [500, 1_000, 2_000, 4_000, 5_000, 5_000, 5_000];
        assert_eq!(waits(NEVER_ASKED), want.map(Some).into_iter().chain([None]).collect::<Vec<_>>());
        let want = [3_000, 3_000, 3_000, 4_000, 5_000, 5_000, 5_000];
        assert_eq!(waits(asked), want.map(Some).into_iter().chain([None]).collect::<Vec<_>>());
        assert_eq!(
            Policy { attempts: u32::MAX, ..policy }.again(
                Safe,
                Doubtful,
                4_000,
                NEVER_ASKED,
                &Random::seeded(1)
            ),
            Some(Duration::from_secs(5))
        );
    }

    #[test]
    fn retry_after_in_all_its_forms() {
        let wall: Timestamp = "2031-05-06T12:00:00Z".parse().unwrap();
        let table = [
            ("3", Some(3)),
            (" 120 ", Some(120)),
            ("0", None),
            ("86400", Some(3_600)),
            ("99999999999999999999999", Some(3_600)),
            ("Tue, 06 May 2031 12:00:07 GMT", Some(7)),
            ("Tuesday, 06-May-31 12:00:07 GMT", Some(7)),
            ("Tue May  6 12:00:07 2031", Some(7)),
            ("Tue, 06 May 2031 11:59:59 GMT", None),
            ("Tue, 06 May 2031 12:00:00 GMT", None),
            ("-3", None),
            ("1.5", None),
            ("soon", None),
            ("", None),
        ];
        for (header, want) in table {
            assert_eq!(retry_after(header, wall), want.map(Duration::from_secs), "{header:?}");
        }
    }
}
