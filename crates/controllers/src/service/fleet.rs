//! From changes of nodes to the Services that have to be looked at.
//!
//! Nodes change in bursts. What they changed is collected for a moment, and then each Service is looked at once, and
//! only if the set of nodes that it should have is another than the one that it was given last.

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

use super::{index::Entry, memory::SyncReason};
use crate::clouds::Clouds;

/// How a node was when it was last dealt with, and how it is now.
#[derive(Clone, Debug)]
struct Turnover {
    old: Option<Arc<NodeView>>,
    new: Option<Arc<NodeView>>,
}

/// The changes of nodes that are not dealt with yet.
#[derive(Clone, Debug, Default)]
pub(super) struct NodeChanges(BTreeMap<String, Turnover>);

impl NodeChanges {
    /// Adds a change. Returns whether there is anything to deal with.
    pub(super) fn add(&mut self, change: &Change<NodeView>) -> bool {
        let Change { old, new } = change;
        let Some(name) = old.as_ref().or(new.as_ref()).map(|node| &node.name) else { return false };
        if let Some(known) = self.0.get_mut(name) {
            known.new.clone_from(new);
            return true;
        }
        let matters = trigger(old.as_deref(), new.as_deref()) != Trigger::None;
        if matters {
            self.0.insert(name.clone(), Turnover { old: old.clone(), new: new.clone() });
        }
        matters
    }

    /// Whether they touch the load balancer of a Service.
    fn touch(&self, clouds: &Clouds, entry: &Entry) -> bool {
        let owned = |node: &NodeView| owns(clouds, &entry.cloud, node);
        self.0.values().any(|turnover| {
            affects(turnover.old.as_deref(), turnover.new.as_deref(), owned, entry.selector.as_ref())
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

    /// Sends everybody to work whose nodes are others than they were.
    pub(super) fn sift(&self) {
        let news = std::mem::take(&mut *crate::lock(&self.node_news));
        let touched: Vec<(ObjectKey, Entry)> = crate::lock(&self.index)
            .wanting()
            .filter(|(_, entry)| news.touch(&self.ctx.clouds, entry))
            .map(|(key, entry)| (key.clone(), entry.clone()))
            .collect();
        let nodes = self.ctx.cluster.nodes.all();
        // Most Services want the same nodes.
        let mut fleets: BTreeMap<(String, Option<String>), Fleet> = BTreeMap::new();
        let wanting = touched.into_iter().map(|(key, entry)| {
            let kind = (entry.cloud.clone(), entry.selector.as_ref().map(ToString::to_string));
            let fleet = fleets
                .entry(kind)
                .or_insert_with(|| Fleet::of(&self.members(&entry.cloud, entry.selector.as_ref(), &nodes)));
            (key, fleet.clone())
        });
        let lacking = crate::lock(&self.synced).lacking(wanting);
        if lacking.is_empty() {
            return;
        }
        let batch = (self.ctx.clock().now(), lacking.iter().cloned().collect());
        crate::lock(&self.batches).push(batch);
        for key in lacking {
            self.send(&key, SyncReason::Nodes);
        }
    }

    /// A look at a Service is over: changes of nodes that waited for it only are dealt with.
    pub(super) fn looked_at(&self, key: &ObjectKey) {
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
