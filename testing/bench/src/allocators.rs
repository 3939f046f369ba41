//! What another allocator is worth in the static program of the image, beside the allocator of musl and an ordinary build.
//!
//! Rounds alternate between the programs, so that whatever else the computer does meets all of them. The median counts.

use std::fmt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use clap::Args;
use cloudscale_sim::SimSettings;
use tokio::time::{Instant, timeout};

use crate::manager::{Size, cluster};
use crate::nodes::until_initialised;
use crate::programs::cloud::Cloudscale;
use crate::programs::{BenchError, Environment, build, unless_stopped};

/// The longest wait for a manager to be done.
const PATIENCE: Duration = Duration::from_mins(10);
/// A megabyte, as the goals count it.
const MB: f64 = 1e6;

/// How much is measured, and of what.
#[derive(Clone, Debug, Args)]
pub(crate) struct Extent {
    /// New nodes in each burst.
    #[arg(long, default_value_t = 3_000)]
    nodes: usize,
    /// Rounds; the median of each number counts.
    #[arg(long, default_value_t = 3)]
    rounds: usize,
    /// A program that there is already, in place of those that are built; may be given several times, and the others are
    /// compared with the first.
    #[arg(long, value_name = "NAME=FILE", value_parser = named)]
    program: Vec<(String, PathBuf)>,
}

fn named(text: &str) -> Result<(String, PathBuf), String> {
    let (name, file) =
        text.split_once('=').ok_or("a name and a file are needed, as in musl=target/program")?;
    Ok((name.to_owned(), PathBuf::from(file)))
}

/// The numbers of one round, or their medians.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct Numbers {
    /// Bytes.
    idle: f64,
    after: f64,
    peak: f64,
    /// Milliseconds of CPU time for each node.
    cpu: f64,
    /// Seconds until the last node was initialised.
    took: f64,
}

impl Numbers {
    /// The median of each number by itself.
    fn median(rounds: &[Self]) -> Self {
        let of = |number: fn(&Self) -> f64| {
            let mut all: Vec<f64> = rounds.iter().map(number).collect();
            all.sort_by(f64::total_cmp);
            all.get(all.len() / 2).copied().unwrap_or_default()
        };
        Self {
            idle: of(|one| one.idle),
            after: of(|one| one.after),
            peak: of(|one| one.peak),
            cpu: of(|one| one.cpu),
            took: of(|one| one.took),
        }
    }
}

/// The results: for each program its name, its bytes and the medians.
#[derive(Clone, Debug)]
pub(crate) struct Report {
    nodes: usize,
    rows: Vec<(String, u64, Numbers)>,
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let nodes = self.nodes;
        writeln!(
            f,
            "| program | size | resident, idle | after {nodes} new nodes | peak | CPU for each | all after | CPU / first | memory / first |\n\
             |---|---|---|---|---|---|---|---|---|"
        )?;
        let first = self.rows.first().map(|(_, _, numbers)| *numbers).unwrap_or_default();
        for (name, bytes, numbers) in &self.rows {
            let size = u32::try_from(*bytes).map_or(f64::NAN, f64::from);
            let Numbers { idle, after, peak, cpu, took } = *numbers;
            writeln!(
                f,
                "| {name} | {:.1} MB | {:.1} MB | {:.1} MB | {:.1} MB | {cpu:.2} ms | {took:.1} s | {:.2} | {:.2} |",
                size / MB,
                idle / MB,
                after / MB,
                peak / MB,
                cpu / first.cpu,
                after / first.after,
            )?;
        }
        Ok(())
    }
}

/// Builds, starts and measures.
pub(crate) async fn run(extent: Extent) -> Result<Report, BenchError> {
    unless_stopped(measure(extent)).await
}

async fn measure(extent: Extent) -> Result<Report, BenchError> {
    let place = tempfile::tempdir()?;
    let surroundings = build::SURROUNDINGS.make(place.path()).await?;
    let mut programs = extent.program.clone();
    if programs.is_empty() {
        for one in [build::IMAGE, build::IMAGE_WITH_DLMALLOC, build::SHIPPED] {
            let name =
                if one.name == build::SHIPPED.name { "the C library of this computer" } else { one.name };
            programs.push((name.to_owned(), one.make(place.path()).await?));
        }
    }
    let mut rounds: Vec<Vec<Numbers>> = vec![Vec::new(); programs.len()];
    for number in 1..=extent.rounds.max(1) {
        for ((name, program), numbers) in programs.iter().zip(&mut rounds) {
            eprintln!("round {number}: {name}");
            numbers.push(round(program, &surroundings, extent.nodes).await?);
        }
    }
    let mut rows = Vec::new();
    for ((name, program), rounds) in programs.into_iter().zip(rounds) {
        rows.push((name, program.metadata()?.len(), Numbers::median(&rounds)));
    }
    Ok(Report { nodes: extent.nodes, rows })
}

async fn round(program: &Path, surroundings: &Path, nodes: usize) -> Result<Numbers, BenchError> {
    let place = tempfile::tempdir()?;
    let cloud = Cloudscale::serve(SimSettings::default()).await?;
    let env = Environment::open(place.path(), surroundings, cloud).await?;
    let mut manager = env.manage(program, "idle").await?;
    let idle = manager.until_quiet().await?;
    manager.stop().await?;

    cluster::fill(&env, Size { nodes, services: 0 }).await?;
    let begin = Instant::now();
    let mut manager = env.manage(program, "burst").await?;
    let done = timeout(PATIENCE, until_initialised(&env, &manager, nodes)).await;
    done.map_err(|_| manager.lost("it is not done after ten minutes"))??;
    let took = begin.elapsed().as_secs_f64();
    let held = manager.until_quiet().await?;
    let cpu = manager.cpu()?;
    manager.stop().await?;
    env.close().await?;
    let bytes = |kib: u64| u32::try_from(kib).map_or(f64::NAN, f64::from) * 1024.0;
    let each = u32::try_from(cpu).map_or(f64::NAN, f64::from)
        / u32::try_from(nodes.max(1)).map_or(f64::NAN, f64::from);
    Ok(Numbers { idle: bytes(idle.now), after: bytes(held.now), peak: bytes(held.peak), cpu: each, took })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn programs_are_compared_with_the_first() {
        let numbers = |cpu, after| Numbers { idle: 1e7, after, peak: 3e7, cpu, took: 2.0 };
        let rounds = [numbers(0.9, 4e7), numbers(0.5, 2e7), numbers(0.4, 1e7)];
        assert_eq!(Numbers::median(&rounds), numbers(0.5, 2e7));
        let rows = vec![
            ("a".to_owned(), 9_000_000, numbers(0.5, 2e7)),
            ("b".to_owned(), 9_100_000, numbers(0.25, 3e7)),
        ];
        let text = Report { nodes: 10, rows }.to_string();
        let lines: Vec<_> = text.lines().skip(2).collect();
        assert_eq!(
            lines,
            [
                "| a | 9.0 MB | 10.0 MB | 20.0 MB | 30.0 MB | 0.50 ms | 2.0 s | 1.00 | 1.00 |",
                "| b | 9.1 MB | 10.0 MB | 30.0 MB | 30.0 MB | 0.25 ms | 2.0 s | 0.50 | 1.50 |",
            ]
        );
        assert_eq!(named("a=b=c"), Ok(("a".to_owned(), PathBuf::from("b=c"))));
        assert!(named("a").is_err());
    }
}
