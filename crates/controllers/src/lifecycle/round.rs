//! A round over one cloud's nodes: list, look up where it could matter, decide.

use std::{collections::BTreeSet, panic::AssertUnwindSafe, sync::Arc, time::Duration};

use cloudberth_core::{
    Error, InstanceState, Lookup, Tick,
    decide::lifecycle::{
        DeletionDecision, Evidence, ListingTrust, NodeFacts, NodeHistory, Round, Verdict, at_once, gather,
        instance_not_found, questions, trust,
    },
    lb::LockKind,
};
use cloudberth_runtime::bug::caught;
use futures_util::{FutureExt, StreamExt, stream};

use super::{
    LifecycleController,
    apply::{Decision, Deletion},
    event,
    monitor::Monitor,
};
use crate::{
    dry_run::DryRun,
    effects::nodes::{Dry, Effects, Live},
    inventory::Snapshot,
};

/// How many instances are looked up at once.
const LOOKUPS: usize = 8;
/// How long the lookups of a round may take together.
const PATIENCE: Duration = Duration::from_secs(60);
/// How many instances a round asks about whether they run, so that calls do not grow with nodes (law 7).
const POWER_CHECKS: usize = 8;
/// When a further round asks about others.
const POWER_PAUSE: Duration = Duration::from_secs(30);
/// How many recorded load balancers are looked up before a listing stays in doubt.
const RECORDED: usize = 3;
/// A dry run ends after a first and a second confirmation.
const DRY_ROUNDS: usize = 2;

/// One listing, and what it is worth.
struct Listed<'a> {
    monitor: &'a Arc<Monitor>,
    snapshot: &'a Snapshot,
    /// When it was begun.
    begun: Tick,
    trust: ListingTrust,
    /// How many nodes of this cloud have an id.
    nodes: usize,
}

/// What follows from a verdict.
enum Next {
    /// Nothing that is new.
    Nothing,
    /// The node stays as it is: an earlier decision is withdrawn.
    Keep,
    /// Another round is needed at this time.
    AskAgain(Tick),
    /// The cap holds the deletion until this time.
    Held(Tick),
    Apply(Decision),
}

impl LifecycleController {
    /// Lists when it is time, and decides on every listing, its own and everybody else's.
    pub(super) async fn watch(&self, monitor: &Arc<Monitor>) {
        let mut landings = monitor.cloud.inventory.landings();
        loop {
            landings.mark_unchanged();
            let wait = monitor.state().probing.next().since(self.now());
            if !monitor.has_new_listing() && !wait.is_zero() {
                tokio::select! {
                    biased;
                    _ = landings.changed() => {}
                    () = monitor.rescheduled.notified() => {}
                    () = tokio::time::sleep(wait) => {}
                }
                continue;
            }
            if AssertUnwindSafe(self.round(monitor)).catch_unwind().await.is_err() {
                tracing::error!(
                    cloud = monitor.cloud.name(),
                    "internal error: a round over the nodes panicked"
                );
                self.panicked();
                monitor.state().probing.listed(self.now(), true);
            }
        }
    }

    async fn round(&self, monitor: &Arc<Monitor>) {
        let not_before = monitor.state().not_before;
        // The newest, if no round used it yet; otherwise a new one.
        let snapshot = monitor.cloud.inventory.listing(not_before).await;
        let begun = self.now();
        let nodes = self.nodes_of(monitor);
        {
            let mut state = monitor.state();
            // A listing that failed may be an old one that is handed out until the cloud is asked again.
            let ended = if snapshot.begun >= state.not_before { snapshot.ended } else { begun };
            state.probing.listed(ended, nodes.iter().any(|facts| at_once(facts).is_none()));
            state.power_checks = 0;
            // No other round uses it.
            state.not_before = state.not_before.max(snapshot.begun + Duration::from_nanos(1));
            let failed_before = std::mem::replace(&mut state.failing, snapshot.answer.is_err());
            if let Err(why) = &snapshot.answer
                && !failed_before
            {
                tracing::warn!(cloud = monitor.cloud.name(), %why, "instances not listed; no node is judged");
            }
        }
        let listed = self.weigh(monitor, &snapshot, &nodes).await;
        // Most nodes are Ready, and there is nothing about them.
        let open: Vec<_> = {
            let state = monitor.state();
            let is_open = |facts: &&NodeFacts| {
                at_once(facts) != Some(Verdict::Keep) || state.histories.contains_key(&facts.name)
            };
            nodes.iter().filter(is_open).collect()
        };
        let mut lookups = Vec::with_capacity(open.len());
        for facts in &open {
            lookups.push(self.look_up(&listed, facts, self.now()));
        }
        let answers: Vec<_> = stream::iter(lookups).buffered(LOOKUPS).collect().await;
        for (facts, answer) in open.into_iter().zip(answers) {
            for (operation, outcome) in questions(facts, &answer) {
                self.ctx.metrics.lifecycle.called(operation, outcome);
            }
            // The lookups took a while. Nothing is kept about a node that went meanwhile: nobody would remove it.
            if self.ctx.cluster.nodes.get(&facts.name).is_none_or(|node| node.uid != facts.uid) {
                continue;
            }
            // The newest decision takes the place of one that no worker has begun.
            let replaced = match self.decide(&Live(&self.ctx), &listed, facts, &answer) {
                Next::Nothing => None,
                Next::Keep => self.pool.withdraw(&facts.name),
                Next::AskAgain(at) | Next::Held(at) => {
                    monitor.state().probing.ask_by(at);
                    None
                }
                Next::Apply(decision) => self.pool.assign(facts.name.clone(), decision),
            };
            replaced.into_iter().for_each(Decision::call_off);
        }
        self.ctx.metrics.lifecycle.monitor_duration.observe(self.now().since(begun));
    }

    /// What would become of every node that a round decides about, by name, if the clouds kept to their present answers.
    /// Listings that were begun at `not_before` or later serve.
    pub async fn dry_run(&self, not_before: Tick) -> Vec<(String, DryRun)> {
        let mut all = Vec::new();
        for monitor in &self.monitors {
            let nodes = self.nodes_of(monitor);
            let open: Vec<_> = nodes.iter().filter(|facts| at_once(facts) != Some(Verdict::Keep)).collect();
            if open.is_empty() {
                continue;
            }
            let snapshot = monitor.cloud.inventory.listing(not_before).await;
            let mut listed = self.weigh(monitor, &snapshot, &nodes).await;
            for facts in open {
                // By then no node is new any more.
                let later = self.now() + self.settings.timing.start_up_grace;
                let mut dry = Dry::node(&self.ctx.cluster, Some(monitor.cloud.name()), later);
                let answer = self.look_up(&listed, facts, later).await;
                for _ in 0..DRY_ROUNDS {
                    listed.begun = dry.now();
                    match self.decide(&dry, &listed, facts, &answer) {
                        Next::AskAgain(at) => dry.advance(at),
                        Next::Apply(decision) => {
                            self.apply(&dry, facts.name.clone(), Some(decision)).await;
                            break;
                        }
                        Next::Nothing | Next::Keep | Next::Held(_) => break,
                    }
                }
                all.push((facts.name.clone(), dry.finish()));
            }
        }
        all
    }

    /// Whether the listing may be believed. If nodes depend on it, a recorded load balancer may speak for it.
    async fn weigh<'a>(
        &self,
        monitor: &'a Arc<Monitor>,
        snapshot: &'a Snapshot,
        nodes: &[NodeFacts],
    ) -> Listed<'a> {
        let cap = self.settings.cap;
        let trust = match &snapshot.answer {
            Ok(listing) => match trust(listing, nodes, cap, false) {
                ListingTrust::Doubtful(_) if nodes.iter().any(|facts| facts.is_missed_by(listing)) => {
                    trust(listing, nodes, cap, self.recorded_is_visible(monitor).await)
                }
                trust => trust,
            },
            // It says nothing that could be believed.
            Err(_) => ListingTrust::Believed,
        };
        let nodes = nodes.iter().filter(|facts| facts.id().is_some()).count();
        Listed { monitor, snapshot, begun: snapshot.begun, trust, nodes }
    }

    /// Whether a load balancer whose id a Service of this cloud records can be seen with the credential that listed the
    /// instances.
    async fn recorded_is_visible(&self, monitor: &Monitor) -> bool {
        let Some(balancers) = monitor.cloud.load_balancers() else { return false };
        let services = self.ctx.cluster.services.all();
        let assignments = &self.ctx.clouds.assignments;
        let ours = services.iter().filter(|s| assignments.of(s).holder == Some(monitor.cloud.name()));
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
        for id in ids.iter().take(RECORDED) {
            let shown = AssertUnwindSafe(balancers.shows(&call, id)).catch_unwind().await;
            if shown.is_err() {
                tracing::error!(id, "internal error: the lookup of a load balancer panicked");
                self.panicked();
            }
            if shown.is_ok_and(|shown| shown.is_present()) {
                return true;
            }
        }
        false
    }

    /// What is known about one instance: what the listing says, and a lookup by id where that could end in a deletion.
    async fn look_up(&self, listed: &Listed<'_>, facts: &NodeFacts, now: Tick) -> Lookup<InstanceState> {
        let monitor = listed.monitor;
        let said = match &listed.snapshot.answer {
            Ok(listing) => listed.trust.ask(listing, facts),
            Err(why) => return Lookup::Unknown(why.clone()),
        };
        let said = self.check_power(monitor, facts, said, now).await;
        let due = {
            let state = monitor.state();
            let nothing = NodeHistory::default();
            self.settings.timing.lookup_due(
                facts,
                state.histories.get(&facts.name).unwrap_or(&nothing),
                &said,
            )
        };
        let by_id = match (due, facts.id()) {
            (Some(due), Some(id)) if due <= now => {
                let call = self.ctx.cluster.call(PATIENCE);
                let asked = AssertUnwindSafe(monitor.cloud.inventory.ask(&call, id)).catch_unwind().await;
                let answer = asked.unwrap_or_else(|_| {
                    tracing::error!(%id, "internal error: the lookup of an instance panicked");
                    self.panicked();
                    Lookup::Unknown(Error::permanent("internal error"))
                });
                Some(answer.map(|instance| instance.state))
            }
            (Some(due), _) => {
                monitor.ask_by(due);
                None
            }
            (None, _) => None,
        };
        gather(facts, said, by_id)
    }

    /// Asks whether an instance that is listed as running really runs, at a cloud whose listing cannot be believed there.
    /// No answer leaves what was `said`.
    async fn check_power(
        &self,
        monitor: &Monitor,
        facts: &NodeFacts,
        said: Lookup<InstanceState>,
        now: Tick,
    ) -> Lookup<InstanceState> {
        let Some(instances) = monitor.cloud.provider.instances() else { return said };
        let (Some(every), Some(id)) = (instances.ask_every(), facts.id()) else { return said };
        {
            let mut state = monitor.state();
            let spent = state.power_checks >= POWER_CHECKS;
            let Some(history) = state.histories.get_mut(&facts.name) else { return said };
            match self.settings.timing.power_check_due(facts, history, &said, every) {
                Some(due) if due <= now && spent => {
                    state.probing.ask_by(now + POWER_PAUSE);
                    return said;
                }
                Some(due) if due <= now => {
                    history.asks_whether_it_runs(facts, now);
                    state.power_checks += 1;
                }
                Some(due) => {
                    state.probing.ask_by(due);
                    return said;
                }
                None => return said,
            }
        }
        let call = self.ctx.cluster.call(PATIENCE);
        match AssertUnwindSafe(instances.runs(&call, id)).catch_unwind().await {
            Ok(Lookup::Present(state)) => Lookup::Present(state),
            Ok(_) => said,
            Err(_) => {
                tracing::error!(%id, "internal error: asking whether an instance runs panicked");
                self.panicked();
                said
            }
        }
    }

    /// Decides on one node, and tells people what they should know.
    fn decide<E: Effects>(
        &self,
        effects: &E,
        listed: &Listed<'_>,
        facts: &NodeFacts,
        answer: &Lookup<InstanceState>,
    ) -> Next {
        let round = Round { evidence: Evidence::from(answer), begun: listed.begun, ended: effects.now() };
        let is_deletion = |decision: &Decision| matches!(decision, Decision::Delete(_));
        let mut state = listed.monitor.state();
        let history = state.histories.entry(facts.name.clone()).or_default();
        let next = match self.settings.timing.judge(facts, history, &round) {
            Verdict::Keep => Next::Keep,
            Verdict::AddShutdownTaint => Next::Apply(Decision::AddShutdownTaint(facts.uid.clone())),
            Verdict::RemoveShutdownTaint => Next::Apply(Decision::RemoveShutdownTaint),
            Verdict::AskAgain(at) => Next::AskAgain(at),
            Verdict::ReportNotFound => {
                effects.publish(event(instance_not_found(facts)));
                Next::Nothing
            }
            Verdict::Unclear => {
                // The node controller speaks about a node that waits for its cloud.
                if let Lookup::Unknown(why) = answer
                    && !facts.uninitialised
                {
                    effects.unknown(why);
                }
                Next::Nothing
            }
            // A deletion that is under way is not decided a second time.
            Verdict::Delete if self.pool.look(|queue| queue.tasks(&facts.name).any(is_deletion)) => {
                Next::Nothing
            }
            Verdict::Delete => {
                let (monitor, now) = (Arc::clone(listed.monitor), effects.now());
                // Whether the cap lets the node go now (law 2).
                let decided =
                    monitor.deletions().decision(facts, history, self.settings.cap, listed.nodes, now);
                match decided {
                    DeletionDecision::Delete(event) => {
                        let deletion = Deletion { monitor, facts: facts.clone(), event };
                        Next::Apply(Decision::Delete(Arc::new(deletion)))
                    }
                    DeletionDecision::Wait { until, event: held } => {
                        if let Some(held) = held.map(event) {
                            self.ctx.metrics.lifecycle.deletions_held.inc();
                            match until {
                                Some(_) => effects.wait(&held.message.clone(), Some(held)),
                                // A cap of nothing is never lifted by waiting.
                                None => effects.publish(held),
                            }
                        }
                        Next::Held(until.unwrap_or(Tick(Duration::MAX)))
                    }
                }
            }
        };
        if let Ok(listing) = &listed.snapshot.answer
            && let Some(doubtful) = listed.trust.warn(listing, facts, history)
        {
            effects.publish(event(doubtful));
        }
        next
    }
}
