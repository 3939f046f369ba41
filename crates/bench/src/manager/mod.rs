//! What the shipped program takes: its size, and its memory in a small and in a large cluster.
//!
//! ```text
//!   this process ──► cloudberth sim kube      the cluster, in a process of its own, so that it is not counted
//!              └───► cloudberth controller-manager ──► /proc/…/status
//! ```

pub(crate) mod build;
pub(crate) mod cluster;
mod report;
pub(crate) mod running;

use std::path::Path;
use std::time::Duration;

use tokio::net::TcpListener;
use tokio::process::Command;
use tokio::signal::unix::{SignalKind, signal};
use tokio::time::timeout;

use crate::memory::Held;
use report::Report;
use running::Running;

/// The longest wait for a program to be done with a cluster.
const PATIENCE: Duration = Duration::from_mins(15);

/// How large the large cluster is.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Size {
    pub(crate) nodes: usize,
    pub(crate) services: usize,
}

/// Why there are no figures.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Trouble {
    #[error("{0} failed")]
    Build(String),
    #[error("{0}; it said last:\n{1}")]
    Program(String, String),
    #[error("stopped")]
    Stopped,
    #[error(transparent)]
    Io(#[from] std::io::Error),
    #[error("the embedded API: {0}")]
    Kube(#[from] kube::Error),
    #[error("the embedded API's file: {0}")]
    Kubeconfig(#[from] kube::config::KubeconfigError),
    #[error("no request can be made: {0}")]
    Request(#[from] http::Error),
}

/// Builds, starts and measures. Whatever was started has ended when this ends, also by a signal.
pub(crate) async fn run(size: Size) -> Result<Report, Trouble> {
    let (mut terminate, mut interrupt) = (signal(SignalKind::terminate())?, signal(SignalKind::interrupt())?);
    tokio::select! {
        biased;
        _ = terminate.recv() => Err(Trouble::Stopped),
        _ = interrupt.recv() => Err(Trouble::Stopped),
        report = measure(size) => report,
    }
}

async fn measure(size: Size) -> Result<Report, Trouble> {
    let place = tempfile::tempdir()?;
    let shipped = build::SHIPPED.make(place.path()).await?;
    let measured = build::WITH_FAKE.make(place.path()).await?;
    let surroundings = build::SURROUNDINGS.make(place.path()).await?;
    let bench = Bench { place: place.path(), program: &measured };

    let kubeconfig = place.path().join("kubeconfig");
    let mut sim = Command::new(surroundings);
    sim.args(["sim", "kube", "--listen", "127.0.0.1:0", "--write-kubeconfig"]).arg(&kubeconfig);
    let mut api = Running::start(&mut sim, place.path().join("api.log"))?;
    api.until_written(&kubeconfig).await?;
    let client = cluster::client(&kubeconfig).await?;

    eprintln!("idle");
    let mut manager = bench.start("idle", &kubeconfig, Size { nodes: 0, services: 0 }).await?;
    let idle = manager.until_quiet().await?;
    manager.stop().await?;

    eprintln!("filling the cluster with {} nodes and {} Services", size.nodes, size.services);
    cluster::fill(&client, size).await?;
    eprintln!("all nodes are new");
    let (initialised, node_bytes) = bench.work_through(&client, &kubeconfig, size, 1).await?;
    eprintln!("started again");
    let (settled, _) = bench.work_through(&client, &kubeconfig, size, 2).await?;
    api.stop().await?;
    Ok(Report {
        size,
        node_bytes,
        shipped: shipped.metadata()?.len(),
        measured: measured.metadata()?.len(),
        idle,
        settled,
        initialised,
    })
}

/// Where things lie.
struct Bench<'a> {
    place: &'a Path,
    program: &'a Path,
}

impl Bench<'_> {
    async fn start(&self, name: &str, kubeconfig: &Path, size: Size) -> Result<Running, Trouble> {
        let config = self.place.join(format!("{name}.cloud"));
        std::fs::write(&config, cluster::cloud_config(size))?;
        // A port that was free a moment ago.
        let port = TcpListener::bind("127.0.0.1:0").await?.local_addr()?.port();
        let mut command = Command::new(self.program);
        command.args(["controller-manager", "--cloud-provider=fake", "--bind-address=127.0.0.1"]);
        command.arg(format!("--secure-port={port}"));
        command.arg("--kubeconfig").arg(kubeconfig).arg("--cloud-config").arg(config);
        Running::start(&mut command, self.place.join(format!("{name}.log")))
    }

    /// Lets the program do all that there is to do; what it holds then, and how large a node is.
    async fn work_through(
        &self,
        client: &kube::Client,
        kubeconfig: &Path,
        size: Size,
        number: usize,
    ) -> Result<(Held, usize), Trouble> {
        cluster::add_ours(client, number).await?;
        let mut manager = self.start(&format!("manager-{number}"), kubeconfig, size).await?;
        let done = async {
            loop {
                let held = manager.until_quiet().await?;
                let (waiting, node_bytes) = cluster::uninitialised(client).await?;
                if waiting == 0 && cluster::is_served(client, number).await? {
                    return Ok::<_, Trouble>((held, node_bytes));
                }
                eprintln!("quiet with {} KiB, but {waiting} nodes still wait", held.now);
            }
        };
        let done = timeout(PATIENCE, done).await;
        let measured = done.map_err(|_| manager.lost("it is not done after a quarter of an hour"))??;
        manager.stop().await?;
        Ok(measured)
    }
}
