//! The life of a node: the taint of an instance that is shut down, and the deletion of a node whose instance is gone.
//!
//! ```text
//!   a node turns NotReady ──┐
//!                           ▼
//!   one monitor per cloud: when to list ──► round: list, look up, decide ──► queue of decisions ──► apply: taint, delete
//! ```
//!
//! Everything is decided by [`decide::lifecycle`](cloudberth_core::decide::lifecycle); here the questions are asked and
//! the decisions carried out. A controller serves one term of leadership and begins without history: the first
//! confirmation of an earlier term counts for nothing.

mod apply;
mod monitor;
mod round;

use std::{
    collections::BTreeMap,
    fmt,
    sync::{Arc, Mutex},
    time::Duration,
};

use cloudberth_core::{
    NodeView, Tick,
    decide::lifecycle::{Cap, NodeEvent, NodeFacts, Timing, Verdict, alarming, at_once},
    reason::EventSource,
};
use cloudberth_runtime::{
    informer::{Change, Listener},
    metrics::queue::PoolLabels,
    recorder::{Event, ObjectRef},
    worker_pool::WorkerPool,
};
use futures_util::future::join_all;

use self::{apply::Decision, monitor::Monitor};
use crate::{clouds::Cloud, context::ControllerContext, effects::nodes::Live, lock};

/// The name of its queue.
const QUEUE: &str = "node_lifecycle";
/// More nodes than these never wait for a write.
const CAPACITY: usize = 10_000;
/// The wait of a write that failed: from the first, doubling up to the second.
const BACK_OFF: (Duration, Duration) = (Duration::from_secs(1), Duration::from_secs(60));
/// By how much it is stretched at most.
const JITTER: f64 = 0.5;

/// What the flags say.
#[derive(Clone, Copy, Debug)]
pub struct LifecycleSettings {
    /// `--node-monitor-period`.
    pub period: Duration,
    /// `--max-node-deletions`.
    pub cap: Cap,
    /// No more nodes than these are written to at once.
    pub workers: usize,
    /// How much time the cloud gets before its word ends a node.
    pub timing: Timing,
}

impl Default for LifecycleSettings {
    fn default() -> Self {
        Self { period: Duration::from_secs(5), cap: Cap::LAW, workers: 4, timing: Timing::LAW }
    }
}

/// The node lifecycle controller of one term of leadership.
pub struct LifecycleController {
    ctx: ControllerContext,
    settings: LifecycleSettings,
    monitors: Vec<Arc<Monitor>>,
    /// When each node was first seen, by name, with its UID.
    first_seen: Mutex<BTreeMap<String, (String, Tick)>>,
    pool: WorkerPool<String, Decision>,
}

impl LifecycleController {
    /// One for all clouds of the ctx that have instances.
    pub fn new(ctx: ControllerContext, settings: LifecycleSettings) -> Arc<Self> {
        let now = ctx.clock().now();
        let monitor = |cloud: &Cloud| Arc::new(Monitor::new(cloud.clone(), settings.period, now));
        let monitors = ctx.clouds.with_instances().map(monitor).collect();
        let pool = ctx.pool(QUEUE, CAPACITY, BACK_OFF, JITTER);
        Arc::new(Self { ctx, settings, monitors, first_seen: Mutex::default(), pool })
    }

    /// Begins nothing more; [`run`](Self::run) ends when the writes that are under way are over.
    pub fn close(&self) {
        self.pool.close();
    }

    /// About how many nodes something is remembered.
    pub fn remembered(&self) -> usize {
        self.monitors.iter().map(|monitor| monitor.state().histories.len()).sum()
    }

    /// Works until it is closed or dropped, which is safe at any moment.
    pub async fn run(self: Arc<Self>) {
        let synced = self.ctx.cluster.nodes.follow(Arc::clone(&self) as _);
        if !self.pool.starts_after(synced).await {
            return;
        }
        for monitor in &self.monitors {
            // A node that is not Ready now may have turned so while nobody looked.
            if self.nodes_of(monitor).iter().any(|facts| at_once(facts).is_none()) {
                monitor.alarm(self.now());
            }
        }
        let live = Live(&self.ctx);
        // A decision that panicked is not tried again; the next round decides anew.
        let bug = |name: &String, _: &str| self.pool.withdraw(name).into_iter().for_each(Decision::call_off);
        let refill = || self.monitors.iter().for_each(|monitor| monitor.ask_by(self.now()));
        let apply = |name, decision| self.apply(&live, name, decision);
        tokio::select! {
            biased;
            () = self.pool.run(self.settings.workers, apply, bug, refill) => {}
            _ = join_all(self.monitors.iter().map(|monitor| self.watch(monitor))) => {}
        }
    }

    /// Counts a panic that was caught outside the pool.
    fn panicked(&self) {
        self.ctx.metrics.queues.panics.with(&PoolLabels { queue: QUEUE }).inc();
    }

    fn now(&self) -> Tick {
        self.ctx.clock().now()
    }

    /// The monitor of the cloud to which a node certainly belongs.
    fn monitor_of(&self, node: &NodeView) -> Option<&Arc<Monitor>> {
        let owner = self.ctx.clouds.owner(node).map(Cloud::name)?;
        self.monitors.iter().find(|monitor| monitor.cloud.name() == owner)
    }

    fn facts(&self, monitor: &Monitor, node: &NodeView) -> NodeFacts {
        let seen =
            lock(&self.first_seen).get(&node.name).filter(|(uid, _)| *uid == node.uid).map(|(_, at)| *at);
        NodeFacts::of(node, |text| monitor.cloud.provider.read_id(text), seen.unwrap_or_else(|| self.now()))
    }

    /// The nodes of one cloud.
    fn nodes_of(&self, monitor: &Monitor) -> Vec<NodeFacts> {
        let nodes = self.ctx.cluster.nodes.all();
        let mine = |node: &&Arc<NodeView>| {
            self.ctx.clouds.owner(node).is_some_and(|cloud| cloud.name() == monitor.cloud.name())
        };
        nodes.iter().filter(mine).map(|node| self.facts(monitor, node)).collect()
    }
}

fn event(event: NodeEvent) -> Event {
    let NodeEvent { node, uid, warning, reason, message } = event;
    let about = ObjectRef::core("Node", "", &node, &uid);
    Event { about, warning, reason, message, component: EventSource::Lifecycle.component() }
}

impl Listener<NodeView> for LifecycleController {
    fn changed(&self, change: &Change<NodeView>) {
        let now = self.now();
        let Some(node) = &change.new else {
            let Some(old) = &change.old else { return };
            lock(&self.first_seen).remove(&old.name);
            self.pool.withdraw(&old.name);
            for monitor in &self.monitors {
                monitor.state().histories.remove(&old.name);
                lock(&monitor.cloud.deletions).gone(&old.uid);
            }
            return;
        };
        {
            let mut first_seen = lock(&self.first_seen);
            let seen = first_seen.entry(node.name.clone()).or_insert_with(|| (node.uid.clone(), now));
            if seen.0 != node.uid {
                *seen = (node.uid.clone(), now);
            }
        }
        let Some(monitor) = self.monitor_of(node) else { return };
        let facts = self.facts(monitor, node);
        if at_once(&facts) == Some(Verdict::RemoveShutdownTaint) {
            let replaced = self.pool.assign(node.name.clone(), Decision::RemoveShutdownTaint);
            replaced.into_iter().for_each(Decision::call_off);
        }
        if change.old.as_ref().is_some_and(|old| alarming(&self.facts(monitor, old), &facts)) {
            monitor.alarm(now);
        }
    }
}

impl fmt::Debug for LifecycleController {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LifecycleController").field("settings", &self.settings).finish_non_exhaustive()
    }
}
