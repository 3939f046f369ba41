//! Which nodes wait for their cloud, for the metrics.

use std::sync::Mutex;

use cloudberth_core::{
    Clock, NodeView,
    decide::{node::taints, waiting::Waiting},
};
use cloudberth_runtime::{informer::Change, metrics::controllers::WaitingMetrics};

use crate::lock;

/// The nodes that wait, counted for as long as the term lasts: only the leader's number says anything.
#[derive(Debug)]
pub(super) struct WaitingNodes {
    waiting: Mutex<Waiting<String>>,
    metrics: WaitingMetrics,
}

impl WaitingNodes {
    pub(super) fn new(metrics: &WaitingMetrics) -> Self {
        Self { waiting: Mutex::default(), metrics: metrics.clone() }
    }

    /// A node has waited since it was created.
    pub(super) fn changed(&self, change: &Change<NodeView>, clock: &dyn Clock) {
        let now = clock.wall();
        let mut waiting = lock(&self.waiting);
        // A new node may bear the name of the one before it.
        if let Some(old) = &change.old
            && change.new.as_ref().is_none_or(|new| new.uid != old.uid)
        {
            waiting.set(&old.name, false, now);
        }
        if let Some(new) = &change.new {
            let waits = new.has_taint(taints::UNINITIALISED);
            waiting.set(&new.name, waits, new.created.unwrap_or(now));
        }
        self.metrics.set(waiting.count(), waiting.oldest());
    }
}

impl Drop for WaitingNodes {
    fn drop(&mut self) {
        self.metrics.set(0, None);
    }
}
