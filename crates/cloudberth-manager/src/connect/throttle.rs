//! A ceiling on requests to the API server, where somebody set one.
//!
//! Without one nothing is held back: the queues bound what is under way, and the API server has its own fairness.

use std::{
    pin::Pin,
    sync::{Arc, Mutex, PoisonError},
    task::{Context, Poll},
    time::Duration,
};

use cloudberth_core::{Clock, time::Tick};
use tower::{Layer, Service};

/// `--kube-api-qps` and `--kube-api-burst`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Ceiling {
    /// Requests a second, in the long run.
    pub qps: f64,
    /// How many may go at once after a rest.
    pub burst: u32,
}

/// Holds requests back that would exceed the ceiling; all clients that share it share the ceiling.
#[derive(Clone)]
pub struct Throttle(Option<Arc<Bucket>>);

struct Bucket {
    clock: Arc<dyn Clock>,
    interval: Duration,
    burst: u32,
    /// When the bucket would be full again if nothing more were asked.
    full_at: Mutex<Tick>,
}

impl Throttle {
    /// No ceiling.
    pub const fn none() -> Self {
        Self(None)
    }

    /// This ceiling. One that makes no sense (no requests at all) is none.
    pub fn new(ceiling: Ceiling, clock: Arc<dyn Clock>) -> Self {
        let interval =
            Duration::try_from_secs_f64(1.0 / ceiling.qps).ok().filter(|interval| !interval.is_zero());
        let bucket = interval.map(|interval| Bucket {
            clock,
            interval,
            burst: ceiling.burst.max(1),
            full_at: Mutex::new(Tick::ZERO),
        });
        Self(bucket.map(Arc::new))
    }

    /// Takes a place in the line; the request may go after this long.
    fn reserve(&self) -> Duration {
        let Some(bucket) = &self.0 else { return Duration::ZERO };
        let now = bucket.clock.now();
        let mut full_at = bucket.full_at.lock().unwrap_or_else(PoisonError::into_inner);
        *full_at = (*full_at).max(now) + bucket.interval;
        (*full_at - bucket.interval.saturating_mul(bucket.burst)).since(now)
    }
}

impl std::fmt::Debug for Throttle {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("Throttle")
            .field(&self.0.as_ref().map(|bucket| (bucket.interval, bucket.burst)))
            .finish()
    }
}

impl<S> Layer<S> for Throttle {
    type Service = Throttled<S>;

    fn layer(&self, inner: S) -> Throttled<S> {
        Throttled { inner, throttle: self.clone() }
    }
}

/// A service behind a [`Throttle`].
#[derive(Clone, Debug)]
pub struct Throttled<S> {
    inner: S,
    throttle: Throttle,
}

impl<S, R> Service<R> for Throttled<S>
where
    S: Service<R>,
    S::Future: Send + 'static,
{
    type Response = S::Response;
    type Error = S::Error;
    type Future = Pin<Box<dyn Future<Output = Result<S::Response, S::Error>> + Send>>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), S::Error>> {
        self.inner.poll_ready(context)
    }

    fn call(&mut self, request: R) -> Self::Future {
        let wait = self.throttle.reserve();
        if wait.is_zero() {
            return Box::pin(self.inner.call(request));
        }
        // A future does nothing before it is polled.
        let request = self.inner.call(request);
        Box::pin(async move {
            tokio::time::sleep(wait).await;
            request.await
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use jiff::Timestamp;

    struct At(Mutex<u64>);

    impl Clock for At {
        fn now(&self) -> Tick {
            Tick(Duration::from_millis(*self.0.lock().unwrap()))
        }

        fn wall(&self) -> Timestamp {
            Timestamp::UNIX_EPOCH
        }
    }

    #[test]
    fn a_burst_goes_at_once_and_then_one_after_the_other() {
        let clock = Arc::new(At(Mutex::new(100_000)));
        let throttle = Throttle::new(Ceiling { qps: 10.0, burst: 3 }, Arc::clone(&clock) as Arc<dyn Clock>);
        let take = |n: usize| (0..n).map(|_| throttle.reserve().as_millis()).collect::<Vec<_>>();
        assert_eq!(take(5), [0, 0, 0, 100, 200], "L12-30");
        *clock.0.lock().unwrap() += 200;
        assert_eq!(take(1), [100], "the line is still there");
        *clock.0.lock().unwrap() += 60_000;
        assert_eq!(take(4), [0, 0, 0, 100], "a rest fills the bucket, and no further");
    }

    #[test]
    fn without_a_ceiling_nothing_waits() {
        let clock: Arc<dyn Clock> = Arc::new(At(Mutex::new(0)));
        for throttle in [Throttle::none(), Throttle::new(Ceiling { qps: 0.0, burst: 1 }, clock)] {
            assert!((0..1_000).all(|_| throttle.reserve().is_zero()));
        }
    }
}
