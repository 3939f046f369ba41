//! What stands in the way of a cluster or a quota, and when it is tried again.

use std::time::Duration;

use cloudberth_core::{Reason, error::cut, rate::Backoff};

use crate::settings::Delays;

/// When something is tried again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Again {
    /// With growing waits.
    Backoff,
    /// With growing waits, but not within a minute: a chart was tried.
    SlowBackoff,
    /// After about a minute.
    Soon,
    /// After the wait for a cluster that does not answer.
    Unreachable,
    /// After ten minutes, or when something changes.
    Slow,
    /// With the next resync: it is only to be known.
    Never,
}

/// Something that stands in the way.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    /// The reason of its event.
    pub reason: Reason,
    /// What is wrong, for people; without any secret.
    pub message: String,
    /// When it is tried again.
    pub again: Again,
}

impl Problem {
    /// A problem, with a message that fits into an event.
    pub fn new(reason: Reason, again: Again, message: impl AsRef<str>) -> Self {
        Self { reason, message: cut(message.as_ref(), 1_000), again }
    }
}

/// The wait until the next run that serves all of these problems: the shortest. Without any it is the next resync.
/// `failures` counts the runs in a row that ended with a problem, this one included.
pub fn next_run(problems: &[Problem], delays: &Delays, resync: Duration, failures: u32) -> Duration {
    let growing = Backoff { first: delays.backoff_first, longest: delays.backoff_longest };
    let waits = problems.iter().map(|problem| match problem.again {
        Again::Backoff => growing.after(failures),
        Again::SlowBackoff => growing.after(failures).max(delays.soon),
        Again::Soon => delays.soon,
        Again::Unreachable => delays.unreachable,
        Again::Slow => delays.slow,
        Again::Never => resync,
    });
    waits.min().unwrap_or(resync).min(resync)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::reasons::{HELM_FAILED, NO_KUBECONFIG};

    #[test]
    fn the_most_urgent_problem_decides() {
        let delays = Delays::default();
        let resync = Duration::from_secs(630);
        let of = |all: &[Again], failures| {
            let problems: Vec<_> = all.iter().map(|again| Problem::new(NO_KUBECONFIG, *again, "x")).collect();
            next_run(&problems, &delays, resync, failures).as_secs()
        };
        let table: [(&str, &[Again], u32, u64); 9] = [
            ("RF-31 nothing is wrong", &[], 0, 630),
            ("RF-37 RF-46 RF-47 RF-48", &[Again::Unreachable], 1, 120),
            ("RF-42 RF-43 RF-67", &[Again::Soon, Again::Slow], 1, 60),
            ("RF-100", &[Again::Slow], 1, 600),
            ("RF-71 RF-72 a chart is not tried within a minute", &[Again::Slow, Again::SlowBackoff], 1, 60),
            ("RF-72 and then more and more slowly", &[Again::SlowBackoff], 7, 320),
            ("RF-183 any other failure", &[Again::Never, Again::Backoff], 1, 5),
            ("RF-183 up to ten minutes", &[Again::Backoff], 40, 600),
            ("only to be known", &[Again::Never], 0, 630),
        ];
        for (case, all, failures, want) in table {
            assert_eq!(of(all, failures), want, "{case}");
        }
    }

    #[test]
    fn a_message_fits_into_an_event() {
        let problem = Problem::new(HELM_FAILED, Again::Backoff, "é".repeat(3_000));
        assert!(problem.message.len() <= 1_010, "{}", problem.message.len());
    }
}
