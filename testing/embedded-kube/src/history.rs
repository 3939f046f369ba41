//! The events of one table: a bounded list, from which watches resume and past states are rebuilt.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use serde_json::Value;

/// What a write did to an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Change {
    Added,
    Modified,
    Deleted,
}

/// One write. A deleted object carries the revision of its deletion.
#[derive(Clone, Debug)]
pub(crate) struct Event {
    pub(crate) revision: u64,
    pub(crate) change: Change,
    pub(crate) key: String,
    pub(crate) object: Arc<Value>,
    pub(crate) before: Option<Arc<Value>>,
}

/// The revision asked for is older than what is remembered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Forgotten {
    /// The oldest revision that can still be asked for.
    pub(crate) oldest: u64,
}

/// Events in order of revision, oldest first.
///
/// Compaction closes the past to new readers but not to watches under way: those lose events only when the list is full.
#[derive(Debug)]
pub(crate) struct History {
    events: VecDeque<Arc<Event>>,
    /// The newest revision whose event has been dropped.
    trimmed: u64,
    /// The oldest revision that new readers may ask for.
    oldest: u64,
    capacity: usize,
}

impl History {
    /// `oldest` is the oldest revision that new readers may ask for.
    pub(crate) fn new(capacity: usize, oldest: u64) -> Self {
        Self { events: VecDeque::new(), trimmed: 0, oldest, capacity }
    }

    pub(crate) fn push(&mut self, event: Event) {
        self.events.push_back(Arc::new(event));
        while self.events.len() > self.capacity {
            if let Some(gone) = self.events.pop_front() {
                self.trimmed = gone.revision;
                self.oldest = self.oldest.max(gone.revision);
            }
        }
    }

    /// Closes everything before `revision` to new readers.
    pub(crate) fn forget(&mut self, revision: u64) {
        self.oldest = self.oldest.max(revision);
    }

    /// Whether a new reader may start from `revision`.
    pub(crate) fn admits(&self, revision: u64) -> Result<(), Forgotten> {
        if revision < self.oldest { Err(Forgotten { oldest: self.oldest }) } else { Ok(()) }
    }

    /// Up to `limit` events after `revision`, none missing.
    pub(crate) fn after(&self, revision: u64, limit: usize) -> Result<Vec<Arc<Event>>, Forgotten> {
        if revision < self.trimmed {
            return Err(Forgotten { oldest: self.oldest });
        }
        let from = self.events.partition_point(|event| event.revision <= revision);
        Ok(self.events.iter().skip(from).take(limit).cloned().collect())
    }

    /// Takes `objects`, the newest state, back to what it was at `revision`.
    pub(crate) fn rewind(
        &self,
        objects: &BTreeMap<String, Arc<Value>>,
        revision: u64,
    ) -> Result<BTreeMap<String, Arc<Value>>, Forgotten> {
        self.admits(revision)?;
        let mut past = objects.clone();
        for event in self.events.iter().rev().take_while(|event| event.revision > revision) {
            match &event.before {
                Some(before) => past.insert(event.key.clone(), Arc::clone(before)),
                None => past.remove(&event.key),
            };
        }
        Ok(past)
    }
}
