//! How many calls Services at Brightbox take beside the listings that all of them share, and how long they wait.
//!
//! ```text
//!   this process ──► cloudberth sim kube              the cluster
//!        │     └───► cloudberth controller-manager ──► the simulated cloud, served by this process
//!        └─ makes nodes and Services, and looks when they are served
//! ```

use std::time::Duration;

use brightbox_sim::{Cloud, Delays, Entry, SimSettings};
use http::Request;
use serde_json::json;
use tokio::time::{Instant, sleep};

use crate::kube::objects::Kind;
use crate::programs::cloud::Brightbox;
use crate::programs::running::Running;
use crate::programs::{BenchError, Environment, build, unless_stopped, waits};
use crate::services::{Report, add_node, add_service, rest, send, until};

const NODES: usize = 10;
const MANY: usize = 50;
/// How long nothing happens.
const AT_REST: Duration = Duration::from_secs(30);

/// Builds, starts and measures.
pub(crate) async fn run() -> Result<Report, BenchError> {
    unless_stopped(set_up_and_measure()).await
}

async fn set_up_and_measure() -> Result<Report, BenchError> {
    let place = tempfile::tempdir()?;
    let program = build::SURROUNDINGS.make(place.path()).await?;
    let settings = SimSettings {
        latency: Duration::from_millis(20),
        delays: Delays { build: Duration::from_secs(1), ..Delays::default() },
        instances: NODES,
        ..SimSettings::default()
    };
    let env = Environment::open(place.path(), &program, Brightbox::serve(settings).await?).await?;
    // A node is called after the id of its server.
    for server in env.cloud.servers() {
        add_node(&env, &server.id).await?;
    }
    let manager = env.manage(&program, "manager").await?;
    let report = measure(&env, &manager).await;
    manager.stop().await?;
    env.close().await?;
    report
}

/// Whether a call is one of the listings that serve all Services and nodes of a pass, or for a token.
fn is_shared(entry: &Entry) -> bool {
    entry.operation == "token" || entry.operation.split('.').nth(1) == Some("list")
}

/// The calls since the journal was cleared that only one Service has needed.
fn own_calls(cloud: &Cloud) -> usize {
    cloud.journal().iter().filter(|entry| !is_shared(entry)).count()
}

fn writes(cloud: &Cloud) -> usize {
    cloud.tally().mutations
}

async fn measure(env: &Environment<Brightbox>, manager: &Running) -> Result<Report, BenchError> {
    let cloud = &env.cloud;
    let mut report = Report::default();
    until(manager, async || Ok(!env.nodes().await?.iter().any(waits))).await?;
    rest(cloud).await;
    report.calls("initialising ten nodes, own calls", own_calls(cloud), 0, "10 calls");

    cloud.clear_journal();
    add_service(env, "web").await?;
    let first = until(manager, async || env.is_served("web").await).await?;
    let published = cloud.tally();
    let listed = published.calls - own_calls(cloud);
    report.calls("until the address is published", own_calls(cloud), 12, "8 calls");
    report.calls("the listings of that", listed, 6, "5 calls");
    rest(cloud).await;

    cloud.clear_journal();
    let late = cloud.add_server("late", "gb1-a").id;
    add_node(env, &late).await?;
    until(manager, async || Ok(writes(cloud) > 1)).await?;
    rest(cloud).await;
    report.calls("a node joins, for each Service", own_calls(cloud), 3, "11 calls");

    cloud.clear_journal();
    sleep(AT_REST).await;
    report.calls("half a minute without a change", own_calls(cloud), 0, "-");

    cloud.clear_journal();
    send(env, Request::delete(format!("{}/web", Kind::Service.path())), &json!({})).await?;
    until(manager, async || Ok(cloud.cloud_ips().is_empty())).await?;
    rest(cloud).await;
    report.calls("deleting, writes", writes(cloud), 5, "5 calls");

    let names: Vec<_> = (0..MANY).map(|number| format!("many-{number:02}")).collect();
    cloud.clear_journal();
    let begin = Instant::now();
    for name in &names {
        add_service(env, name).await?;
    }
    for name in &names {
        until(manager, async || env.is_served(name).await).await?;
    }
    let all = begin.elapsed();
    report.calls("fifty Services at once, each", own_calls(cloud) / MANY, 12, "8 calls");
    report.time("from a Service to its address", first, 2.0, "-");
    report.time("from fifty Services at once to the last address", all, 20.0, "-");
    Ok(report)
}
