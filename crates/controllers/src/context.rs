//! What every controller works with.

use std::sync::Arc;

use cloudberth_core::{Clock, Random};
use cloudberth_runtime::{cluster::Cluster, metrics::Metrics, recorder::EventRecorder};

use crate::clouds::Clouds;

/// The ctx of a controller.
#[derive(Clone, Debug)]
pub struct ControllerContext {
    /// The cluster: its stores, and the one way to write to it.
    pub cluster: Cluster,
    /// The clouds at work in it.
    pub clouds: Clouds,
    /// Who tells people.
    pub recorder: Arc<EventRecorder>,
    /// What is counted.
    pub metrics: Metrics,
    /// Chance.
    pub random: Arc<Random>,
    /// The name of the cluster, which is part of the names of what is made for it.
    pub cluster_name: String,
}

impl ControllerContext {
    /// Time.
    pub fn clock(&self) -> &Arc<dyn Clock> {
        self.cluster.clock()
    }
}
