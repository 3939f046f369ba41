//! Carries out what was decided about one node, after a last look at the node itself.

use std::{sync::Arc, time::Duration};

use cloudberth_core::{
    Category, Lookup, NodeView, Result,
    decide::{
        lifecycle::{Answer, NodeEvent, NodeFacts, Verdict, at_once},
        node::{patch::ConflictRetry, taints},
        queue::{Requeue, requeue},
    },
};

use super::{LifecycleController, event, monitor::Monitor};
use crate::effects::nodes::Effects;

/// How long the writes about one node may take together.
const PATIENCE: Duration = Duration::from_secs(30);

/// What a round decided about one node. The queue carries it to a worker; the newest wins.
#[derive(Clone)]
pub(super) enum Decision {
    /// Its instance is stopped: add the shutdown taint to the node with this UID.
    AddShutdownTaint(String),
    /// It is Ready: remove the shutdown taint.
    RemoveShutdownTaint,
    /// Its instance is gone: publish the event and delete the node.
    Delete(Arc<Deletion>),
}

pub(super) struct Deletion {
    pub(super) monitor: Arc<Monitor>,
    /// The facts on which it was decided.
    pub(super) facts: NodeFacts,
    /// Published just before.
    pub(super) event: NodeEvent,
}

impl Decision {
    /// It is never carried out. A deletion that was never sent does not count against the cap.
    pub(super) fn call_off(self) {
        if let Self::Delete(deletion) = self {
            deletion.monitor.deletions().called_off(&deletion.facts);
        }
    }
}

impl LifecycleController {
    pub(super) async fn apply<E: Effects>(
        &self,
        effects: &E,
        name: String,
        decision: Option<Decision>,
    ) -> Requeue {
        let add_to = match decision {
            None => return Requeue::Forget,
            Some(Decision::Delete(deletion)) => {
                self.delete(effects, &deletion).await;
                // The next round decides anew about what failed.
                return Requeue::Forget;
            }
            Some(Decision::AddShutdownTaint(uid)) => Some(uid),
            Some(Decision::RemoveShutdownTaint) => None,
        };
        let Some(node) = self.ctx.cluster.nodes.get(&name) else { return Requeue::Forget };
        let Some(monitor) = self.monitor_of(&node) else { return Requeue::Forget };
        let add = add_to.is_some_and(|uid| uid == node.uid);
        match self.taint(effects, monitor, node, add).await {
            Ok(()) => Requeue::Forget,
            Err(why) => {
                tracing::warn!(node = name, %why, "shutdown taint not written");
                requeue(Err(&why))
            }
        }
    }

    /// Adds the shutdown taint, or removes it from a node that is Ready by now.
    async fn taint<E: Effects>(
        &self,
        effects: &E,
        monitor: &Monitor,
        mut node: Arc<NodeView>,
        add: bool,
    ) -> Result<()> {
        let call = self.ctx.cluster.call(PATIENCE);
        let mut tries = 0;
        loop {
            let list = match at_once(&self.facts(monitor, &node)) {
                Some(Verdict::RemoveShutdownTaint) => taints::without(&node.taints, &taints::shutdown()),
                None if add => taints::with(&node.taints, &taints::shutdown()),
                _ => None,
            };
            let Some(list) = list else { return Ok(()) };
            tries += 1;
            let why = match effects.patch_node(&call, &node, &taints::patch(&node, &list)).await {
                Ok(_) => return Ok(()),
                Err(why) if why.category() == Category::NotFound => return Ok(()),
                Err(why) => why,
            };
            let Some(wait) = ConflictRetry::UPKEEP.again(tries, why.category()) else { return Err(why) };
            tokio::time::sleep(self.ctx.random.jitter(wait, 1.0)).await;
            node = match effects.read_node(&call, &node.name).await.known()? {
                Some(fresh) if fresh.uid == node.uid => Arc::new(fresh),
                Some(_) | None => return Ok(()),
            };
        }
    }

    /// Deletes a node whose instance is gone. The watch may lag, so the node itself is read once more (law 2).
    async fn delete<E: Effects>(&self, effects: &E, deletion: &Deletion) {
        let Deletion { monitor, facts, event: deleting } = deletion;
        let call = self.ctx.cluster.call(PATIENCE);
        let unchanged = |fresh: &NodeView| {
            let fresh = self.facts(monitor, fresh);
            let same = fresh.uid == facts.uid && fresh.tie == facts.tie && !fresh.uninitialised;
            same && at_once(&fresh).is_none()
        };
        let ask_again = || monitor.ask_by(effects.now() + self.settings.period);
        let mut tries = 0;
        let answer = loop {
            let fresh = match effects.read_node(&call, &facts.name).await {
                Lookup::Present(fresh) if unchanged(&fresh) => fresh,
                Lookup::Present(_) | Lookup::Absent => {
                    tracing::info!(node = facts.name, "deletion called off: the node has changed");
                    return monitor.deletions().called_off(facts);
                }
                Lookup::Unknown(why) => {
                    tracing::warn!(node = facts.name, %why, "deletion called off: the node was not read");
                    monitor.deletions().called_off(facts);
                    return ask_again();
                }
            };
            if !monitor.deletions().send(facts, self.settings.cap, effects.now()) {
                tracing::info!(node = facts.name, "deletion called off: it waited for too long");
                return ask_again();
            }
            if tries == 0 {
                effects.publish(event(deleting.clone()));
            }
            tries += 1;
            let answer = effects.delete_node(&call, &fresh).await;
            // A conflict: it changed after it was read, or another has taken its place. Look again.
            let again =
                answer.as_ref().err().and_then(|why| ConflictRetry::UPKEEP.again(tries, why.category()));
            let Some(wait) = again else { break answer };
            monitor.deletions().again(facts);
            tokio::time::sleep(self.ctx.random.jitter(wait, 1.0)).await;
        };
        let meaning = monitor.deletions().answered(facts, answer.as_ref().copied(), effects.now());
        if meaning != Answer::Gone {
            ask_again();
        }
        if let Answer::Failed(Some(failed)) = meaning {
            effects.publish(event(failed));
        }
    }
}
