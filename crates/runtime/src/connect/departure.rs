//! The last layer before the wire: the leader's claim is checked again for each write (law 9).
//!
//! Whatever lies above may make a request wait: the ceiling on requests, a credential that has to be renewed. Between
//! this layer and the wire there is at most a connect, which is shorter than the claim's reserve.

use std::{
    pin::Pin,
    task::{Context, Poll},
};

use cloudberth_core::{Error, Result, call::Leave};
use http::{Method, Request};
use tower::{BoxError, Layer, Service};

#[derive(Clone, Copy, Debug)]
pub(super) struct DepartureLayer;

impl<S> Layer<S> for DepartureLayer {
    type Service = Departure<S>;

    fn layer(&self, inner: S) -> Departure<S> {
        Departure(inner)
    }
}

#[derive(Clone, Debug)]
pub(super) struct Departure<S>(S);

impl<S, B> Service<Request<B>> for Departure<S>
where
    S: Service<Request<B>, Error = BoxError> + Clone + Send + 'static,
    S::Future: Send,
    B: Send + 'static,
{
    type Response = S::Response;
    type Error = BoxError;
    type Future = Pin<Box<dyn Future<Output = Result<S::Response, BoxError>> + Send>>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        self.0.poll_ready(context)
    }

    fn call(&mut self, request: Request<B>) -> Self::Future {
        let next = self.0.clone();
        let mut inner = std::mem::replace(&mut self.0, next);
        Box::pin(async move {
            may_leave(&request)?;
            inner.call(request).await
        })
    }
}

/// A write that carries no question for the claim is a mistake of ours, and is not sent.
fn may_leave<B>(request: &Request<B>) -> Result<()> {
    match request.extensions().get::<Leave>() {
        Some(leave) => leave.ask(),
        None if is_write(request.method(), request.uri().path()) => Err(Error::permanent(format!(
            "internal error: {} {} was to be sent without the leader's claim",
            request.method(),
            request.uri().path()
        ))),
        None => Ok(()),
    }
}

/// Whether a request changes what all replicas work on. Reviews are questions, and the Lease has rules of its own.
fn is_write(method: &Method, path: &str) -> bool {
    let exempt = ["authentication.k8s.io", "authorization.k8s.io", "coordination.k8s.io"];
    !method.is_safe() && !path.split('/').any(|part| exempt.contains(&part))
}

#[cfg(test)]
mod tests {
    use std::{
        sync::{Arc, Mutex},
        time::Duration,
    };

    use cloudberth_core::{Category, Clock, Tick, call::Gate};
    use cloudberth_http::surroundings::SystemClock;
    use http::Response;
    use kube::{Client, client::Body};
    use serde_json::json;
    use tower::service_fn;

    use super::*;
    use crate::{
        cluster::Cluster,
        connect::{Ceiling, Throttle},
    };

    struct Until(u64);

    impl Gate for Until {
        fn claim_until(&self) -> Option<Tick> {
            Some(Tick::from_secs(self.0))
        }
    }

    /// A cluster behind a ceiling of one request in ten seconds, and when requests left for it.
    fn cluster(claim: u64) -> (Cluster, Arc<Mutex<Vec<u64>>>) {
        let clock: Arc<dyn Clock> = Arc::new(SystemClock::new());
        let left: Arc<Mutex<Vec<u64>>> = Arc::default();
        let (log, at) = (Arc::clone(&left), Arc::clone(&clock));
        let wire = service_fn(move |_: Request<Body>| {
            log.lock().unwrap().push(at.now().0.as_secs());
            async { Ok::<_, BoxError>(Response::new(Body::from(b"{}".to_vec()))) }
        });
        let throttle = Throttle::new(Ceiling { qps: 0.1, burst: 1 }, Arc::clone(&clock));
        let client = Client::new(throttle.layer(DepartureLayer.layer(wire)), "default");
        (Cluster::new(client, clock, Arc::new(Until(claim))), left)
    }

    async fn post(cluster: &Cluster) -> Result<()> {
        let call = cluster.call(Duration::from_secs(60));
        cluster.writer().create(&call, "/api/v1/namespaces/default/events", &json!({})).await.map(|_| ())
    }

    #[tokio::test(start_paused = true)]
    async fn a_write_that_had_to_wait_into_the_reserve_does_not_leave() {
        let (cluster, left) = cluster(12);
        assert_eq!(post(&cluster).await, Ok(()));
        let error = post(&cluster).await.unwrap_err();
        assert_eq!(*left.lock().unwrap(), [0], "L9-525: with two seconds of claim left");
        assert_eq!(error.category(), Category::Temporary, "L9-525 it may be renewed in a moment");
        assert!(error.message().contains("claim is about to end"), "L9-525 {error}");
        assert_eq!(cluster.clock().now(), Tick::from_secs(10), "as soon as it was its turn");
    }

    #[tokio::test(start_paused = true)]
    async fn a_write_that_waited_and_may_leave_leaves() {
        let (cluster, left) = cluster(13);
        assert_eq!((post(&cluster).await, post(&cluster).await), (Ok(()), Ok(())));
        assert_eq!(*left.lock().unwrap(), [0, 10], "L9-526 exactly the reserve is left");
    }

    #[tokio::test(start_paused = true)]
    async fn a_request_that_was_given_up_while_it_waited_gives_its_place_back() {
        let (cluster, left) = cluster(1_000);
        assert_eq!(post(&cluster).await, Ok(()));
        for _ in 0..5 {
            assert!(tokio::time::timeout(Duration::from_millis(10), post(&cluster)).await.is_err());
        }
        assert_eq!(post(&cluster).await, Ok(()));
        assert_eq!(*left.lock().unwrap(), [0, 10], "L12-503");
    }

    #[tokio::test(start_paused = true)]
    async fn a_write_without_a_question_for_the_claim_does_not_leave() {
        let (cluster, left) = cluster(1_000);
        let request = Request::patch("/api/v1/nodes/a").body(b"{}".to_vec()).unwrap();
        let error = cluster.client().request::<serde_json::Value>(request).await.unwrap_err();
        assert!(left.lock().unwrap().is_empty(), "L9-527");
        assert!(error.to_string().contains("PATCH /api/v1/nodes/a"), "L9-527 {error}");
    }

    #[test]
    fn only_what_all_replicas_work_on_needs_the_claim() {
        let table = [
            (Method::GET, "/api/v1/nodes", false),
            (Method::PATCH, "/api/v1/nodes/a", true),
            (Method::DELETE, "/api/v1/nodes/a", true),
            (Method::POST, "/k8s/clusters/c-1/api/v1/namespaces/default/events", true),
            (Method::POST, "/apis/authentication.k8s.io/v1/tokenreviews", false),
            (Method::POST, "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews", false),
            (Method::PUT, "/k8s/clusters/c-1/apis/coordination.k8s.io/v1/namespaces/x/leases/y", false),
        ];
        for (method, path, want) in table {
            assert_eq!(is_write(&method, path), want, "{method} {path}");
        }
    }
}
