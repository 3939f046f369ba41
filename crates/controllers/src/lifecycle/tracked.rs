//! One cloud's nodes: when its instances are listed next, and what is remembered about each.

use std::{
    collections::BTreeMap,
    fmt,
    sync::{Arc, Mutex, MutexGuard},
    time::Duration,
};

use cloudberth_core::{
    Tick,
    decide::lifecycle::{Deletions, Memory, Probing},
};
use tokio::sync::Notify;

use crate::{clouds::Cloud, inventory::Snapshot, lock};

/// What is known about a cloud's nodes beyond what the nodes say.
pub(super) struct State {
    pub(super) probing: Probing,
    pub(super) memories: BTreeMap<String, Memory>,
    /// The last listing failed, and it was said.
    pub(super) troubled: bool,
    /// No listing that was begun earlier is judged: it was judged already, or was made before this term.
    pub(super) not_before: Tick,
}

/// One cloud's nodes.
pub(super) struct TrackedNodes {
    pub(super) cloud: Cloud,
    state: Mutex<State>,
    /// The schedule changed.
    pub(super) news: Notify,
}

impl TrackedNodes {
    pub(super) fn new(cloud: Cloud, period: Duration, now: Tick) -> Self {
        let state = State {
            probing: Probing::new(period),
            memories: BTreeMap::new(),
            troubled: false,
            not_before: now,
        };
        lock(&cloud.deletions).resume(now);
        Self { cloud, state: Mutex::new(state), news: Notify::new() }
    }

    /// How fast nodes went. Where both are needed, the state is locked first.
    pub(super) fn deletions(&self) -> MutexGuard<'_, Deletions> {
        lock(&self.cloud.deletions)
    }

    pub(super) fn state(&self) -> MutexGuard<'_, State> {
        lock(&self.state)
    }

    /// A node turned `NotReady`.
    pub(super) fn alarm(&self, now: Tick) {
        self.state().probing.alarm(now);
        self.news.notify_one();
    }

    /// Another round is wanted at `at`.
    pub(super) fn ask_by(&self, at: Tick) {
        self.state().probing.ask_by(at);
        self.news.notify_one();
    }

    /// The node is gone.
    pub(super) fn forget(&self, name: &str) {
        self.state().memories.remove(name);
    }

    /// The newest listing, whoever asked for it, unless it was judged before.
    pub(super) fn unjudged(&self) -> Option<Arc<Snapshot>> {
        let not_before = self.state().not_before;
        self.cloud.inventory.newest().filter(|newest| newest.begun >= not_before)
    }

    /// A listing is about to be judged: it is not judged again, and counts for the schedule. One that failed may be an
    /// old one that is handed out while the cloud rests; then it counts from now.
    pub(super) fn listed(&self, snapshot: &Snapshot, doubts: bool, now: Tick) {
        let mut state = self.state();
        let news = snapshot.begun >= state.not_before;
        state.probing.listed(if news { snapshot.ended } else { now }, doubts);
        state.not_before = state.not_before.max(snapshot.begun + Duration::from_nanos(1));
    }
}

impl fmt::Debug for TrackedNodes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let state = self.state();
        f.debug_struct("TrackedNodes")
            .field("cloud", &self.cloud.name())
            .field("probing", &state.probing)
            .field("deletions", &self.deletions())
            .finish_non_exhaustive()
    }
}
