//! Carries out what was ordered about one node. Whatever happened to the node since is looked at first.

use std::{sync::Arc, time::Duration};

use cloudberth_core::{
    Category, Lookup, NodeView, Result,
    decide::{
        lifecycle::{Answer, NodeEvent, Suspect, Verdict, at_once},
        node::{patch::ConflictRetry, taints},
        queue::{After, after},
    },
};

use super::{LifecycleController, ward::Ward};
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
    Delete(Arc<(Suspect, NodeEvent)>),
}

impl LifecycleController {
    /// Carries out what was ordered about a node, and takes the mark off one that is Ready again.
    pub(super) async fn attend(&self, name: String) -> After {
        let order = lock(&self.orders).get(&name).cloned();
        let node = self.desk.cluster.nodes.get(&name);
        let Some((node, ward)) = node.and_then(|node| self.ward_of(&node).map(|ward| (node, ward))) else {
            lock(&self.orders).remove(&name);
            return After::Forget;
        };
        if let Some(Order::Delete(order)) = order {
            let (suspect, event) = &*order;
            self.remove(ward, suspect, event).await;
            // What failed is judged anew by the next round.
            lock(&self.orders).remove(&name);
            return After::Forget;
        }
        let mark = matches!(&order, Some(Order::Mark { uid }) if *uid == node.uid);
        match self.retaint(ward, node, mark).await {
            Ok(()) => {
                let mut orders = lock(&self.orders);
                if matches!(orders.get(&name), Some(Order::Mark { .. })) {
                    orders.remove(&name);
                }
                After::Forget
            }
            Err(why) => {
                tracing::warn!(node = name, %why, "the shutdown taint could not be written");
                after(Err(&why))
            }
        }
    }

    /// Brings the shutdown taint in line, as long as the node is still what was judged.
    async fn retaint(&self, ward: &Ward, mut node: Arc<NodeView>, mark: bool) -> Result<()> {
        let cluster = &self.desk.cluster;
        let call = cluster.call(PATIENCE);
        let mut tries = 0;
        loop {
            let list = match at_once(&self.suspect(ward, &node)) {
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
            tokio::time::sleep(self.desk.dice.jitter(wait, 1.0)).await;
            node = match cluster.read_node(&call, &node.name).await.known()? {
                Some(fresh) if fresh.uid == node.uid => Arc::new(fresh),
                Some(_) | None => return Ok(()),
            };
        }
    }

    /// Deletes a node whose machine is gone. The watch may lag, so the node itself is asked a last time.
    async fn remove(&self, ward: &Ward, suspect: &Suspect, event: &NodeEvent) {
        let cluster = &self.desk.cluster;
        let call = cluster.call(PATIENCE);
        let unchanged = |fresh: &NodeView| {
            let fresh = self.suspect(ward, fresh);
            let same = fresh.uid == suspect.uid && fresh.tie == suspect.tie && !fresh.uninitialised;
            same && at_once(&fresh).is_none()
        };
        let mut tries = 0;
        let answer = loop {
            let fresh = match cluster.read_node(&call, &suspect.name).await {
                Lookup::Present(fresh) if unchanged(&fresh) => fresh,
                Lookup::Present(_) | Lookup::Absent => {
                    tracing::info!(node = suspect.name, "the node has changed since it was judged; it stays");
                    ward.deletions().called_off(suspect);
                    return;
                }
                Lookup::Unknown(why) => {
                    tracing::warn!(node = suspect.name, %why, "the node could not be read before its deletion");
                    ward.deletions().called_off(suspect);
                    ward.ask_by(self.now() + self.settings.period);
                    return;
                }
            };
            if !ward.deletions().send(suspect, self.settings.cap, self.now()) {
                tracing::info!(
                    node = suspect.name,
                    "the deletion had to wait for too long; the node is judged anew"
                );
                ward.ask_by(self.now() + self.settings.period);
                return;
            }
            if tries == 0 {
                tracing::info!(cloud = ward.cloud.name(), node = suspect.name, "{}", event.message);
                self.tell(event.clone());
            }
            tries += 1;
            let answer = cluster.delete_node(&call, &fresh).await;
            // A conflict: it changed after it was read, or another has taken its place. Look again.
            let again =
                answer.as_ref().err().and_then(|why| ConflictRetry::UPKEEP.again(tries, why.category()));
            let Some(wait) = again else { break answer };
            ward.deletions().again(suspect);
            tokio::time::sleep(self.desk.dice.jitter(wait, 1.0)).await;
        };
        let meaning = ward.deletions().answered(suspect, answer.as_ref().copied(), self.now());
        match meaning {
            Answer::Gone => {}
            Answer::Changed => ward.ask_by(self.now() + self.settings.period),
            Answer::Failed(event) => {
                if let Some(event) = event {
                    tracing::warn!(node = suspect.name, "{}", event.message);
                    self.tell(event);
                }
                ward.ask_by(self.now() + self.settings.period);
            }
        }
    }
}
