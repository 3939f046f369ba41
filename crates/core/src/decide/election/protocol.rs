//! The inputs and actions of a candidate.

#![allow(missing_docs, reason = "plain data whose names say what it is")]

use jiff::Timestamp;

use super::lease::Lease;
use crate::{error::Result, lookup::Lookup, time::Tick};

/// The time and a random number for one step.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Moment {
    pub now: Tick,
    /// The time of day, for the record.
    pub wall: Timestamp,
    /// A number drawn from `[0, 1)`.
    pub fraction: f64,
}

/// Matches an answer to its request. The answer to a request that was given up is ignored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ticket(pub(super) u64);

#[derive(Clone, Debug)]
pub enum Input {
    /// Nothing; the time of the last [`Action::Wait`] or of a request's `until` has come.
    Wake,
    /// The answer to [`Action::Get`]. A Lease that cannot be read is `Unknown`.
    Read(Ticket, Lookup<Lease>),
    /// The answer to [`Action::Create`] or [`Action::Update`]: the Lease as it was stored.
    Wrote(Ticket, Result<Lease>),
    /// A watch showed the Lease, or that it was deleted. It may show what was true a while ago.
    Noticed(Option<Lease>),
    Stop {
        /// Whether to release the Lease, so that another replica may lead a moment later.
        /// [`may_release`](super::may_release) says when that is safe; otherwise it expires.
        release: bool,
    },
}

/// What to do next. A request is sent at once, and given up at `until`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Action {
    /// Read the Lease from the API server, not from a cache.
    Get {
        /// To be handed back with the answer.
        ticket: Ticket,
        until: Tick,
    },
    Create {
        /// To be handed back with the answer.
        ticket: Ticket,
        until: Tick,
        lease: Lease,
    },
    /// Replace the Lease, insisting on its resource version, which is never empty.
    Update {
        /// To be handed back with the answer.
        ticket: Ticket,
        until: Tick,
        lease: Lease,
    },
    /// Give [`Input::Wake`] at this time, unless there is another input before.
    Wait(Tick),
    Stopped {
        /// Whether others may lead at once. If not, they wait until the lease expires.
        released: bool,
    },
}

/// Why a leader does not lead any more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Loss {
    Expired,
    /// The API server shows that the lease is not ours.
    Taken,
    Stopped,
}

/// What changed for the rest of the program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum News {
    Leads,
    /// This replica led, and must not write any more.
    Lost(Loss),
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Move {
    pub action: Action,
    pub news: Option<News>,
}
