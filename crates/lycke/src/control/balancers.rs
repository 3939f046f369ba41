//! Load balancers are made, changed and deleted.

use std::time::Duration;

use serde_json::Value;

use super::Control;
use crate::{
    events::EventKind,
    inventory::AddressMode,
    plane::{BalancerKey, BalancerReport, Counters},
    refusal::Refusal,
    spec,
    state::{Balancer, Balancers, Persisted, Put, State},
};

/// How often load balancers are looked for whose managers are silent.
const REAP: Duration = Duration::from_secs(60);

/// A load balancer: what it should be and how it is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BalancerStatus {
    /// Its name.
    pub key: BalancerKey,
    /// What it should be.
    pub balancer: Balancer,
    /// The mode that its spec comes to.
    pub mode: AddressMode,
    /// How it is; none before the plane has heard of it.
    pub report: Option<BalancerReport>,
}

impl Control {
    /// Makes a load balancer, or makes it be like the spec. Answers when its listeners are bound or have failed.
    pub async fn put(&self, key: &BalancerKey, body: &Value) -> Result<(Put, BalancerStatus), Refusal> {
        self.heard_of(&key.cluster);
        let _guard = self.0.keys.lock(key).await;
        let (put, changed) = {
            let _writer = self.0.writer.lock().await;
            let (put, changed) = self.decide_put(key, body)?;
            if put != Put::Unchanged {
                self.write(changed.clone()).await?;
            }
            (put, changed)
        };
        self.follow(key, true).await;
        if put != Put::Unchanged {
            let addresses = changed.get(key).map(|balancer| balancer.addresses.clone()).unwrap_or_default();
            let addresses: Vec<_> = addresses.iter().map(ToString::to_string).collect();
            let verb = if put == Put::Created { "created" } else { "changed" };
            let message = format!("load balancer {verb} at {}", addresses.join(" and "));
            tracing::info!(balancer = %key, "{message}");
            self.0.events.publish(EventKind::BalancerChanged, key.to_string(), message);
        }
        // Nobody else changes it while the lock of its key is held.
        let gone = || Refusal::new(500, "internal", format!("{key} is not there after it was put"));
        Ok((put, self.balancer(key).ok_or_else(gone)?))
    }

    fn decide_put(&self, key: &BalancerKey, body: &Value) -> Result<(Put, Balancers), Refusal> {
        if self.is_closing() {
            return Err(closing());
        }
        let state = self.state();
        if !state.has_cluster(&key.cluster) {
            let known: Vec<_> = state.inventory.clusters.keys().map(String::as_str).collect();
            return Err(Refusal::no_cluster(&key.cluster, &known));
        }
        let spec = spec::read(body, state.pools.default_mode).map_err(Refusal::invalid)?;
        let mut changed = state.balancers.clone();
        let put = changed.put(key, spec, &state.pools)?;
        Ok((put, changed))
    }

    /// Deletes a load balancer. Says whether it was there.
    pub async fn delete(&self, key: &BalancerKey, uid: Option<&str>) -> Result<bool, Refusal> {
        let _guard = self.0.keys.lock(key).await;
        {
            let _writer = self.0.writer.lock().await;
            if self.is_closing() {
                return Err(closing());
            }
            let mut changed = self.state().balancers.clone();
            let pools = self.state().pools.clone();
            if !changed.delete(key, uid, &pools)? {
                return Ok(false);
            }
            self.write(changed).await?;
        }
        self.follow(key, true).await;
        tracing::info!(balancer = %key, "load balancer deleted");
        self.0.events.publish(EventKind::BalancerDeleted, key.to_string(), "load balancer deleted");
        Ok(true)
    }

    /// A manager of this cluster is there.
    pub(crate) fn heard_of(&self, cluster: &str) {
        let now = self.now();
        self.state().heard_of(cluster, now);
    }

    /// Deletes load balancers whose managers have been silent for as long as the inventory allows.
    pub async fn reap(&self) {
        for (key, silent) in self.with_state(State::abandoned) {
            tracing::warn!(
                balancer = %key,
                "load balancer is deleted: nobody has asked about its cluster for {} s",
                silent.as_secs()
            );
            if let Err(why) = self.delete(&key, None).await {
                tracing::warn!(balancer = %key, "load balancer stays: {}", why.message);
            }
        }
    }

    /// Looks now and then for load balancers that nobody looks after; never ends.
    pub(crate) async fn follow_silence(&self) {
        loop {
            tokio::time::sleep(REAP).await;
            self.reap().await;
        }
    }

    /// Writes the load balancers down, and then has everybody see them. The caller holds the writer's lock.
    async fn write(&self, balancers: Balancers) -> Result<(), Refusal> {
        let text = Persisted::new(&balancers).to_text();
        self.0.store.save(text).await.map_err(|why| {
            tracing::error!("state file cannot be written: {why}");
            Refusal::new(500, "state_not_written", format!("the state file cannot be written: {why}"))
        })?;
        self.state().balancers = balancers;
        Ok(())
    }

    /// One load balancer.
    pub fn balancer(&self, key: &BalancerKey) -> Option<BalancerStatus> {
        let (balancer, mode) = {
            let state = self.state();
            let balancer = state.balancers.get(key)?.clone();
            let mode = balancer.spec.mode(state.pools.default_mode);
            (balancer, mode)
        };
        Some(BalancerStatus { key: key.clone(), balancer, mode, report: self.0.plane.report(key) })
    }

    /// All load balancers, or those of a cluster, by cluster, namespace and name.
    pub fn balancers(&self, cluster: Option<&str>) -> Vec<BalancerStatus> {
        let keys: Vec<_> = {
            let state = self.state();
            let all = state.balancers.iter().map(|(key, _)| key.clone());
            all.filter(|key| cluster.is_none_or(|cluster| key.cluster == cluster)).collect()
        };
        keys.iter().filter_map(|key| self.balancer(key)).collect()
    }

    /// What a load balancer has done, and its uid.
    pub fn counters(&self, key: &BalancerKey) -> Option<(String, Counters)> {
        let uid = self.state().balancers.get(key)?.spec.uid.clone();
        Some((uid, self.0.plane.counters(key).unwrap_or_default()))
    }
}

fn closing() -> Refusal {
    Refusal::new(503, "shutting_down", "the service is about to end")
}
