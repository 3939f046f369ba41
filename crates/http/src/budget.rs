//! The rate limit of a credential, and how it slows down when the cloud asks for it.

use std::{
    fmt,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use cloudberth_core::{
    Category, Clock, Error, Result, Tick,
    rate::{Rate, TokenBucket},
};

/// After a 429 without a wait the pace is halved; it doubles again after this long without another.
const RECOVERY: Duration = Duration::from_secs(30);
/// The pace is never less than a sixteenth.
const SLOWEST: u32 = 4;

/// A rate limit that its clones share, and so all clients of one credential.
///
/// Requests that have to wait are let through in order, so that a flood of reads cannot starve a removal.
#[derive(Clone)]
pub struct Budget(Arc<Inner>);

struct Inner {
    clock: Arc<dyn Clock>,
    rate: Rate,
    state: Mutex<State>,
    turnstile: tokio::sync::Mutex<()>,
}

#[derive(Debug, Default)]
struct State {
    bucket: TokenBucket,
    paused_until: Tick,
    /// How often the pace is halved at present.
    halvings: u32,
    faster_at: Tick,
    waiting: u32,
}

impl Budget {
    /// One request every `gap`, and up to `burst` at once after a quiet time.
    pub fn new(gap: Duration, burst: u32, clock: Arc<dyn Clock>) -> Self {
        let (state, turnstile) = (Mutex::default(), tokio::sync::Mutex::default());
        let rate = Rate { interval: gap, burst: burst.max(1) };
        Self(Arc::new(Inner { clock, rate, state, turnstile }))
    }

    /// How many requests could be sent at once now.
    pub fn left(&self) -> u32 {
        let now = self.0.clock.now();
        let state = self.state(now);
        if state.paused_until > now || state.waiting > 0 {
            return 0;
        }
        state.bucket.left(self.rate(&state), now)
    }

    /// Waits for permission to send one request. Fails at once if that would take until `until` or longer. Dropping the
    /// future while it waits uses nothing up.
    pub async fn take(&self, until: Tick) -> Result<Permit> {
        let now = self.0.clock.now();
        {
            let mut state = self.state(now);
            let queue = self.rate(&state).interval.saturating_mul(state.waiting);
            let turn = self.turn(&state).max(now) + queue;
            if turn >= until {
                return Err(busy(turn.since(now)));
            }
            if state.waiting == 0 && turn == now {
                return Ok(self.spend(&mut state, now));
            }
            state.waiting += 1;
        }
        let _leaves = Leaving(self);
        let limit = until.since(now);
        match tokio::time::timeout(limit, self.wait(until)).await {
            Ok(result) => result,
            Err(_) => Err(busy(self.0.rate.interval)),
        }
    }

    async fn wait(&self, until: Tick) -> Result<Permit> {
        let _first = self.0.turnstile.lock().await;
        loop {
            let now = self.0.clock.now();
            let turn = {
                let mut state = self.state(now);
                let turn = self.turn(&state);
                if turn <= now {
                    return Ok(self.spend(&mut state, now));
                }
                turn
            };
            if turn >= until {
                return Err(busy(turn.since(now)));
            }
            tokio::time::sleep(turn.since(now)).await;
        }
    }

    /// The cloud answered 429. If it named a wait, nothing is sent until then; otherwise the pace is halved. Either way
    /// the bucket is empty afterwards.
    pub(crate) fn throttled(&self, asked: Option<Duration>) {
        let now = self.0.clock.now();
        let mut state = self.state(now);
        let resume = if let Some(wait) = asked {
            state.paused_until = state.paused_until.max(now + wait);
            state.paused_until
        } else {
            state.halvings = (state.halvings + 1).min(SLOWEST);
            state.faster_at = now + RECOVERY;
            now + self.rate(&state).interval
        };
        let rate = self.rate(&state);
        state.bucket.empty_until(rate, resume);
    }

    /// The state at `now`, with the pace recovered as far as it is due.
    fn state(&self, now: Tick) -> MutexGuard<'_, State> {
        // Every change completes while the lock is held, so a poisoned lock still holds a good state.
        let mut state = self.0.state.lock().unwrap_or_else(PoisonError::into_inner);
        while state.halvings > 0 && state.faster_at <= now {
            state.halvings -= 1;
            state.faster_at = state.faster_at + RECOVERY;
            state.bucket.twice_as_fast(now);
        }
        state
    }

    fn rate(&self, state: &State) -> Rate {
        let Rate { interval, burst } = self.0.rate;
        Rate { interval: interval.saturating_mul(1 << state.halvings.min(SLOWEST)), burst }
    }

    fn turn(&self, state: &State) -> Tick {
        state.bucket.next(self.rate(state)).max(state.paused_until)
    }

    fn spend(&self, state: &mut State, now: Tick) -> Permit {
        let rate = self.rate(state);
        state.bucket.take(rate, now);
        Permit { budget: self.clone(), interval: rate.interval, used: false }
    }
}

/// Permission to send one request. Dropping it unused gives it back.
#[derive(Debug)]
#[must_use = "a permit that is dropped is given back"]
pub struct Permit {
    budget: Budget,
    /// The interval of the rate at which it was taken.
    interval: Duration,
    used: bool,
}

impl Permit {
    /// The request is sent.
    pub fn used(mut self) {
        self.used = true;
    }
}

impl Drop for Permit {
    fn drop(&mut self) {
        if !self.used {
            let mut state = self.budget.0.state.lock().unwrap_or_else(PoisonError::into_inner);
            state.bucket.give_back(self.interval);
        }
    }
}

fn busy(wait: Duration) -> Error {
    Error::new(
        Category::Throttled { retry_after: Some(wait) },
        "the request budget of this credential is spent for longer than there is time",
    )
}

/// Leaves the queue when the waiting task ends or is dropped.
struct Leaving<'a>(&'a Budget);

impl Drop for Leaving<'_> {
    fn drop(&mut self) {
        let mut state = self.0.0.state.lock().unwrap_or_else(PoisonError::into_inner);
        state.waiting = state.waiting.saturating_sub(1);
    }
}

impl fmt::Debug for Budget {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Budget").field("rate", &self.0.rate).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use futures_util::future::join_all;

    use super::*;
    use crate::surroundings::SystemClock;

    const GAP: Duration = Duration::from_millis(100);

    fn budget(burst: u32) -> (Budget, Arc<SystemClock>) {
        let clock = Arc::new(SystemClock::default());
        (Budget::new(GAP, burst, clock.clone()), clock)
    }

    /// When each of `count` requests, all wanted now, is let through, in milliseconds from the start.
    async fn rush(budget: &Budget, clock: &SystemClock, count: u32) -> Vec<u128> {
        let until = clock.now() + Duration::from_secs(1_000);
        join_all((0..count).map(|_| async {
            budget.take(until).await.unwrap().used();
            clock.now().0.as_millis()
        }))
        .await
    }

    #[tokio::test(start_paused = true)]
    async fn a_burst_goes_at_once_and_then_one_per_interval() {
        let (budget, clock) = budget(3);
        assert_eq!(budget.left(), 3);
        assert_eq!(rush(&budget, &clock, 7).await, [0, 0, 0, 100, 200, 300, 400], "BL-133 in order, exactly");
        assert_eq!(budget.left(), 0);
        tokio::time::sleep(GAP).await;
        assert_eq!(budget.left(), 1);
        tokio::time::sleep(Duration::from_secs(10)).await;
        assert_eq!(budget.left(), 3, "no more than the burst");
        assert_eq!(rush(&budget.clone(), &clock, 4).await, [10_500, 10_500, 10_500, 10_600]);
    }

    #[tokio::test(start_paused = true)]
    async fn a_wait_past_the_deadline_fails_at_once() {
        let (budget, clock) = budget(1);
        let soon = |ms| clock.now() + Duration::from_millis(ms);
        budget.take(soon(1)).await.unwrap().used();
        let category = budget.take(soon(100)).await.unwrap_err().category();
        assert_eq!(category, Category::Throttled { retry_after: Some(GAP) });
        assert_eq!(clock.now(), Tick::ZERO, "without waiting");
        let (a, b) = tokio::join!(budget.take(soon(150)), budget.take(soon(150)));
        a.unwrap().used();
        let category = b.unwrap_err().category();
        assert_eq!(category, Category::Throttled { retry_after: Some(2 * GAP) }, "the queue counts");
    }

    #[tokio::test(start_paused = true)]
    async fn a_429_with_a_wait_stops_everybody_until_then() {
        let (budget, clock) = budget(3);
        budget.throttled(Some(Duration::from_secs(2)));
        assert_eq!(budget.left(), 0);
        assert_eq!(rush(&budget, &clock, 3).await, [2_000, 2_100, 2_200], "and then without a burst");
        tokio::time::sleep(Duration::from_secs(5)).await;
        assert_eq!(budget.left(), 3);
    }

    #[tokio::test(start_paused = true)]
    async fn a_pause_reaches_those_who_already_wait() {
        let (budget, clock) = budget(1);
        let (times, ()) = tokio::join!(rush(&budget, &clock, 3), async {
            tokio::time::sleep(Duration::from_millis(50)).await;
            budget.throttled(Some(Duration::from_secs(1)));
        });
        assert_eq!(times, [0, 1_050, 1_150]);
    }

    #[tokio::test(start_paused = true)]
    async fn a_429_without_a_wait_halves_the_pace_for_a_while() {
        let (budget, clock) = budget(2);
        budget.throttled(None);
        assert_eq!(rush(&budget, &clock, 3).await, [200, 400, 600]);
        budget.throttled(None);
        assert_eq!(rush(&budget, &clock, 2).await, [1_000, 1_400]);
        tokio::time::sleep(RECOVERY).await;
        let start = clock.now().0.as_millis();
        assert_eq!(rush(&budget, &clock, 4).await, [0, 0, 200, 400].map(|ms| start + ms), "half way back");
        tokio::time::sleep(RECOVERY).await;
        let start = clock.now().0.as_millis();
        assert_eq!(rush(&budget, &clock, 4).await, [0, 0, 100, 200].map(|ms| start + ms), "recovered");
    }

    #[tokio::test(start_paused = true)]
    async fn the_pace_has_a_floor() {
        let (budget, clock) = budget(1);
        for _ in 0..100 {
            budget.throttled(None);
        }
        assert_eq!(rush(&budget, &clock, 2).await, [1_600, 3_200]);
    }

    #[tokio::test(start_paused = true)]
    async fn a_waiter_that_gives_up_uses_nothing() {
        let (budget, clock) = budget(1);
        let until = clock.now() + Duration::from_secs(10);
        budget.take(until).await.unwrap().used();
        let gone = tokio::time::timeout(Duration::from_millis(10), budget.take(until)).await;
        assert!(gone.is_err());
        assert_eq!(rush(&budget, &clock, 1).await, [100]);
    }

    #[tokio::test(start_paused = true)]
    async fn a_permit_that_is_not_used_is_given_back() {
        let (budget, clock) = budget(2);
        let until = clock.now() + Duration::from_secs(10);
        for _ in 0..20 {
            drop(budget.take(until).await.unwrap());
        }
        assert_eq!((budget.left(), clock.now()), (2, Tick::ZERO), "L12-500 nobody sent anything");
        assert_eq!(rush(&budget, &clock, 4).await, [0, 0, 100, 200], "L12-500");
        drop(budget.take(until).await.unwrap());
        assert_eq!(rush(&budget, &clock, 2).await, [300, 400], "L12-501 the next one goes in its place");
    }
}
