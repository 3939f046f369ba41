//! The nodes and Services of a cluster: their stores, and the writes to them, whose answers are known to everybody before
//! the watch delivers them.

use std::{
    fmt,
    sync::{Arc, OnceLock},
    time::Duration,
};

use cloudberth_core::{
    Call, Clock, Error, NodeView, ObjectKey, Random, Result, ServiceView,
    call::Gate,
    decide::node::patch::{NodePatch, Subresource},
    lb::ServerVersion,
    lookup::Lookup,
    rate::Backoff,
    view::EndpointSliceView,
};
use kube::{
    Client,
    api::{Patch, PatchParams, Request},
};
use serde_json::Value;

use crate::{informer::Informer, metrics::QueueMetrics, scope::WatchScope, writer::Writer};

const NODES: &str = "/api/v1/nodes";

/// How long the API server may take to say its version.
const VERSION_PATIENCE: Duration = Duration::from_secs(10);
/// How long we wait before we ask for it again.
const VERSION_BACKOFF: Backoff = Backoff { first: Duration::from_secs(2), longest: Duration::from_secs(300) };

/// A cluster, as the controllers see it.
#[derive(Clone)]
pub struct Cluster {
    writer: Writer,
    version: Arc<OnceLock<ServerVersion>>,
    /// All nodes, kept current by a watch.
    pub nodes: Arc<Informer<NodeView>>,
    /// All Services, kept current by a watch.
    pub services: Arc<Informer<ServiceView>>,
    /// Where the pods of Services are ready, kept current by a watch if a cloud needs it.
    pub endpoint_slices: Option<Arc<Informer<EndpointSliceView>>>,
}

impl Cluster {
    /// A cluster that is written to as far as `gate` allows.
    pub fn new(client: Client, clock: Arc<dyn Clock>, gate: Arc<dyn Gate>) -> Self {
        let nodes = Informer::new(WatchScope::nodes(), Arc::clone(&clock));
        let services = Informer::new(WatchScope::services(), Arc::clone(&clock));
        let writer = Writer::new(client, clock, gate);
        Self { writer, version: Arc::default(), nodes, services, endpoint_slices: None }
    }

    /// Watches the `EndpointSlices` too, if they are `needed`.
    #[must_use]
    pub fn with_endpoints(self, needed: bool) -> Self {
        let slices = || Informer::new(WatchScope::endpoint_slices(), Arc::clone(self.clock()));
        let endpoint_slices = needed.then(slices);
        Self { endpoint_slices, ..self }
    }

    /// Keeps the stores current until it is dropped.
    pub async fn watch(&self, random: &Arc<Random>) {
        let slices = async {
            match &self.endpoint_slices {
                Some(slices) => slices.run(self.client().clone(), Arc::clone(random)).await,
                None => std::future::pending().await,
            }
        };
        let nodes = self.nodes.run(self.client().clone(), Arc::clone(random));
        let services = self.services.run(self.client().clone(), Arc::clone(random));
        futures_util::future::join3(nodes, services, slices).await;
    }

    /// Waits until every store is as new as the API server can make it.
    pub async fn current(&self) {
        let slices = async {
            if let Some(slices) = &self.endpoint_slices {
                slices.current().await;
            }
        };
        futures_util::future::join3(self.nodes.current(), self.services.current(), slices).await;
    }

    /// Each kind that is watched, and whether one listing of it has been complete.
    pub fn synced(&self) -> Vec<(&'static str, bool)> {
        let slices = self.endpoint_slices.iter().map(|slices| ("EndpointSlices", slices.is_synced()));
        let others = [("nodes", self.nodes.is_synced()), ("Services", self.services.is_synced())];
        others.into_iter().chain(slices).collect()
    }

    /// Waits until one listing of every kind that is watched has been complete.
    pub async fn until_synced(&self) {
        self.nodes.until_synced().await;
        self.services.until_synced().await;
        if let Some(slices) = &self.endpoint_slices {
            slices.until_synced().await;
        }
    }

    /// Counts panics of listeners in the metrics.
    #[must_use]
    pub fn metered(self, metrics: &QueueMetrics) -> Self {
        self.nodes.count_panics(metrics);
        self.services.count_panics(metrics);
        self.endpoint_slices.iter().for_each(|slices| slices.count_panics(metrics));
        self
    }

    /// The same cluster with the same stores, written to as far as another gate allows.
    #[must_use]
    pub fn behind(&self, gate: Arc<dyn Gate>) -> Self {
        Self { writer: self.writer.behind(gate), ..self.clone() }
    }

    /// What every write goes through, to be used for other kinds too.
    pub const fn writer(&self) -> &Writer {
        &self.writer
    }

    /// The client, for reads only.
    pub const fn client(&self) -> &Client {
        self.writer.client()
    }

    /// The clock by which claims and deadlines are counted.
    pub fn clock(&self) -> &Arc<dyn Clock> {
        self.writer.clock()
    }

    /// A call that may take as long as `patience`.
    pub fn call(&self, patience: Duration) -> Call {
        self.writer.call(patience)
    }

    /// The version of the API server, if it was asked for and answered.
    pub fn version(&self) -> Option<ServerVersion> {
        self.version.get().copied()
    }

    /// Asks the API server for its version, once, and remembers the answer.
    pub async fn ask_version(&self) -> Result<()> {
        let request = http::Request::get("/version").body(Vec::new());
        let request = request.map_err(|why| Error::permanent(why.to_string()))?;
        let said = self.writer.send::<Value>(self.clock().now() + VERSION_PATIENCE, request).await?;
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
        self.writer.read(call, NODES, name).await
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
        self.writer.write(call, request, &self.nodes, patch.uid()).await
    }

    /// Deletes a node as it was just read. If it changed since, or another node has its name now, nothing is deleted and
    /// the error is a conflict. A node that is gone is a success.
    pub async fn delete_node(&self, call: &Call, node: &NodeView) -> Result<()> {
        self.writer.delete(call, NODES, &node.name, node).await
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
        self.writer.write(call, request, &self.services, &uid).await
    }
}

impl fmt::Debug for Cluster {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Cluster")
            .field("nodes", &self.nodes)
            .field("services", &self.services)
            .finish_non_exhaustive()
    }
}
