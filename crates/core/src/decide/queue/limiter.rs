//! How long a key waits before it is worked on again.

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use crate::{
    rate::Backoff,
    time::{Random, Tick},
};

/// Says how long a failed key waits. Asking counts as a failure.
pub trait Limiter<K> {
    /// The wait of `key`, which has just failed once more.
    fn when(&mut self, key: &K, now: Tick) -> Duration;
    /// Clears the failure count of `key`.
    fn forget(&mut self, key: &K);
    /// How often `key` has failed since it was last forgotten.
    fn failures(&self, key: &K) -> u32;
    /// How many keys are remembered at all.
    fn remembered(&self) -> usize;
    /// Forgets every key for which `known` is false, so that the counts cannot outgrow the queue.
    fn retain(&mut self, known: &dyn Fn(&K) -> bool);
}

/// `base`, doubled with every failure of the same key, at most `max`.
#[derive(Clone, Debug)]
pub struct ItemExponential<K> {
    backoff: Backoff,
    failures: BTreeMap<K, u32>,
}

impl<K: Ord> ItemExponential<K> {
    /// Waits of `base`, 2 × `base`, 4 × `base` and so on up to `max`.
    #[must_use]
    pub const fn new(base: Duration, max: Duration) -> Self {
        Self { backoff: Backoff { first: base, longest: max }, failures: BTreeMap::new() }
    }
}

impl<K: Ord + Clone> Limiter<K> for ItemExponential<K> {
    fn when(&mut self, key: &K, _now: Tick) -> Duration {
        let failures = self.failures.entry(key.clone()).or_default();
        *failures = failures.saturating_add(1);
        self.backoff.after(*failures)
    }

    fn forget(&mut self, key: &K) {
        self.failures.remove(key);
    }

    fn failures(&self, key: &K) -> u32 {
        self.failures.get(key).copied().unwrap_or_default()
    }

    fn remembered(&self) -> usize {
        self.failures.len()
    }

    fn retain(&mut self, known: &dyn Fn(&K) -> bool) {
        self.failures.retain(|key, _| known(key));
    }
}

/// The inner wait and a random part of it on top, so that keys which failed together come back apart.
#[derive(Clone, Debug)]
pub struct Jittered<L> {
    /// The limiter whose wait is extended.
    pub inner: L,
    /// The largest part on top: 0.1 makes 10 s into something in [10 s, 11 s).
    pub factor: f64,
    /// Where the random part comes from.
    pub random: Arc<Random>,
}

impl<K, L: Limiter<K>> Limiter<K> for Jittered<L> {
    fn when(&mut self, key: &K, now: Tick) -> Duration {
        self.random.jitter(self.inner.when(key, now), self.factor)
    }

    fn forget(&mut self, key: &K) {
        self.inner.forget(key);
    }

    fn failures(&self, key: &K) -> u32 {
        self.inner.failures(key)
    }

    fn remembered(&self) -> usize {
        self.inner.remembered()
    }

    fn retain(&mut self, known: &dyn Fn(&K) -> bool) {
        self.inner.retain(known);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: Tick = Tick::from_secs(1_000);

    fn service() -> ItemExponential<&'static str> {
        ItemExponential::new(Duration::from_secs(5), Duration::from_secs(300))
    }

    #[test]
    fn the_wait_doubles_per_key_up_to_the_cap() {
        let mut limiter = service();
        let waits: Vec<_> = (0..8).map(|_| limiter.when(&"a", NOW).as_secs()).collect();
        assert_eq!(waits, [5, 10, 20, 40, 80, 160, 300, 300], "FW-254");
        assert_eq!(limiter.when(&"b", NOW).as_secs(), 5, "another key has its own count");
        assert_eq!((limiter.failures(&"a"), limiter.failures(&"b"), limiter.failures(&"c")), (8, 1, 0));
        limiter.forget(&"a");
        assert_eq!((limiter.failures(&"a"), limiter.remembered()), (0, 1));
        assert_eq!(limiter.when(&"a", NOW).as_secs(), 5);
    }

    #[test]
    fn a_key_that_fails_for_ever_stays_at_the_cap() {
        let mut limiter = ItemExponential::new(Duration::from_secs(1), Duration::MAX);
        for _ in 0..40 {
            limiter.when(&"a", NOW);
        }
        assert_eq!(limiter.when(&"a", NOW), Duration::from_secs(u64::from(u32::MAX)));
        assert_eq!(limiter.failures(&"a"), 41);
    }

    #[test]
    fn jitter_lies_on_top_and_repeats_with_its_seed() {
        let limiter = || Jittered { inner: service(), factor: 0.1, random: Arc::new(Random::seeded(3)) };
        let (mut one, mut two) = (limiter(), limiter());
        for (failure, base) in [5, 10, 20, 40, 80, 160, 300, 300].into_iter().enumerate() {
            let wait = one.when(&"a", NOW);
            let base = Duration::from_secs(base);
            assert!(wait > base && wait < base.mul_f64(1.1), "L12-101 failure {failure}: {wait:?}");
            assert_eq!(wait, two.when(&"a", NOW));
        }
        assert_eq!((one.failures(&"a"), one.remembered()), (8, 1));
        one.forget(&"a");
        one.when(&"b", NOW);
        assert_eq!((one.failures(&"a"), one.remembered()), (0, 1));
        one.retain(&|_| false);
        assert_eq!(one.remembered(), 0);
    }
}
