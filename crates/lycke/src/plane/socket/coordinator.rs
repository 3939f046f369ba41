//! The thread that knows what every load balancer should be.
//!
//! It binds and closes listeners, keeps health checks running, decides when draining is over, and tells the workers. It
//! carries no traffic itself, so it may take its time.

mod balancer;
mod health;
mod listeners;

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, atomic::Ordering},
    time::Duration,
};

use tokio::{
    sync::{mpsc, oneshot},
    time::{Instant, sleep_until},
};

use balancer::Balancer;
use health::ProbeResult;

use super::{
    inbox::{Command, Doomed, Inbox, Notice},
    inherited::SocketLender,
    shared::{BalancerShared, PlaneShared, lock},
};
use crate::plane::{
    PlaneObserver,
    config::{BalancerConfig, BalancerKey},
    report::{BalancerReport, PlaneEvent},
};

/// How often listeners that could not be bound are tried again.
const RETRY: Duration = Duration::from_secs(2);

/// The load balancers that can be asked about.
pub(crate) type Registry = Arc<Mutex<BTreeMap<BalancerKey, Arc<BalancerShared>>>>;

/// What is asked of the plane.
#[derive(Debug)]
pub(crate) enum Request {
    Apply { key: BalancerKey, config: Box<BalancerConfig>, answer: oneshot::Sender<BalancerReport> },
    Remove { key: BalancerKey, answer: oneshot::Sender<()> },
    Close { answer: oneshot::Sender<()> },
}

/// Connections that may go on for a while.
#[derive(Debug)]
struct Drain {
    until: Instant,
    doomed: Doomed,
}

pub(crate) struct Coordinator {
    plane: Arc<PlaneShared>,
    observer: Arc<dyn PlaneObserver>,
    workers: Vec<Arc<Inbox>>,
    registry: Registry,
    balancers: BTreeMap<BalancerKey, Balancer>,
    drains: Vec<Drain>,
    results: mpsc::UnboundedSender<ProbeResult>,
    retry: Option<Instant>,
    /// Those who wait for the plane to be closed.
    closing: Vec<oneshot::Sender<()>>,
    lender: SocketLender,
    last_id: u64,
}

impl Coordinator {
    /// The coordinator, and where the results of its checks arrive.
    pub(crate) fn new(
        plane: Arc<PlaneShared>,
        observer: Arc<dyn PlaneObserver>,
        workers: Vec<Arc<Inbox>>,
        registry: Registry,
        lender: SocketLender,
    ) -> (Self, mpsc::UnboundedReceiver<ProbeResult>) {
        let (results, arriving) = mpsc::unbounded_channel();
        let coordinator = Self {
            plane,
            observer,
            workers,
            registry,
            balancers: BTreeMap::new(),
            drains: Vec::new(),
            results,
            retry: None,
            closing: Vec::new(),
            lender,
            last_id: 0,
        };
        (coordinator, arriving)
    }

    /// Works until nobody can ask for anything any more.
    pub(crate) async fn run(
        mut self,
        mut requests: mpsc::UnboundedReceiver<Request>,
        mut notices: mpsc::UnboundedReceiver<Notice>,
        mut results: mpsc::UnboundedReceiver<ProbeResult>,
    ) {
        loop {
            let wake = self.wake_at();
            tokio::select! {
                // What people ask for goes first, then what clients have met, then what checks have.
                biased;
                request = requests.recv() => match request {
                    Some(request) => self.handle(request).await,
                    None => return,
                },
                Some(notice) = notices.recv() => self.handle_notice(notice),
                Some(result) = results.recv() => self.handle_result(result),
                () = sleep_until(wake.unwrap_or_else(Instant::now)), if wake.is_some() => self.handle_time(),
            }
        }
    }

    fn wake_at(&self) -> Option<Instant> {
        self.drains.iter().map(|drain| drain.until).chain(self.retry).min()
    }

    async fn handle(&mut self, request: Request) {
        // Whoever asked may have stopped waiting for the answer.
        match request {
            Request::Apply { key, config, answer } => {
                let report = self.apply(&key, *config).await;
                let _ = answer.send(report);
            }
            Request::Remove { key, answer } => {
                self.remove(&key).await;
                let _ = answer.send(());
                self.retry_listeners();
            }
            Request::Close { answer } => self.close(answer).await,
        }
    }

    fn handle_notice(&mut self, notice: Notice) {
        match notice {
            Notice::ConnectFailed { listener, backend, node_port, failure } => {
                self.connect_failed(&listener.balancer, backend, node_port, &failure);
            }
            Notice::NoneLeft => self.closed_if_none_is_left(),
        }
    }

    fn handle_time(&mut self) {
        let now = Instant::now();
        let (over, rest) = std::mem::take(&mut self.drains).into_iter().partition(|drain| drain.until <= now);
        self.drains = rest;
        let over: Vec<Drain> = over;
        for drain in over {
            self.to_all(|| Command::Reset(drain.doomed));
            match drain.doomed {
                Doomed::Backend(id) => {
                    for balancer in self.balancers.values_mut() {
                        balancer.leaving.retain(|_, backend| backend.id != id);
                    }
                }
                Doomed::All => self.answer_closing(),
                Doomed::Listener(_) | Doomed::Balancer(_) => {}
            }
        }
        if self.retry.is_some_and(|at| at <= now) {
            self.retry_listeners();
        }
    }

    async fn remove(&mut self, key: &BalancerKey) {
        let Some(mut balancer) = self.balancers.remove(key) else { return };
        lock(&self.registry).remove(key);
        self.close_listeners(balancer.take_bound()).await;
        balancer.stop_checks();
        self.drain(Doomed::Balancer(balancer.shared.id), balancer.config.limits.drain);
    }

    /// Refuses new clients at once, and answers when the last one has gone or the drain is over.
    async fn close(&mut self, answer: oneshot::Sender<()>) {
        let longest = self.balancers.values().map(|balancer| balancer.config.limits.drain).max();
        let draining = self.drains.iter().map(|drain| drain.until).max();
        let keys: Vec<_> = self.balancers.keys().cloned().collect();
        for key in keys {
            self.remove(&key).await;
        }
        self.closing.push(answer);
        self.plane.closing.store(true, Ordering::SeqCst);
        let until = (Instant::now() + longest.unwrap_or_default()).max(draining.unwrap_or_else(Instant::now));
        self.drains.push(Drain { until, doomed: Doomed::All });
        self.closed_if_none_is_left();
    }

    fn closed_if_none_is_left(&mut self) {
        if self.plane.closing.load(Ordering::SeqCst) && self.plane.open.load(Ordering::SeqCst) == 0 {
            self.drains.clear();
            self.answer_closing();
        }
    }

    fn answer_closing(&mut self) {
        for answer in self.closing.drain(..) {
            let _ = answer.send(());
        }
        // A load balancer that is applied after this is served like any other.
        self.plane.closing.store(false, Ordering::SeqCst);
    }

    fn drain(&mut self, doomed: Doomed, drain: Duration) {
        self.drains.push(Drain { until: Instant::now() + drain, doomed });
    }

    fn to_all(&self, command: impl Fn() -> Command) {
        for worker in &self.workers {
            worker.send(command());
        }
    }

    fn notify(&self, key: &BalancerKey, event: PlaneEvent) {
        self.observer.notice(key, event);
    }

    fn next_id(&mut self) -> u64 {
        self.last_id += 1;
        self.last_id
    }
}
