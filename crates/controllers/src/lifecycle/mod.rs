//! The life of a node: the mark of an instance that is shut down, and the removal of a node whose instance is gone.
//!
//! ```text
//!   nodes ──► alarm ──┐                                    ┌──► orders ──► pool ──► taints, deletions
//!                     ▼                                    │
//!   a TrackedNodes per cloud: when to list ──► listing ──► round: judge every node
//! ```
//!
//! Everything is decided by [`decide::lifecycle`](cloudberth_core::decide::lifecycle); here are the questions asked and
//! the verdicts carried out. A controller serves one term of leadership and begins without memory: what was seen before
//! counts for nothing, so a node that was missed once is missed twice again.

mod act;
mod dry_run;
mod round;
mod tracked;

use std::{
    collections::BTreeMap,
    fmt,
    sync::{Arc, Mutex},
    time::Duration,
};

use cloudberth_core::{
    NodeView, Tick,
    decide::{
        lifecycle::{Cap, NodeEvent, NodeFacts, Verdict, alarming, at_once},
        queue::{ItemExponential, Jittered, WorkQueue},
    },
};
use cloudberth_runtime::{
    informer::{Change, Listener},
    metrics::queue::PoolLabels,
    recorder::{Event, ObjectRef},
    worker_pool::WorkerPool,
};
use futures_util::future::join_all;
use tokio::sync::Notify;

use self::{act::Order, tracked::TrackedNodes};
use crate::{clouds::Cloud, context::ControllerContext, lock};

/// The name under which it speaks in events.
const COMPONENT: &str = "cloud-node-lifecycle-controller";
/// The name of its queue.
const QUEUE: &str = "node_lifecycle";
/// More nodes than these never wait for a write.
const CAPACITY: usize = 10_000;

/// What the flags say.
#[derive(Clone, Copy, Debug)]
pub struct LifecycleSettings {
    /// `--node-monitor-period`.
    pub period: Duration,
    /// `--max-node-deletions`.
    pub cap: Cap,
    /// No more nodes than these are written to at once.
    pub workers: usize,
}

type Limiter = Jittered<ItemExponential<String>>;

/// The node lifecycle controller of one term of leadership.
pub struct LifecycleController {
    ctx: ControllerContext,
    settings: LifecycleSettings,
    all_tracked: Vec<TrackedNodes>,
    /// When each node was first seen, by name, with its UID.
    sightings: Mutex<BTreeMap<String, (String, Tick)>>,
    orders: Mutex<BTreeMap<String, Order>>,
    pool: WorkerPool<String, Limiter>,
    synced: Notify,
    closed: Notify,
}

impl LifecycleController {
    /// One for all clouds of the ctx that have instances.
    pub fn new(ctx: ControllerContext, settings: LifecycleSettings) -> Arc<Self> {
        let clock = Arc::clone(ctx.clock());
        let now = clock.now();
        let with_instances = ctx.clouds.iter().filter(|cloud| cloud.provider.instances().is_some());
        let all_tracked =
            with_instances.map(|cloud| TrackedNodes::new(cloud.clone(), settings.period, now)).collect();
        let limiter = Jittered {
            inner: ItemExponential::new(Duration::from_secs(1), Duration::from_secs(60)),
            factor: 0.5,
            random: Arc::clone(&ctx.random),
        };
        let queue = WorkQueue::new(CAPACITY, limiter);
        let pool = WorkerPool::new(QUEUE, queue, clock).metered(&ctx.metrics.queues);
        let (sightings, orders) = (Mutex::default(), Mutex::default());
        let (synced, closed) = (Notify::new(), Notify::new());
        Arc::new(Self { ctx, settings, all_tracked, sightings, orders, pool, synced, closed })
    }

    /// Begins nothing more; [`run`](Self::run) ends when the writes that are under way are over.
    pub fn close(&self) {
        self.pool.close();
        self.closed.notify_one();
    }

    /// About how many nodes something is remembered.
    pub fn remembered(&self) -> usize {
        self.all_tracked.iter().map(|tracked| tracked.state().memories.len()).sum()
    }

    /// Works until it is closed or dropped, which is safe at any moment.
    pub async fn run(self: Arc<Self>) {
        let listener: Arc<dyn Listener<NodeView>> = Arc::<Self>::clone(&self);
        self.ctx.cluster.nodes.subscribe(&listener);
        while !self.ctx.cluster.nodes.is_synced() {
            tokio::select! {
                biased;
                () = self.closed.notified() => return,
                () = self.synced.notified() => {}
            }
        }
        for tracked in &self.all_tracked {
            // Whoever is not Ready now may have turned so while nobody looked.
            if self.node_facts(tracked).iter().any(|facts| at_once(facts).is_none()) {
                tracked.alarm(self.now());
            }
        }
        let all_tracked = join_all(self.all_tracked.iter().map(|tracked| self.watch_over(tracked)));
        let ordered = || lock(&self.orders).keys().cloned().collect::<Vec<_>>();
        let refill = || ordered().into_iter().for_each(|name| self.pool.add(name));
        // What was ordered is not believed any more; the next round judges anew.
        let bug = |name: &String, _: &str| drop(lock(&self.orders).remove(name));
        tokio::select! {
            biased;
            () = self.pool.run(self.settings.workers, |name| self.attend(name), bug, refill) => {}
            _ = all_tracked => {}
        }
    }

    /// A bug was met and caught outside the pool.
    fn panicked(&self) {
        self.ctx.metrics.queues.panics.with(&PoolLabels { queue: QUEUE }).inc();
    }

    fn now(&self) -> Tick {
        self.ctx.clock().now()
    }

    /// The tracked of the cloud to which a node certainly belongs.
    fn tracked_by(&self, node: &NodeView) -> Option<&TrackedNodes> {
        let owner = self.ctx.clouds.owner(node).map(Cloud::name)?;
        self.all_tracked.iter().find(|tracked| tracked.cloud.name() == owner)
    }

    fn facts(&self, tracked: &TrackedNodes, node: &NodeView) -> NodeFacts {
        let seen =
            lock(&self.sightings).get(&node.name).filter(|(uid, _)| *uid == node.uid).map(|(_, at)| *at);
        NodeFacts::of(node, |text| tracked.cloud.provider.read_id(text), seen.unwrap_or_else(|| self.now()))
    }

    /// The nodes of one cloud.
    fn node_facts(&self, tracked: &TrackedNodes) -> Vec<NodeFacts> {
        let nodes = self.ctx.cluster.nodes.all();
        let mine = |node: &&Arc<NodeView>| {
            self.ctx.clouds.owner(node).is_some_and(|cloud| cloud.name() == tracked.cloud.name())
        };
        nodes.iter().filter(mine).map(|node| self.facts(tracked, node)).collect()
    }

    fn tell(&self, event: NodeEvent) {
        let about = ObjectRef::core("Node", "", &event.about.name, &event.about.uid);
        let reason = event.reason.to_owned();
        let (warning, message) = (event.warning, event.message);
        self.ctx.recorder.publish(Event { about, warning, reason, message, component: COMPONENT });
    }
}

impl Listener<NodeView> for LifecycleController {
    fn changed(&self, change: &Change<NodeView>) {
        let now = self.now();
        let Some(node) = &change.new else {
            let Some(old) = &change.old else { return };
            lock(&self.sightings).remove(&old.name);
            lock(&self.orders).remove(&old.name);
            self.all_tracked.iter().for_each(|tracked| tracked.forget(&old.name));
            return;
        };
        {
            let mut sightings = lock(&self.sightings);
            let sighting = sightings.entry(node.name.clone()).or_insert_with(|| (node.uid.clone(), now));
            if sighting.0 != node.uid {
                *sighting = (node.uid.clone(), now);
            }
        }
        let Some(tracked) = self.tracked_by(node) else { return };
        let facts = self.facts(tracked, node);
        if at_once(&facts) == Some(Verdict::RemoveShutdownTaint) {
            self.pool.add(node.name.clone());
        }
        if change.old.as_ref().is_some_and(|old| alarming(&self.facts(tracked, old), &facts)) {
            tracked.alarm(now);
        }
    }

    fn synced(&self) {
        self.synced.notify_one();
    }
}

impl fmt::Debug for LifecycleController {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LifecycleController")
            .field("settings", &self.settings)
            .field("all_tracked", &self.all_tracked)
            .finish_non_exhaustive()
    }
}
