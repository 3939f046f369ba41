//! What the leader election measures.

#![allow(missing_docs, reason = "fields are labels and metrics, explained where they are registered")]

use prometheus_client::encoding::EncodeLabelSet;

use super::{
    Registry,
    kinds::{Counter, Family, Gauge, Stability::Alpha, publish},
};

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, EncodeLabelSet)]
pub struct LeaseLabels {
    pub name: String,
}

#[derive(Clone, Debug, Default)]
pub struct ElectionMetrics {
    /// Who leads: 1 for us.
    pub master_status: Family<LeaseLabels, Gauge>,
    /// Renewals that had to read the lease first.
    pub slow_path: Family<LeaseLabels, Counter>,
}

impl ElectionMetrics {
    /// Whether the lease of this name is ours. Said once when the election begins, then at every change.
    pub fn leads(&self, lease: &str, ours: bool) {
        self.master_status.with(&LeaseLabels { name: lease.to_owned() }).set(i64::from(ours));
    }

    /// A renewal had to read the lease first.
    pub fn went_slowly(&self, lease: &str) {
        self.slow_path.with(&LeaseLabels { name: lease.to_owned() }).inc();
    }

    pub fn register(&self, registry: &mut Registry) {
        let help = "Whether this process holds the lease: 1 if it does, 0 if not";
        publish(registry, "leader_election_master_status", Alpha, help, self.master_status.clone());
        let help = "Renewals of the lease that had to read it first";
        publish(registry, "leader_election_slowpath_total", Alpha, help, self.slow_path.clone());
    }
}
