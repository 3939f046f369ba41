//! From changes of nodes to the Services that they affect.
//!
//! Nodes change in bursts. Changes are collected for a moment, and then a Service is enqueued once, and only if the set
//! of nodes that it should have differs from the one that it got last.

use std::{collections::BTreeMap, sync::Arc};

use cloudberth_core::{
    NodeView, ObjectKey,
    decide::nodeset::{
        Selector,
        eligible::members,
        synced::Fleet,
        trigger::{Trigger, affects, trigger},
    },
};
use cloudberth_runtime::informer::Change;

use super::{index::Entry, state::SyncReason};
use crate::clouds::Clouds;

/// A node as it was at the last round, and as it is now.
#[derive(Clone, Debug)]
struct Difference {
    old: Option<Arc<NodeView>>,
    new: Option<Arc<NodeView>>,
}

/// The changes of nodes since the last round.
#[derive(Clone, Debug, Default)]
pub(super) struct NodeChanges(BTreeMap<String, Difference>);

impl NodeChanges {
    /// Adds a change. Returns whether it may matter to a load balancer.
    pub(super) fn add(&mut self, change: &Change<NodeView>) -> bool {
        let Change { old, new } = change;
        let Some(name) = old.as_ref().or(new.as_ref()).map(|node| &node.name) else { return false };
        if let Some(known) = self.0.get_mut(name) {
            known.new.clone_from(new);
            return true;
        }
        let matters = trigger(old.as_deref(), new.as_deref()) != Trigger::None;
        if matters {
            self.0.insert(name.clone(), Difference { old: old.clone(), new: new.clone() });
        }
        matters
    }

    /// Whether they affect the load balancer of a Service.
    fn affect(&self, clouds: &Clouds, entry: &Entry) -> bool {
        let owned = |node: &NodeView| owns(clouds, &entry.cloud, node);
        self.0.values().any(|node| {
            affects(node.old.as_deref(), node.new.as_deref(), owned, entry.request.selector.as_ref())
        })
    }
}

/// Whether a node belongs to this cloud.
fn owns(clouds: &Clouds, cloud: &str, node: &NodeView) -> bool {
    clouds.owner(node).is_some_and(|owner| owner.name() == cloud)
}

impl super::ServiceController {
    /// Those of `nodes` that belong behind a load balancer.
    pub(super) fn members(
        &self,
        cloud: &str,
        selector: Option<&Selector>,
        nodes: &[Arc<NodeView>],
    ) -> Vec<Arc<NodeView>> {
        let owned = |node: &NodeView| owns(&self.ctx.clouds, cloud, node);
        members(nodes, owned, selector)
    }

    /// Enqueues the Services whose set of nodes has changed.
    pub(super) fn enqueue_affected(&self) {
        let changes = std::mem::take(&mut *crate::lock(&self.node_changes));
        let touched: Vec<(ObjectKey, Entry)> = crate::lock(&self.index)
            .wanting()
            .filter(|(_, entry)| changes.affect(&self.ctx.clouds, entry))
            .map(|(key, entry)| (key.clone(), entry.clone()))
            .collect();
        let nodes = self.ctx.cluster.nodes.all();
        // Most Services want the same nodes.
        let mut fleets: BTreeMap<(String, Option<String>), Fleet> = BTreeMap::new();
        let wanting = touched.into_iter().map(|(key, entry)| {
            let kind = (entry.cloud.clone(), entry.request.selector.as_ref().map(ToString::to_string));
            let fleet = fleets.entry(kind).or_insert_with(|| {
                Fleet::of(&self.members(&entry.cloud, entry.request.selector.as_ref(), &nodes))
            });
            (key, fleet.clone())
        });
        let lacking = crate::lock(&self.synced).lacking(wanting);
        if lacking.is_empty() {
            return;
        }
        let batch = (self.ctx.clock().now(), lacking.iter().cloned().collect());
        crate::lock(&self.batches).push(batch);
        for key in lacking {
            self.enqueue(&key, SyncReason::Nodes);
        }
    }

    /// A pass over a Service is over: changes of nodes that only waited for it are done.
    pub(super) fn finish_batches(&self, key: &ObjectKey) {
        let now = self.ctx.clock().now();
        crate::lock(&self.batches).retain_mut(|(since, left)| {
            left.remove(key);
            if left.is_empty() {
                self.ctx.metrics.service.node_sync_latency.observe(now.since(*since));
            }
            !left.is_empty()
        });
    }
}
