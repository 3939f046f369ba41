//! A round over one cloud's nodes: list, ask where it could matter, judge, order.

use std::{collections::BTreeSet, panic::AssertUnwindSafe, sync::Arc, time::Duration};

use cloudberth_core::{
    Error, Instance, InstanceState, Listing, Lookup, ProviderId, Tick,
    decide::lifecycle::{
        Evidence, Memory, Round, Sentence, Standing, Suspect, Verdict, at_once, gather, judge, lookup_due,
        machine_not_found, questions, standing,
    },
    lb::ClaimKind,
};
use cloudberth_runtime::bug::caught;
use futures_util::{FutureExt, StreamExt, stream};

use super::{LifecycleController, act::Order, ward::Ward};
use crate::{inventory::Snapshot, lock};

/// How many machines are asked about at once.
const QUESTIONS: usize = 8;
/// How long the questions of a round may take together.
pub(super) const PATIENCE: Duration = Duration::from_secs(60);
/// How many recorded things are looked for to clear a doubt.
const WITNESSES: usize = 3;

impl LifecycleController {
    /// Lists when it is time, and judges every listing, its own and everybody else's.
    pub(super) async fn watch_over(&self, ward: &Ward) {
        let mut landings = ward.cloud.inventory.landings();
        loop {
            landings.mark_unchanged();
            let wait = ward.state().probing.next().since(self.now());
            if ward.unjudged().is_none() && !wait.is_zero() {
                tokio::select! {
                    biased;
                    _ = landings.changed() => {}
                    () = ward.news.notified() => {}
                    () = tokio::time::sleep(wait) => {}
                }
                continue;
            }
            if AssertUnwindSafe(self.round(ward)).catch_unwind().await.is_err() {
                tracing::error!(cloud = ward.cloud.name(), "internal error: a round over the nodes panicked");
                self.panicked();
                ward.state().probing.listed(self.now(), true);
            }
        }
    }

    async fn round(&self, ward: &Ward) {
        let not_before = ward.state().not_before;
        // The newest, if it was not judged yet; otherwise a new one.
        let snapshot = ward.cloud.inventory.listing(not_before).await;
        let begun = self.now();
        let suspects = self.patients(ward);
        let doubts = suspects.iter().any(|suspect| at_once(suspect).is_none());
        ward.listed(&snapshot, doubts, begun);
        self.judge_all(ward, &snapshot, &suspects).await;
        self.desk.metrics.lifecycle.monitor_duration.observe(self.now().since(begun));
    }

    async fn judge_all(&self, ward: &Ward, snapshot: &Snapshot, suspects: &[Suspect]) {
        let told = std::mem::replace(&mut ward.state().troubled, snapshot.machines.is_err());
        let listing = match &snapshot.machines {
            Ok(listing) => listing,
            Err(why) => {
                if !told {
                    tracing::warn!(cloud = ward.cloud.name(), %why, "machines cannot be listed; no node is judged");
                }
                let unknown = Lookup::Unknown(why.clone());
                for suspect in suspects {
                    self.count(suspect, &unknown);
                }
                return;
            }
        };
        let standing = self.standing(ward, listing, suspects).await;
        let open: Vec<_> = suspects.iter().filter(|suspect| needs_judging(ward, suspect)).collect();
        let mut asked = Vec::with_capacity(open.len());
        for suspect in &open {
            asked.push(self.ask(ward, suspect, standing.ask(listing, suspect)));
        }
        let answers: Vec<_> = stream::iter(asked).buffered(QUESTIONS).collect().await;
        let count = suspects.iter().filter(|suspect| suspect.id().is_some()).count();
        for (suspect, answer) in open.into_iter().zip(answers) {
            self.count(suspect, &answer);
            // The answers took a while. Nothing is remembered about a node that went meanwhile: nobody would forget it.
            if self.desk.cluster.nodes.get(&suspect.name).is_none_or(|node| node.uid != suspect.uid) {
                continue;
            }
            let round = Round { evidence: Evidence::from(&answer), begun: snapshot.begun, ended: self.now() };
            self.order(ward, suspect, &round, count);
            let mut state = ward.state();
            let memory = state.memories.entry(suspect.name.clone()).or_default();
            let warning = standing.warn(listing, suspect, memory);
            drop(state);
            if let Some(event) = warning {
                tracing::warn!(cloud = ward.cloud.name(), node = suspect.name, "{}", event.message);
                self.tell(event);
            }
        }
    }

    /// Whether the listing may be believed. If nodes depend on it, something that was recorded may speak for it.
    pub(super) async fn standing(
        &self,
        ward: &Ward,
        listing: &Listing<Instance>,
        suspects: &[Suspect],
    ) -> Standing {
        let cap = self.settings.cap;
        let alone = standing(listing, suspects, cap, false);
        let missed = |suspect: &Suspect| {
            let lacks = |id: &ProviderId| listing.find(|machine| machine.id == *id).is_absent();
            at_once(suspect).is_none() && suspect.id().is_some_and(lacks)
        };
        if alone == Standing::Believed || !suspects.iter().any(missed) {
            return alone;
        }
        standing(listing, suspects, cap, self.recorded_is_visible(ward).await)
    }

    /// Whether a load balancer whose id a Service of this cloud records can be seen with the credential that listed the
    /// machines.
    async fn recorded_is_visible(&self, ward: &Ward) -> bool {
        let Some(balancers) = ward.cloud.load_balancers() else { return false };
        let services = self.desk.cluster.services.all();
        let roster = &self.desk.clouds.roster;
        let ours = services.iter().filter(|s| roster.standing(s).holder == Some(ward.cloud.name()));
        // One Service on which the provider panics must not keep every node from being judged.
        let claims = ours.flat_map(|service| {
            let claims = caught(|| balancers.claims(service, &self.desk.cluster_name));
            claims.unwrap_or_else(|text| {
                tracing::error!(service = %service.key(), text, "internal error: reading a Service panicked");
                self.panicked();
                Vec::new()
            })
        });
        let ids: BTreeSet<_> =
            claims.filter(|claim| claim.kind == ClaimKind::Id).map(|claim| claim.value).collect();
        let call = self.desk.cluster.call(PATIENCE);
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

    /// What is known about one machine: what the listing says, and the source itself where that could end in a deletion.
    async fn ask(
        &self,
        ward: &Ward,
        suspect: &Suspect,
        listed: Lookup<InstanceState>,
    ) -> Lookup<InstanceState> {
        let due = {
            let state = ward.state();
            let nothing = Memory::default();
            lookup_due(suspect, state.memories.get(&suspect.name).unwrap_or(&nothing), &listed)
        };
        let by_id = match (due, suspect.id()) {
            (Some(due), Some(id)) if due <= self.now() => {
                let call = self.desk.cluster.call(PATIENCE);
                let asked = AssertUnwindSafe(ward.cloud.inventory.ask(&call, id)).catch_unwind().await;
                let answer = asked.unwrap_or_else(|_| {
                    tracing::error!(%id, "internal error: the look-up of a machine panicked");
                    self.panicked();
                    Lookup::Unknown(Error::permanent("internal error"))
                });
                Some(answer.map(|machine| machine.state))
            }
            (Some(due), _) => {
                ward.ask_by(due);
                None
            }
            (None, _) => None,
        };
        gather(suspect, listed, by_id)
    }

    /// Judges one node, and orders what follows.
    fn order(&self, ward: &Ward, suspect: &Suspect, round: &Round, nodes: usize) {
        let name = &suspect.name;
        let now = self.now();
        let mut state = ward.state();
        let state = &mut *state;
        let memory = state.memories.entry(name.clone()).or_default();
        match judge(suspect, memory, round) {
            Verdict::Unclear => {}
            Verdict::Keep => {
                let mut orders = lock(&self.orders);
                if matches!(orders.get(name), Some(Order::Mark { .. })) {
                    orders.remove(name);
                }
            }
            Verdict::AddShutdownTaint => self.issue(name, Order::Mark { uid: suspect.uid.clone() }),
            Verdict::RemoveShutdownTaint => self.crew.add(name.clone()),
            Verdict::AskAgain(at) => state.probing.ask_by(at),
            Verdict::ReportNotFound => {
                let event = machine_not_found(suspect);
                tracing::warn!(cloud = ward.cloud.name(), node = name, "{}", event.message);
                self.tell(event);
            }
            // One that is under way already is not decided a second time.
            Verdict::Delete if matches!(lock(&self.orders).get(name), Some(Order::Delete(_))) => {}
            Verdict::Delete => {
                match ward.deletions().sentence(suspect, memory, self.settings.cap, nodes, now) {
                    Sentence::Delete { event, .. } => {
                        self.issue(name, Order::Delete(Arc::new((suspect.clone(), event))));
                    }
                    Sentence::Wait { until, event } => {
                        if let Some(event) = event {
                            tracing::warn!(cloud = ward.cloud.name(), node = name, "{}", event.message);
                            self.desk.metrics.lifecycle.deletions_held.inc();
                            self.tell(event);
                        }
                        state.probing.ask_by(until.unwrap_or(Tick(Duration::MAX)));
                    }
                }
            }
        }
    }

    /// Counts the questions that an answer stands for.
    fn count(&self, suspect: &Suspect, answer: &Lookup<InstanceState>) {
        for (operation, outcome) in questions(suspect, answer) {
            self.desk.metrics.lifecycle.called(operation.label(), outcome.label());
        }
    }

    fn issue(&self, name: &str, order: Order) {
        lock(&self.orders).insert(name.to_owned(), order);
        self.crew.add(name.to_owned());
    }
}

/// Most nodes are Ready, and nothing is remembered about them.
fn needs_judging(ward: &Ward, suspect: &Suspect) -> bool {
    at_once(suspect) != Some(Verdict::Keep) || ward.state().memories.contains_key(&suspect.name)
}
