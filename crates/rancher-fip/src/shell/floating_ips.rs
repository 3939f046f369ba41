//! Releasing the floating IPs of clusters that are gone.

use cloudberth_core::{Category, Error, ObjectKey, lookup::Lookup};
use serde_json::Value;

use super::{Context, api::again, stores::FipStores};
use crate::{
    names::{CLUSTER_NAME, FIP_GROUP},
    plan::{Change, release},
    problem::{Again, Problem},
    reasons::{RELEASE_FAILED, WRITE_FAILED},
    view::text,
};

/// How often a floating IP that others change too is tried in one pass.
const TRIES: usize = 5;

impl Context {
    /// A cluster that is not in the store: if the API server says that it is gone, its floating IPs are released. Nothing
    /// is released on anything less.
    pub(super) async fn gone(&self, name: &str) -> Option<Problem> {
        // Without the kinds there is nothing to release. Should they come, the sweep looks again.
        let floating = self.stores.floating()?;
        let selector = format!("{CLUSTER_NAME}={name}");
        let listed =
            match self.local.list(&floating.floating_ips(None), &[("labelSelector", &selector)]).await {
                Ok(listed) => listed,
                Err(why) => {
                    return Some(Problem::new(
                        RELEASE_FAILED,
                        Again::Backoff,
                        format!("floating IPs cannot be listed: {why}"),
                    ));
                }
            };
        match self.is_gone(name).await {
            Ok(true) => {}
            // The watch will say so too.
            Ok(false) => return None,
            Err(why) => {
                let text = format!("whether the cluster {name} is gone cannot be told: {why}");
                return Some(Problem::new(WRITE_FAILED, Again::Backoff, text));
            }
        }
        let mut failures = Vec::new();
        for floating_ip in listed {
            let key = ObjectKey::new(
                text(&floating_ip, "/metadata/namespace"),
                text(&floating_ip, "/metadata/name"),
            );
            let uid = text(&floating_ip, "/metadata/uid").to_owned();
            if let Err(why) = self.release(&floating, floating_ip, &key, name).await {
                let message = format!(
                    "{key} is not released from the cluster {name}, which is gone: {}",
                    why.message()
                );
                let again = if again(&why) == Again::Never { Again::Never } else { Again::Backoff };
                failures.push((key, uid, Problem::new(RELEASE_FAILED, again, message)));
            }
        }
        let problems: Vec<_> = failures.iter().map(|(.., problem)| problem.clone()).collect();
        let memory = self.memory(name);
        let news = memory.news(&problems);
        let version = format!("{FIP_GROUP}/{}", floating.version.name());
        for (key, uid, problem) in failures.iter().filter(|(.., problem)| news.contains(&problem)) {
            self.tell(&version, "FloatingIP", key, uid, problem.reason, &problem.message);
        }
        problems.into_iter().min_by_key(|problem| problem.again)
    }

    /// Whether there is no such cluster. It is asked after a floating IP was read and before it is written: if the cluster
    /// comes back and uses the address again, that changes the floating IP, and the write is refused.
    async fn is_gone(&self, name: &str) -> Result<bool, Error> {
        match self.local.get("/apis/management.cattle.io/v3/clusters", name).await {
            Lookup::Absent => Ok(true),
            Lookup::Present(_) => Ok(false),
            Lookup::Unknown(why) => Err(why),
        }
    }

    /// Takes every sign of a dead cluster from a floating IP, through the newest version of its kind.
    async fn release(
        &self,
        floating: &FipStores,
        mut floating_ip: Value,
        key: &ObjectKey,
        cluster: &str,
    ) -> Result<(), Error> {
        let path = floating.floating_ips(Some(&key.namespace));
        let mut last = Error::temporary("it changed too often");
        for _ in 0..TRIES {
            let Some(released) = release::released(&floating_ip, cluster) else { return Ok(()) };
            let label = format!("release the floating IP {key} from the cluster {cluster}, which is gone");
            match self.local.apply(&label, &path, &Change::Replace(released)).await {
                Ok(_) => {
                    self.metrics.released();
                    return Ok(());
                }
                Err(why) if why.category() == Category::NotFound => return Ok(()),
                Err(why) if why.category() == Category::Conflict => last = why,
                Err(why) => return Err(why),
            }
            match self.local.get(&path, &key.name).await {
                Lookup::Present(fresh) => floating_ip = fresh,
                Lookup::Absent => return Ok(()),
                Lookup::Unknown(why) => return Err(why),
            }
            if !self.is_gone(cluster).await? {
                return Ok(());
            }
        }
        Err(last)
    }

    /// The clusters that use floating IPs and are not known here: they may have gone while nobody looked. None, unless
    /// the clusters were listed completely.
    pub(super) async fn unknown_users(&self) -> Vec<String> {
        let clusters = &self.stores.clusters;
        if !clusters.is_synced() || clusters.broken_since().is_some() {
            return Vec::new();
        }
        let Some(floating) = self.stores.floating() else { return Vec::new() };
        match self.local.list(&floating.floating_ips(None), &[("labelSelector", CLUSTER_NAME)]).await {
            Ok(listed) => {
                let known = |name: &str| self.stores.cluster(name).is_some();
                release::unknown_users(&listed, known).into_iter().collect()
            }
            Err(why) => {
                tracing::warn!(%why, "floating IPs cannot be listed; none is released");
                Vec::new()
            }
        }
    }
}
