//! Clusters whose managers are silent, and the load balancers that they left behind.

use std::{collections::BTreeMap, time::Duration};

use cloudberth_core::Tick;

use super::State;
use crate::plane::BalancerKey;

/// When each cluster was asked about last.
#[derive(Clone, Debug)]
pub(crate) struct Silence {
    /// Nobody can have asked before.
    started: Tick,
    heard: BTreeMap<String, Tick>,
}

impl Silence {
    pub(super) fn new(started: Tick) -> Self {
        Self { started, heard: BTreeMap::new() }
    }

    fn of(&self, cluster: &str, now: Tick) -> Duration {
        now.since(self.heard.get(cluster).copied().unwrap_or(self.started))
    }
}

impl State {
    /// A manager of this cluster is there.
    pub(crate) fn heard_of(&mut self, cluster: &str, now: Tick) {
        if self.has_cluster(cluster) {
            self.silence.heard.insert(cluster.to_owned(), now);
        }
    }

    /// The load balancers whose managers have been silent for as long as the inventory says, and since when. Nothing is
    /// abandoned unless the inventory has `reapAfter`.
    pub(crate) fn abandoned(&self, now: Tick) -> Vec<(BalancerKey, Duration)> {
        let Some(after) = self.inventory.balancers.reap_after else { return Vec::new() };
        let keys = self.balancers.iter().map(|(key, _)| key.clone());
        let silent = keys.map(|key| (self.silence.of(&key.cluster, now), key));
        silent.filter(|(silent, _)| *silent >= after).map(|(silent, key)| (key, silent)).collect()
    }
}
