//! The monitor of one cloud's nodes: when its instances are listed next, and what earlier rounds found.

use std::{
    collections::BTreeMap,
    fmt,
    sync::{Mutex, MutexGuard},
    time::Duration,
};

use cloudberth_core::{
    Tick,
    decide::lifecycle::{Deletions, NodeFacts, NodeHistory, Probing, Verdict, at_once},
};
use tokio::sync::Notify;

use crate::{clouds::Cloud, inventory::Snapshot, lock};

pub(super) struct State {
    pub(super) probing: Probing,
    /// What earlier rounds found, by the node's name. There is nothing about most nodes, which are Ready.
    pub(super) histories: BTreeMap<String, NodeHistory>,
    /// The last listing failed, and it was logged.
    failing: bool,
    /// Listings that were begun earlier are not used: they were already, or they are from before this term.
    pub(super) not_before: Tick,
}

pub(super) struct Monitor {
    pub(super) cloud: Cloud,
    state: Mutex<State>,
    pub(super) rescheduled: Notify,
}

impl Monitor {
    pub(super) fn new(cloud: Cloud, period: Duration, now: Tick) -> Self {
        let (probing, histories) = (Probing::new(period), BTreeMap::new());
        let state = Mutex::new(State { probing, histories, failing: false, not_before: now });
        lock(&cloud.deletions).resume(now);
        Self { cloud, state, rescheduled: Notify::new() }
    }

    /// The recent deletions. Where both are needed, the state is locked first.
    pub(super) fn deletions(&self) -> MutexGuard<'_, Deletions> {
        lock(&self.cloud.deletions)
    }

    pub(super) fn state(&self) -> MutexGuard<'_, State> {
        lock(&self.state)
    }

    /// A node turned `NotReady`.
    pub(super) fn alarm(&self, now: Tick) {
        self.state().probing.alarm(now);
        self.rescheduled.notify_one();
    }

    /// Another round is needed at `at`.
    pub(super) fn ask_by(&self, at: Tick) {
        self.state().probing.ask_by(at);
        self.rescheduled.notify_one();
    }

    /// Whether a round has to decide about the node. Most nodes are Ready, and there is nothing about them.
    pub(super) fn is_open(&self, facts: &NodeFacts) -> bool {
        at_once(facts) != Some(Verdict::Keep) || self.state().histories.contains_key(&facts.name)
    }

    /// Whether there is a listing, whoever asked for it, that no round used yet.
    pub(super) fn has_new_listing(&self) -> bool {
        let not_before = self.state().not_before;
        self.cloud.inventory.newest().is_some_and(|newest| newest.begun >= not_before)
    }

    /// A round uses this listing: no other does, and it counts for the schedule. One that failed may be an old one that is
    /// handed out until the cloud is asked again; then it counts from now.
    pub(super) fn listed(&self, snapshot: &Snapshot, not_ready: bool, now: Tick) {
        let mut state = self.state();
        let new = snapshot.begun >= state.not_before;
        state.probing.listed(if new { snapshot.ended } else { now }, not_ready);
        state.not_before = state.not_before.max(snapshot.begun + Duration::from_nanos(1));
        let failed_before = std::mem::replace(&mut state.failing, snapshot.answer.is_err());
        if let Err(why) = &snapshot.answer
            && !failed_before
        {
            tracing::warn!(cloud = self.cloud.name(), %why, "instances not listed; no node is judged");
        }
    }
}

impl fmt::Debug for Monitor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let state = self.state();
        f.debug_struct("Monitor")
            .field("cloud", &self.cloud.name())
            .field("probing", &state.probing)
            .field("deletions", &self.deletions())
            .finish_non_exhaustive()
    }
}
