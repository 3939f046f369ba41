//! The two controllers and the sweep, for as long as this replica leads.

use std::{
    sync::{Arc, Mutex, Weak},
    time::Duration,
};

use cloudberth_core::{
    ObjectKey,
    decide::queue::{ItemExponential, Requeue, WorkQueue},
};
use cloudberth_runtime::{metrics::QueueMetrics, worker_pool::WorkerPool};

use super::{Context, lock, stores::Heard};
use crate::{
    names::FLEET_DEFAULT,
    plan::{
        chain, kubeconfig,
        select::{Selection, is_harvester, select},
    },
    view::{ClusterView, ProjectView, ProvisioningView, QuotaView, SecretMark},
};

/// How many clusters and quotas may wait.
const CAPACITY: usize = 20_000;
/// Quotas cost next to nothing: no call leaves the management cluster.
const QUOTA_WORKERS: usize = 4;

/// The controllers of one term.
pub(super) struct Controllers {
    ctx: Arc<Context>,
    clusters: WorkerPool<String>,
    quotas: WorkerPool<String>,
    workers: usize,
}

impl Controllers {
    /// Controllers that do nothing before [`run`](Self::run).
    pub(super) fn new(ctx: Arc<Context>, workers: usize, metrics: &QueueMetrics) -> Arc<Self> {
        let delays = ctx.delays;
        let queue =
            || WorkQueue::new(CAPACITY, ItemExponential::new(delays.backoff_first, delays.backoff_longest));
        let clock = ctx.clock();
        Arc::new(Self {
            clusters: WorkerPool::new("clusters", queue(), Arc::clone(clock)).metered(metrics),
            quotas: WorkerPool::new("quotas", queue(), Arc::clone(clock)).metered(metrics),
            workers,
            ctx,
        })
    }

    /// Works until it is closed, or dropped.
    pub(super) async fn run(&self) {
        self.enqueue_all();
        let requeue = |next: Option<Duration>| next.map_or(Requeue::Forget, Requeue::Exactly);
        let clusters = self.clusters.run(
            self.workers,
            async |name: String, _| requeue(self.ctx.cluster_pass(&name).await),
            |name, text| self.ctx.metrics.phase(name, "bug", if text.is_empty() { "" } else { "internal" }),
            || self.enqueue_all(),
        );
        let quotas = self.quotas.run(
            QUOTA_WORKERS,
            async |name: String, _| {
                let next = self.ctx.quota_pass(&name).await;
                self.settle(&name);
                requeue(next)
            },
            |_, _| {},
            || self.enqueue_all(),
        );
        let work = futures_util::future::join(clusters, quotas);
        tokio::select! {
            biased;
            _ = work => {}
            () = self.sweeps() => {}
        }
    }

    /// Begins nothing more; [`run`](Self::run) ends when what was begun has ended.
    pub(super) fn close(&self) {
        self.clusters.close();
        self.quotas.close();
    }

    /// Looks for floating IPs of clusters that are gone: at once, and with every resync.
    async fn sweeps(&self) {
        let mut first = true;
        loop {
            // Until the kinds are known there is nothing to look at.
            while self.ctx.stores.floating().is_none() || !self.ctx.stores.clusters.is_synced() {
                tokio::time::sleep(Duration::from_secs(1)).await;
            }
            for name in self.ctx.unknown_users().await {
                tracing::info!(cluster = name, "a floating IP is used by a cluster that is not known");
                self.clusters.add(name);
            }
            let wait = if std::mem::take(&mut first) {
                self.ctx.delays.soon.min(self.ctx.delays.resync)
            } else {
                self.ctx.delays.resync
            };
            tokio::time::sleep(self.ctx.random.jitter(wait, 0.1)).await;
        }
    }

    /// Everything is to be looked at: a new term, or a new configuration.
    pub(super) fn enqueue_all(&self) {
        for cluster in self.ctx.stores.clusters.all() {
            self.clusters.add(cluster.name().to_owned());
        }
        if let Some(floating) = self.ctx.stores.floating() {
            floating.quotas.all().iter().for_each(|quota| self.quotas.add(quota.name().to_owned()));
        }
    }

    fn enqueue_enabled(&self, fits: impl Fn(&ClusterView) -> bool) {
        for cluster in self.ctx.stores.clusters.all() {
            if select(&cluster) == Selection::Enabled && fits(&cluster) {
                self.clusters.add(cluster.name().to_owned());
            }
        }
    }

    /// The cluster of a quota's project is worked on in a moment: quotas that settle together cost one restart.
    fn settle(&self, quota: &str) {
        let projects = self.ctx.stores.projects.all();
        let Some(project) = crate::plan::quota::project(quota, &projects) else { return };
        let enabled = self
            .ctx
            .stores
            .cluster(&project.body.cluster)
            .filter(|cluster| select(cluster) == Selection::Enabled);
        if let Some(cluster) = enabled {
            self.clusters.add_after(cluster.name().to_owned(), self.ctx.delays.settle);
        }
    }
}

impl std::fmt::Debug for Controllers {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Controllers").field("clusters", &self.clusters).finish_non_exhaustive()
    }
}

/// Hands what the watches say to the controllers, while there are any.
#[derive(Debug, Default)]
pub(super) struct Router(Mutex<Weak<Controllers>>);

impl Router {
    /// From now on these controllers hear what changes.
    pub(super) fn lead(&self, controllers: &Arc<Controllers>) {
        *lock(&self.0) = Arc::downgrade(controllers);
    }

    /// The controllers, if this replica leads.
    pub(super) fn controllers(&self) -> Option<Arc<Controllers>> {
        lock(&self.0).upgrade()
    }
}

impl Heard for Router {
    fn cluster(&self, old: Option<&ClusterView>, new: Option<&ClusterView>) {
        let Some(controllers) = self.controllers() else { return };
        let name = old.or(new).map(ClusterView::name).unwrap_or_default();
        controllers.clusters.add(name.to_owned());
        // Guests depend on the name and the presence of their Harvester.
        if [old, new].into_iter().flatten().any(is_harvester) {
            controllers.enqueue_enabled(|_| true);
        }
        if let Some(floating) = controllers.ctx.stores.floating() {
            let projects = controllers.ctx.stores.projects.all();
            let of_this = projects.iter().filter(|project| project.body.cluster == name);
            for project in
                of_this.filter(|project| floating.quotas.get(&ObjectKey::new("", project.name())).is_some())
            {
                controllers.quotas.add(project.name().to_owned());
            }
        }
    }

    fn project(&self, project: &ProjectView) {
        let Some(controllers) = self.controllers() else { return };
        controllers.quotas.add(project.name().to_owned());
        controllers.settle(project.name());
        controllers.enqueue_enabled(|cluster| controllers.ctx.memory(cluster.name()).had_problems());
    }

    fn provisioning(&self, provisioning: &ProvisioningView) {
        let Some(controllers) = self.controllers() else { return };
        let changed = [Arc::new(provisioning.clone())];
        controllers.enqueue_enabled(|cluster| {
            chain::provisioning(cluster, &changed).is_some()
                || controllers.ctx.memory(cluster.name()).had_problems()
        });
    }

    fn kubeconfig(&self, secret: &SecretMark) {
        let Some(controllers) = self.controllers() else { return };
        if secret.key.namespace != FLEET_DEFAULT {
            return;
        }
        let ctx = &controllers.ctx;
        controllers.enqueue_enabled(|cluster| {
            kubeconfig::candidates(cluster, ctx.provisioning(cluster).as_ref()).contains(&secret.key)
                || (ctx.memory(cluster.name()).had_problems() && secret.name().ends_with("-kubeconfig"))
        });
    }

    fn pool(&self) {
        let Some(controllers) = self.controllers() else { return };
        controllers.enqueue_all();
    }

    fn quota(&self, quota: &QuotaView) {
        let Some(controllers) = self.controllers() else { return };
        controllers.quotas.add(quota.name().to_owned());
    }
}
