//! The programs under measurement, and the cluster and cloud that they run on.
//!
//! ```text
//!   this process, with the simulated cloud ◄── cloudberth controller-manager ──► cloudberth sim kube
//! ```
//!
//! The cluster is a process of its own, so that it is not counted with the manager.

pub(crate) mod build;
pub(crate) mod cloud;
pub(crate) mod running;

use std::path::{Path, PathBuf};

use cloudberth_e2e::ControlPlane;
use http::Request;
use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::{Client, Config};
use serde_json::Value;
use tokio::net::TcpListener;
use tokio::process::Command;
use tokio::signal::unix::{SignalKind, signal};

use crate::kube::objects::Kind;
use cloud::{Cloudscale, SimulatedCloud};
use running::Running;

/// Why a measurement failed.
#[derive(Debug, thiserror::Error)]
pub(crate) enum BenchError {
    #[error("{0} failed")]
    Build(String),
    #[error("{0}; it said last:\n{1}")]
    Program(String, String),
    #[error("stopped")]
    Stopped,
    #[error(transparent)]
    Io(#[from] std::io::Error),
    #[error("a real API server: {0}")]
    Real(String),
    #[error("the Kubernetes API: {0}")]
    Kube(#[from] kube::Error),
    #[error("the Kubernetes API's file: {0}")]
    Kubeconfig(#[from] kube::config::KubeconfigError),
    #[error("no request can be made: {0}")]
    Request(#[from] http::Error),
}

/// Measures until it is done or a signal arrives. All programs that it started have ended then.
pub(crate) async fn unless_stopped<R>(
    measure: impl Future<Output = Result<R, BenchError>>,
) -> Result<R, BenchError> {
    let (mut terminate, mut interrupt) = (signal(SignalKind::terminate())?, signal(SignalKind::interrupt())?);
    tokio::select! {
        biased;
        _ = terminate.recv() => Err(BenchError::Stopped),
        _ = interrupt.recv() => Err(BenchError::Stopped),
        report = measure => report,
    }
}

/// A cluster and a cloud that a manager can be started on.
pub(crate) struct Environment<C = Cloudscale> {
    place: PathBuf,
    kubeconfig: PathBuf,
    api: Api,
    /// A client of the cluster.
    pub(crate) client: Client,
    /// The cloud, on a port.
    pub(crate) cloud: C,
}

/// What serves the cluster.
enum Api {
    Embedded(Box<Running>),
    /// Ends when it is dropped.
    Real(#[expect(dead_code, reason = "kept alive")] Box<ControlPlane>),
}

impl<C: SimulatedCloud> Environment<C> {
    /// An empty cluster, served by `program`, beside a cloud. Files go to `place`.
    pub(crate) async fn open(place: &Path, program: &Path, cloud: C) -> Result<Self, BenchError> {
        let kubeconfig = place.join("kubeconfig");
        let mut sim = Command::new(program);
        sim.args(["sim", "kube", "--listen", "127.0.0.1:0", "--write-kubeconfig"]).arg(&kubeconfig);
        let mut api = Running::start(&mut sim, place.join("api.log"))?;
        api.until_written(&kubeconfig).await?;
        Self::with(place, kubeconfig, Api::Embedded(Box::new(api)), cloud).await
    }

    /// A real control plane, beside a cloud. Files go to `place`.
    pub(crate) async fn on(place: &Path, real: ControlPlane, cloud: C) -> Result<Self, BenchError> {
        Self::with(place, real.kubeconfig(), Api::Real(Box::new(real)), cloud).await
    }

    async fn with(place: &Path, kubeconfig: PathBuf, api: Api, cloud: C) -> Result<Self, BenchError> {
        let file = Kubeconfig::read_from(&kubeconfig)?;
        let config = Config::from_custom_kubeconfig(file, &KubeConfigOptions::default()).await?;
        let client = Client::try_from(config)?;
        Ok(Self { place: place.to_owned(), kubeconfig, api, client, cloud })
    }

    /// Starts a manager of this build; its log is called `name`.
    pub(crate) async fn manage(&self, program: &Path, name: &str) -> Result<Running, BenchError> {
        // A port that was free a moment ago.
        let port = TcpListener::bind("127.0.0.1:0").await?.local_addr()?.port();
        let mut command = Command::new(program);
        command.args(["controller-manager", "--bind-address=127.0.0.1"]);
        command.arg(format!("--cloud-provider={}", C::PROVIDER)).arg(format!("--secure-port={port}"));
        command.arg("--kubeconfig").arg(&self.kubeconfig).envs(self.cloud.variables());
        Running::start(&mut command, self.place.join(format!("{name}.log")))
    }

    pub(crate) async fn close(self) -> Result<(), BenchError> {
        match self.api {
            Api::Embedded(api) => api.stop().await,
            Api::Real(_) => Ok(()),
        }
    }

    pub(crate) async fn post(&self, kind: Kind, body: &Value) -> Result<(), BenchError> {
        let request = Request::post(kind.path()).header("content-type", "application/json");
        self.client.request::<Value>(request.body(body.to_string().into_bytes())?).await?;
        Ok(())
    }

    pub(crate) async fn get(&self, path: &str) -> Result<Value, BenchError> {
        Ok(self.client.request(Request::get(path).body(Vec::new())?).await?)
    }

    /// Whether the Service of this name has its address.
    pub(crate) async fn is_served(&self, service: &str) -> Result<bool, BenchError> {
        let service = self.get(&format!("{}/{service}", Kind::Service.path())).await?;
        Ok(service.pointer("/status/loadBalancer/ingress/0").is_some())
    }

    /// All nodes.
    pub(crate) async fn nodes(&self) -> Result<Vec<Value>, BenchError> {
        let mut list = self.get(Kind::Node.path()).await?;
        Ok(match list.get_mut("items").map(Value::take) {
            Some(Value::Array(nodes)) => nodes,
            _ => Vec::new(),
        })
    }
}

/// The taint of a node that waits for its cloud.
pub(crate) const UNINITIALISED: &str = "node.cloudprovider.kubernetes.io/uninitialized";

/// Whether a node is not initialised yet.
pub(crate) fn waits(node: &Value) -> bool {
    let taints = node.pointer("/spec/taints").and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
    taints.iter().any(|taint| taint.get("key").and_then(Value::as_str) == Some(UNINITIALISED))
}
