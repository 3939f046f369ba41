//! What every controller works with.

use std::sync::Arc;

use cloudberth_core::{Clock, Dice};
use cloudberth_runtime::{cluster::Cluster, herald::Herald, metrics::Metrics};

use crate::clouds::Clouds;

/// The desk of a controller.
#[derive(Clone, Debug)]
pub struct Desk {
    /// The cluster: its stores, and the one way to write to it.
    pub cluster: Cluster,
    /// The clouds at work in it.
    pub clouds: Clouds,
    /// Who tells people.
    pub herald: Arc<Herald>,
    /// What is counted.
    pub metrics: Metrics,
    /// Chance.
    pub dice: Arc<Dice>,
    /// The name of the cluster, which is part of the names of what is made for it.
    pub cluster_name: String,
}

impl Desk {
    /// Time.
    pub fn clock(&self) -> &Arc<dyn Clock> {
        self.cluster.clock()
    }
}
