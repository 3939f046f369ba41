//! What is remembered about each Service. All of it can be lost: that costs a pass or an event, never a load balancer.

use std::{collections::BTreeMap, sync::Mutex};

use cloudberth_core::{
    ObjectKey,
    decide::service::{
        change::Written,
        event_dedup::{EventDedup, Occasion},
        progress::Progress,
    },
};

use crate::lock;

/// Why a Service is synced. Of several reasons the one further down counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum SyncReason {
    /// It may have been edited by hand in the cloud.
    Drift,
    /// Its set of nodes changed.
    Nodes,
    /// It changed itself, is new, or failed before.
    Service,
}

impl SyncReason {
    pub(crate) const fn occasion(self) -> Occasion {
        match self {
            Self::Nodes => Occasion::Nodes,
            Self::Drift | Self::Service => Occasion::Service,
        }
    }
}

/// What is remembered about one Service.
#[derive(Debug, Default)]
pub(crate) struct ServiceState {
    /// What we wrote on it last.
    pub(crate) written: Written,
    /// Which events were published about it.
    pub(crate) told: EventDedup,
    /// Why it is in the queue.
    pub(crate) reason: Option<SyncReason>,
    /// The UID of the object whose finalizer we took off.
    pub(crate) released: Option<String>,
    /// The UID of the object that was reported as an orphan.
    pub(crate) orphan: Option<String>,
    /// It was refused until it is edited: looking for hand edits in the cloud is no use.
    pub(crate) asleep: bool,
    /// How far it has come since it last converged.
    pub(crate) progress: Progress,
    /// This pass got further than those before it.
    pub(crate) further: bool,
}

/// What is remembered about all of them.
#[derive(Debug, Default)]
pub(crate) struct ServiceStates(Mutex<BTreeMap<ObjectKey, ServiceState>>);

impl ServiceStates {
    /// Reads or changes the state of one.
    pub(crate) fn of<T>(&self, key: &ObjectKey, then: impl FnOnce(&mut ServiceState) -> T) -> T {
        let mut states = lock(&self.0);
        match states.get_mut(key) {
            Some(state) => then(state),
            None => then(states.entry(key.clone()).or_default()),
        }
    }

    /// Reads the state of one, if there is any.
    pub(crate) fn peek<T>(&self, key: &ObjectKey, then: impl FnOnce(Option<&ServiceState>) -> T) -> T {
        then(lock(&self.0).get(key))
    }

    /// Changes the state of one, if there is any.
    pub(crate) fn amend(&self, key: &ObjectKey, then: impl FnOnce(&mut ServiceState)) {
        if let Some(state) = lock(&self.0).get_mut(key) {
            then(state);
        }
    }

    /// Adds a reason to sync it.
    pub(crate) fn add_reason(&self, key: &ObjectKey, reason: SyncReason) {
        self.of(key, |state| state.reason = state.reason.max(Some(reason)));
    }

    /// Forgets an object that is gone, but not that its key is in the queue.
    pub(crate) fn forget(&self, key: &ObjectKey) -> ServiceState {
        let mut states = lock(&self.0);
        let state = states.remove(key).unwrap_or_default();
        if let Some(reason) = state.reason {
            states.insert(key.clone(), ServiceState { reason: Some(reason), ..ServiceState::default() });
        }
        state
    }

    /// Forgets everything under this key.
    pub(crate) fn erase(&self, key: &ObjectKey) {
        lock(&self.0).remove(key);
    }

    /// How many are remembered.
    pub(crate) fn len(&self) -> usize {
        lock(&self.0).len()
    }
}
