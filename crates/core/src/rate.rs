//! How often something may be done: a token bucket and a doubling back-off, as values that are told the time.

use std::time::Duration;

use crate::time::Tick;

/// One token every `interval`, and up to `burst` at once after a quiet time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rate {
    /// The time in which one token comes back.
    pub interval: Duration,
    /// How many tokens a full bucket holds.
    pub burst: u32,
}

impl Rate {
    /// How far from full a bucket may be and still hold one token.
    const fn slack(self) -> Duration {
        self.interval.saturating_mul(self.burst.saturating_sub(1))
    }
}

/// A token bucket that starts full. The rate comes with each call, so that it may change over time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TokenBucket {
    /// When it is full again if nobody takes anything.
    full_at: Tick,
}

impl TokenBucket {
    /// When the next token is there; in the past if one is there already.
    #[must_use]
    pub fn next(&self, rate: Rate) -> Tick {
        self.full_at - rate.slack()
    }

    /// How many tokens are there.
    #[must_use]
    pub fn left(&self, rate: Rate, now: Tick) -> u32 {
        let interval = rate.interval.as_nanos().max(1);
        let taken = self.full_at.since(now).as_nanos().div_ceil(interval);
        rate.burst.saturating_sub(taken.try_into().unwrap_or(u32::MAX))
    }

    /// Takes a token, whether one is there or not.
    pub fn take(&mut self, rate: Rate, now: Tick) {
        self.full_at = self.full_at.max(now) + rate.interval;
    }

    /// Takes a token if one is there, and says whether it was.
    pub fn try_take(&mut self, rate: Rate, now: Tick) -> bool {
        let there = self.next(rate) <= now;
        if there {
            self.take(rate, now);
        }
        there
    }

    /// Gives back a token that was taken when one came back every `interval`.
    pub fn give_back(&mut self, interval: Duration) {
        self.full_at = self.full_at - interval;
    }

    /// Empties the bucket: the next token is there at `at`, or later if that was so already.
    pub fn empty_until(&mut self, rate: Rate, at: Tick) {
        self.full_at = self.full_at.max(at + rate.slack());
    }

    /// Tokens come back twice as fast from now on: those that are out are back in half the time.
    pub fn twice_as_fast(&mut self, now: Tick) {
        self.full_at = now + self.full_at.since(now) / 2;
    }
}

/// A wait that doubles with every failure, from `first` up to `longest`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Backoff {
    /// The wait after the first failure.
    pub first: Duration,
    /// The wait that is never exceeded.
    pub longest: Duration,
}

impl Backoff {
    /// The wait after the last of `failures` in a row.
    #[must_use]
    pub fn after(self, failures: u32) -> Duration {
        let factor = 1_u32.checked_shl(failures.saturating_sub(1)).unwrap_or(u32::MAX);
        self.first.saturating_mul(factor).min(self.longest)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const RATE: Rate = Rate { interval: Duration::from_millis(100), burst: 3 };

    fn at(millis: u64) -> Tick {
        Tick(Duration::from_millis(millis))
    }

    #[test]
    fn a_bucket_gives_its_burst_and_then_one_per_interval() {
        let mut bucket = TokenBucket::default();
        assert_eq!(bucket.left(RATE, Tick::ZERO), 3, "it is full at the very beginning");
        let taken: Vec<_> =
            [0, 0, 0, 0, 99, 100, 100, 350, 350].map(|ms| bucket.try_take(RATE, at(ms))).into();
        assert_eq!(taken, [true, true, true, false, false, true, false, true, true]);
        assert_eq!((bucket.left(RATE, at(350)), bucket.next(RATE)), (0, at(400)));
        assert_eq!(bucket.left(RATE, at(400)), 1);
        assert_eq!(bucket.left(RATE, at(3_600_000)), 3, "a quiet time saves up no more than the burst");
    }

    #[test]
    fn a_token_that_is_not_there_can_be_taken_ahead() {
        let mut bucket = TokenBucket::default();
        let next: Vec<_> = (0..5)
            .map(|_| {
                let next = bucket.next(RATE).since(at(1_000)).as_millis();
                bucket.take(RATE, at(1_000));
                next
            })
            .collect();
        assert_eq!(next, [0, 0, 0, 100, 200]);
        bucket.give_back(RATE.interval);
        assert_eq!(bucket.next(RATE), at(1_200), "the next one goes in its place");
    }

    #[test]
    fn a_bucket_can_be_emptied_and_can_recover_faster() {
        let mut bucket = TokenBucket::default();
        bucket.empty_until(RATE, at(2_000));
        bucket.empty_until(RATE, at(1_000));
        assert_eq!((bucket.left(RATE, at(2_000)), bucket.next(RATE)), (1, at(2_000)));
        bucket.take(RATE, at(2_000));
        bucket.twice_as_fast(at(2_000));
        let faster = Rate { interval: RATE.interval / 2, ..RATE };
        assert_eq!((bucket.left(faster, at(2_000)), bucket.next(faster)), (0, at(2_050)));
    }

    #[test]
    fn a_rate_without_limit_never_makes_wait() {
        let free = Rate { interval: Duration::ZERO, burst: 1 };
        let mut bucket = TokenBucket::default();
        assert!((0..1_000).all(|_| bucket.try_take(free, at(5))));
        assert_eq!(bucket.left(free, at(5)), 1);
    }

    proptest! {
        #[test]
        fn no_bucket_gives_more_than_its_burst_and_its_rate(
            steps in prop::collection::vec(0..300_u64, 0..100),
            burst in 1..6_u32,
        ) {
            let rate = Rate { burst, ..RATE };
            let (mut bucket, mut now, mut taken) = (TokenBucket::default(), 1_000, 0);
            for step in steps {
                now += step;
                let there = bucket.left(rate, at(now)) > 0;
                prop_assert_eq!(bucket.try_take(rate, at(now)), there);
                taken += u64::from(there);
                prop_assert!(taken <= u64::from(burst) + (now - 1_000) / 100);
            }
        }
    }

    #[test]
    fn a_wait_doubles_up_to_its_limit() {
        let backoff = Backoff { first: Duration::from_secs(5), longest: Duration::from_secs(300) };
        let waits = [0, 1, 2, 3, 6, 7, 8, 40, u32::MAX].map(|failures| backoff.after(failures).as_secs());
        assert_eq!(waits, [5, 5, 10, 20, 160, 300, 300, 300, 300], "L12-20");
        let unlimited = Backoff { longest: Duration::MAX, ..backoff };
        assert_eq!(unlimited.after(u32::MAX), Duration::from_secs(5 * u64::from(u32::MAX)));
    }
}
