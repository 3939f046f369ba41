//! How the servers behind load balancers changed over time.

use cloudberth_core::Tick;
use serde::Serialize;
use sim_kit::micros;

/// A change of the servers behind a balancer.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct NodesChange {
    /// The balancer.
    pub balancer: String,
    /// When, by the cloud's clock (in JSON, microseconds).
    #[serde(serialize_with = "micros")]
    pub at: Tick,
    /// The servers before the change.
    pub before: Vec<String>,
    /// Those of them that ran.
    pub running_before: usize,
    /// The servers after the change.
    pub after: Vec<String>,
}

impl NodesChange {
    /// Whether a balancer lost its last server while it had one that ran.
    pub fn emptied(&self) -> bool {
        self.running_before > 0 && self.after.is_empty()
    }
}
