//! A cluster, and replicas with clocks and connections of their own.

use std::{
    pin::Pin,
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, Ordering},
    },
    task::{Context, Poll},
    time::Duration,
};

use cloudberth_core::{
    Clock, Gate, Random, Reason, decide::election::Config, reason::LEADER_ELECTION, time::Tick,
};
use cloudberth_runtime::{election::Election, recorder::Event};
use embedded_kube::{Body, Call, KubeApi, KubeService};
use http::{HeaderValue, Request, header::USER_AGENT};
use jiff::Timestamp;
use kube::Client;
use serde_json::Value;
use sim_kit::Surroundings;
use tokio::{task::JoinHandle, time::Instant};
use tower::Service;

/// A clock that starts anywhere and runs a little fast or slow.
pub(crate) struct Skewed {
    pub(crate) start: Instant,
    pub(crate) ahead: Duration,
    /// Millionths by which it is too fast.
    pub(crate) fast: u32,
    pub(crate) wall: Timestamp,
}

impl Skewed {
    fn passed(&self) -> Duration {
        let real = self.start.elapsed();
        real + real * self.fast / 1_000_000
    }
}

impl Clock for Skewed {
    fn now(&self) -> Tick {
        Tick(self.ahead + self.passed())
    }

    fn wall(&self) -> Timestamp {
        self.wall + self.passed()
    }
}

/// A connection that can be cut: what is asked then is never answered.
#[derive(Clone)]
struct Wire {
    api: KubeService,
    who: HeaderValue,
    cut: Arc<AtomicBool>,
}

type BoxError = Box<dyn std::error::Error + Send + Sync>;

impl Service<Request<kube::client::Body>> for Wire {
    type Response = http::Response<Body>;
    type Error = BoxError;
    type Future = Pin<Box<dyn Future<Output = Result<Self::Response, BoxError>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, mut request: Request<kube::client::Body>) -> Self::Future {
        request.headers_mut().insert(USER_AGENT, self.who.clone());
        let (mut api, cut) = (self.api.clone(), Arc::clone(&self.cut));
        Box::pin(async move {
            if cut.load(Ordering::Relaxed) {
                std::future::pending::<()>().await;
            }
            Ok(api.call(request).await?)
        })
    }
}

/// The cluster of a test.
pub(crate) struct Fixture {
    pub(crate) api: KubeApi,
    pub(crate) start: Instant,
}

pub(crate) fn fixture() -> Fixture {
    let start = Instant::now();
    let noon: Timestamp = "2026-03-02T12:00:00Z".parse().unwrap();
    Fixture { api: KubeApi::new(Surroundings::new(1, move || noon + start.elapsed())), start }
}

/// An election, its clock, what it told, and what cuts it off.
pub(crate) type Parts = (Arc<Election>, Arc<Skewed>, Arc<Mutex<Vec<Event>>>, Arc<AtomicBool>);

/// One replica, running.
pub(crate) struct Replica {
    pub(crate) name: &'static str,
    pub(crate) election: Arc<Election>,
    pub(crate) clock: Arc<Skewed>,
    pub(crate) told: Arc<Mutex<Vec<Event>>>,
    pub(crate) cut: Arc<AtomicBool>,
    pub(crate) task: JoinHandle<bool>,
}

impl Fixture {
    /// A replica that starts now with the default settings. Its clock and its chance depend on `odd`.
    pub(crate) fn replica(&self, name: &'static str, odd: u64) -> Replica {
        let (election, clock, told, cut) = self.election(name, odd);
        let runs = Arc::clone(&election);
        let task = tokio::spawn(async move { runs.run().await });
        Replica { name, election, clock, told, cut, task }
    }

    /// The parts of a replica that does not run yet.
    pub(crate) fn election(&self, name: &'static str, odd: u64) -> Parts {
        self.program(Config::with_defaults(name), LEADER_ELECTION, name, odd)
    }

    /// The same with settings of its own.
    pub(crate) fn program(&self, config: Config, reason: Reason, name: &'static str, odd: u64) -> Parts {
        let clock = Arc::new(Skewed {
            start: self.start,
            ahead: Duration::from_secs(odd * 1_000),
            fast: u32::try_from(odd % 2).unwrap() * 100,
            wall: Timestamp::from_second(1_000_000 * i64::try_from(odd).unwrap()).unwrap(),
        });
        let cut = Arc::new(AtomicBool::new(false));
        let wire =
            Wire { api: self.api.service(), who: HeaderValue::from_static(name), cut: Arc::clone(&cut) };
        let told = Arc::new(Mutex::new(vec![]));
        let ears = Arc::clone(&told);
        let election = Election::new(
            Client::new(wire, "kube-system"),
            config,
            Arc::clone(&clock) as Arc<dyn Clock>,
            Arc::new(Random::seeded(odd)),
            reason,
            move |what| ears.lock().unwrap().push(what),
        );
        (election, clock, told, cut)
    }

    /// The Lease as it is stored.
    pub(crate) fn lease(&self) -> Value {
        let leases = self.api.objects("leases.coordination.k8s.io");
        leases.first().map(|lease| (**lease).clone()).unwrap_or_default()
    }

    pub(crate) fn holder(&self) -> String {
        self.lease()["spec"]["holderIdentity"].as_str().unwrap_or_default().to_owned()
    }

    /// What this replica asked about Leases so far, without watches.
    pub(crate) fn asked(&self, who: &str) -> Vec<String> {
        let mine = |call: &Call| call.user_agent == who && call.resource == "leases";
        let calls = self.api.calls(0).into_iter().filter(mine);
        calls.map(|call| call.verb).filter(|verb| verb != "watch" && verb != "list").collect()
    }
}

impl Replica {
    /// Whether a write could be sent now.
    pub(crate) fn claims(&self) -> bool {
        self.election.claim_until().is_some_and(|until| self.clock.now() < until)
    }

    pub(crate) fn said(&self) -> Vec<String> {
        self.told.lock().unwrap().iter().map(|what| what.message.clone()).collect()
    }

    /// Dies without a word.
    pub(crate) async fn kill(self) {
        self.task.abort();
        let _ = self.task.await;
    }
}

pub(crate) async fn seconds(seconds: f64) {
    tokio::time::sleep(Duration::from_secs_f64(seconds)).await;
}

/// How long it takes until `so`, looked at every 10 ms.
pub(crate) async fn until(so: impl Fn() -> bool) -> f64 {
    let start = Instant::now();
    while !so() {
        assert!(start.elapsed() < Duration::from_secs(120), "it never happens");
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    start.elapsed().as_secs_f64()
}
