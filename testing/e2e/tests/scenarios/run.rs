//! Running scenarios: a few at a time, each on a thread and a runtime of its own, and counting them.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use cloudberth_e2e::{ClusterFactory, ClusterKind, shipped};
use kube_assets::{Assets, NEWEST, PodAssets};
use lexopt::prelude::*;
use tokio::runtime::{Builder, Runtime};
use tokio::time::{Instant, timeout};

use crate::{Scenario, events, stay};

/// No scenario takes longer, also on a busy machine.
const DEADLINE: Duration = Duration::from_mins(20);
/// They mostly wait; a cluster that starts does not, and the factory lets few of them start at once. About half of them
/// are in an embedded one, which starts in no time. Some wait for minutes, and leave the others enough room.
const AT_ONCE: usize = 12;

/// What to run, and where.
pub(crate) struct Plan {
    clusters: Vec<ClusterKind>,
    version: String,
    filters: Vec<String>,
    skipped: Vec<String>,
    list: bool,
    /// Run no scenario, but a cluster for a person.
    stay: bool,
    at_once: usize,
}

impl Plan {
    pub(crate) fn from_args() -> Result<Self, String> {
        Self::read(&mut lexopt::Parser::from_env()).map_err(|why| format!("scenarios: {why}"))
    }

    fn read(args: &mut lexopt::Parser) -> Result<Self, lexopt::Error> {
        let mut plan = Self {
            clusters: ClusterKind::ALL.to_vec(),
            version: NEWEST.to_owned(),
            filters: Vec::new(),
            skipped: Vec::new(),
            list: false,
            stay: false,
            at_once: AT_ONCE,
        };
        while let Some(arg) = args.next()? {
            match arg {
                Long("world") => plan.clusters = vec![args.value()?.parse()?],
                Long("kube") => plan.version = args.value()?.string()?,
                Long("jobs" | "test-threads") => plan.at_once = args.value()?.parse::<usize>()?.max(1),
                Long("stay") => plan.stay = true,
                Long("skip") => plan.skipped.push(args.value()?.string()?),
                Long("list") => plan.list = true,
                // What `cargo test` hands to every kind of test.
                Long("show-output" | "nocapture" | "quiet" | "exact") | Short('q') => {}
                Value(name) => plan.filters.push(name.string()?),
                other => return Err(other.unexpected()),
            }
        }
        Ok(plan)
    }

    /// Whether it was asked for. What is skipped may also name all of them, as `scenarios::`: other kinds of test get the
    /// same arguments.
    fn wants(&self, scenario: &Scenario) -> bool {
        let full = format!("scenarios::{}", scenario.name);
        let has = |part: &String| full.contains(part.as_str());
        (self.filters.is_empty() || self.filters.iter().any(has)) && !self.skipped.iter().any(has)
    }

    /// Runs the scenarios, and `last` when all others have ended, unless only some of them were asked for; whether all
    /// went well.
    pub(crate) fn carry_out(&self, all: &[&Scenario], last: &[Scenario]) -> Result<bool, String> {
        let chosen: Vec<&Scenario> = all.iter().copied().filter(|scenario| self.wants(scenario)).collect();
        let is_whole = chosen.len() == all.len();
        let last: Vec<&Scenario> = last.iter().filter(|_| is_whole).collect();
        if self.list {
            for scenario in chosen.iter().chain(&last) {
                println!("{}: test", scenario.name);
            }
            let real_only = chosen.iter().filter(|scenario| needs_pods(scenario)).count();
            println!("{} scenarios, {real_only} of them on a real cluster only", chosen.len() + last.len());
            return Ok(true);
        }
        if chosen.is_empty() && self.skipped.is_empty() {
            println!("no scenario has that in its name");
        }
        let mut progress = |line: &str| eprintln!("{line}");
        let assets = kube_assets::ensure(&self.version, &mut progress).map_err(|why| why.to_string())?;
        // They take long to build, and an embedded cluster has no use for them.
        let real = self.clusters.contains(&ClusterKind::Real);
        let needs_pods = self.stay || real && chosen.iter().any(|scenario| needs_pods(scenario));
        let pods = needs_pods.then(|| kube_assets::pods(&self.version, &mut progress));
        let pods = pods.transpose().map_err(|why| why.to_string())?;
        if let Some(pods) = pods.as_ref().filter(|_| self.stay) {
            let ended = runtime().block_on(stay::until_interrupted(&self.version, &assets, pods.clone()));
            return ended.map(|()| true).map_err(|why| why.to_string());
        }
        // Not within the time limit of a scenario.
        shipped().map_err(|why| why.to_string())?;
        let begun = Instant::now();
        let mut sides = Vec::new();
        for kind in self.clusters.iter().filter(|_| !chosen.is_empty()) {
            sides.push(Side::prepare(*kind, &assets, pods.clone())?);
        }
        // The last ones begin when all others have ended.
        for scenarios in [&chosen, &last] {
            self.act(scenarios, &sides);
        }
        let failed = sides.iter().map(|side| side.report(&self.version)).sum::<usize>();
        let passed = sides.iter().map(|side| side.ran.load(Ordering::Relaxed)).sum::<usize>() - failed;
        let verdict = if failed == 0 { "ok" } else { "FAILED" };
        let runs =
            |scenario: &Scenario| scenario.on.iter().filter(|kind| self.clusters.contains(kind)).count();
        let left = all.iter().copied().filter(|scenario| !self.wants(scenario)).map(runs).sum::<usize>();
        println!(
            "test result: {verdict}. {passed} passed; {failed} failed; 0 ignored; 0 measured; {left} filtered out; \
             finished in {:.2}s",
            begun.elapsed().as_secs_f64()
        );
        Ok(failed == 0)
    }

    /// Runs scenarios in all clusters from one queue, in their order: those that take longest begin first, in every cluster,
    /// and nobody waits for them at the end.
    fn act(&self, scenarios: &[&Scenario], sides: &[Side]) {
        let pairs = scenarios.iter().flat_map(|scenario| sides.iter().map(|side| (*scenario, side)));
        let queue: Vec<(&Scenario, &Side)> =
            pairs.filter(|(scenario, side)| scenario.on.contains(&side.kind)).collect();
        let next = AtomicUsize::new(0);
        std::thread::scope(|scope| {
            for _ in 0..self.at_once.min(queue.len()) {
                scope.spawn(|| {
                    while let Some((scenario, side)) = queue.get(next.fetch_add(1, Ordering::Relaxed)) {
                        side.run(scenario);
                    }
                });
            }
        });
    }
}

/// What cannot run on both kinds of cluster is about pods.
fn needs_pods(scenario: &Scenario) -> bool {
    scenario.on == [ClusterKind::Real]
}

/// One kind of cluster, and what came of the scenarios in it.
struct Side {
    kind: ClusterKind,
    factory: ClusterFactory,
    begun: Instant,
    ran: AtomicUsize,
    failures: Mutex<Vec<String>>,
}

impl Side {
    fn prepare(kind: ClusterKind, assets: &Assets, pods: Option<PodAssets>) -> Result<Self, String> {
        let begun = Instant::now();
        let factory = runtime().block_on(ClusterFactory::start(kind, assets, pods));
        let factory = factory.map_err(|why| why.to_string())?;
        Ok(Self { kind, factory, begun, ran: AtomicUsize::new(0), failures: Mutex::default() })
    }

    fn run(&self, scenario: &Scenario) {
        let begun = Instant::now();
        let ended = one(&self.factory, scenario);
        self.ran.fetch_add(1, Ordering::Relaxed);
        let verdict = if ended.is_ok() { "ok" } else { "FAILED" };
        let (kind, took) = (self.kind.to_string(), begun.elapsed().as_secs_f64());
        println!("  {verdict:<6} {kind:<8} {:<75} {took:>5.1} s", scenario.name);
        if let Err(why) = ended {
            self.failures.lock().unwrap().push(format!("{kind} {}: {why}", scenario.name));
        }
    }

    /// Says how it went; how many failed.
    fn report(&self, version: &str) -> usize {
        let name = match self.kind {
            ClusterKind::Embedded => "embedded cluster".to_owned(),
            ClusterKind::Real => format!("real cluster ({version})"),
        };
        let failures = self.failures.lock().unwrap();
        for failure in failures.iter() {
            println!("{failure}\n");
        }
        let (count, failed) = (self.ran.load(Ordering::Relaxed), failures.len());
        let took = self.begun.elapsed().as_secs_f64();
        println!("{name}: {count} scenarios, {} passed, {failed} failed, {took:.1} s", count - failed);
        failed
    }
}

/// Runs one scenario in a fresh cluster. What it says when it fails.
fn one(factory: &ClusterFactory, scenario: &Scenario) -> Result<(), String> {
    let run = || {
        let runtime = runtime();
        runtime.block_on(async {
            let cluster = factory.cluster().await.map_err(|why| why.to_string())?;
            match timeout(DEADLINE, (scenario.run)(&cluster)).await {
                Ok(ended) => ended.map_err(|why| why.to_string())?,
                Err(_) => return Err(format!("not over after {DEADLINE:?}")),
            }
            events::are_all_in_the_tables(&cluster).await.map_err(|why| why.to_string())
        })
    };
    catch_unwind(AssertUnwindSafe(run)).unwrap_or_else(|panic| {
        let said = panic.downcast_ref::<String>().cloned();
        Err(said.or_else(|| panic.downcast_ref::<&str>().map(|said| (*said).to_owned())).unwrap_or_default())
    })
}

fn runtime() -> Runtime {
    Builder::new_current_thread().enable_all().build().unwrap()
}
