//! What it costs to initialise nodes that are all new: CPU time of the manager for each, and how long all of them take.
//!
//! Seconds depend on what else the computer does. CPU time for each node should not grow with their number.

use std::fmt;
use std::path::Path;
use std::time::Duration;

use cloudberth_e2e::{ControlPlane, Options};
use cloudscale_sim::SimSettings;
use tokio::time::{Instant, sleep, timeout};

use crate::kube::objects::Kind;
use crate::manager::{Size, cluster};
use crate::programs::cloud::Cloudscale;
use crate::programs::running::Running;
use crate::programs::{BenchError, Environment, build, unless_stopped, waits};

/// The longest wait for a manager to be done.
const PATIENCE: Duration = Duration::from_mins(10);

/// How many nodes, and where.
#[derive(Clone, Debug)]
pub(crate) struct Runs {
    /// Numbers of nodes on the embedded API, one run each.
    pub(crate) embedded: Vec<usize>,
    /// How many nodes on a real API server.
    pub(crate) real: Option<usize>,
}

/// The results, one row for each run.
#[derive(Debug)]
pub(crate) struct Report(Vec<Row>);

#[derive(Debug)]
struct Row {
    nodes: usize,
    api: &'static str,
    /// From the start of the manager to the last node.
    took: Duration,
    /// User and system time of the manager, in milliseconds.
    cpu: u64,
    /// The most seconds, where somebody asks for them.
    most: Option<f64>,
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(
            f,
            "| new nodes | API | CPU for each | goal | all after | goal | holds |\n|---|---|---|---|---|---|---|"
        )?;
        for Row { nodes, api, took, cpu, most } in &self.0 {
            let each = cpu * 100 / u64::try_from(*nodes).unwrap_or(u64::MAX).max(1);
            let in_time = most.is_none_or(|most| took.as_secs_f64() <= most);
            let holds = if each <= 100 && in_time { "yes" } else { "NO" };
            let most = most.map_or_else(|| "-".to_owned(), |most| format!("{most:.0} s"));
            let took = took.as_secs_f64();
            let (whole, rest) = (each / 100, each % 100);
            writeln!(
                f,
                "| {nodes} | {api} | {whole}.{rest:02} ms | 1 ms | {took:.1} s | {most} | {holds} |"
            )?;
        }
        Ok(())
    }
}

/// Builds, starts and measures.
pub(crate) async fn run(runs: &Runs) -> Result<Report, BenchError> {
    unless_stopped(measure(runs)).await
}

async fn measure(runs: &Runs) -> Result<Report, BenchError> {
    let place = tempfile::tempdir()?;
    let program = build::SHIPPED.make(place.path()).await?;
    let surroundings = build::SURROUNDINGS.make(place.path()).await?;
    let mut rows = Vec::new();
    for &nodes in &runs.embedded {
        let place = tempfile::tempdir()?;
        let cloud = Cloudscale::serve(SimSettings::default()).await?;
        let env = Environment::open(place.path(), &surroundings, cloud).await?;
        rows.push(initialise(&env, &program, nodes, "embedded", None).await?);
        env.close().await?;
    }
    if let Some(nodes) = runs.real {
        let assets = kube_assets::ensure(kube_assets::NEWEST, &mut |line| eprintln!("{line}"))
            .map_err(|why| BenchError::Real(why.to_string()))?;
        let started = ControlPlane::start(&assets, &Options::default()).await;
        let real = started.map_err(|why| BenchError::Real(why.to_string()))?;
        let env =
            Environment::on(place.path(), real, Cloudscale::serve(SimSettings::default()).await?).await?;
        rows.push(initialise(&env, &program, nodes, "kube-apiserver", Some(20.0)).await?);
        env.close().await?;
    }
    Ok(Report(rows))
}

async fn initialise(
    env: &Environment,
    program: &Path,
    nodes: usize,
    api: &'static str,
    most: Option<f64>,
) -> Result<Row, BenchError> {
    eprintln!("{nodes} new nodes on the {api} API");
    cluster::fill(env, Size { nodes, services: 0 }).await?;
    let begin = Instant::now();
    let mut manager = env.manage(program, &format!("manager-{api}-{nodes}")).await?;
    let done = timeout(PATIENCE, until_initialised(env, &manager, nodes)).await;
    done.map_err(|_| manager.lost("it is not done after ten minutes"))??;
    let took = begin.elapsed();
    let left = env.nodes().await?.iter().filter(|node| waits(node)).count();
    if left > 0 {
        return Err(manager.lost(&format!("{left} nodes still wait after the last one was done")));
    }
    manager.until_quiet().await?;
    let cpu = manager.cpu()?;
    manager.stop().await?;
    Ok(Row { nodes, api, took, cpu, most })
}

/// Looks at one node after the other: a listing of all of them would keep the API busy that is measured.
pub(crate) async fn until_initialised(
    env: &Environment,
    manager: &Running,
    nodes: usize,
) -> Result<(), BenchError> {
    /// The manager has as many under way at most.
    const AT_ONCE: usize = 64;
    let looked_at = (0..nodes).filter(|number| number % AT_ONCE == 0 || number + AT_ONCE >= nodes);
    for number in looked_at {
        while waits(&env.get(&Kind::Node.path_of(number)).await?) {
            manager.cpu()?;
            sleep(Duration::from_millis(20)).await;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_figure_over_its_goal_is_told() {
        let row = |cpu, seconds, most| Row {
            nodes: 1_000,
            api: "a",
            took: Duration::from_secs(seconds),
            cpu,
            most,
        };
        let report = Report(vec![
            row(1_000, 90, None),
            row(1_010, 1, None),
            row(70, 20, Some(20.0)),
            row(70, 21, Some(20.0)),
        ]);
        let text = report.to_string();
        let lines: Vec<_> = text.lines().skip(2).collect();
        assert_eq!(
            lines,
            [
                "| 1000 | a | 1.00 ms | 1 ms | 90.0 s | - | yes |",
                "| 1000 | a | 1.01 ms | 1 ms | 1.0 s | - | NO |",
                "| 1000 | a | 0.07 ms | 1 ms | 20.0 s | 20 s | yes |",
                "| 1000 | a | 0.07 ms | 1 ms | 21.0 s | 20 s | NO |",
            ]
        );
    }
}
