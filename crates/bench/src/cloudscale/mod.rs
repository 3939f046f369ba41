//! How soon Services have their addresses at a cloud that takes its time, and what that costs in calls.

mod report;

use std::time::Duration;

use cloudberth_sim::cloudscale::Manners;
use futures_util::future::try_join_all;
use serde_json::json;
use tokio::time::{Instant, sleep, timeout};

use crate::kube::objects::{Kind, name};
use crate::programs::running::Running;
use crate::programs::{GLANCE, Site, Trouble, build, unless_stopped, waits};
use report::{Report, Round};

/// The longest wait for addresses.
const PATIENCE: Duration = Duration::from_mins(5);

/// How large the cluster is, and how slow the cloud.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Setting {
    pub(crate) nodes: usize,
    pub(crate) services: usize,
    pub(crate) latency: Duration,
    pub(crate) build: Duration,
}

/// Builds, starts and measures.
pub(crate) async fn run(setting: Setting) -> Result<Report, Trouble> {
    unless_stopped(measure(setting)).await
}

async fn measure(setting: Setting) -> Result<Report, Trouble> {
    let place = tempfile::tempdir()?;
    let program = build::SURROUNDINGS.make(place.path()).await?;
    let manners = Manners { latency: setting.latency, build: setting.build, ..Manners::default() };
    let site = Site::open(place.path(), &program, manners).await?;
    let mut manager = site.manage(&program, "manager").await?;
    for number in 0..setting.nodes {
        let node = name(Kind::Node, number);
        site.cloud.add_server(&node, "rma1");
        let taint = json!({"key": "node.cloudprovider.kubernetes.io/uninitialized", "effect": "NoSchedule"});
        let node = json!({"metadata": {"name": node}, "spec": {"taints": [taint]}});
        site.post(Kind::Node, &node).await?;
    }
    until(&manager, "the nodes are not initialised", async || {
        Ok(site.nodes().await?.iter().all(|node| !waits(node)))
    })
    .await?;
    manager.until_quiet().await?;
    let first = round(&site, &mut manager, "first", 1).await?;
    let many = round(&site, &mut manager, "many", setting.services).await?;
    manager.stop().await?;
    site.close().await?;
    Ok(Report { setting, first, many })
}

/// Creates so many Services at once, and waits for their addresses.
async fn round(site: &Site, manager: &mut Running, name: &str, services: usize) -> Result<Round, Trouble> {
    site.cloud.clear_journal();
    let names: Vec<_> = (0..services).map(|number| format!("{name}-{number:03}")).collect();
    let start = Instant::now();
    let service = |name: &String| {
        json!({
            "metadata": {"name": name},
            "spec": {"type": "LoadBalancer", "selector": {"app": "web"}, "ports": [{"port": 80}]},
        })
    };
    try_join_all(names.iter().map(async |name| site.post(Kind::Service, &service(name)).await)).await?;
    let served = names
        .iter()
        .map(|name| until(manager, "a Service has no address", async || site.is_served(name).await));
    try_join_all(served).await?;
    let took = start.elapsed();
    // What is still to be done after the addresses are there belongs to the price.
    manager.until_quiet().await?;
    let tally = site.cloud.tally();
    Ok(Round { services, took, calls: tally.calls, mutations: tally.mutations })
}

async fn until(
    manager: &Running,
    otherwise: &str,
    holds: impl AsyncFn() -> Result<bool, Trouble>,
) -> Result<(), Trouble> {
    let wait = async {
        while !holds().await? {
            sleep(GLANCE).await;
        }
        Ok(())
    };
    timeout(PATIENCE, wait).await.map_err(|_| manager.lost(otherwise))?
}
