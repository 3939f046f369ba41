//! A round over one cloud's nodes: list, ask where it could matter, judge, order.

use std::{collections::BTreeSet, panic::AssertUnwindSafe, sync::Arc, time::Duration};

use cloudberth_core::{
    Error, Instance, InstanceState, Listing, Lookup, ProviderId, Tick,
    decide::lifecycle::{
        DeletionDecision, Evidence, ListingTrust, Memory, NodeFacts, Round, Verdict, at_once, gather,
        instance_not_found, judge, lookup_due, questions, trust,
    },
    lb::LockKind,
};
use cloudberth_runtime::bug::caught;
use futures_util::{FutureExt, StreamExt, stream};

use super::{LifecycleController, act::Order, tracked::TrackedNodes};
use crate::{inventory::Snapshot, lock};

/// How many instances are asked about at once.
const QUESTIONS: usize = 8;
/// How long the questions of a round may take together.
pub(super) const PATIENCE: Duration = Duration::from_secs(60);
/// How many recorded things are looked for to clear a doubt.
const WITNESSES: usize = 3;

impl LifecycleController {
    /// Lists when it is time, and judges every listing, its own and everybody else's.
    pub(super) async fn watch_over(&self, tracked: &TrackedNodes) {
        let mut landings = tracked.cloud.inventory.landings();
        loop {
            landings.mark_unchanged();
            let wait = tracked.state().probing.next().since(self.now());
            if tracked.unjudged().is_none() && !wait.is_zero() {
                tokio::select! {
                    biased;
                    _ = landings.changed() => {}
                    () = tracked.news.notified() => {}
                    () = tokio::time::sleep(wait) => {}
                }
                continue;
            }
            if AssertUnwindSafe(self.round(tracked)).catch_unwind().await.is_err() {
                tracing::error!(
                    cloud = tracked.cloud.name(),
                    "internal error: a round over the nodes panicked"
                );
                self.panicked();
                tracked.state().probing.listed(self.now(), true);
            }
        }
    }

    async fn round(&self, tracked: &TrackedNodes) {
        let not_before = tracked.state().not_before;
        // The newest, if it was not judged yet; otherwise a new one.
        let snapshot = tracked.cloud.inventory.listing(not_before).await;
        let begun = self.now();
        let all_facts = self.node_facts(tracked);
        let doubts = all_facts.iter().any(|facts| at_once(facts).is_none());
        tracked.listed(&snapshot, doubts, begun);
        self.judge_all(tracked, &snapshot, &all_facts).await;
        self.ctx.metrics.lifecycle.monitor_duration.observe(self.now().since(begun));
    }

    async fn judge_all(&self, tracked: &TrackedNodes, snapshot: &Snapshot, all_facts: &[NodeFacts]) {
        let told = std::mem::replace(&mut tracked.state().troubled, snapshot.instances.is_err());
        let listing = match &snapshot.instances {
            Ok(listing) => listing,
            Err(why) => {
                if !told {
                    tracing::warn!(cloud = tracked.cloud.name(), %why, "instances cannot be listed; no node is judged");
                }
                let unknown = Lookup::Unknown(why.clone());
                for facts in all_facts {
                    self.count(facts, &unknown);
                }
                return;
            }
        };
        let trust = self.trust(tracked, listing, all_facts).await;
        let open: Vec<_> = all_facts.iter().filter(|facts| needs_judging(tracked, facts)).collect();
        let mut asked = Vec::with_capacity(open.len());
        for facts in &open {
            asked.push(self.ask(tracked, facts, trust.ask(listing, facts)));
        }
        let answers: Vec<_> = stream::iter(asked).buffered(QUESTIONS).collect().await;
        let count = all_facts.iter().filter(|facts| facts.id().is_some()).count();
        for (facts, answer) in open.into_iter().zip(answers) {
            self.count(facts, &answer);
            // The answers took a while. Nothing is remembered about a node that went meanwhile: nobody would forget it.
            if self.ctx.cluster.nodes.get(&facts.name).is_none_or(|node| node.uid != facts.uid) {
                continue;
            }
            let round = Round { evidence: Evidence::from(&answer), begun: snapshot.begun, ended: self.now() };
            self.order(tracked, facts, &round, count);
            let mut state = tracked.state();
            let memory = state.memories.entry(facts.name.clone()).or_default();
            let warning = trust.warn(listing, facts, memory);
            drop(state);
            if let Some(event) = warning {
                tracing::warn!(cloud = tracked.cloud.name(), node = facts.name, "{}", event.message);
                self.tell(event);
            }
        }
    }

    /// Whether the listing may be believed. If nodes depend on it, something that was recorded may speak for it.
    pub(super) async fn trust(
        &self,
        tracked: &TrackedNodes,
        listing: &Listing<Instance>,
        all_facts: &[NodeFacts],
    ) -> ListingTrust {
        let cap = self.settings.cap;
        let alone = trust(listing, all_facts, cap, false);
        let missed = |facts: &NodeFacts| {
            let lacks = |id: &ProviderId| listing.find(|instance| instance.id == *id).is_absent();
            at_once(facts).is_none() && facts.id().is_some_and(lacks)
        };
        if alone == ListingTrust::Believed || !all_facts.iter().any(missed) {
            return alone;
        }
        trust(listing, all_facts, cap, self.recorded_is_visible(tracked).await)
    }

    /// Whether a load balancer whose id a Service of this cloud records can be seen with the credential that listed the
    /// instances.
    async fn recorded_is_visible(&self, tracked: &TrackedNodes) -> bool {
        let Some(balancers) = tracked.cloud.load_balancers() else { return false };
        let services = self.ctx.cluster.services.all();
        let assignments = &self.ctx.clouds.assignments;
        let ours = services.iter().filter(|s| assignments.of(s).holder == Some(tracked.cloud.name()));
        // One Service on which the provider panics must not keep every node from being judged.
        let keys = ours.flat_map(|service| {
            let keys = caught(|| balancers.read(service, &self.ctx.cluster_name).keys);
            keys.unwrap_or_else(|text| {
                tracing::error!(service = %service.key(), text, "internal error: reading a Service panicked");
                self.panicked();
                Vec::new()
            })
        });
        let ids: BTreeSet<_> = keys.filter(|key| key.kind == LockKind::Id).map(|key| key.value).collect();
        let call = self.ctx.cluster.call(PATIENCE);
        for id in ids.iter().take(WITNESSES) {
            let shown = AssertUnwindSafe(balancers.shows(&call, id)).catch_unwind().await;
            if shown.is_err() {
                tracing::error!(id, "internal error: the look-up of a load balancer panicked");
                self.panicked();
            }
            if shown.is_ok_and(|shown| shown.is_present()) {
                return true;
            }
        }
        false
    }

    /// What is known about one instance: what the listing says, and the source itself where that could end in a deletion.
    async fn ask(
        &self,
        tracked: &TrackedNodes,
        facts: &NodeFacts,
        listed: Lookup<InstanceState>,
    ) -> Lookup<InstanceState> {
        let due = {
            let state = tracked.state();
            let nothing = Memory::default();
            lookup_due(facts, state.memories.get(&facts.name).unwrap_or(&nothing), &listed)
        };
        let by_id = match (due, facts.id()) {
            (Some(due), Some(id)) if due <= self.now() => {
                let call = self.ctx.cluster.call(PATIENCE);
                let asked = AssertUnwindSafe(tracked.cloud.inventory.ask(&call, id)).catch_unwind().await;
                let answer = asked.unwrap_or_else(|_| {
                    tracing::error!(%id, "internal error: the look-up of an instance panicked");
                    self.panicked();
                    Lookup::Unknown(Error::permanent("internal error"))
                });
                Some(answer.map(|instance| instance.state))
            }
            (Some(due), _) => {
                tracked.ask_by(due);
                None
            }
            (None, _) => None,
        };
        gather(facts, listed, by_id)
    }

    /// Judges one node, and orders what follows.
    fn order(&self, tracked: &TrackedNodes, facts: &NodeFacts, round: &Round, nodes: usize) {
        let name = &facts.name;
        let now = self.now();
        let mut state = tracked.state();
        let state = &mut *state;
        let memory = state.memories.entry(name.clone()).or_default();
        match judge(facts, memory, round) {
            Verdict::Unclear => {}
            Verdict::Keep => {
                let mut orders = lock(&self.orders);
                if matches!(orders.get(name), Some(Order::Mark { .. })) {
                    orders.remove(name);
                }
            }
            Verdict::AddShutdownTaint => self.issue(name, Order::Mark { uid: facts.uid.clone() }),
            Verdict::RemoveShutdownTaint => self.pool.add(name.clone()),
            Verdict::AskAgain(at) => state.probing.ask_by(at),
            Verdict::ReportNotFound => {
                let event = instance_not_found(facts);
                tracing::warn!(cloud = tracked.cloud.name(), node = name, "{}", event.message);
                self.tell(event);
            }
            // One that is under way already is not decided a second time.
            Verdict::Delete if matches!(lock(&self.orders).get(name), Some(Order::Delete(_))) => {}
            Verdict::Delete => {
                match tracked.deletions().decision(facts, memory, self.settings.cap, nodes, now) {
                    DeletionDecision::Delete { event, .. } => {
                        self.issue(name, Order::Delete(Arc::new((facts.clone(), event))));
                    }
                    DeletionDecision::Wait { until, event } => {
                        if let Some(event) = event {
                            tracing::warn!(cloud = tracked.cloud.name(), node = name, "{}", event.message);
                            self.ctx.metrics.lifecycle.deletions_held.inc();
                            self.tell(event);
                        }
                        state.probing.ask_by(until.unwrap_or(Tick(Duration::MAX)));
                    }
                }
            }
        }
    }

    /// Counts the questions that an answer stands for.
    fn count(&self, facts: &NodeFacts, answer: &Lookup<InstanceState>) {
        for (operation, outcome) in questions(facts, answer) {
            self.ctx.metrics.lifecycle.called(operation.label(), outcome.label());
        }
    }

    fn issue(&self, name: &str, order: Order) {
        lock(&self.orders).insert(name.to_owned(), order);
        self.pool.add(name.to_owned());
    }
}

/// Most nodes are Ready, and nothing is remembered about them.
fn needs_judging(tracked: &TrackedNodes, facts: &NodeFacts) -> bool {
    at_once(facts) != Some(Verdict::Keep) || tracked.state().memories.contains_key(&facts.name)
}
