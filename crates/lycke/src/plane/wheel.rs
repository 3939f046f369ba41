//! A coarse timer for very many waits: one entry of a few bytes each, and no work until it is due.

use std::{collections::VecDeque, time::Duration};

use cloudberth_core::time::Tick;

/// How exact it is. Waits end late by up to this, never early.
pub(crate) const GRAIN: Duration = Duration::from_millis(GRAIN_MILLIS);
const GRAIN_MILLIS: u64 = 100;
/// How far it reaches. What is due later comes up at its end, and whoever filed it files it again.
const SLOTS: u64 = 1024;

/// What is filed by the time at which it is due.
#[derive(Debug)]
pub(crate) struct Wheel<T> {
    /// The first slot is the next one that will be due.
    slots: VecDeque<Vec<T>>,
    /// The number of grains after which the first slot is due.
    first: u64,
    /// The number of grains after which the next entry is due, so that nobody looks through a thousand empty slots before
    /// each wait.
    next: Option<u64>,
}

fn grains(time: Duration) -> u64 {
    // In 64 bits: this is asked before and after every wait.
    time.as_secs().saturating_mul(1000).saturating_add(time.subsec_millis().into()) / GRAIN_MILLIS
}

impl<T> Wheel<T> {
    pub(crate) fn new(now: Tick) -> Self {
        Self { slots: VecDeque::new(), first: grains(now.0) + 1, next: None }
    }

    /// Files something that comes up at `due`, or earlier if that is far away.
    pub(crate) fn file(&mut self, due: Tick, what: T) {
        let slot = (grains(due.0) + 1).saturating_sub(self.first).min(SLOTS - 1);
        let at = usize::try_from(slot).unwrap_or(0);
        while self.slots.len() <= at {
            self.slots.push_back(Vec::new());
        }
        if let Some(slot) = self.slots.get_mut(at) {
            slot.push(what);
            let due = self.first.saturating_add(u64::try_from(at).unwrap_or_default());
            self.next = Some(self.next.map_or(due, |next| next.min(due)));
        }
    }

    /// Takes out one slot that is due by now; `None` when there is no more.
    pub(crate) fn due(&mut self, now: Tick) -> Option<Vec<T>> {
        let passed = grains(now.0);
        while self.first <= passed {
            let slot = self.slots.pop_front();
            if self.slots.is_empty() && slot.is_none() {
                self.first = passed + 1;
                return None;
            }
            self.first += 1;
            if let Some(slot) = slot.filter(|slot| !slot.is_empty()) {
                let next = self.slots.iter().position(|slot| !slot.is_empty());
                let next = next.and_then(|at| u64::try_from(at).ok());
                self.next = next.map(|at| self.first.saturating_add(at));
                return Some(slot);
            }
        }
        None
    }

    /// How long until something is due; `None` if nothing is filed.
    pub(crate) fn wait(&self, now: Tick) -> Option<Duration> {
        let due = GRAIN.saturating_mul(u32::try_from(self.next?).unwrap_or(u32::MAX));
        Some(due.saturating_sub(now.0))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn at(millis: u64) -> Tick {
        Tick(Duration::from_millis(millis))
    }

    fn all_due<T>(wheel: &mut Wheel<T>, now: Tick) -> Vec<T> {
        std::iter::from_fn(|| wheel.due(now)).flatten().collect()
    }

    #[test]
    fn what_is_far_away_comes_up_at_the_end() {
        let mut wheel = Wheel::new(at(0));
        wheel.file(at(600_000), "far");
        assert_eq!(all_due(&mut wheel, at(102_300)), [""; 0], "CL-65 not yet");
        assert_eq!(all_due(&mut wheel, at(102_400)), ["far"], "CL-65 to be filed again");
        assert_eq!(wheel.wait(at(102_400)), None, "CL-65 nothing is left");
    }

    proptest! {
        #[test]
        fn a_wait_ends_in_time_and_never_early(start in 0_u64..10_000, waits in proptest::collection::vec(0_u64..9_000, 1..40)) {
            let mut wheel = Wheel::new(at(start));
            for wait in &waits {
                wheel.file(at(start + wait), start + wait);
            }
            let (mut now, mut ended) = (start, 0);
            while let Some(wait) = wheel.wait(at(now)) {
                now += u64::try_from(wait.as_millis()).unwrap().max(1);
                for due in all_due(&mut wheel, at(now)) {
                    prop_assert!(due <= now && now <= due + 101, "CL-65 due at {due}, ended at {now}");
                    ended += 1;
                }
            }
            prop_assert_eq!(ended, waits.len(), "CL-65 every wait ends");
        }
    }
}
