//! The monitor of one cloud's nodes: when its instances are listed next, and what earlier rounds found.

use std::{
    collections::BTreeMap,
    sync::{Mutex, MutexGuard},
    time::Duration,
};

use cloudberth_core::{
    Tick,
    decide::lifecycle::{Deletions, NodeHistory, Probing},
};
use tokio::sync::Notify;

use crate::{clouds::Cloud, lock};

pub(super) struct State {
    pub(super) probing: Probing,
    /// What earlier rounds found, by the node's name. There is nothing about most nodes, which are Ready.
    pub(super) histories: BTreeMap<String, NodeHistory>,
    /// The last listing failed, and it was logged.
    pub(super) failing: bool,
    /// Listings that were begun earlier are not used: they were already, or they are from before this term.
    pub(super) not_before: Tick,
    /// How many instances this round has asked about whether they run.
    pub(super) power_checks: usize,
}

pub(super) struct Monitor {
    pub(super) cloud: Cloud,
    state: Mutex<State>,
    pub(super) rescheduled: Notify,
}

impl Monitor {
    pub(super) fn new(cloud: Cloud, period: Duration, now: Tick) -> Self {
        let (probing, histories) = (Probing::new(period), BTreeMap::new());
        let state =
            Mutex::new(State { probing, histories, failing: false, not_before: now, power_checks: 0 });
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

    /// Whether there is a listing, whoever asked for it, that no round used yet.
    pub(super) fn has_new_listing(&self) -> bool {
        let not_before = self.state().not_before;
        self.cloud.inventory.newest().is_some_and(|newest| newest.begun >= not_before)
    }
}
