//! The plane with real sockets.
//!
//! ```text
//!   apply, remove ──► coordinator (one thread: listeners, health checks, draining) ──► workers (one thread each: traffic)
//!   report, counters ◄── what both write down                ▲──── connections that failed ────┘
//! ```
//!
//! All threads are its own. Whoever calls it only sends and receives messages.

mod accept;
mod connection;
mod coordinator;
mod counters;
mod inbox;
mod inherited;
mod listen;
mod pipes;
mod probe;
mod relay;
mod shared;
mod tcp;
#[cfg(test)]
mod tests;
mod token;
mod udp;
mod watch;
mod worker;

use std::{
    fmt,
    io::{self, Error},
    sync::{Arc, atomic::Ordering::Relaxed},
    thread::{self, JoinHandle},
    time::Duration,
};

use cloudberth_core::time::Clock;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use tokio::sync::{mpsc, oneshot};

use coordinator::{Coordinator, Registry, Request};
use inbox::{Command, Inbox};
pub use inherited::InheritedSockets;
use inherited::SocketLender;
use shared::{PlaneShared, lock};
use worker::Worker;

use super::{
    Answer, Plane, PlaneObserver,
    config::{BalancerConfig, BalancerKey},
    report::{BalancerReport, Counters, PlaneTotals},
};

/// More threads than this rarely make a computer's loopback faster. Outside of Linux, each one wakes up for every new client.
const MOST_WORKERS: usize = 4;
/// Descriptors that are left for everything but connections and flows: the API, state files, health checks.
const RESERVED_DESCRIPTORS: usize = 128;

/// How a plane is set up.
#[derive(Clone, Copy, Debug)]
pub struct PlaneSettings {
    /// Threads that carry traffic; 0 means one for each processor, up to four.
    pub workers: usize,
    /// Open TCP connections of all load balancers together; 0 means as many as the limit on descriptors allows.
    pub connections: usize,
    /// How long a backend may take to answer before the next one is asked.
    pub connect_timeout: Duration,
}

impl Default for PlaneSettings {
    fn default() -> Self {
        Self { workers: 0, connections: 0, connect_timeout: Duration::from_secs(2) }
    }
}

/// A plane that carries traffic over the sockets of this computer. Dropping it cuts every connection.
pub struct SocketPlane {
    shared: Arc<PlaneShared>,
    registry: Registry,
    /// There until it is dropped.
    requests: Option<mpsc::UnboundedSender<Request>>,
    workers: Vec<Arc<Inbox>>,
    threads: Vec<JoinHandle<()>>,
}

impl fmt::Debug for SocketPlane {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SocketPlane").field("workers", &self.workers.len()).finish_non_exhaustive()
    }
}

impl SocketPlane {
    /// Starts the threads. The limit on open descriptors of this process is raised as far as the system lets it.
    pub fn start(
        settings: PlaneSettings,
        observer: Arc<dyn PlaneObserver>,
        clock: Arc<dyn Clock>,
    ) -> io::Result<Self> {
        Self::start_with(settings, InheritedSockets::default(), observer, clock)
    }

    /// The same with sockets that somebody else has opened: a listener at the address of one of them uses it.
    pub fn start_with(
        settings: PlaneSettings,
        inherited: InheritedSockets,
        observer: Arc<dyn PlaneObserver>,
        clock: Arc<dyn Clock>,
    ) -> io::Result<Self> {
        let count = match settings.workers {
            0 => thread::available_parallelism().map_or(1, usize::from).min(MOST_WORKERS),
            count => count,
        };
        let shared = Arc::new(PlaneShared::new(clock, count, settings.connect_timeout));
        limit_connections(&shared, settings.connections);
        let (notices, from_workers) = mpsc::unbounded_channel();
        let mut workers = (0..count)
            .map(|number| Worker::new(number, Arc::clone(&shared), notices.clone()))
            .collect::<io::Result<Vec<_>>>()?;
        let inboxes: Vec<_> = workers.iter().map(Worker::inbox).collect();
        for worker in &mut workers {
            worker.peers.clone_from(&inboxes);
        }
        let registry = Registry::default();
        let (requests, asked) = mpsc::unbounded_channel();
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        let (coordinator, results) = {
            let lender = SocketLender::new(inherited);
            Coordinator::new(Arc::clone(&shared), observer, inboxes.clone(), Arc::clone(&registry), lender)
        };
        // From here on it is dropped as a whole, with the threads that were started.
        let mut plane =
            Self { shared, registry, requests: Some(requests), workers: inboxes, threads: Vec::new() };
        for (number, worker) in workers.into_iter().enumerate() {
            plane.start_thread(format!("lycke-worker-{number}"), move || worker.run())?;
        }
        plane.start_thread("lycke-coordinator".to_owned(), move || {
            runtime.block_on(coordinator.run(asked, from_workers, results));
        })?;
        Ok(plane)
    }

    fn start_thread(&mut self, name: String, work: impl FnOnce() + Send + 'static) -> io::Result<()> {
        self.threads.push(thread::Builder::new().name(name).spawn(work)?);
        Ok(())
    }

    fn ask<T: Send + 'static>(
        &self,
        request: impl FnOnce(oneshot::Sender<T>) -> Request,
        or_else: impl FnOnce() -> T + Send + 'static,
    ) -> Answer<T> {
        let (answer, wait) = oneshot::channel();
        if let Some(requests) = &self.requests {
            // If nobody is there to take it, nobody answers, and `wait` says so.
            let _ = requests.send(request(answer));
        }
        Box::pin(async move { wait.await.unwrap_or_else(|_| or_else()) })
    }

    fn balancer(&self, key: &BalancerKey) -> Option<Arc<shared::BalancerShared>> {
        lock(&self.registry).get(key).map(Arc::clone)
    }
}

impl Plane for SocketPlane {
    fn apply(&self, key: &BalancerKey, config: BalancerConfig) -> Answer<BalancerReport> {
        let (key, config) = (key.clone(), Box::new(config));
        self.ask(
            |answer| Request::Apply { key, config, answer },
            || BalancerReport { listeners: Vec::new(), backends: Vec::new() },
        )
    }

    fn remove(&self, key: &BalancerKey) -> Answer<()> {
        let key = key.clone();
        self.ask(|answer| Request::Remove { key, answer }, || ())
    }

    fn report(&self, key: &BalancerKey) -> Option<BalancerReport> {
        self.balancer(key).map(|balancer| lock(&balancer.view).report.clone())
    }

    fn counters(&self, key: &BalancerKey) -> Option<Counters> {
        self.balancer(key).map(|balancer| balancer.counters())
    }

    fn totals(&self) -> PlaneTotals {
        self.shared.cells.totals()
    }

    fn limit_connections(&self, connections: usize) {
        limit_connections(&self.shared, connections);
    }

    fn close(&self) -> Answer<()> {
        self.ask(|answer| Request::Close { answer }, || ())
    }
}

impl Drop for SocketPlane {
    fn drop(&mut self) {
        self.requests = None;
        for worker in &self.workers {
            worker.send(Command::Stop);
        }
        for thread in self.threads.drain(..) {
            // An observer may hold the plane, and then it is dropped by one of its own threads.
            if thread.thread().id() != thread::current().id() {
                // A thread that panicked has said so already.
                let _ = thread.join();
            }
        }
    }
}

/// Says how many connections there may be, if `wanted` were wanted: each takes two descriptors.
fn limit_connections(plane: &PlaneShared, wanted: usize) {
    let descriptors = raise_limit().unwrap_or_else(|error| {
        tracing::warn!(%error, "data plane cannot raise the limit on open files");
        1024
    });
    let descriptors = descriptors.saturating_sub(RESERVED_DESCRIPTORS);
    let possible = descriptors / 2;
    if wanted > possible {
        tracing::warn!(
            wanted,
            possible,
            "data plane may run out of open files before its limit on connections"
        );
    }
    plane.descriptors.store(descriptors, Relaxed);
    plane.most.store(if wanted == 0 { possible } else { wanted }, Relaxed);
}

/// Lets the process have as many descriptors open as the system allows, and says how many that are.
fn raise_limit() -> io::Result<usize> {
    let Rlimit { current, maximum } = getrlimit(Resource::Nofile);
    let most = maximum.unwrap_or(u64::from(u32::MAX));
    if current.is_some_and(|current| current < most) {
        setrlimit(Resource::Nofile, Rlimit { current: Some(most), maximum }).map_err(Error::from)?;
    }
    Ok(usize::try_from(most).unwrap_or(usize::MAX))
}
