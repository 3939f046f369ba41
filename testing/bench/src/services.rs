//! What measurements of Services share, whatever the cloud: how they are made, waited for and reported.

use std::fmt;
use std::time::Duration;

use serde_json::{Value, json};
use tokio::time::{Instant, sleep, timeout};

use crate::kube::objects::Kind;
use crate::programs::cloud::SimulatedCloud;
use crate::programs::running::Running;
use crate::programs::{BenchError, Environment, UNINITIALISED};

/// The longest wait for anything.
const PATIENCE: Duration = Duration::from_secs(120);
/// After this long without a call a change counts as done.
const QUIET: Duration = Duration::from_secs(2);

/// The results.
#[derive(Debug, Default)]
pub(crate) struct Report(pub(crate) Vec<Row>);

/// A figure, what it should be at most, and what the replaced program needs on the same set-up.
#[derive(Debug)]
pub(crate) struct Row {
    pub(crate) what: &'static str,
    pub(crate) figure: Figure,
    pub(crate) goal: Figure,
    pub(crate) replaced: &'static str,
}

#[derive(Clone, Copy, Debug, PartialEq, PartialOrd)]
pub(crate) enum Figure {
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

/// Rows that are filled one after the other.
impl Report {
    /// Counted calls, beside how many there may be.
    pub(crate) fn calls(&mut self, what: &'static str, calls: usize, goal: usize, replaced: &'static str) {
        self.0.push(Row { what, figure: Figure::Calls(calls), goal: Figure::Calls(goal), replaced });
    }

    /// A time, beside how long it may be.
    pub(crate) fn time(&mut self, what: &'static str, time: Duration, goal: f64, replaced: &'static str) {
        let figure = Figure::Seconds(time.as_secs_f64());
        self.0.push(Row { what, figure, goal: Figure::Seconds(goal), replaced });
    }
}

/// Waits until `is_so`, and returns how long that took.
pub(crate) async fn until(
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
pub(crate) async fn rest(cloud: &impl SimulatedCloud) {
    loop {
        let before = cloud.tally().calls;
        sleep(QUIET).await;
        if cloud.tally().calls == before {
            return;
        }
    }
}

/// Sends a request to the cluster.
pub(crate) async fn send<C: SimulatedCloud>(
    env: &Environment<C>,
    request: http::request::Builder,
    body: &Value,
) -> Result<(), BenchError> {
    env.client.request::<Value>(request.body(body.to_string().into_bytes())?).await?;
    Ok(())
}

/// The kubelet of a fresh instance registers its node.
pub(crate) async fn add_node<C: SimulatedCloud>(env: &Environment<C>, name: &str) -> Result<(), BenchError> {
    let taint = json!({"key": UNINITIALISED, "value": "true", "effect": "NoSchedule"});
    let node = json!({"apiVersion": "v1", "kind": "Node", "metadata": {"name": name}, "spec": {"taints": [taint]},
        "status": {"conditions": [{"type": "Ready", "status": "True"}]}});
    env.post(Kind::Node, &node).await
}

/// Somebody wants a load balancer for port 80.
pub(crate) async fn add_service<C: SimulatedCloud>(
    env: &Environment<C>,
    name: &str,
) -> Result<(), BenchError> {
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
