//! The one way to write to Kubernetes: every write asks the leader's claim when it is sent (law 9), ends by its
//! deadline (law 12), and its answer is known to everybody before the watch tells of it.

use std::{
    fmt,
    sync::{Arc, OnceLock},
    time::Duration,
};

use cloudberth_core::{
    Call, Category, Clock, Error, NodeView, ObjectKey, Random, Result, ServiceView,
    call::Gate,
    decide::node::patch::{NodePatch, Subresource},
    lb::ServerVersion,
    lookup::Lookup,
    rate::Backoff,
    time::Tick,
};
use kube::{
    Client,
    api::{DeleteParams, GetParams, Patch, PatchParams, PostParams, Preconditions, Request},
};
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::{
    api_error::{is_over, translate},
    informer::Informer,
    metrics::QueueMetrics,
    object::{Object, Watched},
    scope::WatchScope,
};

const NODES: &str = "/api/v1/nodes";

/// How long the API server may take to say its version.
const VERSION_PATIENCE: Duration = Duration::from_secs(10);
/// How long we wait before we ask for it again.
const VERSION_BACKOFF: Backoff = Backoff { first: Duration::from_secs(2), longest: Duration::from_secs(300) };

/// A cluster, as the controllers see it.
#[derive(Clone)]
pub struct Cluster {
    client: Client,
    clock: Arc<dyn Clock>,
    gate: Arc<dyn Gate>,
    version: Arc<OnceLock<ServerVersion>>,
    /// All nodes, kept current by a watch.
    pub nodes: Arc<Informer<NodeView>>,
    /// All Services, kept current by a watch.
    pub services: Arc<Informer<ServiceView>>,
}

impl Cluster {
    /// A cluster that is written to as far as `gate` allows.
    pub fn new(client: Client, clock: Arc<dyn Clock>, gate: Arc<dyn Gate>) -> Self {
        let nodes = Informer::new(WatchScope::nodes(), Arc::clone(&clock));
        let services = Informer::new(WatchScope::services(), Arc::clone(&clock));
        Self { client, clock, gate, version: Arc::default(), nodes, services }
    }

    /// Counts panics of listeners in the metrics.
    #[must_use]
    pub fn metered(self, metrics: &QueueMetrics) -> Self {
        self.nodes.count_panics(metrics);
        self.services.count_panics(metrics);
        self
    }

    /// The same cluster with the same stores, written to as far as another gate allows.
    #[must_use]
    pub fn behind(&self, gate: Arc<dyn Gate>) -> Self {
        Self { gate, ..self.clone() }
    }

    /// The client, for reads only.
    pub const fn client(&self) -> &Client {
        &self.client
    }

    /// The clock by which claims and deadlines are counted.
    pub fn clock(&self) -> &Arc<dyn Clock> {
        &self.clock
    }

    /// A call that may take as long as `patience`.
    pub fn call(&self, patience: Duration) -> Call {
        Call::new(self.clock.now() + patience, Arc::clone(&self.gate))
    }

    /// The version of the API server, if it was asked for and answered.
    pub fn version(&self) -> Option<ServerVersion> {
        self.version.get().copied()
    }

    /// Asks the API server for its version, once, and remembers the answer.
    pub async fn ask_version(&self) -> Result<()> {
        let request = http::Request::get("/version").body(Vec::new());
        let request = request.map_err(|why| Error::permanent(why.to_string()))?;
        let said = self.send::<Value>(self.clock.now() + VERSION_PATIENCE, request).await?;
        let number = |key: &str| said.get(key).and_then(Value::as_str).unwrap_or_default();
        let (major, minor) = (number("major"), number("minor"));
        if let Some(version) = ServerVersion::read(major, minor) {
            self.version.get_or_init(|| version);
        } else {
            tracing::warn!("Kubernetes API version unreadable: {major:?}.{minor:?}");
        }
        Ok(())
    }

    /// Asks for the version until there is an answer. Nothing has to wait for it.
    pub async fn learn_version(&self, random: &Random) {
        for failures in 1.. {
            let Err(why) = self.ask_version().await else { return };
            tracing::info!(%why, "Kubernetes API version unknown; assuming a new one until it answers");
            tokio::time::sleep(random.jitter(VERSION_BACKOFF.after(failures), 0.5)).await;
        }
    }

    /// Reads a node from the API server, not from the store.
    pub async fn read_node(&self, call: &Call, name: &str) -> Lookup<NodeView> {
        let request = Request::new(NODES).get(name, &GetParams::default());
        let answer = async {
            let until = call.read_until(self.clock.now())?;
            self.send::<Object<NodeView>>(until, request.map_err(|why| bad_request(&why))?).await?.view
        };
        match answer.await {
            Ok(node) => Lookup::Present(node),
            Err(why) if why.category() == Category::NotFound => Lookup::Absent,
            Err(why) => Lookup::Unknown(why),
        }
    }

    /// Patches a node or its status and returns the new version. If another node has its name now, nothing is written and
    /// the error is `NotFound`.
    pub async fn patch_node(&self, call: &Call, name: &str, patch: &NodePatch) -> Result<Arc<NodeView>> {
        let request = Request::new(NODES);
        let (params, body) = (PatchParams::default(), Patch::Strategic(patch.body()));
        let request = match patch.subresource() {
            Subresource::Main => request.patch(name, &params, &body),
            Subresource::Status => request.patch_subresource("status", name, &params, &body),
        };
        self.write(call, request, &self.nodes, patch.uid()).await
    }

    /// Deletes a node as it was just read. If it changed since, or another node has its name now, nothing is deleted and
    /// the error is a conflict. A node that is gone is a success.
    pub async fn delete_node(&self, call: &Call, node: &NodeView) -> Result<()> {
        let preconditions = Preconditions {
            uid: Some(node.uid.clone()),
            resource_version: Some(node.resource_version.clone()),
        };
        let params = DeleteParams { preconditions: Some(preconditions), ..DeleteParams::default() };
        let request = Request::new(NODES).delete(&node.name, &params).map_err(|why| bad_request(&why))?;
        match self.change::<Value>(call, request).await {
            Err(why) if why.category() == Category::NotFound => Ok(()),
            answer => answer.map(|_| ()),
        }
    }

    /// Patches a Service through its status subresource, which accepts finalizers and annotations too, and returns the new
    /// version. If another Service has its name now, nothing is written and the error is `NotFound`.
    pub async fn patch_service(
        &self,
        call: &Call,
        key: &ObjectKey,
        body: &Value,
    ) -> Result<Arc<ServiceView>> {
        let path = format!("/api/v1/namespaces/{}/services", key.namespace);
        let uid = body.pointer("/metadata/uid").and_then(Value::as_str).unwrap_or_default().to_owned();
        let (params, body) = (PatchParams::default(), Patch::Strategic(body));
        let request = Request::new(path).patch_subresource("status", &key.name, &params, &body);
        self.write(call, request, &self.services, &uid).await
    }

    /// Creates an object that is not watched: an event.
    pub async fn post(&self, call: &Call, path: &str, body: &Value) -> Result<Value> {
        let bytes = serde_json::to_vec(body).map_err(|why| Error::permanent(why.to_string()))?;
        let request =
            Request::new(path).create(&PostParams::default(), bytes).map_err(|why| bad_request(&why))?;
        self.change(call, request).await
    }

    /// Merges `body` into an object that is not watched.
    pub async fn merge(&self, call: &Call, path: &str, name: &str, body: &Value) -> Result<Value> {
        let request = Request::new(path).patch(name, &PatchParams::default(), &Patch::Merge(body));
        self.change(call, request.map_err(|why| bad_request(&why))?).await
    }

    async fn write<V: Watched>(
        &self,
        call: &Call,
        request: std::result::Result<http::Request<Vec<u8>>, kube::core::request::Error>,
        known: &Informer<V>,
        uid: &str,
    ) -> Result<Arc<V>> {
        if uid.is_empty() {
            return Err(Error::permanent(
                "a write that does not say by its UID which object it is for is not sent",
            ));
        }
        let request = request.map_err(|why| bad_request(&why))?;
        let view = self.change::<Object<V>>(call, request).await?.view?;
        // The API server compares the UIDs. Should it not, at least nothing is decided from its answer.
        if view.uid() != uid {
            return Err(another());
        }
        known.wrote(view.clone());
        Ok(Arc::new(view))
    }

    /// Sends a write; all of them go through here. The claim is checked now, and again by a client that holds the request
    /// back before it leaves.
    async fn change<T: DeserializeOwned>(
        &self,
        call: &Call,
        mut request: http::Request<Vec<u8>>,
    ) -> Result<T> {
        let write = call.write(self.clock.now())?;
        request.extensions_mut().insert(write.leave(Arc::clone(&self.clock)));
        let left = write.until().since(self.clock.now());
        let Ok(answer) = tokio::time::timeout(left, self.client.request::<T>(request)).await else {
            return Err(too_slow());
        };
        if answer.as_ref().err().is_none_or(is_over) {
            write.answered();
        }
        answer.map_err(|why| translate(&why))
    }

    async fn send<T: DeserializeOwned>(&self, until: Tick, request: http::Request<Vec<u8>>) -> Result<T> {
        let left = until.since(self.clock.now());
        match tokio::time::timeout(left, self.client.request::<T>(request)).await {
            Ok(answer) => answer.map_err(|why| translate(&why)),
            Err(_) => Err(too_slow()),
        }
    }
}

fn another() -> Error {
    Error::new(Category::NotFound, "the object is gone; another of its name has taken its place")
}

fn too_slow() -> Error {
    Error::temporary("the Kubernetes API did not answer in time")
}

/// A request that cannot be built, because of an invalid name.
fn bad_request(why: &kube::core::request::Error) -> Error {
    Error::permanent(why.to_string())
}

impl fmt::Debug for Cluster {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Cluster")
            .field("nodes", &self.nodes)
            .field("services", &self.services)
            .finish_non_exhaustive()
    }
}
