//! The programs under measurement, and the cluster and cloud that they run on.
//!
//! ```text
//!   this process, with the simulated cloud ◄── cloudberth controller-manager ──► cloudberth sim kube
//! ```
//!
//! The cluster is a process of its own, so that it is not counted with the manager.

pub(crate) mod build;
pub(crate) mod running;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use cloudberth_e2e::ControlPlane;
use cloudberth_http::surroundings::{SystemClock, random_from_os};
use cloudscale_sim::{Cloud, Served, SimSettings, serve_on_loopback};
use http::Request;
use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::{Client, Config};
use serde_json::Value;
use tokio::net::TcpListener;
use tokio::process::Command;
use tokio::signal::unix::{SignalKind, signal};

use crate::kube::objects::Kind;
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
pub(crate) struct Environment {
    place: PathBuf,
    kubeconfig: PathBuf,
    api: Api,
    served: Served,
    /// A client of the cluster.
    pub(crate) client: Client,
    /// The simulated cloudscale.ch.
    pub(crate) cloud: Cloud,
}

/// What serves the cluster.
enum Api {
    Embedded(Box<Running>),
    /// Ends when it is dropped.
    Real(#[expect(dead_code, reason = "kept alive")] Box<ControlPlane>),
}

impl Environment {
    /// An empty cluster, served by `program`, and an empty cloud. Files go to `place`.
    pub(crate) async fn open(
        place: &Path,
        program: &Path,
        settings: SimSettings,
    ) -> Result<Self, BenchError> {
        let kubeconfig = place.join("kubeconfig");
        let mut sim = Command::new(program);
        sim.args(["sim", "kube", "--listen", "127.0.0.1:0", "--write-kubeconfig"]).arg(&kubeconfig);
        let mut api = Running::start(&mut sim, place.join("api.log"))?;
        api.until_written(&kubeconfig).await?;
        Self::with(place, kubeconfig, Api::Embedded(Box::new(api)), settings).await
    }

    /// A real control plane, and an empty cloud. Files go to `place`.
    pub(crate) async fn on(
        place: &Path,
        real: ControlPlane,
        settings: SimSettings,
    ) -> Result<Self, BenchError> {
        Self::with(place, real.kubeconfig(), Api::Real(Box::new(real)), settings).await
    }

    async fn with(
        place: &Path,
        kubeconfig: PathBuf,
        api: Api,
        settings: SimSettings,
    ) -> Result<Self, BenchError> {
        let file = Kubeconfig::read_from(&kubeconfig)?;
        let config = Config::from_custom_kubeconfig(file, &KubeConfigOptions::default()).await?;
        let cloud = Cloud::new(Arc::new(SystemClock::new()), random_from_os(), settings);
        let served = serve_on_loopback(&cloud).await?;
        let client = Client::try_from(config)?;
        Ok(Self { place: place.to_owned(), kubeconfig, api, served, client, cloud })
    }

    /// Starts a manager of this build; its log is called `name`.
    pub(crate) async fn manage(&self, program: &Path, name: &str) -> Result<Running, BenchError> {
        // A port that was free a moment ago.
        let port = TcpListener::bind("127.0.0.1:0").await?.local_addr()?.port();
        let mut command = Command::new(program);
        command.args(["controller-manager", "--cloud-provider=cloudscale", "--bind-address=127.0.0.1"]);
        command.arg(format!("--secure-port={port}")).arg("--kubeconfig").arg(&self.kubeconfig);
        command.env("CLOUDSCALE_API_URL", self.served.url()).env("CLOUDSCALE_ACCESS_TOKEN", "any");
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
