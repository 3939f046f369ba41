//! How long Services at cloudscale.ch wait, and how many API calls they take.
//!
//! ```text
//!   this process ──► cloudberth sim kube                    the cluster
//!        │     └───► cloudscale-cloud-controller-manager ──► the simulated cloud, served by this process
//!        └─ makes nodes and Services, and looks when they are served
//! ```

use std::time::Duration;

use cloudscale_sim::{SimSettings, Tally};
use http::Request;
use serde_json::json;
use tokio::time::Instant;

use crate::kube::objects::Kind;
use crate::programs::cloud::Cloudscale;
use crate::programs::running::Running;
use crate::programs::{BenchError, Environment, build, unless_stopped, waits};
use crate::services::{Report, add_node, add_service, rest, send, until};

const NODES: usize = 10;
const MANY: usize = 50;

/// Builds, starts and measures.
pub(crate) async fn run() -> Result<Report, BenchError> {
    unless_stopped(set_up_and_measure()).await
}

async fn set_up_and_measure() -> Result<Report, BenchError> {
    let place = tempfile::tempdir()?;
    let program = build::SURROUNDINGS.make(place.path()).await?;
    let settings = SimSettings {
        latency: Duration::from_millis(20),
        build: Duration::from_secs(1),
        instances: NODES,
        ..SimSettings::default()
    };
    let env = Environment::open(place.path(), &program, Cloudscale::serve(settings).await?).await?;
    for number in 1..=NODES {
        add_node(&env, &format!("node-{number}")).await?;
    }
    let manager = env.manage(&program, "manager").await?;
    let report = measure(&env, &manager).await;
    manager.stop().await?;
    env.close().await?;
    report
}

async fn measure(env: &Environment, manager: &Running) -> Result<Report, BenchError> {
    let cloud = &env.cloud;
    let mut report = Report::default();
    let mut calls = |what, tally: &Tally, goal, replaced| report.calls(what, tally.calls, goal, replaced);
    until(manager, async || Ok(!env.nodes().await?.iter().any(waits))).await?;
    rest(cloud).await;
    calls("initialising ten nodes", &cloud.tally(), 2, "10 calls");

    cloud.clear_journal();
    add_service(env, "web").await?;
    let first = until(manager, async || env.is_served("web").await).await?;
    rest(cloud).await;
    let created = cloud.tally();
    calls("creating a load balancer", &created, 21, "93 to 102 calls");

    cloud.clear_journal();
    cloud.add_server("late", "rma1");
    add_node(env, "late").await?;
    until(manager, async || Ok(cloud.tally().mutations > 0)).await?;
    rest(cloud).await;
    calls("a node joins, its initialisation included", &cloud.tally(), 6, "55 calls");

    cloud.clear_journal();
    let web = format!("{}/web", Kind::Service.path());
    let merge = || Request::patch(&web).header("content-type", "application/merge-patch+json");
    let cidrs = json!({"metadata": {"annotations": {"k8s.cloudscale.ch/loadbalancer-listener-allowed-cidrs": "[\"10.0.0.0/8\"]"}}});
    send(env, merge(), &cidrs).await?;
    until(manager, async || Ok(cloud.tally().mutations > 0)).await?;
    rest(cloud).await;
    calls("who may connect changes", &cloud.tally(), 6, "25 calls");

    cloud.clear_journal();
    let node_port = env.get(&web).await?.pointer("/spec/ports/0/nodePort").cloned();
    let ports = json!({"spec": {"ports": [{"port": 8080, "protocol": "TCP", "nodePort": node_port}]}});
    send(env, merge(), &ports).await?;
    until(manager, async || Ok(cloud.tally().mutations > 1)).await?;
    rest(cloud).await;
    calls("a port changes", &cloud.tally(), 6, "-");

    cloud.clear_journal();
    send(env, Request::delete(&web), &json!({})).await?;
    until(manager, async || Ok(cloud.balancers().is_empty())).await?;
    rest(cloud).await;
    calls("deleting", &cloud.tally(), 8, "10 calls");

    let names: Vec<_> = (0..MANY).map(|number| format!("many-{number:02}")).collect();
    let begin = Instant::now();
    for name in &names {
        add_service(env, name).await?;
    }
    for name in &names {
        until(manager, async || env.is_served(name).await).await?;
    }
    let all = begin.elapsed();
    report.time("from a Service to its address", first, 1.5, "about 22 s");
    report.time("from fifty Services at once to the last address", all, 12.0, "-");
    Ok(report)
}
