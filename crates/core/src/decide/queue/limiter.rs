//! How long a key waits before it is worked on again.

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use crate::time::{Random, Tick};

/// Says how long a key waits. Asking counts: every answer is a wait that will be taken.
pub trait Limiter<K> {
    /// The wait of `key`, which has just failed once more.
    fn when(&mut self, key: &K, now: Tick) -> Duration;
    /// Clears the failure count of `key`.
    fn forget(&mut self, key: &K);
    /// How often `key` has failed since it was last forgotten.
    fn failures(&self, key: &K) -> u32;
    /// How many keys are remembered at all.
    fn remembered(&self) -> usize;
    /// Forgets every key that `known` denies, so that the memory cannot outgrow the queue.
    fn retain(&mut self, known: &dyn Fn(&K) -> bool);
}

/// `base`, doubled with every failure of the same key, at most `max`.
#[derive(Clone, Debug)]
pub struct ItemExponential<K> {
    base: Duration,
    max: Duration,
    failures: BTreeMap<K, u32>,
}

impl<K: Ord> ItemExponential<K> {
    /// Waits of `base`, 2 × `base`, 4 × `base` and so on up to `max`.
    #[must_use]
    pub const fn new(base: Duration, max: Duration) -> Self {
        Self { base, max, failures: BTreeMap::new() }
    }
}

impl<K: Ord + Clone> Limiter<K> for ItemExponential<K> {
    fn when(&mut self, key: &K, _now: Tick) -> Duration {
        let failures = self.failures.entry(key.clone()).or_default();
        let factor = 1_u32.checked_shl(*failures).unwrap_or(u32::MAX);
        *failures = failures.saturating_add(1);
        self.base.saturating_mul(factor).min(self.max)
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

/// A token bucket that all keys share. A token is reserved when asked for, so waits grow while the bucket is empty.
#[derive(Clone, Debug)]
pub struct Bucket {
    interval: Duration,
    burst: Duration,
    /// When the bucket will be full again.
    full_at: Tick,
}

impl Bucket {
    /// One token every `interval`, of which `burst` may be taken at once.
    #[must_use]
    pub const fn new(interval: Duration, burst: u32) -> Self {
        Self { interval, burst: interval.saturating_mul(burst), full_at: Tick::ZERO }
    }
}

impl<K> Limiter<K> for Bucket {
    fn when(&mut self, _key: &K, now: Tick) -> Duration {
        self.full_at = self.full_at.max(now) + self.interval;
        (self.full_at - self.burst).since(now)
    }

    fn forget(&mut self, _key: &K) {}

    fn failures(&self, _key: &K) -> u32 {
        0
    }

    fn remembered(&self) -> usize {
        0
    }

    fn retain(&mut self, _known: &dyn Fn(&K) -> bool) {}
}

/// The longer of two waits; both limiters are asked every time.
#[derive(Clone, Debug)]
pub struct MaxOf<A, B>(pub A, pub B);

impl<K, A: Limiter<K>, B: Limiter<K>> Limiter<K> for MaxOf<A, B> {
    fn when(&mut self, key: &K, now: Tick) -> Duration {
        self.0.when(key, now).max(self.1.when(key, now))
    }

    fn forget(&mut self, key: &K) {
        self.0.forget(key);
        self.1.forget(key);
    }

    fn failures(&self, key: &K) -> u32 {
        self.0.failures(key).max(self.1.failures(key))
    }

    fn remembered(&self) -> usize {
        self.0.remembered().max(self.1.remembered())
    }

    fn retain(&mut self, known: &dyn Fn(&K) -> bool) {
        self.0.retain(known);
        self.1.retain(known);
    }
}

/// The inner wait, at most `cap`.
#[derive(Clone, Debug)]
pub struct MaxWait<L> {
    /// The limiter that is asked.
    pub inner: L,
    /// The longest wait.
    pub cap: Duration,
}

impl<K, L: Limiter<K>> Limiter<K> for MaxWait<L> {
    fn when(&mut self, key: &K, now: Tick) -> Duration {
        self.inner.when(key, now).min(self.cap)
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

/// The inner wait and a random part of it on top, so that keys which failed together come back apart.
#[derive(Clone, Debug)]
pub struct Jittered<L> {
    /// The limiter that is asked.
    pub inner: L,
    /// The largest part on top: 0.1 makes 10 s into something in [10 s, 11 s).
    pub factor: f64,
    /// Where chance comes from.
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

/// What a controller uses that has no wish of its own: from 5 ms to 1000 s per key, and not more than 10 a second
/// of all keys together after a burst of 100.
#[must_use]
pub fn default_controller_limiter<K: Ord + Clone>() -> MaxOf<ItemExponential<K>, Bucket> {
    MaxOf(
        ItemExponential::new(Duration::from_millis(5), Duration::from_secs(1000)),
        Bucket::new(Duration::from_millis(100), 100),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: Tick = Tick::from_secs(1_000);

    fn millis(limiter: &mut impl Limiter<&'static str>, key: &'static str, now: Tick) -> u128 {
        limiter.when(&key, now).as_millis()
    }

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
    fn a_bucket_lends_its_burst_and_then_makes_wait() {
        let mut limiter = Bucket::new(Duration::from_millis(100), 3);
        let at_once: Vec<_> = (0..5).map(|_| millis(&mut limiter, "a", NOW)).collect();
        assert_eq!(at_once, [0, 0, 0, 100, 200]);
        assert_eq!(millis(&mut limiter, "b", NOW), 300, "the bucket is shared");
        assert_eq!(millis(&mut limiter, "b", NOW + Duration::from_millis(400)), 0, "it refills");
        assert_eq!(millis(&mut limiter, "b", NOW + Duration::from_millis(400)), 100);
        assert_eq!(millis(&mut limiter, "b", NOW + Duration::from_secs(3_600)), 0);
        let later = NOW + Duration::from_secs(7_200);
        let again: Vec<_> = (0..4).map(|_| millis(&mut limiter, "a", later)).collect();
        assert_eq!(again, [0, 0, 0, 100], "rest never saves up more than the burst");
        Limiter::<&str>::forget(&mut limiter, &"a");
        assert_eq!(millis(&mut limiter, "a", later), 200, "forgetting a key gives no token back");
        assert_eq!(
            (Limiter::<&str>::failures(&limiter, &"a"), Limiter::<&str>::remembered(&limiter)),
            (0, 0)
        );
    }

    #[test]
    fn a_bucket_starts_full_at_the_very_beginning_too() {
        let mut limiter = Bucket::new(Duration::from_secs(1), 2);
        let waits: Vec<_> = (0..4).map(|_| millis(&mut limiter, "a", Tick::ZERO)).collect();
        assert_eq!(waits, [0, 0, 1_000, 2_000]);
    }

    #[test]
    fn the_default_takes_the_longer_wait() {
        let mut limiter = default_controller_limiter();
        let first: Vec<_> = (0..20).map(|_| millis(&mut limiter, "a", NOW)).collect();
        assert_eq!(first[..4], [5, 10, 20, 40]);
        assert_eq!(first[17..], [655_360, 1_000_000, 1_000_000]);
        for _ in 0..80 {
            limiter.when(&"b", NOW);
        }
        assert_eq!(millis(&mut limiter, "c", NOW), 100, "the bucket is empty after its burst of 100");
        assert_eq!((limiter.failures(&"a"), limiter.failures(&"c"), limiter.remembered()), (20, 1, 3));
        limiter.forget(&"a");
        assert_eq!((limiter.failures(&"a"), limiter.remembered()), (0, 2));
        limiter.retain(&|key| *key == "c");
        assert_eq!((limiter.failures(&"b"), limiter.failures(&"c"), limiter.remembered()), (0, 1, 1));
    }

    #[test]
    fn both_halves_of_a_pair_are_kept_in_step() {
        let half = || ItemExponential::new(Duration::from_secs(1), Duration::from_secs(9));
        let mut pair = MaxOf(half(), half());
        pair.when(&"a", NOW);
        pair.when(&"b", NOW);
        pair.forget(&"a");
        pair.retain(&|key| *key == "a");
        assert_eq!((pair.0.remembered(), pair.1.remembered()), (0, 0));
    }

    #[test]
    fn a_longest_wait_cuts_and_leaves_the_count_alone() {
        let mut limiter = MaxWait { inner: service(), cap: Duration::from_secs(15) };
        let waits: Vec<_> = (0..4).map(|_| limiter.when(&"a", NOW).as_secs()).collect();
        assert_eq!(waits, [5, 10, 15, 15]);
        assert_eq!((limiter.failures(&"a"), limiter.remembered()), (4, 1));
        limiter.forget(&"a");
        limiter.when(&"b", NOW);
        assert_eq!((limiter.failures(&"a"), limiter.remembered()), (0, 1));
        limiter.retain(&|_| false);
        assert_eq!(limiter.remembered(), 0);
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
