//! What the leader election measures.

#![allow(missing_docs, reason = "fields are labels and metrics, explained where they are registered")]

use prometheus_client::encoding::EncodeLabelSet;

use super::{
    Registry,
    kinds::{Counter, Family, Gauge, publish},
    table,
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
        publish(registry, &table::MASTER_STATUS, self.master_status.clone());
        publish(registry, &table::SLOW_PATH, self.slow_path.clone());
    }
}
