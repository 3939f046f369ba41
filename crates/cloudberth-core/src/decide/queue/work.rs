//! The queue itself.

use std::{
    collections::{BTreeMap, VecDeque},
    time::Duration,
};

use super::{limiter::Limiter, policy::After};
use crate::time::Tick;

/// What became of an addition.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Added {
    /// The key will be handed out, now or when its time comes.
    Accepted,
    /// The key waits already, no later than asked for.
    Already,
    /// The queue is full of other keys. It says so in [`WorkQueue::take_overflow`] once there is room.
    Full,
    /// The queue is shutting down.
    Closed,
}

/// What a worker gets.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Taken<K> {
    /// A key to work on, and how long it has waited. Give it back with [`WorkQueue::done`].
    Work {
        /// The key.
        key: K,
        /// How long it waited for a worker.
        waited: Duration,
    },
    /// Nothing to do now; a delayed key comes due at this time, if there is one.
    Idle(Option<Tick>),
    /// Nothing to do ever again.
    Closed,
}

/// What is counted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// Accepted additions that were not repetitions.
    pub adds: u64,
    /// Delayed and rate-limited additions.
    pub retries: u64,
    /// Additions that found the queue full.
    pub refused: u64,
}

/// The work in progress.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Unfinished {
    /// The ages of all pieces of work, added up.
    pub total: Duration,
    /// The age of the oldest.
    pub longest: Duration,
}

/// What the queue knows about a key. A key of which it knows nothing has no entry.
#[derive(Clone, Debug, Default)]
struct Entry {
    /// Needs work, since when.
    dirty: Option<Tick>,
    /// Is being worked on, since when.
    processing: Option<Tick>,
    /// Becomes dirty at this time; the number keeps the order of those that come due together.
    delayed: Option<(Tick, u64)>,
}

/// A queue of keys for any number of workers.
///
/// - A key is never with two workers at once.
/// - Any number of additions while a key is being worked on make one further run after [`done`](Self::done).
/// - A delayed addition takes effect only if it is earlier than the one that the key has; a plain addition does not
///   cancel it.
/// - At most `capacity` different keys are known at once. A key that is known already is always accepted; another
///   one is refused and counted, and the owner is told to go through its store again.
/// - The same calls give the same answers.
#[derive(Debug)]
pub struct WorkQueue<K, L> {
    entries: BTreeMap<K, Entry>,
    ready: VecDeque<K>,
    delayed: BTreeMap<(Tick, u64), K>,
    limiter: L,
    capacity: usize,
    sequence: u64,
    closed: bool,
    overflowed: bool,
    counters: Counters,
}

impl<K: Ord + Clone, L: Limiter<K>> WorkQueue<K, L> {
    /// An empty queue that knows at most `capacity` keys at once.
    #[must_use]
    pub const fn new(capacity: usize, limiter: L) -> Self {
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
        self.mark(key, now)
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
        let wait = self.limiter.when(&key, now);
        let added = self.add_after(key, wait, now);
        if self.limiter.remembered() > self.capacity {
            let entries = &self.entries;
            self.limiter.retain(&|key| entries.contains_key(key));
        }
        added
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
    pub fn get(&mut self, now: Tick) -> Taken<K> {
        self.wake(now);
        let Some(key) = self.ready.pop_front() else {
            return if self.closed { Taken::Closed } else { Taken::Idle(self.next_wakeup()) };
        };
        let entry = self.entries.entry(key.clone()).or_default();
        let waited = entry.dirty.take().map_or(Duration::ZERO, |since| now.since(since));
        entry.processing = Some(now);
        Taken::Work { key, waited }
    }

    /// The work on the key is over; returns how long it took. What was added meanwhile is handed out next.
    pub fn done(&mut self, key: &K, now: Tick) -> Duration {
        let Some(entry) = self.entries.get_mut(key) else { return Duration::ZERO };
        let Some(since) = entry.processing.take() else { return Duration::ZERO };
        if entry.dirty.is_some() {
            self.ready.push_back(key.clone());
        } else if entry.delayed.is_none() {
            self.entries.remove(key);
        }
        now.since(since)
    }

    /// The work on the key is over, and this is what becomes of it. Returns how long it took.
    pub fn finish(&mut self, key: &K, after: After, now: Tick) -> Duration {
        match after {
            After::Forget => self.forget(key),
            After::Rest(wait) => {
                self.forget(key);
                self.add_after(key.clone(), wait, now);
            }
            After::Exactly(wait) => {
                self.add_after(key.clone(), wait, now);
            }
            After::RateLimited => {
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

    /// How many keys need work, those included that wait for a run in progress to end.
    pub fn depth(&self) -> usize {
        self.entries.values().filter(|entry| entry.dirty.is_some()).count()
    }

    /// How many different keys are known: waiting, delayed or being worked on. Never more than the capacity.
    pub fn known(&self) -> usize {
        self.entries.len()
    }

    /// What was counted so far.
    pub const fn counters(&self) -> Counters {
        self.counters
    }

    /// The work in progress.
    pub fn unfinished(&self, now: Tick) -> Unfinished {
        let ages = self.entries.values().filter_map(|entry| entry.processing).map(|since| now.since(since));
        ages.fold(Unfinished::default(), |sum, age| Unfinished {
            total: sum.total.saturating_add(age),
            longest: sum.longest.max(age),
        })
    }

    /// True once after additions were refused and there is room again: the owner goes through its store and adds
    /// whatever needs work, so that nothing is lost for good.
    pub fn take_overflow(&mut self) -> bool {
        let tell = self.overflowed && self.entries.len() < self.capacity;
        self.overflowed &= !tell;
        tell
    }

    fn has_room_for(&mut self, key: &K) -> bool {
        let room = self.entries.contains_key(key) || self.entries.len() < self.capacity;
        if !room {
            self.counters.refused += 1;
            self.overflowed = true;
        }
        room
    }

    /// Makes the key dirty, and ready unless a worker has it.
    fn mark(&mut self, key: K, now: Tick) -> Added {
        let entry = self.entries.entry(key.clone()).or_default();
        if entry.dirty.is_some() {
            return Added::Already;
        }
        entry.dirty = Some(now);
        self.counters.adds += 1;
        if entry.processing.is_none() {
            self.ready.push_back(key);
        }
        Added::Accepted
    }

    /// Makes dirty what has come due.
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
            self.mark(key, due);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{
        super::{limiter::ItemExponential, policy::after},
        *,
    };
    use crate::error::{Category, Error};

    type Queue = WorkQueue<&'static str, ItemExponential<&'static str>>;

    const T0: Tick = Tick::from_secs(100);

    fn at(secs: u64) -> Tick {
        T0 + secs_of(secs)
    }

    const fn secs_of(secs: u64) -> Duration {
        Duration::from_secs(secs)
    }

    fn queue() -> Queue {
        WorkQueue::new(4, ItemExponential::new(secs_of(5), secs_of(300)))
    }

    fn work(key: &'static str, waited: u64) -> Taken<&'static str> {
        Taken::Work { key, waited: secs_of(waited) }
    }

    #[test]
    fn keys_come_in_the_order_of_their_first_addition() {
        let mut q = queue();
        assert_eq!(q.add("b", at(0)), Added::Accepted);
        assert_eq!(q.add("a", at(1)), Added::Accepted);
        assert_eq!(q.add("b", at(2)), Added::Already);
        assert_eq!((q.depth(), q.known(), q.counters().adds), (2, 2, 2));
        assert_eq!(q.get(at(3)), work("b", 3));
        assert_eq!(q.get(at(3)), work("a", 2));
        assert_eq!(q.get(at(3)), Taken::Idle(None));
        assert_eq!((q.depth(), q.known()), (0, 2));
        assert_eq!(q.unfinished(at(10)), Unfinished { total: secs_of(14), longest: secs_of(7) });
        assert_eq!(q.done(&"b", at(4)), secs_of(1));
        assert_eq!(q.unfinished(at(10)), Unfinished { total: secs_of(7), longest: secs_of(7) });
        assert_eq!(q.done(&"a", at(9)), secs_of(6));
        assert_eq!((q.known(), q.unfinished(at(10))), (0, Unfinished::default()));
    }

    #[test]
    fn additions_during_a_run_make_one_further_run() {
        let mut q = queue();
        q.add("a", at(0));
        assert_eq!(q.get(at(0)), work("a", 0));
        assert_eq!(q.add("a", at(1)), Added::Accepted);
        assert_eq!(q.add("a", at(2)), Added::Already);
        assert_eq!(q.get(at(3)), Taken::Idle(None), "never with two workers");
        assert_eq!((q.depth(), q.counters().adds), (1, 2));
        q.done(&"a", at(4));
        assert_eq!(q.get(at(5)), work("a", 4));
        q.done(&"a", at(6));
        assert_eq!((q.get(at(6)), q.known()), (Taken::Idle(None), 0));
    }

    #[test]
    fn what_was_not_taken_cannot_be_given_back() {
        let mut q = queue();
        assert_eq!(q.done(&"a", at(5)), Duration::ZERO);
        q.add("a", at(0));
        assert_eq!(q.done(&"a", at(5)), Duration::ZERO);
        assert_eq!(q.get(at(5)), work("a", 5));
        assert_eq!(q.get(at(5)), Taken::Idle(None), "it stood in line once only");
    }

    #[test]
    fn a_delayed_key_comes_due_and_only_an_earlier_time_replaces_it() {
        let mut q = queue();
        assert_eq!(q.add_after("a", secs_of(10), at(0)), Added::Accepted);
        assert_eq!(q.add_after("a", secs_of(20), at(0)), Added::Already, "later");
        assert_eq!(q.add_after("a", secs_of(10), at(0)), Added::Already, "the same");
        assert_eq!(q.add_after("a", secs_of(7), at(1)), Added::Accepted, "earlier");
        assert_eq!((q.next_wakeup(), q.depth(), q.known()), (Some(at(8)), 0, 1));
        assert_eq!(q.get(at(7)), Taken::Idle(Some(at(8))));
        assert_eq!(q.get(at(9)), work("a", 1), "it has waited for a worker since it came due");
        q.done(&"a", at(9));
        assert_eq!((q.get(at(30)), q.next_wakeup()), (Taken::Idle(None), None), "once, not twice");
        assert_eq!(q.counters(), Counters { adds: 1, retries: 4, refused: 0 });
    }

    #[test]
    fn no_delay_means_now_and_a_plain_addition_cancels_nothing() {
        let mut q = queue();
        assert_eq!(q.add_after("a", Duration::ZERO, at(0)), Added::Accepted);
        assert_eq!(q.counters(), Counters { adds: 1, retries: 1, refused: 0 });
        q.add_after("a", secs_of(10), at(0));
        assert_eq!(q.get(at(0)), work("a", 0));
        q.done(&"a", at(1));
        assert_eq!(q.known(), 1, "still delayed");
        assert_eq!(q.get(at(10)), work("a", 0), "the delayed one comes all the same");
    }

    #[test]
    fn keys_that_come_due_together_keep_their_order() {
        let mut q = queue();
        q.add_after("b", secs_of(2), at(0));
        q.add_after("c", secs_of(1), at(0));
        q.add_after("a", secs_of(1), at(1));
        let order: Vec<_> = (0..3).map(|_| q.get(at(2))).collect();
        assert_eq!(order, [work("c", 1), work("b", 0), work("a", 0)]);
    }

    #[test]
    fn a_delayed_key_that_comes_due_during_a_run_waits_for_its_end() {
        let mut q = queue();
        q.add("a", at(0));
        q.get(at(0));
        q.add_after("a", secs_of(1), at(0));
        assert_eq!(q.get(at(2)), Taken::Idle(None));
        assert_eq!(q.depth(), 1);
        q.done(&"a", at(3));
        assert_eq!(q.get(at(3)), work("a", 2));
    }

    #[test]
    fn shutting_down_hands_out_what_is_ready_and_drops_what_is_delayed() {
        let mut q = queue();
        q.add("a", at(0));
        q.add("b", at(0));
        q.get(at(0));
        q.add("a", at(0));
        q.add_after("c", secs_of(1), at(0));
        q.shutdown();
        let before = q.counters();
        assert_eq!(q.add("d", at(1)), Added::Closed);
        assert_eq!(q.add_after("d", secs_of(1), at(1)), Added::Closed);
        assert_eq!(q.add_rate_limited("d", at(1)), Added::Closed);
        assert_eq!((q.counters(), q.failures(&"d")), (before, 0));
        assert_eq!((q.next_wakeup(), q.known()), (None, 2));
        assert_eq!(q.get(at(5)), work("b", 5));
        assert_eq!(q.get(at(5)), Taken::Closed);
        q.done(&"a", at(5));
        assert_eq!(q.get(at(5)), work("a", 5), "what was added during the run before the end");
        q.done(&"a", at(6));
        assert_eq!((q.get(at(6)), q.known()), (Taken::Closed, 1));
    }

    #[test]
    fn a_full_queue_refuses_new_keys_counts_them_and_asks_for_another_look() {
        let mut q = queue();
        for key in ["a", "b", "c"] {
            q.add(key, at(0));
        }
        q.add_after("d", secs_of(10), at(0));
        assert!(!q.take_overflow());
        assert_eq!(q.add("e", at(0)), Added::Full, "L12-3");
        assert_eq!(q.add_after("e", secs_of(1), at(0)), Added::Full, "L12-3");
        assert_eq!(q.add_after("e", Duration::ZERO, at(0)), Added::Full, "L12-3");
        assert_eq!((q.known(), q.counters().refused), (4, 3));
        assert_eq!(q.add("d", at(0)), Added::Accepted, "a known key always finds room");
        assert_eq!(q.add_after("a", secs_of(3), at(0)), Added::Accepted, "a known key always finds room");
        assert!(!q.take_overflow(), "not while there is no room");
        q.get(at(0));
        q.get(at(0));
        q.done(&"b", at(1));
        assert!(q.take_overflow(), "now there is");
        assert!(!q.take_overflow(), "said once");
    }

    #[test]
    fn the_memory_of_failures_is_bounded_too() {
        let mut q = WorkQueue::new(2, ItemExponential::new(secs_of(5), secs_of(300)));
        for (turn, key) in ["a", "b", "c", "d", "e"].into_iter().enumerate() {
            let now = at(1_000 * turn as u64);
            assert_eq!(q.add_rate_limited(key, now), Added::Accepted);
            assert_eq!(q.get(now + secs_of(5)), work(key, 0));
            q.done(&key, now + secs_of(5));
        }
        let remembered = ["a", "b", "c", "d", "e"].map(|key| q.failures(&key));
        assert_eq!(
            remembered,
            [0, 0, 0, 0, 1],
            "L12-4 keys that the queue does not know are forgotten first"
        );
    }

    #[test]
    fn the_outcome_of_the_work_brings_the_key_back() {
        let mut q = queue();
        let mut now = at(0);
        let mut fail = |q: &mut Queue, category| {
            q.add("a", now);
            assert!(matches!(q.get(now), Taken::Work { .. }));
            let took = q.finish(&"a", after(Err(&Error::new(category, "x"))), now + secs_of(1));
            assert_eq!(took, secs_of(1));
            now = now + secs_of(1);
            let wait = q.next_wakeup().map(|due| due.since(now).as_secs());
            if let Some(due) = q.next_wakeup() {
                now = due;
            }
            (wait, q.failures(&"a"))
        };
        let throttled = Category::Throttled { retry_after: Some(secs_of(42)) };
        assert_eq!(fail(&mut q, throttled), (Some(42), 0), "FW-252");
        assert_eq!(fail(&mut q, Category::Temporary), (Some(5), 1), "FW-251");
        assert_eq!(fail(&mut q, Category::Temporary), (Some(10), 2), "FW-254");
        assert_eq!(fail(&mut q, throttled), (Some(42), 2), "FW-253");
        assert_eq!(fail(&mut q, Category::Permanent), (Some(60), 2));
        let further: Vec<_> = (0..6).map(|_| fail(&mut q, Category::Temporary).0.unwrap()).collect();
        assert_eq!(further, [20, 40, 80, 160, 300, 300], "FW-254");
        assert_eq!(fail(&mut q, Category::UserInput), (Some(1_800), 0), "the count is cleared");
        assert_eq!(fail(&mut q, Category::Temporary), (Some(5), 1));
        let end = q.next_wakeup().unwrap();
        assert!(matches!(q.get(end), Taken::Work { .. }));
        let retries = q.counters().retries;
        q.finish(&"a", after(Ok(())), end);
        assert_eq!((q.next_wakeup(), q.failures(&"a"), q.known()), (None, 0, 0), "FW-250");
        assert_eq!(q.counters().retries, retries, "FW-250");
    }
}
