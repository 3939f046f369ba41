//! The keyed work queue.

use std::{
    collections::{BTreeMap, VecDeque},
    time::Duration,
};

use super::{limiter::ItemExponential, policy::Requeue};
use crate::time::Tick;

/// The result of adding a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Added {
    /// The key will be handed out, now or when its time comes.
    Accepted,
    /// The key waits already, no later than asked for.
    Already,
    /// The queue is full of other keys. [`WorkQueue::take_overflow`] says when there is room again.
    Full,
    /// The queue is shutting down.
    Closed,
}

/// What a worker gets from the queue.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Taken<K, T = ()> {
    /// A key to work on, and how long it has waited. Give it back with [`WorkQueue::done`].
    Work {
        /// The key that no other worker has.
        key: K,
        /// What is to be done, if that was said.
        task: Option<T>,
        /// How long it waited for a worker.
        waited: Duration,
    },
    /// Nothing to do now; a delayed key comes due at this time, if there is one.
    Idle(Option<Tick>),
    /// The queue is closed and empty.
    Closed,
}

/// The counters of a queue.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// Accepted additions of keys that did not wait already.
    pub adds: u64,
    /// Delayed and rate-limited additions.
    pub retries: u64,
    /// Additions that found the queue full.
    pub refused: u64,
}

/// The state of a key that waits or is worked on.
#[derive(Clone, Debug)]
struct Entry<T> {
    /// Needs work, since when.
    dirty: Option<Tick>,
    /// Is being worked on, since when.
    processing: Option<Tick>,
    /// Becomes dirty at this time; the number keeps the order of those that come due together.
    delayed: Option<(Tick, u64)>,
    /// What the next run is to do.
    task: Option<T>,
    /// What the run in progress does.
    running: Option<T>,
}

impl<T> Default for Entry<T> {
    fn default() -> Self {
        Self { dirty: None, processing: None, delayed: None, task: None, running: None }
    }
}

/// A queue of keys for any number of workers, each with a task where one was assigned.
///
/// - A key is never with two workers at once.
/// - Any number of additions while a key is being worked on make one further run after [`done`](Self::done).
/// - A delayed addition takes effect only if it is earlier than the one that the key has; a plain addition does not
///   cancel it.
/// - At most `capacity` different keys are known at once. A key that is known already is always accepted; another
///   one is refused and counted, and [`take_overflow`](Self::take_overflow) asks the owner to go through its store again.
/// - The newest task of a key wins. A run that fails hands its task to the next run, unless a newer one was assigned.
/// - The same calls give the same answers.
#[derive(Debug)]
pub struct WorkQueue<K, T = ()> {
    entries: BTreeMap<K, Entry<T>>,
    ready: VecDeque<K>,
    delayed: BTreeMap<(Tick, u64), K>,
    limiter: ItemExponential<K>,
    capacity: usize,
    sequence: u64,
    closed: bool,
    overflowed: bool,
    counters: Counters,
}

impl<K: Ord + Clone, T: Clone> WorkQueue<K, T> {
    /// An empty queue that knows at most `capacity` keys at once.
    #[must_use]
    pub const fn new(capacity: usize, limiter: ItemExponential<K>) -> Self {
        Self {
            entries: BTreeMap::new(),
            ready: VecDeque::new(),
            delayed: BTreeMap::new(),
            limiter,
            capacity,
            sequence: 0,
            closed: false,
            overflowed: false,
            counters: Counters { adds: 0, retries: 0, refused: 0 },
        }
    }

    /// The key needs work.
    pub fn add(&mut self, key: K, now: Tick) -> Added {
        if self.closed {
            return Added::Closed;
        }
        if !self.has_room_for(&key) {
            return Added::Full;
        }
        let entry = self.entries.entry(key.clone()).or_default();
        if entry.dirty.is_some() {
            return Added::Already;
        }
        entry.dirty = Some(now);
        self.counters.adds += 1;
        // A key that a worker has is handed out again when it is done.
        if entry.processing.is_none() {
            self.ready.push_back(key);
        }
        Added::Accepted
    }

    /// The key needs work, and its next run does `task`. Returns the task that it replaces, or `task` itself as the error
    /// where it was not accepted.
    pub fn assign(&mut self, key: K, task: T, now: Tick) -> Result<Option<T>, T> {
        match self.add(key.clone(), now) {
            Added::Full | Added::Closed => Err(task),
            Added::Accepted | Added::Already => Ok(self.entries.entry(key).or_default().task.replace(task)),
        }
    }

    /// Takes back the task of the key's next run. The run in progress goes on, and does not hand its task on.
    pub fn withdraw(&mut self, key: &K) -> Option<T> {
        let entry = self.entries.get_mut(key)?;
        entry.running = None;
        entry.task.take()
    }

    /// The tasks of the key: that of its next run, and that of the run in progress.
    pub fn tasks(&self, key: &K) -> impl Iterator<Item = &T> {
        self.entries.get(key).into_iter().flat_map(|entry| entry.task.iter().chain(&entry.running))
    }

    /// The key needs work after `wait`; at once if that is zero.
    pub fn add_after(&mut self, key: K, wait: Duration, now: Tick) -> Added {
        if self.closed {
            return Added::Closed;
        }
        self.counters.retries += 1;
        if wait.is_zero() {
            return self.add(key, now);
        }
        if !self.has_room_for(&key) {
            return Added::Full;
        }
        let due = now + wait;
        let entry = self.entries.entry(key.clone()).or_default();
        if let Some(old) = entry.delayed {
            if old.0 <= due {
                return Added::Already;
            }
            self.delayed.remove(&old);
        }
        let slot = (due, self.sequence);
        self.sequence += 1;
        entry.delayed = Some(slot);
        self.delayed.insert(slot, key);
        Added::Accepted
    }

    /// The key failed, and needs work after the wait that the limiter gives it.
    pub fn add_rate_limited(&mut self, key: K, now: Tick) -> Added {
        if self.closed {
            return Added::Closed;
        }
        let wait = self.limiter.when(&key);
        let added = self.add_after(key, wait, now);
        if self.limiter.remembered() > self.capacity {
            let entries = &self.entries;
            self.limiter.retain(|key| entries.contains_key(key));
        }
        added
    }

    /// The reason why a key failed may be gone: it needs work after `wait` at the latest, and its failures are cleared. A
    /// key that did not fail is left alone. Returns whether it had failed.
    pub fn revive(&mut self, key: &K, wait: Duration, now: Tick) -> bool {
        let failed = self.limiter.failures(key) > 0;
        if failed {
            self.limiter.forget(key);
            self.add_after(key.clone(), wait, now);
        }
        failed
    }

    /// Clears the failure count of the key, nothing else.
    pub fn forget(&mut self, key: &K) {
        self.limiter.forget(key);
    }

    /// How often the key has failed since it was last forgotten.
    pub fn failures(&self, key: &K) -> u32 {
        self.limiter.failures(key)
    }

    /// The next key to work on.
    pub fn get(&mut self, now: Tick) -> Taken<K, T> {
        self.wake(now);
        let Some(key) = self.ready.pop_front() else {
            return if self.closed { Taken::Closed } else { Taken::Idle(self.next_wakeup()) };
        };
        let entry = self.entries.entry(key.clone()).or_default();
        let waited = entry.dirty.take().map_or(Duration::ZERO, |since| now.since(since));
        entry.processing = Some(now);
        entry.running = entry.task.take();
        Taken::Work { key, task: entry.running.clone(), waited }
    }

    /// The work on the key ended; returns how long it took. If it was added meanwhile, it is handed out again.
    pub fn done(&mut self, key: &K, now: Tick) -> Duration {
        let Some(entry) = self.entries.get_mut(key) else { return Duration::ZERO };
        let Some(since) = entry.processing.take() else { return Duration::ZERO };
        entry.running = None;
        if entry.dirty.is_some() {
            self.ready.push_back(key.clone());
        } else if entry.delayed.is_none() {
            self.entries.remove(key);
        }
        now.since(since)
    }

    /// The work on the key ended, and the key is requeued as `after` says. Returns how long it took.
    pub fn finish(&mut self, key: &K, after: Requeue, now: Tick) -> Duration {
        if let Some(entry) = self.entries.get_mut(key).filter(|_| after != Requeue::Forget) {
            entry.task = entry.task.take().or(entry.running.take());
        }
        match after {
            Requeue::Forget => self.forget(key),
            Requeue::After(wait) => {
                self.forget(key);
                self.add_after(key.clone(), wait, now);
            }
            Requeue::Exactly(wait) => {
                self.add_after(key.clone(), wait, now);
            }
            Requeue::RateLimited => {
                self.add_rate_limited(key.clone(), now);
            }
            Requeue::Anew => {
                self.forget(key);
                self.add_rate_limited(key.clone(), now);
            }
        }
        self.done(key, now)
    }

    /// When a delayed key comes due next.
    pub fn next_wakeup(&self) -> Option<Tick> {
        self.delayed.keys().next().map(|(due, _)| *due)
    }

    /// No more additions. What is ready is still handed out, delayed keys are dropped.
    pub fn shutdown(&mut self) {
        self.closed = true;
        self.delayed.clear();
        self.entries.retain(|_, entry| {
            entry.delayed = None;
            entry.dirty.is_some() || entry.processing.is_some()
        });
    }

    /// No more additions, and nothing more is handed out: work in progress may end, everything else is dropped.
    pub fn close(&mut self) {
        self.shutdown();
        self.ready.clear();
        self.entries.retain(|_, entry| {
            entry.dirty = None;
            entry.processing.is_some()
        });
    }

    /// How many keys need work, those included that wait for a run in progress to end.
    pub fn depth(&self) -> usize {
        self.entries.values().filter(|entry| entry.dirty.is_some()).count()
    }

    /// How many different keys are known: waiting, delayed or being worked on. Never more than the capacity.
    pub fn known(&self) -> usize {
        self.entries.len()
    }

    /// The counters so far.
    pub const fn counters(&self) -> Counters {
        self.counters
    }

    /// True once after additions were refused and there is room again: the owner goes through its store and adds
    /// whatever needs work, so that nothing is lost for good.
    pub fn take_overflow(&mut self) -> bool {
        let room_again = self.overflowed && self.entries.len() < self.capacity;
        self.overflowed &= !room_again;
        room_again
    }

    fn has_room_for(&mut self, key: &K) -> bool {
        let room = self.entries.contains_key(key) || self.entries.len() < self.capacity;
        if !room {
            self.counters.refused += 1;
            self.overflowed = true;
        }
        room
    }

    /// Makes delayed keys dirty that are due.
    fn wake(&mut self, now: Tick) {
        while let Some(first) = self.delayed.first_entry() {
            let (due, _) = *first.key();
            if due > now {
                return;
            }
            let key = first.remove();
            if let Some(entry) = self.entries.get_mut(&key) {
                entry.delayed = None;
            }
            self.add(key, due);
        }
    }
}

#[cfg(test)]
mod tests;
