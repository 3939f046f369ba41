//! The service controller: a load balancer for every Service that wants one from us.
//!
//! ```text
//!   Services ──► trigger ─────────────► queue ──► worker: locks ──► sync: observe, decide, act, record
//!   Nodes, pods ► collect, compare ───►                               │                  │
//!   time ──────► drift ───────────────►                         shared surveys    effects: live or dry
//! ```
//!
//! | module | keeps |
//! |---|---|
//! | `worker` | the locks around a pass, and when the next one is due |
//! | `input` | what a pass starts from |
//! | `sync` | one pass over one Service, live or dry |
//! | `check_account` | whether it is the cluster's own account that denies a load balancer |
//! | `survey_cache` | listings of load balancers that all Services share |
//! | `index` | which Service lays claim to what |
//! | `cloud_limits` | how many workers one cloud may keep busy |
//! | `node_changes` | which changes of nodes affect which Services |
//! | `census` | which Services wait for an address, and of which something is refused, for the metrics |
//! | `state` | what was written and said about each Service, so that it is not done twice |
//!
//! None of this state decides what becomes of a load balancer: a controller that is dropped anywhere and started again
//! goes on from what is recorded on the Services and in the clouds (law 6).

mod census;
mod check_account;
mod cloud_limits;
mod index;
mod input;
mod node_changes;
mod state;
mod survey_cache;
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
        nodeset::{local::LocalEndpoints, synced::Synced},
        outage::SPREAD,
        queue::{ItemExponential, Requeue, WorkQueue},
        service::{
            census::Address,
            change::{Written, overwritten},
            events,
            trigger::{WatchEvent, orphaned, trigger},
        },
    },
    lb::{Intents, LockTable, Notice, Severity},
    reason::EventSource,
    time::Tick,
    view::EndpointSliceView,
};
use cloudberth_runtime::{
    informer::{Change, Listener},
    recorder::{Event, ObjectRef},
    worker_pool::WorkerPool,
};
use futures_util::future::{FutureExt, join, join_all, join3};

use crate::{context::ControllerContext, lock};
use census::ServiceCensus;
use cloud_limits::CloudLimits;
use index::ServiceIndex;
use node_changes::NodeChanges;
use state::ServiceStates;

pub(crate) use self::{state::SyncReason, survey_cache::SurveyCache, sync::Interrupted};

/// How many Services are worked on at once by default. They wait for clouds, not for each other.
const WORKERS: usize = 16;
/// The most Services in the queue at once; the others are looked for when there is room.
const CAPACITY: usize = 100_000;
/// How long changes of nodes are collected, so that nodes that come together change each load balancer once.
const GATHER: Duration = Duration::from_millis(500);

/// How the service controller works.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServiceSettings {
    /// The most Services that are worked on at once.
    pub workers: usize,
    /// The pause between two rounds that look for hand edits in the clouds, up to half as long again. `None`: no rounds.
    pub drift: Option<Duration>,
    /// The pause between two Services of such a round. With the one survey that a round needs, this bounds its cost.
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

/// The service controller, for one term of leadership.
pub struct ServiceController {
    pub(crate) ctx: ControllerContext,
    settings: ServiceSettings,
    pool: WorkerPool<ObjectKey>,
    node_pool: WorkerPool<()>,
    clouds: BTreeMap<String, SurveyCache>,
    index: Arc<Mutex<ServiceIndex>>,
    pub(crate) states: ServiceStates,
    pub(crate) census: ServiceCensus,
    pub(crate) locks: Mutex<LockTable>,
    limits: Mutex<CloudLimits>,
    pub(crate) synced: Mutex<Synced>,
    pub(crate) intents: Mutex<Intents>,
    node_changes: Mutex<NodeChanges>,
    /// Where the pods of Services are ready, and of which Services that changed since the last round.
    endpoints: Mutex<(LocalEndpoints, BTreeSet<ObjectKey>)>,
    /// Changes of nodes, by when they came, and the Services that have not taken them in yet.
    batches: Mutex<Vec<(Tick, BTreeSet<ObjectKey>)>>,
}

impl ServiceController {
    /// A controller that does nothing before [`run`](Self::run).
    pub fn new(ctx: ControllerContext, settings: ServiceSettings) -> Arc<Self> {
        let clock = ctx.clock();
        let (base, max) = (Duration::from_secs(5), Duration::from_secs(300));
        let back_off = ItemExponential::new(base, max).jittered(0.1, Arc::clone(&ctx.random));
        let clouds = ctx.clouds.iter().filter(|cloud| cloud.load_balancers().is_some());
        let limits = CloudLimits::new(settings.workers, clouds.clone().count());
        Arc::new(Self {
            settings,
            pool: WorkerPool::new("service", WorkQueue::new(CAPACITY, back_off), Arc::clone(clock))
                .metered(&ctx.metrics.queues),
            node_pool: WorkerPool::new(
                "node",
                WorkQueue::new(1, ItemExponential::new(base, max)),
                Arc::clone(clock),
            )
            .metered(&ctx.metrics.queues),
            clouds: clouds
                .map(|cloud| (cloud.name().to_owned(), SurveyCache::new(cloud.clone(), Arc::clone(clock))))
                .collect(),
            index: Arc::default(),
            states: ServiceStates::default(),
            census: ServiceCensus::new(&ctx.metrics.service, clock),
            locks: Mutex::default(),
            limits: Mutex::new(limits),
            synced: Mutex::default(),
            intents: Mutex::default(),
            node_changes: Mutex::default(),
            endpoints: Mutex::default(),
            batches: Mutex::default(),
            ctx,
        })
    }

    /// Works until it is closed, or dropped, which is safe at any await.
    pub async fn run(self: Arc<Self>) {
        let cluster = &self.ctx.cluster;
        let (nodes, services) = (Arc::clone(&self) as _, Arc::clone(&self) as _);
        let endpoints = async {
            if let Some(slices) = &cluster.endpoint_slices {
                slices.follow(Arc::clone(&self) as _).await;
            }
        };
        let synced =
            join3(cluster.nodes.follow(nodes), cluster.services.follow(services), endpoints).map(|_| ());
        if !self.pool.starts_after(synced).await {
            return;
        }
        // Every Service is in the queue already, and gets the nodes as they are now.
        *lock(&self.node_changes) = NodeChanges::default();
        lock(&self.endpoints).1.clear();
        let bug = |key: &ObjectKey, _: &str| self.tell_of_bug(key);
        let affected = async |(), _| {
            self.enqueue_affected();
            Requeue::Forget
        };
        let services =
            self.pool.run(self.settings.workers.max(1), |key, _| self.work(key), bug, || self.enqueue_all());
        let drift = join(self.drift(), join_all(self.clouds.values().map(|cloud| self.returns(cloud))));
        let others = join(self.node_pool.run(1, affected, |(), _| self.enqueue_all(), || ()), drift);
        tokio::select! {
            biased;
            () = services => {}
            _ = others => {}
        }
    }

    /// Begins nothing more. [`run`](Self::run) ends when what is under way is over.
    pub fn close(&self) {
        self.pool.close();
    }

    /// How many passes have panicked.
    pub fn panics(&self) -> u64 {
        self.pool.panics() + self.node_pool.panics()
    }

    /// The queue of Services, for the metrics.
    pub const fn pool(&self) -> &WorkerPool<ObjectKey> {
        &self.pool
    }

    /// How many Services are remembered.
    pub fn remembered(&self) -> usize {
        self.states.len()
    }

    /// Puts a Service into the queue.
    fn enqueue(&self, key: &ObjectKey, reason: SyncReason) {
        self.states.add_reason(key, reason);
        self.pool.add(key.clone());
    }

    /// Puts all Services into the queue: it had no room for some, or it is not known which are affected.
    fn enqueue_all(&self) {
        let (assignments, nothing) = (&self.ctx.clouds.assignments, Written::new());
        for service in self.ctx.cluster.services.all() {
            let now = assignments.of(&service);
            if trigger(assignments, WatchEvent::Added(&service), &now, &nothing).is_some() {
                self.enqueue(&service.key(), SyncReason::Service);
            }
        }
    }

    /// Puts one Service after the other into the queue, slowly: somebody may have changed a load balancer by hand.
    async fn drift(&self) {
        let Some(rest) = self.settings.drift else { return std::future::pending().await };
        loop {
            tokio::time::sleep(self.ctx.random.jitter(rest, 0.5)).await;
            let keys = lock(&self.index).keys();
            for key in keys {
                if !self.states.peek(&key, |state| state.is_some_and(|state| state.asleep)) {
                    self.enqueue(&key, SyncReason::Drift);
                    tokio::time::sleep(self.settings.drift_gap).await;
                }
            }
        }
    }

    /// Whenever a cloud answers again after an outage, retries the Services that failed because of it.
    async fn returns(&self, cloud: &SurveyCache) {
        let mut returns = cloud.cloud.inventory.returns();
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
                reason,
                message,
                component: EventSource::Service.component(),
            });
        }
    }

    /// The text of the panic stays in the log: it may hold anything, also a secret.
    fn tell_of_bug(&self, key: &ObjectKey) {
        let bug = Error::permanent("internal error; the log of cloudberth has the details");
        if let Some(service) = self.ctx.cluster.services.get(key) {
            self.tell(&service, events::sync_failed(&bug));
        }
    }

    /// An object is gone. If it may have left a load balancer behind, that is said once; nothing is deleted (law 5).
    fn gone(&self, last: &ServiceView) {
        let key = last.key();
        self.census.seen(&key, Address::NotWanted);
        let state = self.states.forget(&key);
        lock(&self.synced).forget(&key);
        lock(&self.intents).forget(&key);
        let is_this = |uid: Option<String>| uid.as_ref() == Some(&last.uid);
        let left = orphaned(&self.ctx.clouds.assignments, last, is_this(state.released));
        if let Some(provider) = left.filter(|_| !is_this(state.orphan)) {
            tracing::warn!(service = %key, provider, "a load balancer may be left without a Service");
            self.ctx.metrics.service.orphans.inc();
            self.tell(last, [events::orphan(provider)]);
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
                    self.update_index(&old.key(), None);
                }
            }
            Some(new) => {
                let (key, assignments) = (new.key(), &self.ctx.clouds.assignments);
                let now = assignments.of(new);
                self.update_index(&key, Some((new, &now)));
                self.census.seen(&key, Address::of(new, &now));
                let event = before.map_or(WatchEvent::Added(new), |old| WatchEvent::Updated { old, new });
                let nothing = Written::new();
                let cause = self.states.peek(&key, |state| {
                    trigger(assignments, event, &now, state.map_or(&nothing, |state| &state.written))
                });
                if let Some(old) = before {
                    self.states.amend(&key, |state| overwritten(&mut state.written, old, new));
                }
                if let Some(cause) = cause {
                    tracing::debug!(service = %key, ?cause, "enqueued");
                    self.enqueue(&key, SyncReason::Service);
                }
            }
        }
    }
}

impl Listener<NodeView> for ServiceController {
    fn changed(&self, change: &Change<NodeView>) {
        if lock(&self.node_changes).add(change) {
            self.node_pool.add_after((), GATHER);
        }
    }
}

impl Listener<EndpointSliceView> for ServiceController {
    fn changed(&self, change: &Change<EndpointSliceView>) {
        let (endpoints, moved) = &mut *lock(&self.endpoints);
        moved.extend(endpoints.update(change.old.as_deref(), change.new.as_ref()));
        if !moved.is_empty() {
            self.node_pool.add_after((), GATHER);
        }
    }
}

impl fmt::Debug for ServiceController {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ServiceController").field("settings", &self.settings).finish_non_exhaustive()
    }
}
