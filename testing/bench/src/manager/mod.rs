//! The size of the shipped program, and its memory use in a small and in a large cluster.

pub(crate) mod cluster;
pub(crate) mod report;

use std::time::Duration;

use cloudscale_sim::SimSettings;
use tokio::time::timeout;

use crate::memory::MemoryUse;
use crate::programs::cloud::Cloudscale;
use crate::programs::{BenchError, Environment, build, unless_stopped, waits};
use report::Report;

/// The longest wait for a program to be done with a cluster.
const PATIENCE: Duration = Duration::from_mins(15);

/// How large the large cluster is.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Size {
    pub(crate) nodes: usize,
    pub(crate) services: usize,
}

/// Builds, starts and measures.
pub(crate) async fn run(large: Size) -> Result<Report, BenchError> {
    unless_stopped(measure(large)).await
}

async fn measure(large: Size) -> Result<Report, BenchError> {
    let place = tempfile::tempdir()?;
    let shipped = build::SHIPPED.make(place.path()).await?;
    let surroundings = build::SURROUNDINGS.make(place.path()).await?;
    let env =
        Environment::open(place.path(), &surroundings, Cloudscale::serve(SimSettings::default()).await?)
            .await?;

    eprintln!("idle");
    let mut manager = env.manage(&shipped, "idle").await?;
    let idle = manager.until_quiet().await?;
    manager.stop().await?;

    eprintln!("filling the cluster with {} nodes and {} Services", large.nodes, large.services);
    cluster::fill(&env, large).await?;
    eprintln!("all nodes are new");
    let initialised = work_through(&env, &shipped, 1).await?;
    eprintln!("started again");
    let settled = work_through(&env, &shipped, 2).await?;
    let nodes = env.nodes().await?;
    let bytes: usize = nodes.iter().map(|node| node.to_string().len()).sum();
    let node_bytes = bytes / nodes.len().max(1);
    env.close().await?;
    Ok(Report { size: large, node_bytes, shipped: shipped.metadata()?.len(), idle, settled, initialised })
}

/// Runs the program until all work is done, and returns its memory use then.
async fn work_through(
    env: &Environment,
    program: &std::path::Path,
    number: usize,
) -> Result<MemoryUse, BenchError> {
    let ours = cluster::add_ours(env, number).await?;
    let mut manager = env.manage(program, &format!("manager-{number}")).await?;
    let done = async {
        loop {
            let held = manager.until_quiet().await?;
            let waiting = env.nodes().await?.iter().filter(|node| waits(node)).count();
            if waiting == 0 && env.is_served(&ours).await? {
                return Ok::<_, BenchError>(held);
            }
            eprintln!("quiet with {} KiB, but {waiting} nodes still wait", held.now);
        }
    };
    let done = timeout(PATIENCE, done).await;
    let held = done.map_err(|_| manager.lost("it is not done after a quarter of an hour"))??;
    manager.stop().await?;
    Ok(held)
}
