//! The figures, as a table for people and for the reference page.

use std::fmt;

use super::Size;
use crate::memory::MemoryUse;
use crate::programs::build;

/// A megabyte, as the goals count it.
const MB: u64 = 1_000_000;

/// The results.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Report {
    pub(crate) size: Size,
    /// Bytes of a node's JSON.
    pub(crate) node_bytes: usize,
    /// Bytes of the shipped program.
    pub(crate) shipped: u64,
    pub(crate) idle: MemoryUse,
    /// After a start on a cluster that needs no changes.
    pub(crate) settled: MemoryUse,
    /// After every node has been initialised.
    pub(crate) initialised: MemoryUse,
}

fn tenths(bytes: u64) -> String {
    let tenths = (bytes * 10).div_ceil(MB);
    format!("{}.{} MB", tenths / 10, tenths % 10)
}

/// One line of the table: a figure beside its goal, in megabytes.
pub(crate) fn row(
    f: &mut fmt::Formatter<'_>,
    what: &str,
    bytes: u64,
    peak: Option<u64>,
    goal: u64,
) -> fmt::Result {
    let peak = peak.map_or_else(|| "-".to_owned(), tenths);
    let holds = if bytes <= goal * MB { "yes" } else { "NO" };
    writeln!(f, "| {what} | {} | {peak} | {goal} MB | {holds} |", tenths(bytes))
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Size { nodes, services } = self.size;
        let cluster = format!("{nodes} nodes and {services} Services");
        let cores = std::thread::available_parallelism().map_or(0, usize::from);
        let memory = |f: &mut fmt::Formatter<'_>, what: &str, held: MemoryUse, goal| {
            row(f, what, held.now * 1024, Some(held.peak * 1024), goal)
        };
        writeln!(f, "| what | figure | peak | goal | holds |\n|---|---|---|---|---|")?;
        row(f, "size of the shipped program", self.shipped, None, 15)?;
        memory(f, "resident, idle on an empty cluster", self.idle, 15)?;
        memory(f, &format!("resident, started on {cluster}"), self.settled, 60)?;
        memory(f, &format!("resident, after all of {cluster} were new"), self.initialised, 60)?;
        writeln!(f, "\nshipped and measured: `{}`", build::SHIPPED.command_line())?;
        writeln!(
            f,
            "computer: {cores} cores, {}; a node has {} bytes of JSON",
            std::env::consts::ARCH,
            self.node_bytes
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_figure_over_its_goal_is_told() {
        let held = |now| MemoryUse { now, peak: now };
        let report = Report {
            size: Size { nodes: 2, services: 1 },
            node_bytes: 10_000,
            shipped: 15_000_000,
            idle: held(14_649),
            settled: held(58_593),
            initialised: held(58_594),
        };
        let text = report.to_string();
        let holds: Vec<_> = text
            .lines()
            .filter_map(|line| line.strip_suffix(" |")?.rsplit_once("| ").map(|(_, holds)| holds))
            .collect();
        assert_eq!(holds, ["holds", "yes", "NO", "yes", "NO"], "{text}");
        assert!(
            text.contains("| 15.0 MB | - | 15 MB |") && text.contains("| 60.1 MB | 60.1 MB | 60 MB |"),
            "{text}"
        );
    }
}
