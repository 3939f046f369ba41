//! What a downstream cluster looks like.

use cloudberth_core::{Error, ObjectKey};
use serde_json::Value;

use super::{Api, api::again};
use crate::{
    config::{Chart, Config},
    helm::{ReleaseRecord, ReleaseState, read_release},
    names::{CA_SECRET, INTERFACE_MAP, PROJECT_NAME, READ_HASH},
    plan::{
        balancer::{Installed, Kind, Presence},
        data,
        restart::{self, Readable},
    },
    problem::{Again, Problem},
    reasons::{HELM_WAITING, UNREACHABLE, WRITE_FAILED},
    view::{entry, text},
};

/// What every project Secret's name begins with.
const PROJECT_SECRETS: &str = "rancher-fip-config-";

/// A part of a downstream cluster that can be looked at with one call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Part {
    /// The Secrets in the target namespace that are not Helm's.
    Secrets,
    /// The interface map.
    Map,
    /// The target namespace.
    Namespace,
    /// The Deployments in the target namespace.
    Deployments,
    /// The release of the load-balancer controller.
    Controller,
    /// The release of `PureLB`.
    PureLb,
    /// The release of `MetalLB`.
    MetalLb,
    /// The namespace of the virtual machines, on Harvester.
    Harvester,
}

/// The parts that are looked at in turn, the most precious first.
pub(super) const PARTS: [Part; 8] = [
    Part::Secrets,
    Part::Map,
    Part::Namespace,
    Part::Deployments,
    Part::Controller,
    Part::PureLb,
    Part::MetalLb,
    Part::Harvester,
];

/// What is known about a release.
pub(super) type Release = Result<Option<ReleaseState>, Problem>;

/// What a downstream cluster looks like. Every write of ours is put in, so that it stays true during a pass.
#[derive(Clone)]
pub(super) struct Observed {
    /// The target namespace.
    pub(super) namespace: Option<Value>,
    /// The Secrets in it that are not Helm's.
    pub(super) secrets: Vec<Value>,
    /// The interface map.
    pub(super) map: Option<Value>,
    /// The Deployments in it.
    pub(super) deployments: Vec<Value>,
    /// The load-balancer controller.
    pub(super) controller: Release,
    /// `PureLB`.
    pub(super) purelb: Release,
    /// `MetalLB`.
    pub(super) metallb: Release,
}

impl Observed {
    /// Looks at everything. The first call says whether the cluster answers at all.
    pub(super) async fn look(api: &Api, config: &Config) -> Result<Self, Problem> {
        let target = &config.controller.namespace;
        api.probe("/api/v1/namespaces/kube-system/pods").await.map_err(|why| unreachable(&why))?;
        let namespace = namespace(api, target).await?;
        let mut seen = Self {
            secrets: Vec::new(),
            map: None,
            deployments: Vec::new(),
            controller: Ok(None),
            purelb: Ok(None),
            metallb: Ok(None),
            namespace,
        };
        if seen.namespace.is_some() {
            seen.secrets = secrets(api, target).await?;
            seen.map = map(api, target).await?;
            seen.deployments = deployments(api, target).await?;
        }
        seen.controller = release(api, &config.controller).await;
        seen.purelb = release(api, &config.purelb).await;
        seen.metallb = release(api, &config.metallb).await;
        Ok(seen)
    }

    /// The Secret of this name.
    pub(super) fn secret(&self, name: &str) -> Option<&Value> {
        self.secrets.iter().find(|secret| text(secret, "/metadata/name") == name)
    }

    /// Puts in a Secret that was written.
    pub(super) fn put_secret(&mut self, secret: Value) {
        let name = text(&secret, "/metadata/name").to_owned();
        self.secrets.retain(|other| text(other, "/metadata/name") != name);
        self.secrets.push(secret);
    }

    /// The Deployment of the load-balancer controller.
    pub(super) fn deployment(&self, release: &str) -> Option<&Value> {
        restart::deployment(&self.deployments, release)
    }

    /// Puts in a Deployment that was written.
    pub(super) fn put_deployment(&mut self, deployment: Value) {
        let name = text(&deployment, "/metadata/name").to_owned();
        self.deployments.retain(|other| text(other, "/metadata/name") != name);
        self.deployments.push(deployment);
    }

    /// The hash of what a starting controller would read now.
    pub(super) fn read_hash(&self) -> String {
        let ours = |secret: &&Value| text(secret, "/metadata/name").starts_with(PROJECT_SECRETS);
        let secrets: Vec<_> = self.secrets.iter().filter(ours).collect();
        restart::hash(Readable {
            secrets: &secrets,
            ca: self.secret(CA_SECRET),
            map: self.map.as_ref(),
            label: self.label(),
        })
    }

    /// The project label of the target namespace.
    pub(super) fn label(&self) -> Option<&str> {
        self.namespace.as_ref().and_then(|namespace| entry(namespace, "labels", PROJECT_NAME))
    }

    /// Which balancers are installed.
    pub(super) fn installed(&self) -> Installed {
        let presence = |release: &Release| match release {
            Ok(Some(state)) if state.is_installed() => Presence::Present,
            Ok(_) => Presence::Absent,
            Err(_) => Presence::Unknown,
        };
        Installed { purelb: presence(&self.purelb), metallb: presence(&self.metallb) }
    }

    /// The release of a balancer.
    pub(super) const fn balancer(&self, kind: Kind) -> &Release {
        match kind {
            Kind::PureLb => &self.purelb,
            Kind::MetalLb => &self.metallb,
        }
    }

    /// What a part looks like, in short; nothing for a part of another cluster.
    pub(super) fn mark(&self, part: Part, release_name: &str) -> Option<String> {
        Some(match part {
            Part::Secrets => versions(&self.secrets),
            Part::Map => self.map.as_ref().map(version).unwrap_or_default(),
            Part::Namespace => {
                self.namespace.as_ref().map_or_else(String::new, |_| format!("{:?}", self.label()))
            }
            Part::Deployments => hash_on(restart::deployment(&self.deployments, release_name)),
            Part::Controller => release_mark(&self.controller),
            Part::PureLb => release_mark(&self.purelb),
            Part::MetalLb => release_mark(&self.metallb),
            Part::Harvester => return None,
        })
    }

    /// Looks at one part only; returns what it looks like, in short.
    pub(super) async fn look_at(part: Part, api: &Api, config: &Config) -> Result<Option<String>, Problem> {
        let target = &config.controller.namespace;
        Ok(Some(match part {
            Part::Secrets => versions(&secrets(api, target).await?),
            Part::Map => map(api, target).await?.as_ref().map(version).unwrap_or_default(),
            Part::Namespace => {
                let found = namespace(api, target).await?;
                let label = |found: &Value| entry(found, "labels", PROJECT_NAME).map(str::to_owned);
                found.map_or_else(String::new, |found| format!("{:?}", label(&found).as_deref()))
            }
            Part::Deployments => {
                hash_on(restart::deployment(&deployments(api, target).await?, &config.controller.name))
            }
            Part::Controller => release_mark(&release(api, &config.controller).await),
            Part::PureLb => release_mark(&release(api, &config.purelb).await),
            Part::MetalLb => release_mark(&release(api, &config.metallb).await),
            Part::Harvester => return Ok(None),
        }))
    }
}

/// Nothing of it is shown: it holds Secrets (law 10).
impl std::fmt::Debug for Observed {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Observed").finish_non_exhaustive()
    }
}

/// A cluster that did not answer, or refused us.
pub(super) fn unreachable(why: &Error) -> Problem {
    Problem::new(UNREACHABLE, Again::Unreachable, why.message())
}

/// A read that failed although the cluster answered before.
fn failed(what: &str, why: &Error) -> Problem {
    Problem::new(WRITE_FAILED, again(why).max(Again::Backoff), format!("{what}: {}", why.message()))
}

async fn namespace(api: &Api, name: &str) -> Result<Option<Value>, Problem> {
    api.get("/api/v1/namespaces", name)
        .await
        .known()
        .map_err(|why| failed("the target namespace cannot be read", &why))
}

async fn secrets(api: &Api, namespace: &str) -> Result<Vec<Value>, Problem> {
    let path = format!("/api/v1/namespaces/{namespace}/secrets");
    // Helm's records are of another type, and large.
    let listed = api.list(&path, &[("fieldSelector", "type=Opaque")]).await;
    listed.map_err(|why| failed("the Secrets cannot be listed", &why))
}

async fn map(api: &Api, namespace: &str) -> Result<Option<Value>, Problem> {
    let path = format!("/api/v1/namespaces/{namespace}/configmaps");
    api.get(&path, INTERFACE_MAP)
        .await
        .known()
        .map_err(|why| failed("the interface map cannot be read", &why))
}

/// The Deployments in the target namespace.
pub(super) async fn deployments(api: &Api, namespace: &str) -> Result<Vec<Value>, Problem> {
    let path = format!("/apis/apps/v1/namespaces/{namespace}/deployments");
    let listed = api.list(&path, &[]).await;
    listed.map_err(|why| failed("the Deployments cannot be listed", &why))
}

/// The release of a chart; none if there is no name to look for.
pub(super) async fn release(api: &Api, chart: &Chart) -> Release {
    if !chart.can_be_looked_up() {
        return Ok(None);
    }
    let path = format!("/api/v1/namespaces/{}/secrets", chart.namespace);
    let selector = format!("owner=helm,name={}", chart.name);
    let listed = api.list(&path, &[("labelSelector", &selector)]).await;
    let listed = listed.map_err(|why| failed(&format!("the release {} cannot be read", chart.name), &why))?;
    let records: Vec<_> = listed.iter().map(record).collect();
    read_release(&records).map_err(|why| Problem::new(HELM_WAITING, Again::Slow, why.to_string()))
}

fn record(secret: &Value) -> ReleaseRecord {
    let label = |key: &str| entry(secret, "labels", key).unwrap_or_default().to_owned();
    ReleaseRecord {
        key: ObjectKey::new(text(secret, "/metadata/namespace"), text(secret, "/metadata/name")),
        uid: text(secret, "/metadata/uid").to_owned(),
        resource_version: text(secret, "/metadata/resourceVersion").to_owned(),
        created: text(secret, "/metadata/creationTimestamp").parse().ok(),
        release: label("name"),
        revision: label("version"),
        status: label("status"),
        modified_at: label("modifiedAt"),
        data: data::bytes(secret, "release").unwrap_or_default(),
    }
}

fn version(object: &Value) -> String {
    text(object, "/metadata/resourceVersion").to_owned()
}

fn versions(objects: &[Value]) -> String {
    let mut all: Vec<_> = objects
        .iter()
        .map(|object| format!("{}@{}", text(object, "/metadata/name"), version(object)))
        .collect();
    all.sort_unstable();
    all.join(",")
}

fn hash_on(deployment: Option<&Value>) -> String {
    deployment.and_then(|found| entry(found, "annotations", READ_HASH)).unwrap_or_default().to_owned()
}

fn release_mark(release: &Release) -> String {
    match release {
        Ok(Some(state)) => format!("{}@{}", state.revision, state.resource_version),
        Ok(None) => String::new(),
        Err(problem) => problem.message.clone(),
    }
}
