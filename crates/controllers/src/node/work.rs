//! The work on one node: look, decide, write, and decide again on the answer until there is nothing to write.

use std::{sync::Arc, time::Duration};

use cloudberth_core::{
    Call, Category, Error, Lookup, NodeView, Result,
    decide::{
        node::{
            events,
            initialise::{Verdict, initialise},
            ownership::NodeOwner,
            patch::{ConflictRetry, NodePatch},
            reconcile::reconcile,
            taints,
        },
        queue::{Requeue, requeue},
    },
};

use super::{NodeController, look::Look};
use crate::clouds::Cloud;

/// How long the work on one node may take, listings included.
pub(super) const PATIENCE: Duration = Duration::from_secs(120);
/// No node needs more writes than this at once. Somebody who undoes each of them is met again later, not at once.
pub(super) const MOST_WRITES: usize = 4;

/// What is to be done next.
enum Step {
    /// Nothing for now.
    Done(Requeue),
    /// Send this.
    Write {
        patch: NodePatch,
        /// With it the node goes into service.
        joins: bool,
    },
}

impl NodeController {
    pub(super) async fn work(&self, name: String) -> Requeue {
        match self.sync(&name).await {
            Ok(after) => after,
            Err(why) => {
                tracing::warn!(node = name, category = why.category().label(), %why, "a node was not brought up to date");
                requeue(Err(&why))
            }
        }
    }

    async fn sync(&self, name: &str) -> Result<Requeue> {
        let Some(node) = self.ctx.cluster.nodes.get(&name.to_owned()) else {
            self.memory.forget(name);
            return Ok(Requeue::Forget);
        };
        let clouds: Vec<Cloud> = self.ctx.clouds.candidates(&node).into_iter().cloned().collect();
        if clouds.is_empty() {
            tracing::debug!(node = name, "a node of no cloud at work here is left alone");
            return Ok(Requeue::Forget);
        }
        let known = self.memory.meet(&node, self.ctx.clock().now());
        let call = self.ctx.cluster.call(PATIENCE);
        let look = match self.look(&call, &node, &known, &clouds).await {
            Ok(look) => look,
            Err(wait) => return Ok(Requeue::Exactly(wait)),
        };
        // A listing takes a while, and a new node changes often.
        match self.ctx.cluster.nodes.get(&node.name).filter(|newest| newest.uid == node.uid) {
            Some(node) => self.carry_out(&call, node, &look).await,
            None => Ok(Requeue::Forget),
        }
    }

    async fn carry_out(&self, call: &Call, mut node: Arc<NodeView>, look: &Look) -> Result<Requeue> {
        let mut writes = 0;
        let mut tries = 0;
        loop {
            let (patch, joins) = match self.next(&node, look) {
                Step::Done(after) => return Ok(after),
                Step::Write { patch, joins } => (patch, joins),
            };
            if writes == MOST_WRITES {
                let message = format!("what is written on node {:?} does not stay", node.name);
                return Err(Error::temporary(message));
            }
            match self.ctx.cluster.patch_node(call, &node.name, &patch).await {
                Ok(answer) => {
                    if joins {
                        self.joined(&answer);
                    }
                    (node, writes, tries) = (answer, writes + 1, 0);
                }
                Err(why) => {
                    tries += 1;
                    match self.read_again(call, &node, tries, why).await? {
                        Some(fresh) => node = fresh,
                        None => return Ok(Requeue::Forget),
                    }
                }
            }
        }
    }

    /// The node as it is now, to decide anew on after a conflict; `None` if it is gone or another has taken its place,
    /// and the error itself where another try at once would not help.
    async fn read_again(
        &self,
        call: &Call,
        node: &NodeView,
        tries: u32,
        why: Error,
    ) -> Result<Option<Arc<NodeView>>> {
        if why.category() == Category::NotFound {
            return Ok(None);
        }
        let waits = node.has_taint(taints::UNINITIALISED);
        let rule = if waits { ConflictRetry::INITIALISE } else { ConflictRetry::UPKEEP };
        let Some(wait) = rule.again(tries, why.category()) else { return Err(why) };
        tokio::time::sleep(self.ctx.random.jitter(wait, 1.0)).await;
        let fresh = self.ctx.cluster.read_node(call, &node.name).await.known()?;
        Ok(fresh.filter(|fresh| fresh.uid == node.uid).map(Arc::new))
    }

    fn next(&self, node: &NodeView, look: &Look) -> Step {
        let owner = look.owner(node);
        match initialise(node, &owner) {
            Verdict::Skip => {
                // Where the instance is not known, the next pass asks again.
                let known = matches!(owner, NodeOwner::Ours { instance: Lookup::Present(_), .. });
                if known { self.keep_up(node, &owner) } else { Step::Done(Requeue::Forget) }
            }
            Verdict::Leave(why) => {
                tracing::debug!(node = node.name, why, "a node of somebody else is left alone");
                Step::Done(Requeue::Forget)
            }
            Verdict::Retry(why) | Verdict::NotFound(why) => {
                self.memory.not_helped_by(node, look.begun());
                tracing::info!(node = node.name, %why, "a node cannot be initialised yet");
                if let Some(reason) = events::worth_telling(why.category()) {
                    self.complain(node, &[(reason, why.message())]);
                }
                Step::Done(requeue(Err(&why)))
            }
            Verdict::Addresses(patch) => Step::Write { patch, joins: false },
            Verdict::Join { patch, notices } => {
                for notice in notices {
                    tracing::warn!(node = node.name, %notice, "a label of the cloud was not written");
                }
                Step::Write { patch, joins: true }
            }
        }
    }

    fn keep_up(&self, node: &NodeView, key: &NodeOwner<'_>) -> Step {
        let upkeep = reconcile(node, key);
        for notice in upkeep.notices {
            tracing::debug!(node = node.name, %notice, "a label of the cloud was not written");
        }
        if let Some(patch) = upkeep.writes.into_iter().next() {
            return Step::Write { patch, joins: false };
        }
        let mut complaints = Vec::new();
        if let Some(why) = &upkeep.addresses_held {
            complaints.extend(events::worth_telling(why.category()).map(|reason| (reason, why.message())));
        }
        if upkeep.unbound {
            complaints.push((events::UNBOUND, events::UNBOUND_MESSAGE));
        }
        self.complain(node, &complaints);
        Step::Done(Requeue::Forget)
    }

    /// Says what is wrong with a node, once for as long as it holds.
    fn complain(&self, node: &NodeView, complaints: &[(&'static str, &str)]) {
        let reasons: Vec<_> = complaints.iter().map(|(reason, _)| *reason).collect();
        self.memory.still_holds(node, &reasons);
        for (reason, message) in complaints {
            if self.memory.is_news(node, reason) {
                self.warn(node, reason, message);
            }
        }
    }

    fn joined(&self, node: &NodeView) {
        let age = node.created.map(|created| self.ctx.clock().wall().duration_since(created));
        let age = age.and_then(|age| Duration::try_from(age).ok()).unwrap_or_default();
        self.ctx.metrics.node.taint_removal_delay.observe(age);
        tracing::info!(node = node.name, "a node was initialised");
        self.tell(node, false, events::SYNCED, events::SYNCED_MESSAGE);
        self.ctx.metrics.node.initial_sync_delay.observe(age);
    }
}
