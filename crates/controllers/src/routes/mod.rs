//! Routes to the pods of every node, where a cloud has routes.
//!
//! ```text
//!   nodes ──► trigger ──► queue (one key for each reason to look) ──► pass over the whole cluster
//!                                                                       list ─► plan ─► apply ─► condition, events
//! ```
//!
//! Everything is decided by [`decide::routes`](cloudberth_core::decide::routes). A change of a node begins a pass at once;
//! a rare pass that nobody asked for finds what was edited by hand.

mod pass;

use std::{
    collections::BTreeSet,
    fmt,
    sync::{Arc, Mutex},
    time::Duration,
};

use cloudberth_core::{
    NodeView, Result,
    decide::{
        outage::SPREAD,
        routes::{FULL_PASS, PASS_GAP, Pace, Start, Trigger, Unroutable, full_pass, start, trigger},
    },
    route::ClusterCidrs,
};
use cloudberth_runtime::{
    informer::{Change, Listener},
    worker_pool::WorkerPool,
};
use futures_util::future::join_all;

use crate::{clouds::Cloud, context::ControllerContext, lock};

/// What part of its period a pass that nobody asked for may be late.
const LATENESS: f64 = 0.5;

/// What the flags say.
#[derive(Clone, Debug)]
pub struct RouteSettings {
    /// `--configure-cloud-routes`.
    pub configure_cloud_routes: bool,
    /// `--cluster-cidr`.
    pub cluster_cidr: String,
    /// `--route-reconciliation-period`.
    pub period: Duration,
}

/// The routes of one cloud.
struct Router {
    cloud: Cloud,
    networks: ClusterCidrs,
    pace: Mutex<Pace>,
    /// The last pass failed because the cloud may be away.
    silent: Mutex<bool>,
    /// The networks of which people were told that they cannot be routed.
    unroutable: Mutex<BTreeSet<Unroutable>>,
    pool: WorkerPool<Trigger>,
}

/// The route controller of one term of leadership.
pub struct RouteController {
    ctx: ControllerContext,
    period: Duration,
    routers: Vec<Router>,
}

impl RouteController {
    /// One for all clouds of the ctx that have routes; `None` if it is switched off or none has. A bad value of
    /// `--cluster-cidr` is an error, but only where it is needed.
    pub fn new(ctx: ControllerContext, settings: &RouteSettings) -> Result<Option<Arc<Self>>> {
        let mut routers = Vec::new();
        for cloud in ctx.clouds.iter() {
            let offered = cloud.provider.routes().is_some();
            match start(settings.configure_cloud_routes, offered, &settings.cluster_cidr)? {
                Start::SwitchedOff => tracing::info!(cloud = cloud.name(), "routes are switched off"),
                Start::NotOffered => tracing::warn!(
                    cloud = cloud.name(),
                    "--configure-cloud-routes asks for routes, and this cloud has none"
                ),
                Start::Run(networks) => routers.push(Router::new(&ctx, cloud.clone(), networks)),
            }
        }
        let period = full_pass(settings.period);
        if routers.is_empty() {
            return Ok(None);
        }
        Ok(Some(Arc::new(Self { ctx, period, routers })))
    }

    /// Begins nothing more; [`run`](Self::run) ends when the passes that are under way are over.
    pub fn close(&self) {
        self.routers.iter().for_each(|router| router.pool.close());
    }

    /// Works until it is closed or dropped, which is safe at any moment.
    pub async fn run(self: Arc<Self>) {
        let synced = self.ctx.cluster.nodes.follow(Arc::clone(&self) as _);
        // All pools are closed together.
        let Some(first) = self.routers.first() else { return };
        if !first.pool.starts_after(synced).await {
            return;
        }
        for router in &self.routers {
            // Every known node has asked for a pass. Without nodes there may be left-over routes.
            if !self.ctx.cluster.nodes.all().iter().any(|node| self.is_of(router, node)) {
                self.want(router, Trigger::Periodic);
            }
        }
        join_all(self.routers.iter().map(|router| self.keep(router))).await;
    }

    async fn keep(&self, router: &Router) {
        let now_and_then = async {
            loop {
                tokio::time::sleep(self.ctx.random.jitter(self.period, LATENESS)).await;
                self.want(router, Trigger::Periodic);
            }
        };
        tokio::select! {
            biased;
            () = router.pool.run(1, |trigger, _| self.pass(router, trigger), |_, _| (), || ()) => {}
            () = now_and_then => {}
            () = self.returns(router) => {}
        }
    }

    /// Whenever the cloud answers again after it was away, retries what failed meanwhile.
    async fn returns(&self, router: &Router) {
        let mut returns = router.cloud.inventory.returns();
        while returns.changed().await.is_ok() {
            for trigger in Trigger::ALL {
                let wait = self.gap(router, trigger).max(SPREAD.mul_f64(self.ctx.random.fraction()));
                router.pool.revive(&trigger, wait);
            }
        }
        std::future::pending::<()>().await;
    }

    /// Asks for a pass as soon as the pace allows it.
    fn want(&self, router: &Router, trigger: Trigger) {
        router.pool.add_after(trigger, self.gap(router, trigger));
    }

    /// How long the next pass with this trigger has to wait.
    fn gap(&self, router: &Router, trigger: Trigger) -> Duration {
        let now = self.ctx.clock().now();
        lock(&router.pace).due(trigger, now).since(now)
    }

    /// Whether a node certainly belongs to this cloud.
    fn is_of(&self, router: &Router, node: &NodeView) -> bool {
        self.ctx.clouds.owner(node).is_some_and(|owner| owner.name() == router.cloud.name())
    }
}

impl Router {
    fn new(ctx: &ControllerContext, cloud: Cloud, networks: ClusterCidrs) -> Self {
        // There are only as many keys as triggers, so there is always room.
        let pool = ctx.pool("Routes", usize::MAX, (PASS_GAP, FULL_PASS), LATENESS);
        Self {
            cloud,
            networks,
            pace: Mutex::default(),
            silent: Mutex::default(),
            unroutable: Mutex::default(),
            pool,
        }
    }
}

impl Listener<NodeView> for RouteController {
    fn changed(&self, change: &Change<NodeView>) {
        for router in &self.routers {
            let mine = |node: &Option<Arc<NodeView>>| node.clone().filter(|node| self.is_of(router, node));
            if let Some(why) = trigger(mine(&change.old).as_deref(), mine(&change.new).as_deref()) {
                self.want(router, why);
            }
        }
    }
}

impl fmt::Debug for RouteController {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let clouds: Vec<_> = self.routers.iter().map(|router| router.cloud.name()).collect();
        f.debug_struct("RouteController").field("clouds", &clouds).finish_non_exhaustive()
    }
}
