//! The life of a node: the mark of a machine that is shut down, and the removal of a node whose machine is gone.
//!
//! ```text
//!   nodes ──► alarm ──┐                                    ┌──► orders ──► crew ──► taints, deletions
//!                     ▼                                    │
//!   a Ward per cloud: when to list ──► listing ──► round: judge every node
//! ```
//!
//! Everything is decided by [`decide::lifecycle`](cloudberth_core::decide::lifecycle); here are the questions asked and
//! the verdicts carried out. A controller serves one term of leadership and begins without memory: what was seen before
//! counts for nothing, so a node that was missed once is missed twice again.

mod act;
mod rehearse;
mod round;
mod ward;

use std::{
    collections::BTreeMap,
    fmt,
    sync::{Arc, Mutex},
    time::Duration,
};

use cloudberth_core::{
    NodeView, Tick,
    decide::{
        lifecycle::{Cap, NodeEvent, Suspect, Verdict, alarming, at_once},
        queue::{ItemExponential, Jittered, WorkQueue},
    },
};
use cloudberth_runtime::{
    crew::Crew,
    herald::{About, Occurrence},
    informer::{Change, Listener},
    metrics::queue::CrewLabels,
};
use futures_util::future::join_all;
use tokio::sync::Notify;

use self::{act::Order, ward::Ward};
use crate::{clouds::Cloud, desk::Desk, lock};

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
    desk: Desk,
    settings: LifecycleSettings,
    wards: Vec<Ward>,
    /// When each node was first seen, by name, with its UID.
    sightings: Mutex<BTreeMap<String, (String, Tick)>>,
    orders: Mutex<BTreeMap<String, Order>>,
    crew: Crew<String, Limiter>,
    synced: Notify,
    closed: Notify,
}

impl LifecycleController {
    /// One for all clouds of the desk that have machines.
    pub fn new(desk: Desk, settings: LifecycleSettings) -> Arc<Self> {
        let clock = Arc::clone(desk.clock());
        let now = clock.now();
        let with_machines = desk.clouds.iter().filter(|cloud| cloud.provider.instances().is_some());
        let wards = with_machines.map(|cloud| Ward::new(cloud.clone(), settings.period, now)).collect();
        let limiter = Jittered {
            inner: ItemExponential::new(Duration::from_secs(1), Duration::from_secs(60)),
            factor: 0.5,
            dice: Arc::clone(&desk.dice),
        };
        let queue = WorkQueue::new(CAPACITY, limiter);
        let crew = Crew::new(QUEUE, queue, clock).metered(&desk.metrics.queues);
        let (sightings, orders) = (Mutex::default(), Mutex::default());
        let (synced, closed) = (Notify::new(), Notify::new());
        Arc::new(Self { desk, settings, wards, sightings, orders, crew, synced, closed })
    }

    /// Begins nothing more; [`run`](Self::run) ends when the writes that are under way are over.
    pub fn close(&self) {
        self.crew.close();
        self.closed.notify_one();
    }

    /// About how many nodes something is remembered.
    pub fn remembered(&self) -> usize {
        self.wards.iter().map(|ward| ward.state().memories.len()).sum()
    }

    /// Works until it is closed or dropped, which is safe at any moment.
    pub async fn run(self: Arc<Self>) {
        let listener: Arc<dyn Listener<NodeView>> = Arc::<Self>::clone(&self);
        self.desk.cluster.nodes.subscribe(&listener);
        while !self.desk.cluster.nodes.is_synced() {
            tokio::select! {
                biased;
                () = self.closed.notified() => return,
                () = self.synced.notified() => {}
            }
        }
        for ward in &self.wards {
            // Whoever is not Ready now may have turned so while nobody looked.
            if self.patients(ward).iter().any(|suspect| at_once(suspect).is_none()) {
                ward.alarm(self.now());
            }
        }
        let wards = join_all(self.wards.iter().map(|ward| self.watch_over(ward)));
        let ordered = || lock(&self.orders).keys().cloned().collect::<Vec<_>>();
        let refill = || ordered().into_iter().for_each(|name| self.crew.add(name));
        // What was ordered is not believed any more; the next round judges anew.
        let bug = |name: &String, _: &str| drop(lock(&self.orders).remove(name));
        tokio::select! {
            biased;
            () = self.crew.run(self.settings.workers, |name| self.attend(name), bug, refill) => {}
            _ = wards => {}
        }
    }

    /// A bug was met and caught outside the crew.
    fn panicked(&self) {
        self.desk.metrics.queues.panics.with(&CrewLabels { queue: QUEUE }).inc();
    }

    fn now(&self) -> Tick {
        self.desk.clock().now()
    }

    /// The ward of the cloud to which a node certainly belongs.
    fn ward_of(&self, node: &NodeView) -> Option<&Ward> {
        let owner = self.desk.clouds.owner(node).map(Cloud::name)?;
        self.wards.iter().find(|ward| ward.cloud.name() == owner)
    }

    fn suspect(&self, ward: &Ward, node: &NodeView) -> Suspect {
        let seen =
            lock(&self.sightings).get(&node.name).filter(|(uid, _)| *uid == node.uid).map(|(_, at)| *at);
        Suspect::of(node, |text| ward.cloud.provider.read_id(text), seen.unwrap_or_else(|| self.now()))
    }

    /// The nodes of one cloud.
    fn patients(&self, ward: &Ward) -> Vec<Suspect> {
        let nodes = self.desk.cluster.nodes.all();
        let mine = |node: &&Arc<NodeView>| {
            self.desk.clouds.owner(node).is_some_and(|cloud| cloud.name() == ward.cloud.name())
        };
        nodes.iter().filter(mine).map(|node| self.suspect(ward, node)).collect()
    }

    fn tell(&self, event: NodeEvent) {
        let about = About::core("Node", "", &event.about.name, &event.about.uid);
        let reason = event.reason.to_owned();
        let (warning, message) = (event.warning, event.message);
        self.desk.herald.tell(Occurrence { about, warning, reason, message, component: COMPONENT });
    }
}

impl Listener<NodeView> for LifecycleController {
    fn changed(&self, change: &Change<NodeView>) {
        let now = self.now();
        let Some(node) = &change.new else {
            let Some(old) = &change.old else { return };
            lock(&self.sightings).remove(&old.name);
            lock(&self.orders).remove(&old.name);
            self.wards.iter().for_each(|ward| ward.forget(&old.name));
            return;
        };
        {
            let mut sightings = lock(&self.sightings);
            let sighting = sightings.entry(node.name.clone()).or_insert_with(|| (node.uid.clone(), now));
            if sighting.0 != node.uid {
                *sighting = (node.uid.clone(), now);
            }
        }
        let Some(ward) = self.ward_of(node) else { return };
        let suspect = self.suspect(ward, node);
        if at_once(&suspect) == Some(Verdict::RemoveShutdownTaint) {
            self.crew.add(node.name.clone());
        }
        if change.old.as_ref().is_some_and(|old| alarming(&self.suspect(ward, old), &suspect)) {
            ward.alarm(now);
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
            .field("wards", &self.wards)
            .finish_non_exhaustive()
    }
}
