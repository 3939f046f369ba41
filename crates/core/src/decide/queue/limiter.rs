//! How long a key waits before it is worked on again.

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use crate::{rate::Backoff, time::Random};

/// How long a failed key waits: `base`, doubled with every failure of the same key, at most `max`.
#[derive(Clone, Debug)]
pub struct ItemExponential<K> {
    backoff: Backoff,
    jitter: Option<(f64, Arc<Random>)>,
    failures: BTreeMap<K, u32>,
}

impl<K: Ord + Clone> ItemExponential<K> {
    /// Waits of `base`, 2 × `base`, 4 × `base` and so on up to `max`.
    #[must_use]
    pub const fn new(base: Duration, max: Duration) -> Self {
        Self { backoff: Backoff { first: base, longest: max }, jitter: None, failures: BTreeMap::new() }
    }

    /// Adds a random part to each wait, so that keys which failed together come back apart: a `factor` of 0.1 makes 10 s
    /// into something in [10 s, 11 s).
    #[must_use]
    pub fn jittered(self, factor: f64, random: Arc<Random>) -> Self {
        Self { jitter: Some((factor, random)), ..self }
    }

    /// The wait of `key`, which has just failed once more.
    pub(super) fn when(&mut self, key: &K) -> Duration {
        let failures = self.failures.entry(key.clone()).or_default();
        *failures = failures.saturating_add(1);
        let wait = self.backoff.after(*failures);
        self.jitter.as_ref().map_or(wait, |(factor, random)| random.jitter(wait, *factor))
    }

    /// Clears the failure count of `key`.
    pub(super) fn forget(&mut self, key: &K) {
        self.failures.remove(key);
    }

    /// How often `key` has failed since it was last forgotten.
    pub(super) fn failures(&self, key: &K) -> u32 {
        self.failures.get(key).copied().unwrap_or_default()
    }

    /// How many keys are remembered at all.
    pub(super) fn remembered(&self) -> usize {
        self.failures.len()
    }

    /// Forgets every key for which `known` is false, so that the counts cannot outgrow the queue.
    pub(super) fn retain(&mut self, known: impl Fn(&K) -> bool) {
        self.failures.retain(|key, _| known(key));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn service() -> ItemExponential<&'static str> {
        ItemExponential::new(Duration::from_secs(5), Duration::from_secs(300))
    }

    #[test]
    fn the_wait_doubles_per_key_up_to_the_cap() {
        let mut limiter = service();
        let waits: Vec<_> = (0..8).map(|_| limiter.when(&"a").as_secs()).collect();
        assert_eq!(waits, [5, 10, 20, 40, 80, 160, 300, 300], "FW-254");
        assert_eq!(limiter.when(&"b").as_secs(), 5, "another key has its own count");
        assert_eq!((limiter.failures(&"a"), limiter.failures(&"b"), limiter.failures(&"c")), (8, 1, 0));
        limiter.forget(&"a");
        assert_eq!((limiter.failures(&"a"), limiter.remembered()), (0, 1));
        assert_eq!(limiter.when(&"a").as_secs(), 5);
    }

    #[test]
    fn a_key_that_fails_for_ever_stays_at_the_cap() {
        let mut limiter = ItemExponential::new(Duration::from_secs(1), Duration::MAX);
        for _ in 0..40 {
            limiter.when(&"a");
        }
        assert_eq!(limiter.when(&"a"), Duration::from_secs(u64::from(u32::MAX)));
        assert_eq!(limiter.failures(&"a"), 41);
    }

    #[test]
    fn jitter_lies_on_top_and_repeats_with_its_seed() {
        let limiter = || service().jittered(0.1, Arc::new(Random::seeded(3)));
        let (mut one, mut two) = (limiter(), limiter());
        for (failure, base) in [5, 10, 20, 40, 80, 160, 300, 300].into_iter().enumerate() {
            let wait = one.when(&"a");
            let base = Duration::from_secs(base);
            assert!(wait > base && wait < base.mul_f64(1.1), "L12-101 failure {failure}: {wait:?}");
            assert_eq!(wait, two.when(&"a"));
        }
        assert_eq!((one.failures(&"a"), one.remembered()), (8, 1));
        one.forget(&"a");
        one.when(&"b");
        assert_eq!((one.failures(&"a"), one.remembered()), (0, 1));
        one.retain(|_| false);
        assert_eq!(one.remembered(), 0);
    }
}
