//! What is remembered about each Service, in memory. All of it can be lost: that costs a pass or an event, never a
//! load balancer.

use std::{collections::BTreeMap, sync::Mutex};

use cloudberth_core::{
    ObjectKey,
    decide::service::{
        change::Written,
        progress::Progress,
        telling::{Occasion, Told},
    },
};

use crate::lock;

/// Why a Service is looked at. Of several reasons the last one here counts.
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
pub(crate) struct Note {
    /// What we wrote on it last.
    pub(crate) written: Written,
    /// What people were told about it.
    pub(crate) told: Told,
    /// Why it is in the queue.
    pub(crate) reason: Option<SyncReason>,
    /// The object, by its UID, that we let go of.
    pub(crate) released: Option<String>,
    /// The object, by its UID, that was reported as an orphan.
    pub(crate) orphan: Option<String>,
    /// The object itself has to change first: a look after hand edits is no use.
    pub(crate) asleep: bool,
    /// How far it has come since it was last well.
    pub(crate) progress: Progress,
    /// This pass got further than those before it.
    pub(crate) further: bool,
}

/// What is remembered about all of them.
#[derive(Debug, Default)]
pub(crate) struct Memory(Mutex<BTreeMap<ObjectKey, Note>>);

impl Memory {
    /// Looks at, or changes, what is remembered about one.
    pub(crate) fn of<T>(&self, key: &ObjectKey, then: impl FnOnce(&mut Note) -> T) -> T {
        let mut notes = lock(&self.0);
        match notes.get_mut(key) {
            Some(note) => then(note),
            None => then(notes.entry(key.clone()).or_default()),
        }
    }

    /// Looks at what is remembered about one, if anything is.
    pub(crate) fn peek<T>(&self, key: &ObjectKey, then: impl FnOnce(Option<&Note>) -> T) -> T {
        then(lock(&self.0).get(key))
    }

    /// Changes what is remembered about one, if anything is.
    pub(crate) fn amend(&self, key: &ObjectKey, then: impl FnOnce(&mut Note)) {
        if let Some(note) = lock(&self.0).get_mut(key) {
            then(note);
        }
    }

    /// Notes one more reason to look at it.
    pub(crate) fn send(&self, key: &ObjectKey, reason: SyncReason) {
        self.of(key, |note| note.reason = note.reason.max(Some(reason)));
    }

    /// The object is gone. What is still to be done under its name is not.
    pub(crate) fn forget(&self, key: &ObjectKey) -> Note {
        let mut notes = lock(&self.0);
        let note = notes.remove(key).unwrap_or_default();
        if let Some(reason) = note.reason {
            notes.insert(key.clone(), Note { reason: Some(reason), ..Note::default() });
        }
        note
    }

    /// Nothing is left to be done under this name.
    pub(crate) fn erase(&self, key: &ObjectKey) {
        lock(&self.0).remove(key);
    }

    /// How many are remembered.
    pub(crate) fn len(&self) -> usize {
        lock(&self.0).len()
    }
}
