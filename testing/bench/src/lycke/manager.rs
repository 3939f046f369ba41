//! The memory of a manager that is the cloud as well, as it is shipped.

use std::path::PathBuf;

use sim_kit::Tally;

use super::trials::Trial;
use crate::programs::{BenchError, Environment, build, cloud::SimulatedCloud, unless_stopped};

/// What it may have in memory when nothing happens.
const MOST: u64 = 20_000_000;

const INVENTORY: &str = "version: 1
clusters: { c1: { kubernetesName: kubernetes } }
types: { small: { cpus: 1 } }
machines:
  - { id: n-1, name: node-1, cluster: c1, type: small, internal: [127.79.0.1] }
  - { id: n-2, name: node-2, cluster: c1, type: small, internal: [127.79.0.2] }
";

/// A cloud that lives in the manager.
struct AllInOne {
    inventory: PathBuf,
    state: PathBuf,
}

impl SimulatedCloud for AllInOne {
    const PROVIDER: &'static str = "cloudlycke";

    fn variables(&self) -> Vec<(&'static str, String)> {
        let path = |path: &PathBuf| path.display().to_string();
        vec![("CLOUDLYCKE_INVENTORY", path(&self.inventory)), ("CLOUDLYCKE_STATE_DIR", path(&self.state))]
    }

    fn tally(&self) -> Tally {
        Tally::default()
    }
}

/// Builds it, starts it on an empty cluster, and looks when it is quiet.
pub(crate) async fn idle_memory() -> Result<Trial, BenchError> {
    unless_stopped(measure()).await
}

async fn measure() -> Result<Trial, BenchError> {
    let place = tempfile::tempdir()?;
    let program = build::LOCAL.make(place.path()).await?;
    let surroundings = build::SURROUNDINGS.make(place.path()).await?;
    let cloud = AllInOne { inventory: place.path().join("inv.yaml"), state: place.path().join("state") };
    std::fs::write(&cloud.inventory, INVENTORY)?;
    let env = Environment::open(place.path(), &surroundings, cloud).await?;
    let mut manager = env.manage(&program, "all-in-one").await?;
    let held = manager.until_quiet().await?;
    manager.stop().await?;
    env.close().await?;
    let (now, peak) = (held.now * 1024, held.peak * 1024);
    Ok(Trial::new(
        format!(
            "manager with Cloudlycke in its process ({}), idle: {}.{} MB resident (peak {}.{} MB), goal at most {} MB",
            build::LOCAL.command_line(),
            now / 1_000_000,
            now / 100_000 % 10,
            peak / 1_000_000,
            peak / 100_000 % 10,
            MOST / 1_000_000
        ),
        now <= MOST,
    ))
}
