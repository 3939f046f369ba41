//! Carries out what was ordered about one node. Whatever happened to the node since is looked at first.

use std::{sync::Arc, time::Duration};

use cloudberth_core::{
    Category, Lookup, NodeView, Result,
    decide::{
        lifecycle::{Answer, NodeEvent, NodeFacts, Verdict, at_once},
        node::{patch::ConflictRetry, taints},
        queue::{Requeue, requeue},
    },
};

use super::{LifecycleController, tracked::TrackedNodes};
use crate::lock;

/// How long the writes about one node may take together.
const PATIENCE: Duration = Duration::from_secs(30);

/// What a round ordered.
#[derive(Clone, Debug)]
pub(super) enum Order {
    /// Add the shutdown taint to this very node.
    Mark {
        /// Its UID.
        uid: String,
    },
    /// Delete this very node, and say so first.
    Delete(Arc<(NodeFacts, NodeEvent)>),
}

impl LifecycleController {
    /// Carries out what was ordered about a node, and takes the mark off one that is Ready again.
    pub(super) async fn attend(&self, name: String) -> Requeue {
        let order = lock(&self.orders).get(&name).cloned();
        let node = self.ctx.cluster.nodes.get(&name);
        let Some((node, tracked)) =
            node.and_then(|node| self.tracked_by(&node).map(|tracked| (node, tracked)))
        else {
            lock(&self.orders).remove(&name);
            return Requeue::Forget;
        };
        if let Some(Order::Delete(order)) = order {
            let (facts, event) = &*order;
            self.remove(tracked, facts, event).await;
            // What failed is judged anew by the next round.
            lock(&self.orders).remove(&name);
            return Requeue::Forget;
        }
        let mark = matches!(&order, Some(Order::Mark { uid }) if *uid == node.uid);
        match self.retaint(tracked, node, mark).await {
            Ok(()) => {
                let mut orders = lock(&self.orders);
                if matches!(orders.get(&name), Some(Order::Mark { .. })) {
                    orders.remove(&name);
                }
                Requeue::Forget
            }
            Err(why) => {
                tracing::warn!(node = name, %why, "the shutdown taint could not be written");
                requeue(Err(&why))
            }
        }
    }

    /// Brings the shutdown taint in line, as long as the node is still what was judged.
    async fn retaint(&self, tracked: &TrackedNodes, mut node: Arc<NodeView>, mark: bool) -> Result<()> {
        let cluster = &self.ctx.cluster;
        let call = cluster.call(PATIENCE);
        let mut tries = 0;
        loop {
            let list = match at_once(&self.facts(tracked, &node)) {
                Some(Verdict::RemoveShutdownTaint) => taints::without(&node.taints, &taints::shutdown()),
                None if mark => taints::with(&node.taints, &taints::shutdown()),
                _ => None,
            };
            let Some(list) = list else { return Ok(()) };
            tries += 1;
            let written = cluster.patch_node(&call, &node.name, &taints::patch(&node, &list)).await;
            let why = match written {
                Ok(_) => return Ok(()),
                Err(why) if why.category() == Category::NotFound => return Ok(()),
                Err(why) => why,
            };
            let Some(wait) = ConflictRetry::UPKEEP.again(tries, why.category()) else { return Err(why) };
            tokio::time::sleep(self.ctx.random.jitter(wait, 1.0)).await;
            node = match cluster.read_node(&call, &node.name).await.known()? {
                Some(fresh) if fresh.uid == node.uid => Arc::new(fresh),
                Some(_) | None => return Ok(()),
            };
        }
    }

    /// Deletes a node whose instance is gone. The watch may lag, so the node itself is asked a last time.
    async fn remove(&self, tracked: &TrackedNodes, facts: &NodeFacts, event: &NodeEvent) {
        let cluster = &self.ctx.cluster;
        let call = cluster.call(PATIENCE);
        let unchanged = |fresh: &NodeView| {
            let fresh = self.facts(tracked, fresh);
            let same = fresh.uid == facts.uid && fresh.tie == facts.tie && !fresh.uninitialised;
            same && at_once(&fresh).is_none()
        };
        let mut tries = 0;
        let answer = loop {
            let fresh = match cluster.read_node(&call, &facts.name).await {
                Lookup::Present(fresh) if unchanged(&fresh) => fresh,
                Lookup::Present(_) | Lookup::Absent => {
                    tracing::info!(node = facts.name, "the node has changed since it was judged; it stays");
                    tracked.deletions().called_off(facts);
                    return;
                }
                Lookup::Unknown(why) => {
                    tracing::warn!(node = facts.name, %why, "the node could not be read before its deletion");
                    tracked.deletions().called_off(facts);
                    tracked.ask_by(self.now() + self.settings.period);
                    return;
                }
            };
            if !tracked.deletions().send(facts, self.settings.cap, self.now()) {
                tracing::info!(
                    node = facts.name,
                    "the deletion had to wait for too long; the node is judged anew"
                );
                tracked.ask_by(self.now() + self.settings.period);
                return;
            }
            if tries == 0 {
                tracing::info!(cloud = tracked.cloud.name(), node = facts.name, "{}", event.message);
                self.tell(event.clone());
            }
            tries += 1;
            let answer = cluster.delete_node(&call, &fresh).await;
            // A conflict: it changed after it was read, or another has taken its place. Look again.
            let again =
                answer.as_ref().err().and_then(|why| ConflictRetry::UPKEEP.again(tries, why.category()));
            let Some(wait) = again else { break answer };
            tracked.deletions().again(facts);
            tokio::time::sleep(self.ctx.random.jitter(wait, 1.0)).await;
        };
        let meaning = tracked.deletions().answered(facts, answer.as_ref().copied(), self.now());
        match meaning {
            Answer::Gone => {}
            Answer::Changed => tracked.ask_by(self.now() + self.settings.period),
            Answer::Failed(event) => {
                if let Some(event) = event {
                    tracing::warn!(node = facts.name, "{}", event.message);
                    self.tell(event);
                }
                tracked.ask_by(self.now() + self.settings.period);
            }
        }
    }
}
