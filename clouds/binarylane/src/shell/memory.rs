//! What this process remembers about load balancers.
//!
//! The API may not show a new load balancer at once, and only the answer to its creation names the action that builds it.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use cloudberth_core::{Clock, Tick};

use super::SETTLE;

#[derive(Clone, Copy, Debug)]
pub(super) struct Created {
    at: Tick,
    pub(super) job: Option<i64>,
}

#[derive(Debug, Default)]
struct State {
    /// What we created and what is not built yet, by id.
    created: BTreeMap<i64, Created>,
    /// Since when the API has denied a recorded id.
    denied: BTreeMap<i64, Tick>,
    /// What we sent a deletion of.
    removed: BTreeSet<i64>,
}

/// It begins empty; nothing in it is needed to be right, only to be quick.
pub(super) struct Memory {
    clock: Arc<dyn Clock>,
    state: Mutex<State>,
}

impl Memory {
    pub(super) fn new(clock: Arc<dyn Clock>) -> Self {
        Self { clock, state: Mutex::default() }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        // Each change is complete before the lock is released, so a poisoned lock hides no half-done change.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn created(&self, id: i64, job: Option<i64>) {
        self.state().created.insert(id, Created { at: self.clock.now(), job });
    }

    /// What is known of a load balancer that we are building, and how long ago we began.
    pub(super) fn building(&self, id: i64) -> Option<(Created, Duration)> {
        let created = *self.state().created.get(&id)?;
        Some((created, self.clock.now().since(created.at)))
    }

    /// It is built.
    pub(super) fn built(&self, id: i64) {
        self.state().created.remove(&id);
    }

    /// The API shows it.
    pub(super) fn shown(&self, id: i64) {
        self.state().denied.remove(&id);
    }

    /// We are about to delete it.
    pub(super) fn removes(&self, id: i64) {
        self.state().removed.insert(id);
    }

    /// The API denies a recorded id. Whether that is believed: we deleted it ourselves, or it has been denied for as long
    /// as a new one may take to show up.
    pub(super) fn is_gone(&self, id: i64) -> bool {
        let now = self.clock.now();
        let mut state = self.state();
        let since = *state.denied.entry(id).or_insert(now);
        let gone = state.removed.contains(&id) || now.since(since) >= SETTLE;
        if gone {
            state.created.remove(&id);
        }
        gone
    }
}
