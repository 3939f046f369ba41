//! What has happened in a world, what was counted, and who is to be told.

use std::{
    collections::VecDeque,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use cloudberth_core::{Clock, Tick};
use tokio::sync::watch;

use super::contract::{Entry, Happening, REMEMBERED, Totals};

/// The newest happenings and the totals. Every change has a number, and whoever waits hears of the newest one.
pub(crate) struct Journal {
    clock: Arc<dyn Clock>,
    begun: Tick,
    inner: Mutex<Inner>,
    changed: watch::Sender<u64>,
}

#[derive(Default)]
struct Inner {
    seq: u64,
    entries: VecDeque<Entry>,
    totals: Totals,
}

impl Journal {
    pub(crate) fn new(clock: Arc<dyn Clock>) -> Self {
        let begun = clock.now();
        Self { clock, begun, inner: Mutex::default(), changed: watch::Sender::new(0) }
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Milliseconds since the world began.
    pub(crate) fn at_ms(&self) -> u64 {
        u64::try_from(self.clock.now().since(self.begun).as_millis()).unwrap_or(u64::MAX)
    }

    pub(crate) fn now(&self) -> Tick {
        self.clock.now()
    }

    pub(crate) fn add(&self, what: Happening) {
        let at_ms = self.at_ms();
        let seq = {
            let mut inner = self.lock();
            inner.seq += 1;
            let seq = inner.seq;
            if inner.entries.len() == REMEMBERED {
                inner.entries.pop_front();
            }
            inner.entries.push_back(Entry { seq, at_ms, what });
            seq
        };
        self.changed.send_replace(seq);
    }

    /// Says what a person or the world itself has done.
    pub(crate) fn deed(&self, what: impl Into<String>) {
        self.add(Happening::Deed { what: what.into() });
    }

    /// Something that is shown has changed, and there is nothing to tell about it.
    pub(crate) fn touch(&self) {
        let seq = {
            let mut inner = self.lock();
            inner.seq += 1;
            inner.seq
        };
        self.changed.send_replace(seq);
    }

    /// Counts something. Nobody is woken for a number alone.
    pub(crate) fn count(&self, change: impl FnOnce(&mut Totals)) {
        change(&mut self.lock().totals);
    }

    /// The number of the newest change, and the totals.
    pub(crate) fn newest(&self) -> (u64, Totals) {
        let inner = self.lock();
        (inner.seq, inner.totals)
    }

    pub(crate) fn after(&self, seq: u64) -> Vec<Entry> {
        self.lock().entries.iter().filter(|entry| entry.seq > seq).cloned().collect()
    }

    pub(crate) fn changes(&self) -> watch::Receiver<u64> {
        self.changed.subscribe()
    }
}

#[cfg(test)]
mod tests {
    use cloudberth_http::surroundings::SystemClock;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn the_newest_are_remembered_and_numbers_go_on() {
        let journal = Journal::new(Arc::new(SystemClock::new()));
        let mut changes = journal.changes();
        for number in 0..REMEMBERED + 2 {
            journal.deed(number.to_string());
        }
        assert!(changes.has_changed().unwrap());
        assert_eq!(*changes.borrow_and_update(), 502);
        let all = journal.after(0);
        assert_eq!((all.len(), all[0].seq), (REMEMBERED, 3), "the two oldest are forgotten");
        let last: Vec<_> = journal.after(500).into_iter().map(|entry| entry.seq).collect();
        assert_eq!(last, [501, 502]);
        journal.touch();
        assert!(changes.has_changed().unwrap() && journal.after(502).is_empty(), "a change without a story");
    }

    #[tokio::test(start_paused = true)]
    async fn what_is_counted_wakes_nobody() {
        let journal = Journal::new(Arc::new(SystemClock::new()));
        let changes = journal.changes();
        journal.count(|totals| totals.requests += 2);
        assert!(!changes.has_changed().unwrap());
        assert_eq!(journal.newest().1.requests, 2);
    }
}
