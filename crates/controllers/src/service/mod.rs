//! The service controller: a load balancer for every Service that wants one from us.
//!
//! ```text
//!   Services ──► wake ──────────────► queue ──► worker: locks ──► sync: observe, decide, act, record
//!   Nodes ─────► collect, sift ─────►                                │                  │
//!   time ──────► drift ─────────────►                          surveys, shared       effects: live or dry
//! ```
//!
//! | module | keeps |
//! |---|---|
//! | `worker` | the locks around a pass, and when the next one is due |
//! | `input` | what a pass starts from |
//! | `sync` | one pass over one Service, live or dry |
//! | `check_account` | whether it is the cluster's own account that denies a load balancer |
//! | `surveys` | listings of load balancers that everybody shares |
//! | `index` | who keys what |
//! | `lanes` | that no cloud keeps all workers |
//! | `fleet` | which changes of nodes touch whom |
//! | `memory` | what was written and told, so that it is not done twice |
//!
//! Nothing that is kept here matters for what becomes of a load balancer: a controller that is dropped anywhere and
//! made anew goes on from what stands on the Services and in the clouds (law 6).

mod check_account;
mod fleet;
mod index;
mod input;
mod lanes;
mod memory;
mod surveys;
mod sync;
mod worker;

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt,
    sync::{Arc, Mutex},
    time::Duration,
};

use cloudberth_core::{
    Error, NodeView, ObjectKey, ServiceView,
    decide::{
        nodeset::synced::Synced,
        outage::SPREAD,
        queue::{ItemExponential, Jittered, Requeue, WorkQueue},
        service::{
            change::{Written, overwritten},
            events,
            wake::{Sighting, orphaned, wake},
        },
    },
    lb::{Intents, LockTable, Notice, Severity},
    time::Tick,
};
use cloudberth_runtime::{
    informer::{Change, Listener},
    recorder::{Event, ObjectRef},
    worker_pool::WorkerPool,
};
use futures_util::future::{join, join_all};
use tokio::sync::Notify;

use crate::{context::ControllerContext, lock};
use fleet::NodeChanges;
use index::{Entry, ServiceIndex};
use lanes::Lanes;
use memory::Memory;

pub(crate) use self::{input::SyncInput, memory::SyncReason, surveys::Surveys, sync::Interrupted};

/// The name under which people are told.
const COMPONENT: &str = "service-controller";
/// How many Services are worked on at once where nobody says. They wait for clouds, not for each other.
const WORKERS: usize = 16;
/// More Services than these are never in the queue at once; the others are looked for when there is room.
const CAPACITY: usize = 100_000;
/// How long changes of nodes are collected: nodes that come together make one change of each load balancer.
const GATHER: Duration = Duration::from_millis(500);

/// How the service controller works.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServiceSettings {
    /// No more Services than these are worked on at once.
    pub workers: usize,
    /// The rest between two passes that look for hand edits in the clouds, half as long again at the most. `None`: none.
    pub drift: Option<Duration>,
    /// The rest between two Services of such a pass. With the one survey that a pass needs, this bounds what it costs.
    pub drift_gap: Duration,
}

impl Default for ServiceSettings {
    fn default() -> Self {
        Self {
            workers: WORKERS,
            drift: Some(Duration::from_secs(600)),
            drift_gap: Duration::from_millis(200),
        }
    }
}

type Limits = Jittered<ItemExponential<ObjectKey>>;

/// The service controller, for one term of leadership.
pub struct ServiceController {
    pub(crate) ctx: ControllerContext,
    settings: ServiceSettings,
    pool: WorkerPool<ObjectKey, Limits>,
    node_crew: WorkerPool<(), ItemExponential<()>>,
    clouds: BTreeMap<String, Surveys>,
    index: Mutex<ServiceIndex>,
    pub(crate) memory: Memory,
    pub(crate) book: Mutex<LockTable>,
    lanes: Mutex<Lanes>,
    pub(crate) synced: Mutex<Synced>,
    pub(crate) intents: Mutex<Intents>,
    node_news: Mutex<NodeChanges>,
    /// Since when which changes of nodes wait for which Services.
    batches: Mutex<Vec<(Tick, BTreeSet<ObjectKey>)>>,
    complete: Notify,
    closed: Notify,
}

impl ServiceController {
    /// A controller that has seen nothing yet.
    pub fn new(ctx: ControllerContext, settings: ServiceSettings) -> Arc<Self> {
        let clock = ctx.clock();
        let (base, max) = (Duration::from_secs(5), Duration::from_secs(300));
        let limits =
            Jittered { inner: ItemExponential::new(base, max), factor: 0.1, random: Arc::clone(&ctx.random) };
        let clouds = ctx.clouds.iter().filter(|cloud| cloud.load_balancers().is_some());
        let lanes = Lanes::new(settings.workers, clouds.clone().count());
        Arc::new(Self {
            settings,
            pool: WorkerPool::new("service", WorkQueue::new(CAPACITY, limits), Arc::clone(clock))
                .metered(&ctx.metrics.queues),
            node_crew: WorkerPool::new(
                "node",
                WorkQueue::new(1, ItemExponential::new(base, max)),
                Arc::clone(clock),
            )
            .metered(&ctx.metrics.queues),
            clouds: clouds
                .map(|cloud| (cloud.name().to_owned(), Surveys::new(cloud.clone(), Arc::clone(clock))))
                .collect(),
            index: Mutex::default(),
            memory: Memory::default(),
            book: Mutex::default(),
            lanes: Mutex::new(lanes),
            synced: Mutex::default(),
            intents: Mutex::default(),
            node_news: Mutex::default(),
            batches: Mutex::default(),
            complete: Notify::new(),
            closed: Notify::new(),
            ctx,
        })
    }

    /// Works until it is closed, or dropped, which may happen anywhere.
    pub async fn run(self: Arc<Self>) {
        let cluster = &self.ctx.cluster;
        let nodes: Arc<dyn Listener<NodeView>> = Arc::clone(&self) as _;
        let services: Arc<dyn Listener<ServiceView>> = Arc::clone(&self) as _;
        cluster.nodes.subscribe(&nodes);
        cluster.services.subscribe(&services);
        while !(cluster.nodes.is_synced() && cluster.services.is_synced()) {
            tokio::select! {
                biased;
                () = self.closed.notified() => return,
                () = self.complete.notified() => {}
            }
        }
        // Every Service is about to be looked at with the nodes as they are now.
        *lock(&self.node_news) = NodeChanges::default();
        let bug = |key: &ObjectKey, _: &str| self.tell_of_bug(key);
        let sift = async |()| {
            self.sift();
            Requeue::Forget
        };
        let services =
            self.pool.run(self.settings.workers.max(1), |key| self.work(key), bug, || self.everybody());
        let drift = join(self.drift(), join_all(self.clouds.values().map(|cloud| self.returns(cloud))));
        let others = join(self.node_crew.run(1, sift, |(), _| self.everybody(), || ()), drift);
        tokio::select! {
            biased;
            () = services => {}
            _ = others => {}
        }
    }

    /// Begins nothing more. [`run`](Self::run) ends when what is under way is over.
    pub fn close(&self) {
        self.pool.close();
        self.closed.notify_one();
    }

    /// How often a bug was met, of which one Service each was the victim.
    pub fn panics(&self) -> u64 {
        self.pool.panics() + self.node_crew.panics()
    }

    /// The queue of Services, for the metrics.
    pub const fn pool(&self) -> &WorkerPool<ObjectKey, Limits> {
        &self.pool
    }

    /// How many surveys of a cloud were begun.
    pub fn surveys(&self, cloud: &str) -> u64 {
        self.clouds.get(cloud).map_or(0, Surveys::count)
    }

    /// How many Services are remembered.
    pub fn remembered(&self) -> usize {
        self.memory.len()
    }

    /// A Service has to be looked at.
    fn send(&self, key: &ObjectKey, reason: SyncReason) {
        self.memory.send(key, reason);
        self.pool.add(key.clone());
    }

    /// All Services have to be looked at: some could not be noted down for want of room, or it is not known which.
    fn everybody(&self) {
        let nothing = Written::new();
        for service in self.ctx.cluster.services.all() {
            if wake(&self.ctx.clouds.assignments, Sighting::Added(&service), &nothing).is_some() {
                self.send(&service.key(), SyncReason::Service);
            }
        }
    }

    /// Looks at one Service after the other, for ever, slowly: somebody may have changed a load balancer by hand.
    async fn drift(&self) {
        let Some(rest) = self.settings.drift else { return std::future::pending().await };
        loop {
            tokio::time::sleep(self.ctx.random.jitter(rest, 0.5)).await;
            let keys = lock(&self.index).keys();
            for key in keys {
                if !self.memory.peek(&key, |note| note.is_some_and(|note| note.asleep)) {
                    self.send(&key, SyncReason::Drift);
                    tokio::time::sleep(self.settings.drift_gap).await;
                }
            }
        }
    }

    /// Whenever a cloud that was away answers again, sends those to work who failed because of it.
    async fn returns(&self, cloud: &Surveys) {
        let mut returns = cloud.cloud().inventory.returns();
        while returns.changed().await.is_ok() {
            let keys = lock(&self.index).keys_at(cloud.name());
            for key in keys {
                self.pool.revive(&key, SPREAD.mul_f64(self.ctx.random.fraction()));
            }
        }
        std::future::pending::<()>().await;
    }

    pub(crate) fn tell(&self, service: &ServiceView, notices: impl IntoIterator<Item = Notice>) {
        for Notice { severity, reason, message } in notices {
            self.ctx.recorder.publish(Event {
                about: ObjectRef::service(service),
                warning: severity == Severity::Warning,
                reason: reason.to_owned(),
                message,
                component: COMPONENT,
            });
        }
    }

    /// What the panic said stays in the log: it was written for programmers, and may hold anything.
    fn tell_of_bug(&self, key: &ObjectKey) {
        let bug = Error::permanent("internal error; the log of cloudberth has the details");
        if let Some(service) = self.ctx.cluster.services.get(key) {
            self.tell(&service, events::sync_failed(&bug));
        }
    }

    /// An object is gone, and perhaps left something behind. That is told once, and nothing is deleted (law 5).
    fn gone(&self, last: &ServiceView) {
        let key = last.key();
        let note = self.memory.forget(&key);
        lock(&self.synced).forget(&key);
        lock(&self.intents).forget(&key);
        let is_this = |uid: Option<String>| uid.as_ref() == Some(&last.uid);
        let left = orphaned(&self.ctx.clouds.assignments, last, is_this(note.released));
        if let Some(provider) = left.filter(|_| !is_this(note.orphan)) {
            tracing::warn!(service = %key, provider, "a load balancer may be left without a Service");
            self.ctx.metrics.service.orphans.inc();
            self.tell(last, [events::orphan(provider)]);
        }
    }

    /// Notes who keys what now, and sends those to work who waited for something that was given up.
    fn enter(&self, key: &ObjectKey, service: Option<&ServiceView>) {
        let entry = service.and_then(|view| Entry::read(&self.ctx.clouds, &self.ctx.cluster_name, view));
        let waiting = lock(&self.index).set(key, entry);
        for other in waiting {
            self.send(&other, SyncReason::Service);
        }
    }
}

impl Listener<ServiceView> for ServiceController {
    fn changed(&self, change: &Change<ServiceView>) {
        let Change { old, new } = change;
        let same = |old: &&Arc<ServiceView>| new.as_ref().is_some_and(|new| new.uid == old.uid);
        let before = old.as_ref().filter(same);
        if let (Some(old), None) = (old, before) {
            self.gone(old);
        }
        match new {
            None => {
                if let Some(old) = old {
                    self.enter(&old.key(), None);
                }
            }
            Some(new) => {
                let key = new.key();
                self.enter(&key, Some(new));
                let sighting = before.map_or(Sighting::Added(new), |old| Sighting::Updated { old, new });
                let assignments = &self.ctx.clouds.assignments;
                let nothing = Written::new();
                let why = self.memory.peek(&key, |note| {
                    wake(assignments, sighting, note.map_or(&nothing, |note| &note.written))
                });
                if let Some(old) = before {
                    self.memory.amend(&key, |note| overwritten(&mut note.written, old, new));
                }
                if let Some(why) = why {
                    tracing::debug!(service = %key, ?why, "a Service has to be looked at");
                    self.send(&key, SyncReason::Service);
                }
            }
        }
    }

    fn synced(&self) {
        self.complete.notify_one();
    }
}

impl Listener<NodeView> for ServiceController {
    fn changed(&self, change: &Change<NodeView>) {
        if lock(&self.node_news).add(change) {
            self.node_crew.add_after((), GATHER);
        }
    }

    fn synced(&self) {
        self.complete.notify_one();
    }
}

impl fmt::Debug for ServiceController {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ServiceController").field("settings", &self.settings).finish_non_exhaustive()
    }
}
