//! `cargo xtask monitoring`: the alerting rules, their tests, the dashboard and the runbooks of `deploy/monitoring`.

mod check;
mod files;
mod names;
mod query;

use std::ffi::OsStr;
use std::fs;
use std::path::Path;
use std::process::Command;

use crate::process::stream;
use crate::stages::Outcome;
use crate::workspace::Workspace;
use crate::{Result, Verdict};
use check::{Exported, METRICS, RANCHER, RUNBOOKS};
use files::{Rules, Tests, as_rules, queries};

pub(crate) use files::as_object;

pub(crate) const RULES: &str = "deploy/monitoring/rules.yaml";
const DASHBOARD: &str = "deploy/monitoring/dashboard.json";
const TESTS: &str = "deploy/monitoring/tests/";

pub(crate) fn command(workspace: &Workspace, mut args: lexopt::Parser) -> Result<Verdict> {
    if let Some(arg) = args.next().map_err(|why| why.to_string())? {
        return Err(arg.unexpected().to_string());
    }
    let outcome = stage(workspace)?;
    for problem in &outcome.problems {
        println!("{problem}");
    }
    println!("{} tests of rules passed, {} failed", outcome.tally.passed, outcome.tally.failed);
    Ok(if outcome.problems.is_empty() { Verdict::Good } else { Verdict::Bad })
}

/// Compares with what the program exports, and has promtool check and test the rest.
pub(crate) fn stage(workspace: &Workspace) -> Result<Outcome> {
    let mut progress = |line: &str| eprintln!("   {line}");
    let promtool = kube_assets::prometheus(&mut progress).map_err(|why| why.to_string())?.promtool;
    let in_file = |file: &str| {
        let file = file.to_owned();
        move |why: String| format!("{file}: {why}")
    };
    let rules = Rules::read(&workspace.read(RULES)?).map_err(in_file(RULES))?;
    let of_tests: Vec<_> =
        workspace.files("yaml")?.into_iter().filter(|file| file.starts_with(TESTS)).collect();
    let mut tests = Vec::new();
    for file in &of_tests {
        tests.push(Tests::read(&workspace.read(file)?).map_err(in_file(file))?);
    }
    let dashboard = serde_json::from_str(&workspace.read(DASHBOARD)?);
    let queries = queries(&dashboard.map_err(|why| in_file(DASHBOARD)(why.to_string()))?);
    if queries.is_empty() || of_tests.is_empty() {
        return Err(format!("{DASHBOARD} has no queries, or {TESTS} no tests"));
    }
    let mut outcome = Outcome::default();
    let runbooks = workspace.read(RUNBOOKS)?;
    let pages = [workspace.read(METRICS)?, workspace.read(RANCHER)?];
    let exported = Exported::on_pages(&pages);
    outcome.problems = check::problems(&exported, &rules, &tests, &queries, &runbooks);
    outcome.problems.extend(names::check(&promtool, &pages, &workspace.read(names::ACCEPTED)?)?);

    let scratch = std::env::temp_dir().join(format!("cloudberth-dashboard-{}.yaml", std::process::id()));
    fs::write(&scratch, as_rules(&queries)).map_err(|why| format!("{}: {why}", scratch.display()))?;
    let checked = [
        promtool_says(&promtool, &["check", "rules"], &[workspace.path(RULES)]),
        promtool_says(&promtool, &["check", "rules"], &[&scratch]),
    ];
    let _ = fs::remove_file(&scratch);
    for check in checked {
        outcome.problems.extend(check?);
    }
    let paths: Vec<_> = of_tests.iter().map(|file| workspace.path(file)).collect();
    let failed = promtool_says(&promtool, &["test", "rules"], &paths)?;
    let count = tests.iter().map(|tests| u64::try_from(tests.count()).unwrap_or(u64::MAX)).sum();
    match failed {
        // promtool does not count; a file that fails names its tests.
        Some(problem) => {
            outcome.tally.failed = 1;
            outcome.problems.push(problem);
        }
        None => outcome.tally.passed = count,
    }
    Ok(outcome)
}

/// Runs promtool, and says what failed, if anything did; what it prints is passed through.
fn promtool_says(promtool: &Path, what: &[&str], files: &[impl AsRef<OsStr>]) -> Result<Option<String>> {
    let ran = stream(Command::new(promtool).args(what).args(files), |_| ())?;
    Ok((!ran.ok).then(|| format!("`promtool {}` failed", what.join(" "))))
}
