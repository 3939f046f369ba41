//! The limit on requests to the API server that flags may set.
//!
//! Without one nothing is held back: the queues bound what is under way, and the API server has its own fairness.

use std::{
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
    time::Duration,
};

use cloudberth_core::{Clock, call::Leave, time::Tick};
use cloudberth_http::Budget;
use http::Request;
use tower::{BoxError, Layer, Service};

/// `--kube-api-qps` and `--kube-api-burst`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Ceiling {
    /// Requests a second, in the long run.
    pub qps: f64,
    /// How many may go at once after a rest.
    pub burst: u32,
}

/// Holds requests back that would exceed the ceiling; all clients that share it share the ceiling.
#[derive(Clone, Debug)]
pub struct Throttle(Option<Budget>);

impl Throttle {
    /// No ceiling.
    pub const fn none() -> Self {
        Self(None)
    }

    /// This ceiling. One that makes no sense (no requests at all) is none.
    pub fn new(ceiling: Ceiling, clock: Arc<dyn Clock>) -> Self {
        let gap = Duration::try_from_secs_f64(1.0 / ceiling.qps).ok().filter(|gap| !gap.is_zero());
        Self(gap.map(|gap| Budget::new(gap, ceiling.burst, clock)))
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

impl<S, B> Service<Request<B>> for Throttled<S>
where
    S: Service<Request<B>, Error = BoxError> + Clone + Send + 'static,
    S::Future: Send,
    B: Send + 'static,
{
    type Response = S::Response;
    type Error = BoxError;
    type Future = Pin<Box<dyn Future<Output = Result<S::Response, BoxError>> + Send>>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        self.inner.poll_ready(context)
    }

    fn call(&mut self, request: Request<B>) -> Self::Future {
        let next = self.inner.clone();
        let mut inner = std::mem::replace(&mut self.inner, next);
        let Some(budget) = self.throttle.0.clone() else {
            return Box::pin(async move { inner.call(request).await });
        };
        Box::pin(async move {
            let leave = request.extensions().get::<Leave>();
            let permit = budget.take(leave.map_or(Tick(Duration::MAX), Leave::deadline)).await?;
            // What may not leave any more gives its place back.
            leave.map_or(Ok(()), Leave::ask)?;
            permit.used();
            inner.call(request).await
        })
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use cloudberth_http::surroundings::SystemClock;
    use futures_util::future::join_all;
    use tower::{ServiceExt, service_fn};

    use super::*;

    /// When each of `count` requests, all wanted now, is let through, in milliseconds.
    async fn rush(throttle: &Throttle, clock: &Arc<dyn Clock>, count: usize) -> Vec<u128> {
        let left: Arc<Mutex<Vec<_>>> = Arc::default();
        let (log, at) = (Arc::clone(&left), Arc::clone(clock));
        let wire = service_fn(move |_: Request<()>| {
            log.lock().unwrap().push(at.now().0.as_millis());
            async { Ok::<_, BoxError>(()) }
        });
        let service = throttle.layer(wire);
        let all = join_all((0..count).map(|_| service.clone().oneshot(Request::new(())))).await;
        assert!(all.iter().all(Result::is_ok));
        std::mem::take(&mut left.lock().unwrap())
    }

    #[tokio::test(start_paused = true)]
    async fn a_burst_goes_at_once_and_then_one_after_the_other() {
        let clock: Arc<dyn Clock> = Arc::new(SystemClock::new());
        let throttle = Throttle::new(Ceiling { qps: 10.0, burst: 3 }, Arc::clone(&clock));
        assert_eq!(rush(&throttle, &clock, 5).await, [0, 0, 0, 100, 200], "L12-30");
        assert_eq!(rush(&throttle, &clock, 1).await, [300], "nothing has come back yet");
        tokio::time::sleep(Duration::from_secs(60)).await;
        let fresh = [60_300, 60_300, 60_300, 60_400];
        assert_eq!(rush(&throttle, &clock, 4).await, fresh, "a rest fills the bucket, and no further");
    }

    #[tokio::test(start_paused = true)]
    async fn without_a_ceiling_nothing_waits() {
        let clock: Arc<dyn Clock> = Arc::new(SystemClock::new());
        let none = Throttle::new(Ceiling { qps: 0.0, burst: 1 }, Arc::clone(&clock));
        for throttle in [Throttle::none(), none] {
            assert_eq!(rush(&throttle, &clock, 1_000).await, [0; 1_000]);
        }
    }
}
