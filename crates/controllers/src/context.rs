//! What every controller works with.

use std::{fmt, sync::Arc, time::Duration};

use cloudberth_core::{
    Clock, Random,
    decide::queue::{ItemExponential, WorkQueue},
};
use cloudberth_runtime::{
    cluster::Cluster, metrics::Metrics, recorder::EventRecorder, worker_pool::WorkerPool,
};

use crate::clouds::Clouds;

/// What every controller works with.
#[derive(Clone, Debug)]
pub struct ControllerContext {
    /// The cluster: its stores, and the one way to write to it.
    pub cluster: Cluster,
    /// The configured clouds.
    pub clouds: Clouds,
    /// The writer of events.
    pub recorder: Arc<EventRecorder>,
    /// The metrics of the program.
    pub metrics: Metrics,
    /// The source of jitter.
    pub random: Arc<Random>,
    /// The name of the cluster, which is part of the names of what is made for it.
    pub cluster_name: String,
}

impl ControllerContext {
    /// A pool without work. Keys that fail wait for `first`, doubling up to `last`, stretched by `jitter` at most.
    pub(crate) fn pool<K: Ord + Clone + Send + fmt::Debug, T: Clone + Send>(
        &self,
        name: &'static str,
        capacity: usize,
        (first, last): (Duration, Duration),
        jitter: f64,
    ) -> WorkerPool<K, T> {
        let limiter = ItemExponential::new(first, last).jittered(jitter, Arc::clone(&self.random));
        let queue = WorkQueue::new(capacity, limiter);
        WorkerPool::new(name, queue, Arc::clone(self.clock())).metered(&self.metrics.queues)
    }

    /// The clock of the cluster.
    pub fn clock(&self) -> &Arc<dyn Clock> {
        self.cluster.clock()
    }
}
