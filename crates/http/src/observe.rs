//! A hook that sees every attempt, for metrics.

use std::{fmt, time::Duration};

use jiff::Timestamp;

/// One attempt of one operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Attempt {
    /// The operation's name: one of a fixed set, fit for a metric's label.
    pub operation: &'static str,
    /// The status of the answer, if there was one.
    pub status: Option<u16>,
    /// How it ended, from a fixed set: `answered`, `not_sent`, `lost`, `cut`, `timeout`, `claim_ended`.
    pub outcome: &'static str,
    /// From sending to the end of the body, or to giving up.
    pub took: Duration,
    /// The time of day at the server, if it said so.
    pub server_time: Option<Timestamp>,
}

/// Is told about every attempt that was sent.
pub trait Observer: Send + Sync {
    /// Called once per attempt, when it is over. Must not block.
    fn attempted(&self, attempt: Attempt);

    /// Called when an operation had to wait for the credential's budget.
    fn waited(&self, _operation: &'static str, _wait: Duration) {}
}

/// Ignores all attempts.
#[derive(Clone, Copy, Debug, Default)]
pub struct Unobserved;

impl Observer for Unobserved {
    fn attempted(&self, _attempt: Attempt) {}
}

impl fmt::Debug for dyn Observer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Observer")
    }
}
