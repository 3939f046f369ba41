//! What is known in the management cluster about a downstream cluster, and what follows for it.

use std::sync::Arc;

use cloudberth_core::{Category, ObjectKey, lookup::Lookup};
use serde_json::Value;

use super::{Context, api::again, look::unreachable, memory::Memory};
use crate::{
    config::Good,
    names::project_secret,
    plan::{
        chain::{self, Place},
        data::Hasher,
        kubeconfig, map, pools,
        quota::{self, Asks},
        secret::{self, Delivery, Token},
    },
    problem::{Again, Problem},
    reasons::{DUPLICATE_PROJECT, KINDS_MISSING, NO_KUBECONFIG, WRITE_FAILED},
    view::{ClusterView, PoolView, ProjectView, ProvisioningView},
};

/// A kubeconfig that was found.
pub(super) struct Way {
    /// The Secret and its version.
    pub(super) version: String,
    /// The kubeconfig.
    pub(super) bytes: Vec<u8>,
}

impl std::fmt::Debug for Way {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Way").field("version", &self.version).finish_non_exhaustive()
    }
}

/// Where the virtual machines of a guest are.
pub(super) struct Resolved {
    project: Arc<ProjectView>,
    harvester: Arc<ClusterView>,
    networks: Vec<String>,
}

/// What the chain of a cluster led to.
enum Chain {
    /// The cluster is not on Harvester.
    Elsewhere,
    Resolved(Resolved),
    Failed,
}

/// What a downstream cluster is to be like.
#[derive(Clone)]
pub(super) struct Desired {
    /// The configuration and the CA.
    pub(super) good: Good,
    /// What the interface map says; `None` leaves it alone.
    pub(super) map: Option<map::Wanted>,
    /// What each project's Secret says.
    pub(super) deliveries: Vec<Delivery>,
    /// The project label of the target namespace; `None` leaves it alone.
    pub(super) label: Option<String>,
    /// The pools that there are.
    pub(super) pools: Vec<String>,
}

impl std::fmt::Debug for Desired {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Desired").field("map", &self.map).field("label", &self.label).finish_non_exhaustive()
    }
}

impl Desired {
    /// A hash of all inputs: as long as it stays, a settled cluster needs no look.
    pub(super) fn fingerprint(&self, cluster: &ClusterView, way: &Way) -> String {
        let mut hasher = Hasher::default();
        let balancer = format!("{:?}", cluster.body.balancer);
        hasher.add(&cluster.uid).add(balancer).add(&way.version).add(self.good.config.digest());
        hasher.add(self.good.ca.as_deref().unwrap_or_default()).add(format!("{:?}", self.map));
        hasher.add(self.label.as_deref().unwrap_or_default()).add(self.deliveries.len().to_string());
        for delivery in &self.deliveries {
            hasher
                .add(&delivery.project)
                .add(&delivery.cluster)
                .add(&delivery.pool)
                .add(delivery.token.expose());
        }
        hasher.end()
    }
}

impl Context {
    /// The kubeconfig of a cluster.
    pub(super) async fn way(
        &self,
        cluster: &ClusterView,
        provisioning: Option<&ProvisioningView>,
    ) -> Result<Way, Problem> {
        let candidates = kubeconfig::candidates(cluster, provisioning);
        for key in &candidates {
            match self.secret(key).await {
                Lookup::Present(found) => {
                    let version = format!("{key}@{}", crate::view::text(&found, "/metadata/resourceVersion"));
                    return Ok(Way { version, bytes: kubeconfig::value(key, &found)? });
                }
                Lookup::Absent => {}
                Lookup::Unknown(why) => {
                    return Err(Problem::new(
                        WRITE_FAILED,
                        Again::Backoff,
                        format!("the Secret {key} cannot be read: {why}"),
                    ));
                }
            }
        }
        Err(kubeconfig::missing(&candidates))
    }

    async fn secret(&self, key: &ObjectKey) -> Lookup<Value> {
        self.local.get(&format!("/api/v1/namespaces/{}/secrets", key.namespace), &key.name).await
    }

    /// The provisioning Cluster of a management Cluster.
    pub(super) fn provisioning(&self, cluster: &ClusterView) -> Option<ProvisioningView> {
        chain::provisioning(cluster, &self.stores.provisioning.all()).cloned()
    }

    /// Follows the chain from a guest to its project. `memory` saves the call to Harvester.
    async fn chain(
        &self,
        cluster: &ClusterView,
        provisioning: Option<&ProvisioningView>,
        memory: &Memory,
        problems: &mut Vec<Problem>,
    ) -> Chain {
        match self.follow(cluster, provisioning, memory).await {
            Ok(None) => Chain::Elsewhere,
            Ok(Some((resolved, ambiguous))) => {
                if ambiguous {
                    let text = format!(
                        "several clusters have a project {}; the one of {} is used",
                        resolved.project.name(),
                        resolved.project.key.namespace
                    );
                    problems.push(Problem::new(DUPLICATE_PROJECT, Again::Never, text));
                }
                Chain::Resolved(resolved)
            }
            Err(problem) => {
                problems.push(problem);
                Chain::Failed
            }
        }
    }

    async fn follow(
        &self,
        cluster: &ClusterView,
        provisioning: Option<&ProvisioningView>,
        memory: &Memory,
    ) -> Result<Option<(Resolved, bool)>, Problem> {
        let Some(provisioning) = provisioning else {
            return Err(chain::not_yet(format!("there is no provisioning Cluster of {}", cluster.name())));
        };
        let Place::Harvester(guest) = chain::place(provisioning)? else { return Ok(None) };
        let (key, config) = self.harvester_config(&guest.configs).await?;
        let instances = chain::virtual_instances(&key, &config)?;
        let credential = match self.secret(&guest.credential).await {
            Lookup::Present(found) => found,
            Lookup::Absent => {
                return Err(chain::not_yet(format!("there is no credential {}", guest.credential)));
            }
            Lookup::Unknown(why) => {
                return Err(chain::not_yet(format!(
                    "the credential {} cannot be read: {why}",
                    guest.credential
                )));
            }
        };
        let id = chain::harvester_id(&guest.credential, &credential)?;
        let harvester = self.stores.cluster(&id);
        let harvester = harvester.ok_or_else(|| {
            chain::not_yet(format!("there is no cluster {id}, which the credential is for"))
        })?;
        let way = self
            .way(&harvester, self.provisioning(&harvester).as_ref())
            .await
            .map_err(|problem| chain::not_yet(problem.message))?;
        let place = format!("{}/{}", way.version, instances.namespace);
        let annotation = match memory.harvester(&place) {
            Some(known) => Some(known),
            None => self.read_project(&way, &instances.namespace, memory, &place).await?,
        };
        let meant = chain::project_ref(&instances.namespace, annotation.as_deref())?;
        let projects = self.stores.projects.all();
        let (found, ambiguous) = chain::project(&meant, &projects)?;
        let resolved = Resolved { project: Arc::new(found.clone()), harvester, networks: instances.networks };
        Ok(Some((resolved, ambiguous)))
    }

    async fn harvester_config(&self, configs: &[ObjectKey]) -> Result<(ObjectKey, Value), Problem> {
        for key in configs {
            let path = format!(
                "/apis/rke-machine-config.cattle.io/v1/namespaces/{}/harvesterconfigs",
                key.namespace
            );
            match self.local.get(&path, &key.name).await {
                Lookup::Present(found) => return Ok((key.clone(), found)),
                Lookup::Absent => {}
                Lookup::Unknown(why) => {
                    return Err(chain::not_yet(format!("the HarvesterConfig {key} cannot be read: {why}")));
                }
            }
        }
        let names: Vec<_> = configs.iter().map(ToString::to_string).collect();
        Err(chain::not_yet(format!("there is no HarvesterConfig {}", names.join(" or "))))
    }

    /// Asks Harvester which project a namespace is in.
    async fn read_project(
        &self,
        way: &Way,
        namespace: &str,
        memory: &Memory,
        place: &str,
    ) -> Result<Option<String>, Problem> {
        let client = self
            .dial
            .dial(&way.bytes)
            .await
            .map_err(|why| chain::not_yet(format!("the kubeconfig of Harvester: {}", why.message())))?;
        let api = self.downstream("harvester", client);
        match api.get("/api/v1/namespaces", namespace).await {
            Lookup::Present(found) => {
                let annotation = chain::project_annotation(&found);
                // What is missing is asked for again.
                if let Some(found) = &annotation {
                    memory.keep_harvester(place, found);
                }
                Ok(annotation)
            }
            Lookup::Absent => Err(chain::not_yet(format!("there is no namespace {namespace} on Harvester"))),
            Lookup::Unknown(why) => Err(chain::not_yet(format!("Harvester does not answer: {why}"))),
        }
    }

    /// What a cluster is to be like. Secrets here are made on the way. Whatever stands in the way of a part is added to
    /// `problems`, and that part is left alone.
    pub(super) async fn desired(
        &self,
        cluster: &ClusterView,
        provisioning: Option<&ProvisioningView>,
        good: &Good,
        memory: &Memory,
        problems: &mut Vec<Problem>,
    ) -> Desired {
        let chain = self.chain(cluster, provisioning, memory, problems).await;
        let mut desired =
            Desired { good: good.clone(), map: None, deliveries: Vec::new(), label: None, pools: Vec::new() };
        let Some(floating) = self.stores.floating() else {
            problems.push(Problem::new(
                KINDS_MISSING,
                Again::Soon,
                "the floating-IP kinds are not served here, or not listed yet",
            ));
            return desired;
        };
        let all = floating.pools.all();
        desired.pools = all.iter().map(|pool| pool.name().to_owned()).collect();
        let quotas = self.quota_projects(cluster, &all);
        let mut targets = Vec::new();
        if let Chain::Resolved(resolved) = &chain {
            targets.push(&*resolved.harvester);
            let pool = pools::choose(&resolved.harvester, &resolved.networks, &all);
            self.deliver(&mut desired, cluster, &resolved.project, pool, problems).await;
            desired.label = Some(resolved.project.name().to_owned());
        }
        if matches!(chain, Chain::Elsewhere) || !quotas.is_empty() {
            targets.push(cluster);
        }
        for (project, pool) in &quotas {
            self.deliver(&mut desired, cluster, project, pool.clone(), problems).await;
        }
        if !targets.is_empty() {
            // As long as the chain is not known, its pools are not known to be gone.
            let is_partial = matches!(chain, Chain::Failed);
            desired.map = Some(map::Wanted { entries: pools::interfaces(&targets, &all), is_partial });
        }
        desired
    }

    async fn deliver(
        &self,
        desired: &mut Desired,
        cluster: &ClusterView,
        project: &ProjectView,
        pool: String,
        problems: &mut Vec<Problem>,
    ) {
        if desired.deliveries.iter().any(|delivery| delivery.project == project.name()) {
            return;
        }
        match self.token(project).await {
            Ok(token) => desired.deliveries.push(Delivery {
                project: project.name().to_owned(),
                cluster: cluster.name().to_owned(),
                api_url: desired.good.config.api_url.clone(),
                token,
                pool,
            }),
            Err(problem) => problems.push(problem),
        }
    }

    /// The projects of a cluster that have a quota, and their default pool.
    fn quota_projects(&self, cluster: &ClusterView, all: &[Arc<PoolView>]) -> Vec<(ProjectView, String)> {
        let Some(floating) = self.stores.floating() else { return Vec::new() };
        let Some((pool, _)) = pools::default(cluster, all) else { return Vec::new() };
        let projects = self.stores.projects.all();
        let quotas = floating.quotas.all();
        let of_this = |name: &str| (name == cluster.name()).then_some(cluster);
        let asked = quotas.iter().filter_map(|quota| match quota::asks(quota, &projects, of_this) {
            Asks::Cluster(project, _) => Some((project.clone(), pool.name().to_owned())),
            _ => None,
        });
        asked.collect()
    }

    /// The token of a project, from its Secret here, which is made if there is none. Only a clear answer that there is none
    /// leads to a new token.
    pub(super) async fn token(&self, project: &ProjectView) -> Result<Token, Problem> {
        let (namespace, name) = (&project.key.namespace, project_secret(project.name()));
        let path = format!("/api/v1/namespaces/{namespace}/secrets");
        let failed = |why: &cloudberth_core::Error| {
            Problem::new(
                WRITE_FAILED,
                again(why).max(Again::Backoff),
                format!("the Secret {namespace}/{name} here: {}", why.message()),
            )
        };
        let mut lost = None;
        // Another worker may be quicker; then its token counts.
        for _ in 0..4 {
            let existing = self.local.get(&path, &name).await.known().map_err(|why| failed(&why))?;
            let planned = secret::local(existing.as_ref(), namespace, project.name(), || (self.tokens)())
                .map_err(|why| failed(&why))?;
            let Some(local) = planned else {
                let text = format!("the Secret {namespace}/{name} has no token, and is not to be touched");
                return Err(Problem::new(WRITE_FAILED, Again::Slow, text));
            };
            let verb = if existing.is_some() { "correct" } else { "create" };
            match self
                .local
                .apply(
                    &format!("{verb} the Secret {namespace}/{name} in the management cluster"),
                    &path,
                    &local.change,
                )
                .await
            {
                Ok(_) => return Ok(local.token),
                Err(why) if why.category() == Category::Conflict => lost = Some(why),
                // Its answer may be lost: the next look says what is there.
                Err(why) => return Err(failed(&why)),
            }
        }
        Err(lost.map_or_else(
            || Problem::new(WRITE_FAILED, Again::Soon, "a Secret changed too often"),
            |why| failed(&why),
        ))
    }

    /// The API of a cluster, through a client that is kept as long as the kubeconfig stays.
    pub(super) async fn api_of(&self, name: &str, way: &Way, memory: &Memory) -> Result<super::Api, Problem> {
        if let Some(client) = memory.client(&way.version) {
            return Ok(self.downstream(name, client));
        }
        let client = self.dial.dial(&way.bytes).await.map_err(|why| match why.category() {
            Category::UserInput => {
                let (key, _) = way.version.split_once('@').unwrap_or((&way.version, ""));
                Problem::new(
                    NO_KUBECONFIG,
                    Again::Soon,
                    format!("the kubeconfig in the Secret {key}: {}", why.message()),
                )
            }
            _ => unreachable(&why),
        })?;
        memory.keep_client(&way.version, &client);
        Ok(self.downstream(name, client))
    }
}
