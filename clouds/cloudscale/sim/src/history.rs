//! How many members each pool had over time, so that tests can check that no pool loses its last one.

use cloudberth_core::Tick;
use serde::Serialize;
use sim_kit::micros;

/// The members of a pool changed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct PoolChange {
    /// When, in microseconds of the cloud's time.
    #[serde(serialize_with = "micros")]
    pub at: Tick,
    /// The pool's id.
    pub pool: String,
    /// The pool's name.
    pub name: String,
    /// The balancer's id.
    pub balancer: String,
    /// Enabled members before the change.
    pub before: usize,
    /// Enabled members before the change that were not known to be down.
    pub healthy_before: usize,
    /// Enabled members after the change.
    pub after: usize,
    /// The pool was deleted with its members.
    pub gone: bool,
}

impl PoolChange {
    /// Whether a pool that still exists lost its last member while it had a healthy one.
    pub fn emptied(&self) -> bool {
        !self.gone && self.healthy_before > 0 && self.after == 0
    }
}

/// All changes, oldest first.
pub(crate) type History = Vec<PoolChange>;
