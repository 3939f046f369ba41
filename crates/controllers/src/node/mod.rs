//! Nodes get from their cloud what they need to serve, and keep it current.
//!
//! A node that waits for its cloud is initialised in two writes: its addresses, then provider id, labels and the removal
//! of the taint in one patch. A node in service gets other addresses and labels when its instance has changed. What is
//! written is decided in core; here are the questions, the writes and the retries.
//!
//! ```text
//!   a node's change ─┐                  ┌─► search: listings of the clouds that may have its instance
//!   a pass ──────────┼─► queue ─► sync ─┤
//!   a failure ───────┘                  └─► update: decide, patch, decide again on the answer
//! ```
//!
//! Nothing is kept between terms of leadership.

mod records;
mod search;
mod sync;
mod waiting;

use std::{
    fmt,
    sync::{Arc, Mutex},
    time::Duration,
};

use cloudberth_core::{
    Error, NodeView, Result,
    decide::{
        node::{change, taints},
        outage::SPREAD,
    },
    time::Tick,
};
use cloudberth_runtime::{
    informer::{Change, Listener},
    worker_pool::WorkerPool,
};
use futures_util::future::{join_all, select_all};

use self::{records::NodeRecords, waiting::WaitingNodes};
use crate::{clouds::Cloud, context::ControllerContext, lock};

/// How many nodes are worked on at once where nobody sets a ceiling. The work is waiting for the API server, so this is
/// a matter of how many requests it is asked at once.
const WORKERS: usize = 32;
/// More nodes than any cluster has; the bound is there so that a bug cannot fill the memory.
const CAPACITY: usize = 100_000;
/// The wait of a node that failed: from the first, doubling up to the second. The first is short enough for an instance
/// that shows up a moment after its node; the second is that of a pass, so that no instance is found later than that.
const BACK_OFF: (Duration, Duration) = (Duration::from_secs(1), Duration::from_secs(300));
/// By how much waits are stretched at most, so that nodes and replicas do not act all at once.
const JITTER: f64 = 0.1;
/// No cloud is listed more often than this, whatever the flag says.
const SHORTEST_PERIOD: Duration = Duration::from_secs(1);

/// How the controller works.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NodeSettings {
    /// How often addresses and labels of all nodes are compared with their instances (`--node-status-update-frequency`).
    pub period: Duration,
    /// How many nodes may be worked on at once; `None` leaves it to the program.
    pub workers: Option<usize>,
}

impl Default for NodeSettings {
    fn default() -> Self {
        Self { period: Duration::from_secs(300), workers: None }
    }
}

/// The node controller of one term of leadership.
pub struct NodeController {
    ctx: ControllerContext,
    settings: NodeSettings,
    pool: WorkerPool<String>,
    records: NodeRecords,
    waiting: WaitingNodes,
    /// Listings that were begun earlier are too old.
    not_before: Mutex<Tick>,
}

impl NodeController {
    /// A controller that has not begun yet; an error where no cloud at work has instances.
    pub fn new(ctx: ControllerContext, settings: NodeSettings) -> Result<Arc<Self>> {
        if ctx.clouds.with_instances().next().is_none() {
            return Err(Error::permanent(
                "the node controller has nothing to do: no cloud at work has instances",
            ));
        }
        let pool = ctx.pool("Nodes", CAPACITY, BACK_OFF, JITTER);
        Ok(Arc::new(Self {
            waiting: WaitingNodes::new(&ctx.metrics.node.waiting),
            ctx,
            settings,
            pool,
            records: NodeRecords::default(),
            not_before: Mutex::new(Tick::ZERO),
        }))
    }

    /// How often a worker met a bug.
    pub fn panics(&self) -> u64 {
        self.pool.panics()
    }

    /// Begins nothing more; [`run`](Self::run) ends when what is under way is over.
    pub fn close(&self) {
        self.pool.close();
    }

    /// Works until it is closed or dropped, which is safe at any moment.
    pub async fn run(self: Arc<Self>) {
        let synced = self.ctx.cluster.nodes.follow(Arc::clone(&self) as _);
        if !self.pool.starts_after(synced).await {
            return;
        }
        let work = self.pool.run(
            self.settings.workers.unwrap_or(WORKERS).max(1),
            |name, _| self.sync(name),
            |name, text| self.panicked(name, text),
            || self.add_all(|_| true),
        );
        tokio::select! {
            biased;
            () = self.passes() => {}
            _ = join_all(self.ctx.clouds.with_instances().map(|cloud| self.returns(cloud))) => {}
            () = work => {}
        }
    }

    /// Compares all nodes in service with their instances, again and again. Nodes that wait come back by themselves.
    ///
    /// Where somebody else lists instances too, a pass waits for that listing: two schedules that know nothing of each
    /// other would cost more listings than either.
    async fn passes(&self) {
        let period = self.settings.period.max(SHORTEST_PERIOD);
        let mut oldest = period / 2;
        loop {
            *lock(&self.not_before) = self.ctx.clock().now() - oldest;
            self.add_all(|node| !node.has_taint(taints::UNINITIALISED));
            let others = async {
                tokio::time::sleep(period / 2).await;
                self.next_landing().await;
            };
            oldest = tokio::select! {
                biased;
                // The clouds that were not listed now are by their own schedules.
                () = others => period,
                () = tokio::time::sleep(self.ctx.random.jitter(period, JITTER)) => period / 2,
            };
        }
    }

    /// Whenever a cloud that was away answers again, retries the nodes that failed meanwhile, and compares those in
    /// service, whose pass may have had no listing. The listing that noticed the return serves all of them.
    async fn returns(&self, cloud: &Cloud) {
        let mut returns = cloud.inventory.returns();
        while returns.changed().await.is_ok() {
            for node in self.ctx.cluster.nodes.all() {
                let wait = SPREAD.mul_f64(self.ctx.random.fraction());
                self.pool.revive(&node.name, wait);
                if !node.has_taint(taints::UNINITIALISED) {
                    self.pool.add_after(node.name.clone(), wait);
                }
            }
        }
        std::future::pending::<()>().await;
    }

    /// Waits until the instances of any cloud have been listed once more, whoever asked for that.
    async fn next_landing(&self) {
        let landing = async |cloud: &Cloud| {
            if cloud.inventory.landings().changed().await.is_err() {
                std::future::pending::<()>().await;
            }
        };
        let clouds: Vec<_> = self.ctx.clouds.with_instances().collect();
        select_all(clouds.iter().map(|cloud| Box::pin(landing(cloud)))).await;
    }

    fn add_all(&self, which: impl Fn(&NodeView) -> bool) {
        for node in self.ctx.cluster.nodes.all().iter().filter(|node| which(node)) {
            self.pool.add(node.name.clone());
        }
    }
}

impl Listener<NodeView> for NodeController {
    fn changed(&self, change: &Change<NodeView>) {
        self.waiting.changed(change, &**self.ctx.clock());
        match (&change.old, &change.new) {
            (Some(old), Some(new)) if !change::matters(old, new) => {}
            (_, Some(new)) => {
                self.records.get(new, self.ctx.clock().now());
                self.pool.add(new.name.clone());
            }
            (Some(old), None) => self.records.remove(&old.name),
            (None, None) => {}
        }
    }
}

impl fmt::Debug for NodeController {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("NodeController").field("settings", &self.settings).finish_non_exhaustive()
    }
}
