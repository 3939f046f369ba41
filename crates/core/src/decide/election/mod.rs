//! The next move of a candidate for leadership.
//!
//! Replicas compete for one Lease, by the same rules as every other Kubernetes component: whoever holds it renews
//! it, and whoever sees it unchanged for the time that its record names may take it. Remote clocks are never
//! compared; only the time that passed here since a record was first seen counts.
//!
//! [`Candidate`] is the state machine: what was heard goes in, the next request or wait comes out. It does no IO and
//! reads no clock. [`Lease`] is the record as the API server keeps it, [`Config`] what can be set.

mod candidate;
mod config;
mod lease;
mod protocol;
mod release;

pub use candidate::Candidate;
pub use config::{Config, JITTER};
pub use lease::{Lease, Record};
pub use protocol::{Action, Input, Loss, Moment, Move, News, Ticket};
pub use release::{Writes, may_release};

#[cfg(test)]
mod model;
#[cfg(test)]
mod tests;
