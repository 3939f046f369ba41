//! Time and randomness, handed in.
//!
//! Code that reads the clock or the system's randomness by itself cannot be replayed. So all code gets a [`Clock`] and a
//! [`Random`] from the one place that may ask the system.

use std::{
    ops::{Add, Sub},
    sync::Mutex,
    time::Duration,
};

use jiff::Timestamp;

/// A point in monotonic time, counted from the program's start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Tick(pub Duration);

impl Tick {
    /// The start of the program.
    pub const ZERO: Self = Self(Duration::ZERO);

    /// This many seconds after the start.
    #[must_use]
    pub const fn from_secs(seconds: u64) -> Self {
        Self(Duration::from_secs(seconds))
    }

    /// How long ago `earlier` was; zero if it was not earlier.
    #[must_use]
    pub const fn since(self, earlier: Self) -> Duration {
        self.0.saturating_sub(earlier.0)
    }
}

impl Add<Duration> for Tick {
    type Output = Self;
    fn add(self, wait: Duration) -> Self {
        Self(self.0.saturating_add(wait))
    }
}

impl Sub<Duration> for Tick {
    type Output = Self;
    fn sub(self, wait: Duration) -> Self {
        Self(self.0.saturating_sub(wait))
    }
}

/// The source of time. Each replica has its own, and a test can skew it.
pub trait Clock: Send + Sync {
    /// Monotonic time, for deadlines, ages and waits.
    fn now(&self) -> Tick;
    /// The time of day, for what people and other programs read. Never compared with another instance's.
    fn wall(&self) -> Timestamp;
}

/// The source of randomness: the same seed draws the same numbers.
#[derive(Debug)]
pub struct Random(Mutex<fastrand::Rng>);

impl Random {
    /// A generator with this seed.
    #[must_use]
    pub fn seeded(seed: u64) -> Self {
        Self(Mutex::new(fastrand::Rng::with_seed(seed)))
    }

    /// A number in `[0, 1)`.
    pub fn fraction(&self) -> f64 {
        self.draw(fastrand::Rng::f64)
    }

    /// Sixty-four random bits.
    pub fn bits(&self) -> u64 {
        self.draw(|rng| rng.u64(..))
    }

    /// A UUID of version 4.
    pub fn uuid(&self) -> String {
        let (high, low) = (self.bits(), self.bits());
        let bits = u128::from(high) << 64 | u128::from(low);
        uuid::Builder::from_random_bytes(bits.to_be_bytes()).into_uuid().to_string()
    }

    /// A wait in `[base, base × (1 + factor))`, drawn uniformly.
    pub fn jitter(&self, base: Duration, factor: f64) -> Duration {
        let extra = base.as_secs_f64() * factor.max(0.0) * self.fraction();
        base.saturating_add(Duration::try_from_secs_f64(extra).unwrap_or_default())
    }

    fn draw<T>(&self, f: impl FnOnce(&mut fastrand::Rng) -> T) -> T {
        // A panic while the lock is held leaves a usable generator behind.
        f(&mut self.0.lock().unwrap_or_else(std::sync::PoisonError::into_inner))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ticks_never_underflow() {
        assert_eq!(Tick::from_secs(5).since(Tick::from_secs(2)), Duration::from_secs(3));
        assert_eq!(Tick::from_secs(2).since(Tick::from_secs(5)), Duration::ZERO);
        assert_eq!(Tick::ZERO - Duration::from_secs(1), Tick::ZERO);
        assert_eq!(Tick::from_secs(1) + Duration::from_secs(2), Tick::from_secs(3));
        assert_eq!(Tick::from_secs(3) - Duration::from_secs(2), Tick::from_secs(1));
    }

    #[test]
    fn the_same_seed_draws_the_same_numbers() {
        let (a, b, c) = (Random::seeded(7), Random::seeded(7), Random::seeded(8));
        let draw = |random: &Random| (0..8).map(|_| random.bits()).collect::<Vec<_>>();
        let first = draw(&a);
        assert_eq!(first, draw(&b));
        assert_ne!(first, draw(&c));
        assert_ne!(first, draw(&a), "the numbers go on");
    }

    #[test]
    fn a_uuid_is_one_of_version_four_and_comes_from_the_seed() {
        let (a, b) = (Random::seeded(7), Random::seeded(7));
        let id = a.uuid();
        assert_eq!(id, b.uuid());
        assert_ne!(id, a.uuid());
        let parsed: uuid::Uuid = id.parse().unwrap();
        assert_eq!((parsed.get_version_num(), parsed.get_variant()), (4, uuid::Variant::RFC4122), "{id}");
        assert_eq!(id, parsed.hyphenated().to_string(), "lower case, with hyphens");
    }

    #[test]
    fn jitter_stays_within_its_bounds_and_uses_them() {
        let random = Random::seeded(1);
        let base = Duration::from_secs(10);
        let waits: Vec<_> = (0..1_000).map(|_| random.jitter(base, 0.5)).collect();
        assert!(waits.iter().all(|w| *w >= base && *w < Duration::from_secs(15)));
        assert!(waits.iter().any(|w| *w < Duration::from_millis(10_500)));
        assert!(waits.iter().any(|w| *w > Duration::from_millis(14_500)));
        assert_eq!(random.jitter(base, -1.0), base);
    }
}
