//! How many servers each load balancer had over time, so that tests can check that none loses its last one.

use cloudberth_core::Tick;
use serde::Serialize;
use sim_kit::micros;

/// The servers of a load balancer changed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct PoolChange {
    /// When, in microseconds of the cloud's time.
    #[serde(serialize_with = "micros")]
    pub at: Tick,
    /// The balancer's id.
    pub balancer: i64,
    /// The balancer's name.
    pub name: String,
    /// Servers before the change.
    pub before: usize,
    /// Servers after the change.
    pub after: usize,
    /// The balancer was deleted, or a server was.
    pub gone: bool,
}

impl PoolChange {
    /// Whether a request took the last server from a balancer that still exists.
    pub const fn emptied(&self) -> bool {
        !self.gone && self.before > 0 && self.after == 0
    }
}
