//! One pass over one quota.
//!
//! A quota of a Harvester project gets a Secret here. One of another cluster is served by the pass over that cluster, so
//! that all writes to a cluster come from one place.

use std::time::Duration;

use cloudberth_core::{Category, ObjectKey, lookup::Lookup};

use super::{Context, api::again, stores::FipStores};
use crate::{
    names::{FIP_GROUP, project_secret},
    plan::{
        Change, pools,
        quota::{self, Asks},
    },
    problem::{Again, Problem, next_run},
    reasons::{NO_DEFAULT_POOL, QUOTA_FAILED, SECRETS_KEPT, SEVERAL_DEFAULT_POOLS},
    view::QuotaView,
};

impl Context {
    /// Works on a quota; returns when it is to be worked on again, if it is.
    pub(super) async fn quota_pass(&self, name: &str) -> Option<Duration> {
        let floating = self.stores.floating()?;
        let memory = self.memory(&format!("quota {name}"));
        let Some(found) = floating.quotas.get(&ObjectKey::new("", name)) else {
            self.forget(&format!("quota {name}"));
            return None;
        };
        let mut problems = Vec::new();
        if found.body.deleting {
            problems.extend(self.let_go(&floating, &found).await);
        } else {
            problems.extend(self.serve(&floating, &found).await);
        }
        let version = format!("{FIP_GROUP}/{}", floating.version.name());
        for problem in memory.news(&problems) {
            self.tell(
                &version,
                "FloatingIPProjectQuota",
                &found.key,
                &found.uid,
                problem.reason,
                &problem.message,
            );
        }
        let failing = problems.iter().any(|problem| problem.again != Again::Never);
        self.metrics.passed("quota", if failing { "error" } else { "ok" });
        let failures = memory.count(failing);
        Some(next_run(&problems, &self.delays, self.random.jitter(self.delays.resync, 0.1), failures))
    }

    async fn serve(&self, floating: &FipStores, found: &QuotaView) -> Option<Problem> {
        if !self.stores.projects.is_synced() || !self.stores.clusters.is_synced() {
            return Some(Problem::new(QUOTA_FAILED, Again::Soon, "projects and clusters are not listed yet"));
        }
        let projects = self.stores.projects.all();
        let clusters = self.stores.clusters.all();
        let cluster =
            |name: &str| clusters.iter().find(|cluster| cluster.name() == name).map(|cluster| &**cluster);
        match quota::asks(found, &projects, cluster) {
            Asks::Nothing => None,
            Asks::Blocked(problem) => Some(problem),
            Asks::Local(project) => {
                self.token(project).await.err().map(|problem| Problem { reason: QUOTA_FAILED, ..problem })
            }
            Asks::Cluster(_, cluster) => {
                let all = floating.pools.all();
                match pools::default(cluster, &all) {
                    None => Some(Problem::new(
                        NO_DEFAULT_POOL,
                        Again::Slow,
                        format!(
                            "no pool of the cluster {} has the annotation rancher-fip-default-network: \"true\"",
                            cluster.name()
                        ),
                    )),
                    Some((pool, true)) => Some(Problem::new(
                        SEVERAL_DEFAULT_POOLS,
                        Again::Never,
                        format!(
                            "several pools of the cluster {} are marked as default; {} is used",
                            cluster.name(),
                            pool.name()
                        ),
                    )),
                    Some(_) => None,
                }
            }
        }
    }

    /// A quota that is being deleted loses the finalizer of a later Go release, at once and whatever is down. Its Secrets
    /// stay.
    async fn let_go(&self, floating: &FipStores, found: &QuotaView) -> Option<Problem> {
        if !found.body.finalizer {
            return None;
        }
        let path = floating.quotas_path();
        let failed = |why: &cloudberth_core::Error| {
            let text = format!("its finalizer cannot be removed: {}", why.message());
            Problem::new(QUOTA_FAILED, again(why), text)
        };
        let fresh = match self.local.get(&path, found.name()).await {
            Lookup::Present(fresh) => fresh,
            Lookup::Absent => return None,
            Lookup::Unknown(why) => return Some(failed(&why)),
        };
        let released = quota::without_finalizer(&fresh)?;
        let label = format!("remove the finalizer of the Go program from the quota {}", found.name());
        match self.local.apply(&label, &path, &Change::Replace(released)).await {
            Ok(_) => {
                let kept =
                    format!("the Secrets {} stay, here and in the clusters", project_secret(found.name()));
                let version = format!("{FIP_GROUP}/{}", floating.version.name());
                self.tell(&version, "FloatingIPProjectQuota", &found.key, &found.uid, SECRETS_KEPT, &kept);
                None
            }
            Err(why) if why.category() == Category::NotFound => None,
            Err(why) => Some(failed(&why)),
        }
    }
}
