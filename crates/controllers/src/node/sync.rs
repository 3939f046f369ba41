//! The sync of one node: find its instance, decide, write, and decide again on the answer until nothing is left.

use std::{panic::AssertUnwindSafe, sync::Arc, time::Duration};

use cloudberth_core::{
    Call, Category, Error, NodeView, Reason, Result,
    decide::{
        node::{
            events,
            ownership::NodeOwner,
            patch::ConflictRetry,
            step::{Problem, Step, next},
            taints,
        },
        queue::{Requeue, requeue},
    },
    reason::{self, EventSource},
};
use cloudberth_runtime::recorder::{Event, ObjectRef};
use futures_util::FutureExt;

use super::{NodeController, search::Search};
use crate::{
    dry_run::DryRun,
    effects::nodes::{Dry, Effects, Live},
    lock,
};

/// How long the sync of one node may take, listings included.
const PATIENCE: Duration = Duration::from_secs(120);
/// No node needs more writes than this in one sync. If somebody undoes each of them, the node comes back later.
const MOST_WRITES: usize = 4;

impl NodeController {
    /// Brings one node up to date.
    pub(super) async fn sync(&self, name: String) -> Requeue {
        let Some(node) = self.ctx.cluster.nodes.get(&name) else {
            self.records.remove(&name);
            return Requeue::Forget;
        };
        let call = self.ctx.cluster.call(PATIENCE);
        let search = match self.search(&call, &node).await {
            Ok(Some(search)) => search,
            Ok(None) => {
                tracing::debug!(node = name, "node left alone: it belongs to no configured cloud");
                return Requeue::Forget;
            }
            Err(wait) => return Requeue::Exactly(wait),
        };
        // A listing takes a while, and a new node changes often.
        let newest = self.ctx.cluster.nodes.get(&name).filter(|newest| newest.uid == node.uid);
        let Some(node) = newest else { return Requeue::Forget };
        self.update(&Live(&self.ctx), &call, node, &search).await.1.unwrap_or_else(|why| {
            tracing::warn!(node = name, category = why.category().label(), %why, "node sync failed");
            requeue(Err(&why))
        })
    }

    /// What would be done about every node now, each with how it would be afterwards.
    ///
    /// Nothing is written, and one new listing of each cloud serves all nodes.
    pub async fn dry_run(&self) -> Vec<(Arc<NodeView>, DryRun)> {
        let now = self.ctx.clock().now();
        *lock(&self.not_before) = now;
        let nodes = self.ctx.cluster.nodes.all();
        // All of them are older than the listing that is about to be made.
        for node in &nodes {
            self.records.get(node, now);
        }
        let mut all = Vec::with_capacity(nodes.len());
        for node in nodes {
            let one = AssertUnwindSafe(self.dry_run_one(Arc::clone(&node))).catch_unwind().await;
            all.push(one.unwrap_or_else(|_| (node, DryRun::bug())));
        }
        all
    }

    async fn dry_run_one(&self, node: Arc<NodeView>) -> (Arc<NodeView>, DryRun) {
        let call = self.ctx.cluster.call(PATIENCE);
        let search = loop {
            match self.search(&call, &node).await {
                Ok(Some(search)) => break search,
                Ok(None) => return (node, DryRun::default()),
                // A listing that is too old for this node was begun a moment ago, and the next has to wait.
                Err(wait) => tokio::time::sleep(wait.max(Duration::from_millis(1))).await,
            }
        };
        let owner = search.owner(&node);
        let cloud = if let NodeOwner::Ours { cloud, .. } = owner { Some(cloud) } else { None };
        let dry = Dry::node(&self.ctx.cluster, cloud, self.ctx.clock().now());
        let (node, ended) = self.update(&dry, &call, node, &search).await;
        if let Err(why) = ended {
            dry.unknown(&why);
        }
        (node, dry.finish())
    }

    /// Decides and writes until nothing is left to write. Returns the node as it is then, and when it comes back.
    async fn update<E: Effects>(
        &self,
        effects: &E,
        call: &Call,
        mut node: Arc<NodeView>,
        search: &Search,
    ) -> (Arc<NodeView>, Result<Requeue>) {
        let (mut writes, mut tries) = (0, 0);
        loop {
            let (patch, joins) = match next(&node, &search.owner(&node)) {
                Step::Write { patch, joins, notices } => {
                    for notice in notices {
                        tracing::info!(node = node.name, %notice, "label of the cloud not written");
                    }
                    (patch, joins)
                }
                end => {
                    let requeue = self.finish(effects, &node, search, end);
                    return (node, Ok(requeue));
                }
            };
            if writes == MOST_WRITES {
                let message = format!("what is written on node {:?} does not stay", node.name);
                return (node, Err(Error::temporary(message)));
            }
            match effects.patch_node(call, &node, &patch).await {
                Ok(answer) => {
                    if joins {
                        self.joined(effects, &answer);
                    }
                    (node, writes, tries) = (answer, writes + 1, 0);
                }
                Err(why) => {
                    tries += 1;
                    match self.read_again(effects, call, &node, tries, why).await {
                        Ok(Some(fresh)) => node = fresh,
                        Ok(None) => return (node, Ok(Requeue::Forget)),
                        Err(why) => return (node, Err(why)),
                    }
                }
            }
        }
    }

    /// The node as it is now, to decide anew on after a conflict; `None` if it is gone or another has taken its place,
    /// and the error itself where another try at once would not help.
    async fn read_again<E: Effects>(
        &self,
        effects: &E,
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
        let fresh = effects.read_node(call, &node.name).await.known()?;
        Ok(fresh.filter(|fresh| fresh.uid == node.uid).map(Arc::new))
    }

    /// Nothing is left to write: tells people what they should know.
    fn finish<E: Effects>(&self, effects: &E, node: &NodeView, search: &Search, end: Step) -> Requeue {
        match end {
            Step::Write { .. } => {}
            Step::Leave(why) => tracing::debug!(node = node.name, why, "node left alone"),
            Step::Current(problems) => self.warn(effects, node, problems),
            Step::Unknown(why) => match why.category().event_reason() {
                Some(_) => effects.remark(why.message()),
                None => effects.unknown(&why),
            },
            Step::NotYet { why, has_instance } => {
                self.records.needs_listing_after(node, search.begun());
                tracing::info!(node = node.name, %why, "node not initialised yet");
                let message = why.message().to_owned();
                match why.category().event_reason() {
                    reason @ Some(_) => self.warn(effects, node, vec![Problem { reason, message }]),
                    None if has_instance => effects.wait(&message, None),
                    None => effects.unknown(&why),
                }
                return requeue(Err(&why));
            }
        }
        Requeue::Forget
    }

    /// Says what is wrong with a node, once for as long as it holds.
    fn warn<E: Effects>(&self, effects: &E, node: &NodeView, problems: Vec<Problem>) {
        let reasons: Vec<_> = problems.iter().filter_map(|problem| problem.reason).collect();
        self.records.keep_warned(node, &reasons);
        for Problem { reason, message } in problems {
            match reason {
                Some(reason) => self.warn_once(effects, node, reason, &message),
                None => effects.remark(&message),
            }
        }
    }

    fn warn_once<E: Effects>(&self, effects: &E, node: &NodeView, reason: Reason, message: &str) {
        if self.records.is_new_warning(node, reason) {
            effects.publish(event(node, true, reason, message));
        }
    }

    fn joined<E: Effects>(&self, effects: &E, node: &NodeView) {
        let age = node.created.map(|created| self.ctx.clock().wall().duration_since(created));
        let age = age.and_then(|age| Duration::try_from(age).ok()).unwrap_or_default();
        self.ctx.metrics.node.taint_removal_delay.observe(age);
        effects.publish(event(node, false, reason::SYNCED, events::SYNCED_MESSAGE));
        self.ctx.metrics.node.initial_sync_delay.observe(age);
    }

    /// A worker panicked on this node.
    pub(super) fn panicked(&self, name: &str, text: &str) {
        if let Some(node) = self.ctx.cluster.nodes.get(&name.to_owned()) {
            self.warn_once(
                &Live(&self.ctx),
                &node,
                reason::INTERNAL_ERROR,
                &format!("internal error: {text}"),
            );
        }
    }
}

fn event(node: &NodeView, warning: bool, reason: Reason, message: &str) -> Event {
    Event {
        about: ObjectRef::node(node),
        warning,
        reason,
        message: cloudberth_core::error::cut(message, events::MESSAGE_LIMIT),
        component: EventSource::Node.component(),
    }
}
