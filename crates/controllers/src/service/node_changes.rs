//! From changes of nodes, and of the nodes that pods run on, to the Services that they affect.
//!
//! Both change in bursts. Changes are collected for a moment, and then a Service is enqueued once, and only if the set
//! of nodes that it should have differs from the one that it got last.

use std::{collections::BTreeMap, sync::Arc};

use cloudberth_core::{
    NodeView, ObjectKey, ServiceView,
    decide::nodeset::{
        Selector,
        eligible::members,
        local::is_local,
        synced::Fleet,
        trigger::{Trigger, affects, trigger},
    },
    lb::Backend,
};
use cloudberth_runtime::informer::Change;

use super::{index::Entry, state::SyncReason};
use crate::clouds::{Cloud, Clouds};

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
        let Some(cloud) = clouds.named(&entry.cloud) else { return false };
        let accepted = |node: &NodeView| accepts(clouds, cloud, node);
        self.0.values().any(|node| {
            affects(node.old.as_deref(), node.new.as_deref(), accepted, entry.request.selector.as_ref())
        })
    }
}

/// Whether a node may stand behind the load balancers of this cloud, whatever the Service says.
pub(super) fn accepts(clouds: &Clouds, cloud: &Cloud, node: &NodeView) -> bool {
    let own = clouds.owner(node).is_some_and(|owner| owner.name() == cloud.name());
    cloud.load_balancers().is_some_and(|balancers| balancers.accepts(node, own))
}

impl super::ServiceController {
    /// Those of the `accepted` nodes that belong behind the load balancer of a Service.
    pub(super) fn backends(
        &self,
        cloud: &Cloud,
        service: &ServiceView,
        selector: Option<&Selector>,
        accepted: &[Arc<NodeView>],
    ) -> Vec<Backend> {
        let local = self.looks_at_endpoints(cloud, service).then(|| {
            let (endpoints, _) = &*crate::lock(&self.endpoints);
            endpoints.nodes(&service.key())
        });
        let backend = |node: Arc<NodeView>| Backend {
            local_endpoint: local.as_ref().map(|nodes| nodes.contains(&node.name)),
            node,
        };
        members(accepted, |_| true, selector).into_iter().map(backend).collect()
    }

    /// Whether it has to be known on which nodes the pods of a Service are, and is known.
    fn looks_at_endpoints(&self, cloud: &Cloud, service: &ServiceView) -> bool {
        is_local(service)
            && cloud.load_balancers().is_some_and(|all| all.profile().needs_endpoints)
            && self.ctx.cluster.endpoint_slices.as_ref().is_some_and(|slices| slices.is_synced())
    }

    /// Enqueues the Services whose set of nodes has changed.
    pub(super) fn enqueue_affected(&self) {
        let changes = std::mem::take(&mut *crate::lock(&self.node_changes));
        let moved = std::mem::take(&mut crate::lock(&self.endpoints).1);
        let touched: Vec<(ObjectKey, Entry)> = crate::lock(&self.index)
            .wanting()
            .filter(|(key, entry)| changes.affect(&self.ctx.clouds, entry) || moved.contains(*key))
            .map(|(key, entry)| (key.clone(), entry.clone()))
            .collect();
        let nodes = self.ctx.cluster.nodes.all();
        let mut accepted: BTreeMap<String, Vec<Arc<NodeView>>> = BTreeMap::new();
        // Most Services want the same nodes.
        let mut fleets: BTreeMap<(String, Option<String>, Option<ObjectKey>), Fleet> = BTreeMap::new();
        let wanting = touched.into_iter().filter_map(|(key, Entry { cloud: name, request, version, .. })| {
            let cloud = self.ctx.clouds.named(&name)?;
            let of_its_own = self.looks_at_endpoints(cloud, &version).then(|| key.clone());
            let kind = (name.clone(), request.selector.as_ref().map(ToString::to_string), of_its_own);
            let fleet = fleets.entry(kind).or_insert_with(|| {
                let here = |node: &&Arc<NodeView>| accepts(&self.ctx.clouds, cloud, node);
                let accepted =
                    accepted.entry(name).or_insert_with(|| nodes.iter().filter(here).cloned().collect());
                Fleet::of(&self.backends(cloud, &version, request.selector.as_ref(), accepted))
            });
            Some((key, fleet.clone()))
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
