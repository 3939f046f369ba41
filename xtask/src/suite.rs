//! `cargo xtask test`: runs the stages, says what each found and how long it took, and counts the tests in
//! its last line.

use std::time::{Duration, Instant};

use lexopt::prelude::*;

use crate::stages::{Outcome, STAGES, Stage};
use crate::tally::Tally;
use crate::workspace::Workspace;
use crate::{Result, Verdict};

pub(crate) fn command(workspace: &Workspace, mut args: lexopt::Parser) -> Result<Verdict> {
    let mut only = None;
    while let Some(arg) = args.next().map_err(|why| why.to_string())? {
        match arg {
            Long("only") => {
                only = Some(args.value().and_then(ValueExt::string).map_err(|why| why.to_string())?);
            }
            other => return Err(other.unexpected().to_string()),
        }
    }
    let stages = select(STAGES, only.as_deref())?;
    Ok(run(workspace, &stages))
}

/// The stages named, in the order of the table; all of them when none is named.
fn select<'a>(table: &'a [Stage], only: Option<&str>) -> Result<Vec<&'a Stage>> {
    let Some(only) = only else { return Ok(table.iter().collect()) };
    let wanted: Vec<&str> = only.split(',').map(str::trim).collect();
    for name in &wanted {
        if !table.iter().any(|stage| stage.name == *name) {
            let known: Vec<_> = table.iter().map(|stage| stage.name).collect();
            return Err(format!("there is no stage {name:?}; there are {}", known.join(", ")));
        }
    }
    Ok(table.iter().filter(|stage| wanted.contains(&stage.name)).collect())
}

/// Runs every stage even after a failure, so that one run shows all that is wrong.
fn run(workspace: &Workspace, stages: &[&Stage]) -> Verdict {
    let mut total = Tally::default();
    let mut summary = Vec::new();
    for stage in stages {
        println!("\n── {}: {}", stage.name, stage.checks);
        let (outcome, took) = timed(|| (stage.run)(workspace));
        let outcome = outcome.unwrap_or_else(|why| Outcome { problems: vec![why], ..Outcome::default() });
        let tally = settle(&outcome);
        for problem in &outcome.problems {
            println!("   {}: {problem}", stage.name);
        }
        let verdict = if tally.failed == 0 { "ok" } else { "FAILED" };
        println!("── {} {verdict}, {:.1} s", stage.name, took.as_secs_f64());
        summary.push(format!("{:<10} {verdict:<6} {:>7.1} s", stage.name, took.as_secs_f64()));
        total += tally;
    }
    println!("\n{}\n\n{total}", summary.join("\n"));
    if total.failed == 0 { Verdict::Good } else { Verdict::Bad }
}

/// The numbers a stage adds to the total. A stage that is wrong without a failed test counts as one failure,
/// so the last line never says `0 failed` about a run that failed.
fn settle(outcome: &Outcome) -> Tally {
    let mut tally = outcome.tally;
    if !outcome.problems.is_empty() {
        tally.failed = tally.failed.max(1);
    }
    tally
}

#[expect(
    clippy::disallowed_methods,
    reason = "a person wants to know how long the stage took; nothing replays it"
)]
fn timed<T>(work: impl FnOnce() -> T) -> (T, Duration) {
    let start = Instant::now();
    (work(), start.elapsed())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn passes(workspace: &Workspace) -> Result<Outcome> {
        workspace.read("Cargo.toml")?;
        Ok(Outcome { tally: Tally { passed: 2, ..Tally::default() }, problems: Vec::new() })
    }

    fn breaks(_: &Workspace) -> Result<Outcome> {
        Err("no such program".to_owned())
    }

    const TABLE: &[Stage] = &[
        Stage { name: "first", checks: "", run: passes },
        Stage { name: "second", checks: "", run: breaks },
        Stage { name: "third", checks: "", run: passes },
    ];

    fn names(only: Option<&str>) -> Result<Vec<&'static str>> {
        Ok(select(TABLE, only)?.iter().map(|stage| stage.name).collect())
    }

    #[test]
    fn stages_are_chosen_by_name_and_keep_their_order() {
        assert_eq!(names(None).unwrap(), ["first", "second", "third"]);
        assert_eq!(names(Some("third, first")).unwrap(), ["first", "third"]);
        let why = names(Some("first,thrid")).unwrap_err();
        assert!(why.contains("thrid") && why.contains("first, second, third"), "{why}");
    }

    #[test]
    fn one_broken_stage_makes_the_run_bad() {
        let workspace = Workspace::find().unwrap();
        let all: Vec<_> = TABLE.iter().collect();
        assert_eq!(run(&workspace, &all), Verdict::Bad);
        assert_eq!(run(&workspace, &all[..1]), Verdict::Good);
    }

    #[test]
    fn a_problem_without_a_failed_test_counts_as_a_failure() {
        let with = |failed, problems: &[&str]| Outcome {
            tally: Tally { passed: 5, failed, skipped: 0 },
            problems: problems.iter().map(ToString::to_string).collect(),
        };
        let table = [
            (with(0, &[]), 0),
            (with(0, &["warning: unused"]), 1),
            (with(0, &["one", "two"]), 1),
            (with(3, &["`cargo test` failed"]), 3),
        ];
        for (outcome, failed) in table {
            assert_eq!(settle(&outcome), Tally { passed: 5, failed, skipped: 0 }, "{outcome:?}");
        }
    }

    #[test]
    fn the_stages_have_names_of_their_own() {
        for (at, stage) in STAGES.iter().enumerate() {
            assert!(!STAGES[..at].iter().any(|other| other.name == stage.name), "{}", stage.name);
            assert!(!stage.checks.is_empty() && !stage.name.contains(','));
        }
    }
}
