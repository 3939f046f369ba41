//! Time and randomness, handed in so that a seed gives the same history every time.

use jiff::{SignedDuration, Timestamp};

/// The clock and the source of randomness of a simulated server.
pub struct Surroundings {
    now: Box<dyn Fn() -> Timestamp + Send + Sync>,
    skew: SignedDuration,
    rng: fastrand::Rng,
}

impl Surroundings {
    /// A clock and a seed. Equal clocks and seeds give equal identifiers, names and allocations.
    pub fn new(seed: u64, now: impl Fn() -> Timestamp + Send + Sync + 'static) -> Self {
        Self { now: Box::new(now), skew: SignedDuration::ZERO, rng: fastrand::Rng::with_seed(seed) }
    }

    /// The system's clock, and a seed drawn from it: for serving people, never for tests.
    #[expect(clippy::disallowed_methods, reason = "the one place that reads the system's clock")]
    pub fn of_this_machine() -> Self {
        let seed = Timestamp::now().as_nanosecond().to_le_bytes();
        let (low, _) = seed.split_at(8);
        Self::new(u64::from_le_bytes(low.try_into().unwrap_or_default()), Timestamp::now)
    }

    /// The time on this server's clock.
    pub fn now(&self) -> Timestamp {
        let now = (self.now)();
        now.checked_add(self.skew).unwrap_or(now)
    }

    /// Moves this server's clock against the one that was handed in.
    pub fn set_skew(&mut self, skew: SignedDuration) {
        self.skew = skew;
    }

    /// The source of randomness, which continues from the seed.
    pub fn rng(&mut self) -> &mut fastrand::Rng {
        &mut self.rng
    }

    /// A random (version 4) UUID drawn from the seed.
    pub fn uuid(&mut self) -> String {
        uuid::Builder::from_random_bytes(self.rng.u128(..).to_be_bytes()).into_uuid().to_string()
    }
}

impl std::fmt::Debug for Surroundings {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Surroundings")
            .field("now", &self.now())
            .field("skew", &self.skew)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(second: i64) -> Surroundings {
        Surroundings::new(7, move || Timestamp::from_second(second).unwrap())
    }

    #[test]
    fn a_seed_gives_the_same_ids_every_time() {
        let (mut a, mut b) = (at(0), at(0));
        let ids: Vec<_> = (0..3).map(|_| a.uuid()).collect();
        assert_eq!(ids, (0..3).map(|_| b.uuid()).collect::<Vec<_>>());
        for id in ids {
            let parts: Vec<_> = id.split('-').map(str::len).collect();
            assert_eq!(parts, [8, 4, 4, 4, 12], "{id}");
            assert_eq!(&id[14..15], "4", "{id}");
            assert!(matches!(&id[19..20], "8" | "9" | "a" | "b"), "{id}");
        }
    }

    #[test]
    fn skew_moves_the_clock() {
        let mut world = at(100);
        world.set_skew(SignedDuration::from_secs(-30));
        assert_eq!(world.now().as_second(), 70);
    }
}
