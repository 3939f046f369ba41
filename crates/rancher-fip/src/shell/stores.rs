//! The objects of the management cluster, kept current by watches.

use std::{
    fmt,
    sync::{Arc, Mutex},
    time::Duration,
};

use cloudberth_core::{Clock, ObjectKey, Random};
use cloudberth_runtime::{
    informer::{Change, Informer, Listener, WatchHandle},
    scope::WatchScope,
};
use kube::{
    Client,
    api::{ApiResource, GroupVersionKind},
};

use super::{Api, lock};
use crate::{
    names::{FIP_GROUP, FLEET_DEFAULT},
    plan::version::{self, Version},
    view::{Body, ClusterView, PoolView, ProjectView, ProvisioningView, QuotaView, SecretMark, View},
};

/// How long the first listing of a new version may take before it is used all the same.
const FIRST_LISTING: Duration = Duration::from_secs(30);

/// The floating-IP kinds in one version.
pub(super) struct FipStores {
    /// Which one.
    pub(super) version: Version,
    /// The pools.
    pub(super) pools: Arc<Informer<PoolView>>,
    /// The quotas.
    pub(super) quotas: Arc<Informer<QuotaView>>,
    _watches: [WatchHandle; 2],
    _listeners: Listeners,
}

impl FipStores {
    /// The path of the floating IPs in a namespace, or in all.
    pub(super) fn floating_ips(&self, namespace: Option<&str>) -> String {
        let base = format!("/apis/{FIP_GROUP}/{}", self.version.name());
        namespace.map_or_else(
            || format!("{base}/floatingips"),
            |name| format!("{base}/namespaces/{name}/floatingips"),
        )
    }

    /// The path of the quotas.
    pub(super) fn quotas_path(&self) -> String {
        format!("/apis/{FIP_GROUP}/{}/floatingipprojectquotas", self.version.name())
    }
}

/// What is told when an object appears, changes in what matters, or goes.
pub(super) trait Heard: Send + Sync {
    /// A management Cluster.
    fn cluster(&self, old: Option<&ClusterView>, new: Option<&ClusterView>);
    /// A Project.
    fn project(&self, project: &ProjectView);
    /// A provisioning Cluster.
    fn provisioning(&self, provisioning: &ProvisioningView);
    /// A Secret that may be a kubeconfig.
    fn kubeconfig(&self, secret: &SecretMark);
    /// A pool.
    fn pool(&self);
    /// A quota.
    fn quota(&self, quota: &QuotaView);
}

type Listeners = (Arc<dyn Listener<PoolView>>, Arc<dyn Listener<QuotaView>>);

struct Hear<F>(F);

impl<B: Body, F: Fn(Option<&View<B>>, Option<&View<B>>) + Send + Sync> Listener<View<B>> for Hear<F> {
    fn changed(&self, change: &Change<View<B>>) {
        let (old, new) = (change.old.as_deref(), change.new.as_deref());
        let same = old.zip(new).is_some_and(|(old, new)| old.body == new.body && old.uid == new.uid);
        if !same {
            (self.0)(old, new);
        }
    }
}

/// The objects of the management cluster.
pub struct Stores {
    /// Management Clusters.
    pub clusters: Arc<Informer<ClusterView>>,
    /// Projects.
    pub projects: Arc<Informer<ProjectView>>,
    /// Provisioning Clusters.
    pub provisioning: Arc<Informer<ProvisioningView>>,
    /// The versions of the Secrets in `fleet-default`.
    pub kubeconfigs: Arc<Informer<SecretMark>>,
    floating: Mutex<Option<Arc<FipStores>>>,
    clock: Arc<dyn Clock>,
}

impl Stores {
    /// Empty stores.
    pub(super) fn new(clock: &Arc<dyn Clock>) -> Arc<Self> {
        let all = |group: &str, version: &str, kind: &str, plural: &str, watch| {
            WatchScope::all(resource(group, version, kind, plural), watch)
        };
        let secrets = WatchScope {
            namespace: Some(FLEET_DEFAULT.to_owned()),
            ..all("", "v1", "Secret", "secrets", "watch-kubeconfigs")
        };
        Arc::new(Self {
            clusters: Informer::new(
                all("management.cattle.io", "v3", "Cluster", "clusters", "watch-clusters"),
                Arc::clone(clock),
            ),
            projects: Informer::new(
                all("management.cattle.io", "v3", "Project", "projects", "watch-projects"),
                Arc::clone(clock),
            ),
            provisioning: Informer::new(
                all("provisioning.cattle.io", "v1", "Cluster", "clusters", "watch-provisioning-clusters"),
                Arc::clone(clock),
            ),
            kubeconfigs: Informer::new(secrets, Arc::clone(clock)),
            floating: Mutex::new(None),
            clock: Arc::clone(clock),
        })
    }

    /// Keeps all but the floating-IP kinds current until it is dropped.
    pub(super) async fn watch(&self, client: &Client, random: &Arc<Random>) {
        let _watches = (
            self.clusters.start(client.clone(), Arc::clone(random)),
            self.projects.start(client.clone(), Arc::clone(random)),
            self.provisioning.start(client.clone(), Arc::clone(random)),
            self.kubeconfigs.start(client.clone(), Arc::clone(random)),
        );
        std::future::pending::<()>().await;
    }

    /// The floating-IP kinds, if they are served and were listed once.
    pub(super) fn floating(&self) -> Option<Arc<FipStores>> {
        lock(&self.floating).clone().filter(|stores| stores.pools.is_synced() && stores.quotas.is_synced())
    }

    /// The cluster of this name.
    pub(super) fn cluster(&self, name: &str) -> Option<Arc<ClusterView>> {
        self.clusters.get(&ObjectKey::new("", name))
    }

    /// Looks which version of the floating-IP kinds is served, again and again: our role cannot read CRDs. A version that
    /// is not served for the moment is kept: unknown is not absent.
    pub(super) async fn discover(
        &self,
        local: &Api,
        random: &Arc<Random>,
        heard: &Arc<dyn Heard>,
        poll: Duration,
    ) {
        loop {
            match local.read(&format!("/apis/{FIP_GROUP}")).await.map(|group| version::choose(&group)) {
                Ok(Some(version)) => self.switch(version, local, random, heard).await,
                Ok(None) => {
                    tracing::debug!("the floating-IP kinds are served in no version that is known here");
                }
                Err(why) => {
                    tracing::debug!(%why, "the floating-IP kinds are not served, or cannot be asked for");
                }
            }
            tokio::time::sleep(random.jitter(poll, 0.1)).await;
        }
    }

    async fn switch(&self, version: Version, local: &Api, random: &Arc<Random>, heard: &Arc<dyn Heard>) {
        if lock(&self.floating).as_ref().is_some_and(|stores| stores.version == version) {
            return;
        }
        tracing::info!(version = version.name(), "using the floating-IP kinds");
        let scope = |kind: &str, plural: &str, watch| {
            WatchScope::all(resource(FIP_GROUP, version.name(), kind, plural), watch)
        };
        let pools =
            Informer::new(scope("FloatingIPPool", "floatingippools", "watch-pools"), Arc::clone(&self.clock));
        let quotas = Informer::new(
            scope("FloatingIPProjectQuota", "floatingipprojectquotas", "watch-quotas"),
            Arc::clone(&self.clock),
        );
        let listeners = fip_listeners(heard);
        let client = local.writer().client();
        let watches = [
            pools.start(client.clone(), Arc::clone(random)),
            quotas.start(client.clone(), Arc::clone(random)),
        ];
        let first = async {
            pools.until_synced().await;
            quotas.until_synced().await;
        };
        // The old version serves until the new one is known.
        let _ = tokio::time::timeout(FIRST_LISTING, first).await;
        pools.subscribe(&listeners.0);
        quotas.subscribe(&listeners.1);
        let new = FipStores { version, pools, quotas, _watches: watches, _listeners: listeners };
        *lock(&self.floating) = Some(Arc::new(new));
        heard.pool();
    }

    /// Listens to everything but the floating-IP kinds, as long as the result is kept.
    pub(super) fn listen(&self, heard: &Arc<dyn Heard>) -> impl Send + use<> {
        let tell = |heard: &Arc<dyn Heard>| Arc::clone(heard);
        let (to, on, at, of) = (tell(heard), tell(heard), tell(heard), tell(heard));
        let clusters: Arc<dyn Listener<ClusterView>> =
            Arc::new(Hear(move |old: Option<&ClusterView>, new: Option<&ClusterView>| to.cluster(old, new)));
        let projects: Arc<dyn Listener<ProjectView>> =
            Arc::new(Hear(move |old: Option<&ProjectView>, new: Option<&ProjectView>| {
                new.or(old).into_iter().for_each(|project| on.project(project));
            }));
        let provisioning: Arc<dyn Listener<ProvisioningView>> =
            Arc::new(Hear(move |old: Option<&ProvisioningView>, new: Option<&ProvisioningView>| {
                new.or(old).into_iter().for_each(|provisioning| at.provisioning(provisioning));
            }));
        let kubeconfigs: Arc<dyn Listener<SecretMark>> =
            Arc::new(Hear(move |old: Option<&SecretMark>, new: Option<&SecretMark>| {
                new.or(old).into_iter().for_each(|secret| of.kubeconfig(secret));
            }));
        self.clusters.subscribe(&clusters);
        self.projects.subscribe(&projects);
        self.provisioning.subscribe(&provisioning);
        self.kubeconfigs.subscribe(&kubeconfigs);
        (clusters, projects, provisioning, kubeconfigs)
    }
}

fn fip_listeners(heard: &Arc<dyn Heard>) -> Listeners {
    let (pool, quota) = (Arc::clone(heard), Arc::clone(heard));
    let pools = Hear(move |_: Option<&PoolView>, _: Option<&PoolView>| pool.pool());
    let quotas = Hear(move |old: Option<&QuotaView>, new: Option<&QuotaView>| {
        new.or(old).into_iter().for_each(|view| quota.quota(view));
    });
    (Arc::new(pools), Arc::new(quotas))
}

fn resource(group: &str, version: &str, kind: &str, plural: &str) -> ApiResource {
    ApiResource::from_gvk_with_plural(&GroupVersionKind::gvk(group, version, kind), plural)
}

impl fmt::Debug for Stores {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Stores").field("clusters", &self.clusters).finish_non_exhaustive()
    }
}
