//! How long Services at cloudscale.ch wait, and how many API calls they take.
//!
//! ```text
//!   this process ──► cloudberth sim kube                    the cluster
//!        │     └───► cloudscale-cloud-controller-manager ──► the simulated cloud, served by this process
//!        └─ makes nodes and Services, and looks when they are served
//! ```

use std::fmt;
use std::time::Duration;

use cloudscale_sim::{Cloud, SimSettings, Tally};
use http::Request;
use serde_json::{Value, json};
use tokio::time::{Instant, sleep, timeout};

use crate::kube::objects::Kind;
use crate::programs::running::Running;
use crate::programs::{BenchError, Environment, UNINITIALISED, build, unless_stopped, waits};

const NODES: usize = 10;
const MANY: usize = 50;
/// The longest wait for anything.
const PATIENCE: Duration = Duration::from_secs(120);
/// After this long without a call a change counts as done.
const QUIET: Duration = Duration::from_secs(2);

/// The results.
#[derive(Debug)]
pub(crate) struct Report(Vec<Row>);

/// A figure, what it should be at most, and what the replaced program needs on the same set-up.
#[derive(Debug)]
struct Row {
    what: &'static str,
    figure: Figure,
    goal: Figure,
    replaced: &'static str,
}

#[derive(Clone, Copy, Debug, PartialEq, PartialOrd)]
enum Figure {
    Calls(usize),
    Seconds(f64),
}

impl fmt::Display for Figure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Calls(calls) => write!(f, "{calls} calls"),
            Self::Seconds(seconds) => write!(f, "{seconds:.2} s"),
        }
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "| what | figure | goal | holds | replaced program |\n|---|---|---|---|---|")?;
        for Row { what, figure, goal, replaced } in &self.0 {
            let holds = if figure <= goal { "yes" } else { "NO" };
            writeln!(f, "| {what} | {figure} | {goal} | {holds} | {replaced} |")?;
        }
        Ok(())
    }
}

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
    let env = Environment::open(place.path(), &program, settings).await?;
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
    let mut rows = Vec::new();
    let mut calls = |what, tally: &Tally, goal, replaced| {
        rows.push(Row { what, figure: Figure::Calls(tally.calls), goal: Figure::Calls(goal), replaced });
    };
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
    let time = |time: Duration| Figure::Seconds(time.as_secs_f64());
    let one = "from a Service to its address";
    rows.push(Row { what: one, figure: time(first), goal: Figure::Seconds(1.5), replaced: "about 22 s" });
    let many = "from fifty Services at once to the last address";
    rows.push(Row { what: many, figure: time(all), goal: Figure::Seconds(12.0), replaced: "-" });
    Ok(Report(rows))
}

/// Waits until `is_so`, and returns how long that took.
async fn until(
    manager: &Running,
    is_so: impl AsyncFn() -> Result<bool, BenchError>,
) -> Result<Duration, BenchError> {
    let begin = Instant::now();
    let wait = async {
        while !is_so().await? {
            sleep(Duration::from_millis(5)).await;
        }
        Ok(begin.elapsed())
    };
    timeout(PATIENCE, wait).await.map_err(|_| manager.lost("it is not done in two minutes"))?
}

/// Waits until there are no more calls to the cloud.
async fn rest(cloud: &Cloud) {
    loop {
        let before = cloud.tally().calls;
        sleep(QUIET).await;
        if cloud.tally().calls == before {
            return;
        }
    }
}

async fn send(env: &Environment, request: http::request::Builder, body: &Value) -> Result<(), BenchError> {
    env.client.request::<Value>(request.body(body.to_string().into_bytes())?).await?;
    Ok(())
}

async fn add_node(env: &Environment, name: &str) -> Result<(), BenchError> {
    let taint = json!({"key": UNINITIALISED, "value": "true", "effect": "NoSchedule"});
    let node = json!({"apiVersion": "v1", "kind": "Node", "metadata": {"name": name}, "spec": {"taints": [taint]},
        "status": {"conditions": [{"type": "Ready", "status": "True"}]}});
    env.post(Kind::Node, &node).await
}

async fn add_service(env: &Environment, name: &str) -> Result<(), BenchError> {
    let service = json!({"apiVersion": "v1", "kind": "Service", "metadata": {"name": name},
        "spec": {"type": "LoadBalancer", "ports": [{"port": 80, "protocol": "TCP"}]}});
    env.post(Kind::Service, &service).await
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_figure_above_its_goal_is_told() {
        let row = |figure, goal| Row { what: "x", figure, goal, replaced: "-" };
        let report = Report(vec![
            row(Figure::Calls(8), Figure::Calls(8)),
            row(Figure::Calls(9), Figure::Calls(8)),
            row(Figure::Seconds(2.51), Figure::Seconds(2.5)),
        ]);
        let text = report.to_string();
        let lines: Vec<_> = text.lines().skip(2).collect();
        assert_eq!(
            lines,
            [
                "| x | 8 calls | 8 calls | yes | - |",
                "| x | 9 calls | 8 calls | NO | - |",
                "| x | 2.51 s | 2.50 s | NO | - |"
            ]
        );
    }
}
