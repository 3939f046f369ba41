//! What the metrics show of it.

use std::{
    collections::BTreeMap,
    sync::{
        Mutex,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use cloudberth_core::decide::lifecycle::{Operation, Outcome};

use crate::lock;

/// What was done. It outlives a term of leadership.
#[derive(Debug, Default)]
pub struct LifecycleCounters {
    calls: Mutex<BTreeMap<(Operation, Outcome), u64>>,
    held: AtomicU64,
    panics: AtomicU64,
    rounds: Mutex<(u64, Duration)>,
}

impl LifecycleCounters {
    /// `cloud_node_lifecycle_controller_cloud_provider_calls_total`, by `operation` and `result`.
    pub fn calls(&self) -> BTreeMap<(Operation, Outcome), u64> {
        lock(&self.calls).clone()
    }

    /// `cloudberth_node_deletions_held_total`: nodes whose deletion the cap put off.
    pub fn held(&self) -> u64 {
        self.held.load(Ordering::Relaxed)
    }

    /// How often a bug was met and caught.
    pub fn panics(&self) -> u64 {
        self.panics.load(Ordering::Relaxed)
    }

    /// `cloud_node_lifecycle_controller_monitor_nodes_duration_seconds`: rounds over all nodes of a cloud, and how long
    /// they took together.
    pub fn rounds(&self) -> (u64, Duration) {
        *lock(&self.rounds)
    }

    pub(super) fn called(&self, questions: impl IntoIterator<Item = (Operation, Outcome)>) {
        let mut calls = lock(&self.calls);
        for question in questions {
            *calls.entry(question).or_default() += 1;
        }
    }

    pub(super) fn held_back(&self) {
        self.held.fetch_add(1, Ordering::Relaxed);
    }

    pub(super) fn panicked(&self) {
        self.panics.fetch_add(1, Ordering::Relaxed);
    }

    pub(super) fn round(&self, took: Duration) {
        let mut rounds = lock(&self.rounds);
        *rounds = (rounds.0.saturating_add(1), rounds.1.saturating_add(took));
    }
}
