//! The queue against a plain reading of its rules, on random calls.

use std::time::Duration;

use proptest::prelude::*;

use super::{Added, ItemExponential, Taken, WorkQueue};
use crate::time::Tick;

#[derive(Clone, Debug)]
enum Op {
    Add(u16),
    AddAfter(u16, u64),
    AddRateLimited(u16),
    Forget(u16),
    Get,
    Done(u16),
    Pass(u64),
    Shutdown,
}

fn ops() -> impl Strategy<Value = Vec<Op>> {
    let key = 0..6_u16;
    let op = prop_oneof![
        4 => key.clone().prop_map(Op::Add),
        3 => (key.clone(), 0..8_u64).prop_map(|(key, wait)| Op::AddAfter(key, wait)),
        2 => key.clone().prop_map(Op::AddRateLimited),
        1 => key.clone().prop_map(Op::Forget),
        6 => Just(Op::Get),
        5 => key.prop_map(Op::Done),
        4 => (0..5_u64).prop_map(Op::Pass),
    ];
    (prop::collection::vec(op, 0..120), prop::option::weighted(0.3, any::<prop::sample::Index>())).prop_map(
        |(mut ops, shutdown)| {
            if let Some(index) = shutdown {
                ops.insert(index.index(ops.len() + 1), Op::Shutdown);
            }
            ops
        },
    )
}

/// The rules, written as slowly and plainly as possible.
#[derive(Default)]
struct Naive {
    order: Vec<u16>,
    dirty: Vec<u16>,
    processing: Vec<u16>,
    /// In the order in which they were accepted.
    delayed: Vec<(u16, u64)>,
    failures: Vec<u16>,
    closed: bool,
}

impl Naive {
    fn add(&mut self, key: u16) {
        if self.closed || self.dirty.contains(&key) {
            return;
        }
        self.dirty.push(key);
        if !self.processing.contains(&key) {
            self.order.push(key);
        }
    }

    fn add_after(&mut self, key: u16, wait: u64, now: u64) {
        if self.closed {
            return;
        }
        if wait == 0 {
            return self.add(key);
        }
        if self.delayed.iter().any(|(other, due)| *other == key && *due <= now + wait) {
            return;
        }
        self.delayed.retain(|(other, _)| *other != key);
        self.delayed.push((key, now + wait));
    }

    fn add_rate_limited(&mut self, key: u16, now: u64) {
        if self.closed {
            return;
        }
        let failures = self.failures.iter().filter(|other| **other == key).count();
        self.failures.push(key);
        self.add_after(key, (1 << failures.min(10)).min(6), now);
    }

    fn get(&mut self, now: u64) -> Option<u16> {
        let mut due: Vec<_> = self.delayed.iter().copied().filter(|(_, due)| *due <= now).collect();
        due.sort_by_key(|(_, due)| *due);
        self.delayed.retain(|(_, due)| *due > now);
        for (key, _) in due {
            self.add(key);
        }
        if self.order.is_empty() {
            return None;
        }
        let key = self.order.remove(0);
        self.dirty.retain(|other| *other != key);
        self.processing.push(key);
        Some(key)
    }

    fn done(&mut self, key: u16) {
        if let Some(place) = self.processing.iter().position(|other| *other == key) {
            self.processing.remove(place);
            if self.dirty.contains(&key) {
                self.order.push(key);
            }
        }
    }
}

fn queue(capacity: usize) -> WorkQueue<u16> {
    WorkQueue::new(capacity, ItemExponential::new(Duration::from_secs(1), Duration::from_secs(6)))
}

proptest! {
    #[test]
    fn the_queue_does_what_a_plain_reading_of_its_rules_does(ops in ops()) {
        let (mut queue, mut naive, mut now) = (queue(100), Naive::default(), 0);
        for op in ops {
            let tick = Tick::from_secs(now);
            match op {
                Op::Add(key) => {
                    let before = naive.dirty.len();
                    naive.add(key);
                    let grew = naive.dirty.len() > before;
                    prop_assert_eq!(queue.add(key, tick) == Added::Accepted, grew);
                }
                Op::AddAfter(key, wait) => {
                    naive.add_after(key, wait, now);
                    queue.add_after(key, Duration::from_secs(wait), tick);
                }
                Op::AddRateLimited(key) => {
                    naive.add_rate_limited(key, now);
                    queue.add_rate_limited(key, tick);
                }
                Op::Forget(key) => {
                    naive.failures.retain(|other| *other != key);
                    queue.forget(&key);
                }
                Op::Get => {
                    let want = naive.get(now);
                    match queue.get(tick) {
                        Taken::Work { key, .. } => prop_assert_eq!(Some(key), want),
                        Taken::Idle(next) => {
                            prop_assert!(want.is_none() && !naive.closed);
                            let first = naive.delayed.iter().map(|(_, due)| *due).min();
                            prop_assert_eq!(next, first.map(Tick::from_secs));
                        }
                        Taken::Closed => prop_assert!(want.is_none() && naive.closed),
                    }
                    let alone = |key| naive.processing.iter().filter(|other| *other == key).count() == 1;
                    prop_assert!(naive.processing.iter().all(alone), "with two workers at once");
                }
                Op::Done(key) => {
                    naive.done(key);
                    queue.done(&key, tick);
                }
                Op::Pass(secs) => now += secs,
                Op::Shutdown => {
                    (naive.closed, naive.delayed) = (true, Vec::new());
                    queue.shutdown();
                }
            }
            prop_assert_eq!(queue.depth(), naive.dirty.len());
            let mut known = [naive.dirty.clone(), naive.processing.clone()].concat();
            known.extend(naive.delayed.iter().map(|(key, _)| *key));
            known.sort_unstable();
            known.dedup();
            prop_assert_eq!(queue.known(), known.len());
        }
    }

    #[test]
    fn nothing_that_was_accepted_is_lost_and_the_bound_holds(ops in ops(), capacity in 1..5_usize) {
        let (mut queue, mut now, mut busy) = (queue(capacity), 0, Vec::new());
        // What was accepted and has not begun a run since.
        let mut owed: Vec<u16> = Vec::new();
        let mut refused = false;
        for op in ops {
            let tick = Tick::from_secs(now);
            let (key, added) = match op {
                Op::Add(key) => (key, queue.add(key, tick)),
                Op::AddAfter(key, wait) => (key, queue.add_after(key, Duration::from_secs(wait), tick)),
                Op::AddRateLimited(key) => (key, queue.add_rate_limited(key, tick)),
                Op::Get => {
                    if let Taken::Work { key, .. } = queue.get(tick) {
                        prop_assert!(!busy.contains(&key), "with two workers at once");
                        busy.push(key);
                        owed.retain(|other| *other != key);
                    }
                    continue;
                }
                Op::Done(key) => {
                    busy.retain(|other| *other != key);
                    queue.done(&key, tick);
                    continue;
                }
                Op::Pass(secs) => {
                    now += secs;
                    continue;
                }
                Op::Forget(_) | Op::Shutdown => continue,
            };
            match added {
                Added::Accepted | Added::Already => owed.push(key),
                Added::Full => refused = true,
                Added::Closed => prop_assert!(false, "nobody closed it"),
            }
            prop_assert!(queue.known() <= capacity);
        }
        // Everybody finishes, time passes, and one worker takes what is left.
        let end = Tick::from_secs(now + 1_000);
        for key in busy {
            queue.done(&key, end);
        }
        while let Taken::Work { key, .. } = queue.get(end) {
            owed.retain(|other| *other != key);
            queue.done(&key, end);
        }
        prop_assert_eq!(owed, Vec::<u16>::new());
        prop_assert_eq!((queue.known(), queue.depth(), queue.next_wakeup()), (0, 0, None));
        prop_assert_eq!(queue.take_overflow(), refused);
    }
}
