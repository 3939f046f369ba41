//! Cloudlycke's data plane beside `HAProxy` and nginx, on this computer, in one run.
//!
//! ```text
//!   this process (clients) ──► one proxy after the other, each a process ──► backends (a process)
//! ```
//!
//! Rounds alternate between the proxies, so that whatever else the computer does meets all of them. The median counts.

mod half_open;
mod hostile;
mod limits;
mod load;
mod manager;
mod proxies;
mod role;
mod trials;

use std::{fmt, io, net::SocketAddr, time::Duration};

use load::{KINDS, Kind, Outcome, measure};
use proxies::{Player, Proxy, haproxy, nginx, ours};
pub(crate) use role::{Role, play};
use trials::{Trial, idle, rolling};

/// How much is measured.
#[derive(Clone, Copy, Debug, clap::Args)]
pub(crate) struct Extent {
    /// Rounds; the median of each number counts.
    #[arg(long, default_value_t = 5)]
    rounds: usize,
    /// Seconds for each number of each round.
    #[arg(long, default_value_t = 2)]
    seconds: u64,
    /// Only the comparison, without idle connections, changes under load and hostile clients.
    #[arg(long)]
    only_compare: bool,
    /// Only our own trials, without the comparison.
    #[arg(long)]
    only_trials: bool,
    /// The memory of an idle manager with Cloudlycke in its process too. Builds it as it is shipped, which takes minutes.
    #[arg(long)]
    manager: bool,
}

/// Node ports of the two backends.
const BACKENDS: [&str; 2] = ["127.78.0.1:30080", "127.78.0.2:30080"];

/// What was measured.
#[derive(Debug)]
pub(crate) struct Report {
    rows: Vec<Row>,
    trials: Vec<Trial>,
    /// Why there was nothing to compare with.
    missing: Option<String>,
}

#[derive(Debug)]
struct Row {
    kind: Kind,
    /// For each proxy the median round, and how much it did in a second of its own processor time over all rounds. The
    /// latter says something on a busy computer too.
    results: Vec<(&'static str, Outcome, f64)>,
}

pub(crate) async fn run(extent: Extent) -> io::Result<Report> {
    let files = limits::raise_open_files();
    let place = tempfile::tempdir()?;
    let backends: Vec<SocketAddr> = BACKENDS.iter().filter_map(|at| at.parse().ok()).collect();
    let mut roles = vec!["backends".to_owned()];
    roles.extend(BACKENDS.map(str::to_owned));
    let _backends = Player::start(&roles).await?;
    let mut report = Report { rows: Vec::new(), trials: Vec::new(), missing: None };
    if !extent.only_trials {
        let at = |last: u8| SocketAddr::from(([127, 78, 1, last], 8080));
        let mut proxies = vec![ours(at(1), &backends).await?];
        match kube_assets::proxies(&mut |line| eprintln!("{line}")) {
            Ok(assets) => proxies.extend([
                haproxy(&assets, place.path(), at(2), &backends, false).await?,
                haproxy(&assets, place.path(), at(3), &backends, true).await?,
                nginx(&assets, place.path(), at(4), &backends).await?,
            ]),
            Err(why) => report.missing = Some(why.to_string()),
        }
        report.rows = compare(&proxies, extent).await?;
    }
    if !extent.only_compare {
        report.trials.push(idle(&backends, files).await?);
        report.trials.push(rolling(&backends).await?);
        report.trials.extend(hostile::trial(&backends).await?);
        report.trials.push(half_open::trial().await?);
    }
    if extent.manager {
        report.trials.push(manager::idle_memory().await.map_err(io::Error::other)?);
    }
    Ok(report)
}

async fn compare(proxies: &[Proxy], extent: Extent) -> io::Result<Vec<Row>> {
    let mut rows = Vec::new();
    for kind in KINDS {
        let proxies: Vec<_> = proxies.iter().filter(|proxy| proxy.serves(kind)).collect();
        let mut rounds: Vec<Vec<(Outcome, Duration)>> = proxies.iter().map(|_| Vec::new()).collect();
        for _ in 0..extent.rounds.max(1) {
            for (proxy, results) in proxies.iter().zip(&mut rounds) {
                let before = proxy.processor_time();
                let outcome = measure(kind, proxy.at, Duration::from_secs(extent.seconds.max(1))).await?;
                results.push((outcome, proxy.processor_time().saturating_sub(before)));
            }
        }
        let results = proxies.iter().zip(rounds).filter_map(|(proxy, mut results)| {
            let failed = results.iter().map(|(outcome, _)| outcome.failed).sum();
            let done: f64 = results.iter().map(|(outcome, _)| outcome.done).sum();
            let processor: f64 = results.iter().map(|(_, time)| time.as_secs_f64()).sum();
            results.sort_by(|a, b| a.0.rate.total_cmp(&b.0.rate));
            let (outcome, _) = *results.get(results.len() / 2)?;
            Some((proxy.name, Outcome { failed, ..outcome }, done / processor.max(0.01)))
        });
        rows.push(Row { kind, results: results.collect() });
    }
    Ok(rows)
}

impl Row {
    /// What is asked of this kind, beside what came out. Of two of one name the better one counts: `HAProxy` with splicing or
    /// without.
    fn goal(&self) -> Option<Trial> {
        let (_, ours, _) = self.results.first()?;
        let (rival, goal) = self.kind.goal();
        let theirs = self.results.iter().filter(|(name, ..)| name.starts_with(rival));
        let best = theirs.map(|(_, outcome, _)| outcome.rate).max_by(f64::total_cmp)?;
        let ratio = ours.rate / best.max(1.0);
        let text = format!(
            "{}: {ratio:.2} of {rival}, goal at least {goal:.1}; {} failed, goal 0",
            self.kind.title(),
            ours.failed
        );
        Some(Trial::new(text, ratio >= goal && ours.failed == 0))
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(why) = &self.missing {
            writeln!(f, "nothing else was measured: {why}")?;
        }
        if !self.rows.is_empty() {
            writeln!(
                f,
                "| what | proxy | rate | ours / it | for a CPU second | ours / it | p99 | failed |\n\
                 |---|---|---|---|---|---|---|---|"
            )?;
        }
        for Row { kind, results } in &self.rows {
            let (ours, our_work) = results.first().map_or((0.0, 0.0), |(_, o, work)| (o.rate, *work));
            let unit = if *kind == Kind::Bytes { 1e6 } else { 1.0 };
            for (name, Outcome { rate, p99, failed, .. }, work) in results {
                writeln!(
                    f,
                    "| {} | {name} | {:.0} | {:.2} | {:.0} | {:.2} | {} | {failed} |",
                    kind.title(),
                    rate / unit,
                    ours / rate,
                    work / unit,
                    our_work / work,
                    // Downloads have no end that could be late.
                    if p99.is_zero() {
                        "–".to_owned()
                    } else {
                        format!("{:.1} ms", p99.as_secs_f64() * 1e3)
                    },
                )?;
            }
        }
        for row in &self.rows {
            if let Some(goal) = row.goal() {
                writeln!(f, "{goal}")?;
            }
        }
        self.trials.iter().try_for_each(|trial| writeln!(f, "{trial}"))
    }
}
