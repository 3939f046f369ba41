//! Release Secrets and Deployments in an API.

use base64::{Engine as _, engine::general_purpose::STANDARD};
use cloudberth_core::ObjectKey;
use cloudberth_runtime::api_error::translate;
use kube::{
    Client,
    api::{DeleteParams, ListParams, Patch, PatchParams, PostParams, Request},
};
use serde_json::{Value, json};

use super::record::{Planted, record};
use crate::helm::{ChartRef, HelmError, HelmFailure, ReleaseRecord, ReleaseStatus, read_release};

/// One revision, and its Secret.
#[derive(Clone)]
pub(super) struct Revision {
    pub(super) number: u32,
    pub(super) status: ReleaseStatus,
    pub(super) planted: Planted,
    resource_version: String,
}

/// The records and objects of one release.
pub(super) struct Store {
    client: Client,
    release: String,
    namespace: String,
    deployment: String,
}

impl Store {
    pub(super) fn new(client: Client, chart: &ChartRef, deployment: String) -> Self {
        let (release, namespace) = (chart.release.clone(), chart.namespace.clone());
        Self { client, release, namespace, deployment }
    }

    /// All revisions, from the oldest to the newest.
    pub(super) async fn list(&self) -> Result<Vec<Revision>, HelmError> {
        let params = ListParams::default().labels(&format!("owner=helm,name={}", self.release));
        let list = self.send(Request::new(self.secrets()).list(&params)).await?;
        let items = list.get("items").and_then(Value::as_array).cloned().unwrap_or_default();
        let mut revisions = items.iter().map(revision).collect::<Result<Vec<_>, _>>()?;
        revisions.sort_by_key(|revision| revision.number);
        Ok(revisions)
    }

    pub(super) async fn create(
        &self,
        number: u32,
        planted: &Planted,
        status: ReleaseStatus,
    ) -> Result<Revision, HelmError> {
        let body = record(&self.namespace, &self.release, number, status, planted);
        let made =
            self.send(Request::new(self.secrets()).create(&PostParams::default(), bytes(&body))).await?;
        Ok(Revision { number, status, planted: planted.clone(), resource_version: version_of(&made) })
    }

    pub(super) async fn update(
        &self,
        revision: &mut Revision,
        status: ReleaseStatus,
    ) -> Result<(), HelmError> {
        let mut body = record(&self.namespace, &self.release, revision.number, status, &revision.planted);
        if let Some(metadata) = body.get_mut("metadata").and_then(Value::as_object_mut) {
            metadata.insert("resourceVersion".to_owned(), json!(revision.resource_version));
        }
        let name = self.name(revision.number);
        let request = Request::new(self.secrets()).replace(&name, &PostParams::default(), bytes(&body));
        revision.resource_version = version_of(&self.send(request).await?);
        revision.status = status;
        Ok(())
    }

    pub(super) async fn delete(&self, revision: &Revision) -> Result<(), HelmError> {
        let name = self.name(revision.number);
        self.send(Request::new(self.secrets()).delete(&name, &DeleteParams::default())).await.map(|_| ())
    }

    /// Creates the Deployment, or changes it and keeps what others wrote to it.
    pub(super) async fn apply(&self, version: &str) -> Result<(), HelmError> {
        let (name, release) = (&self.deployment, &self.release);
        let metadata = json!({
            "labels": {"app.kubernetes.io/managed-by": "Helm", "helm.sh/chart": format!("{release}-{version}")},
            "annotations": {"meta.helm.sh/release-name": release, "meta.helm.sh/release-namespace": self.namespace},
        });
        let patch = Patch::Merge(json!({"metadata": metadata}));
        let patched =
            self.send(Request::new(self.deployments()).patch(name, &PatchParams::default(), &patch)).await;
        if !matches!(&patched, Err(why) if why.failure == HelmFailure::Other && why.message == GONE) {
            return patched.map(|_| ());
        }
        let labels = json!({"app": release});
        let container = json!({"name": "main", "image": "registry.example/image"});
        let mut body = json!({
            "apiVersion": "apps/v1", "kind": "Deployment", "metadata": metadata,
            "spec": {
                "selector": {"matchLabels": labels},
                "template": {"metadata": {"labels": labels}, "spec": {"containers": [container]}},
            },
        });
        if let Some(metadata) = body.get_mut("metadata").and_then(Value::as_object_mut) {
            metadata.insert("name".to_owned(), json!(name));
        }
        let request = Request::new(self.deployments()).create(&PostParams::default(), bytes(&body));
        self.send(request).await.map(|_| ())
    }

    /// Deletes the Deployment.
    pub(super) async fn remove(&self) -> Result<(), HelmError> {
        let request = Request::new(self.deployments()).delete(&self.deployment, &DeleteParams::default());
        match self.send(request).await {
            Err(why) if why.message == GONE => Ok(()),
            answer => answer.map(|_| ()),
        }
    }

    fn secrets(&self) -> String {
        format!("/api/v1/namespaces/{}/secrets", self.namespace)
    }

    fn deployments(&self) -> String {
        format!("/apis/apps/v1/namespaces/{}/deployments", self.namespace)
    }

    fn name(&self, revision: u32) -> String {
        format!("sh.helm.release.v1.{}.v{revision}", self.release)
    }

    async fn send(
        &self,
        request: Result<http::Request<Vec<u8>>, kube::core::request::Error>,
    ) -> Result<Value, HelmError> {
        use cloudberth_core::Category;
        let request = request.map_err(|why| HelmError::new(HelmFailure::Other, why.to_string()))?;
        self.client.request::<Value>(request).await.map_err(|why| {
            let why = translate(&why);
            match why.category() {
                Category::NotFound => HelmError::new(HelmFailure::Other, GONE),
                Category::Unauthorised => HelmError::new(HelmFailure::Unauthorised, why.message()),
                Category::Temporary | Category::Throttled { .. } => {
                    HelmError::new(HelmFailure::Unreachable, why.message())
                }
                _ => HelmError::new(HelmFailure::Other, why.message()),
            }
        })
    }
}

const GONE: &str = "there is no such object";

fn bytes(body: &Value) -> Vec<u8> {
    body.to_string().into_bytes()
}

fn version_of(secret: &Value) -> String {
    text(secret, "/metadata/resourceVersion")
}

fn text(object: &Value, pointer: &str) -> String {
    object.pointer(pointer).and_then(Value::as_str).unwrap_or_default().to_owned()
}

/// A revision as its own newest one.
fn revision(secret: &Value) -> Result<Revision, HelmError> {
    let bad = |why: String| HelmError::new(HelmFailure::Other, why);
    let data = STANDARD.decode(text(secret, "/data/release")).map_err(|why| bad(why.to_string()))?;
    let read = ReleaseRecord {
        key: ObjectKey::new(&text(secret, "/metadata/namespace"), &text(secret, "/metadata/name")),
        uid: text(secret, "/metadata/uid"),
        resource_version: version_of(secret),
        created: None,
        release: text(secret, "/metadata/labels/name"),
        revision: text(secret, "/metadata/labels/version"),
        status: text(secret, "/metadata/labels/status"),
        modified_at: String::new(),
        data,
    };
    let state = read_release(&[read]).map_err(|why| bad(why.to_string()))?;
    let state = state.ok_or_else(|| bad("no release".to_owned()))?;
    let description = state.values_hash.map(|hash| super::values::description(&hash)).unwrap_or_default();
    Ok(Revision {
        number: state.revision,
        status: state.status,
        planted: Planted {
            version: state.chart_version,
            config: state.config,
            description,
            updated: state.updated,
            deleted: None,
        },
        resource_version: state.resource_version,
    })
}
