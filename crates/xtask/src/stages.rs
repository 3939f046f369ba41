//! The stages of the suite, in the order in which they run. A new stage is one more row of [`STAGES`].

use crate::process::stream;
use crate::tally::Tally;
use crate::workspace::Workspace;
use crate::{Result, Verdict, cases, docs};

/// One stage of `cargo xtask test`.
#[derive(Debug)]
pub(crate) struct Stage {
    pub(crate) name: &'static str,
    pub(crate) checks: &'static str,
    pub(crate) run: fn(&Workspace) -> Result<Outcome>,
}

/// What a stage found out.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Outcome {
    pub(crate) tally: Tally,
    /// What is wrong besides failed tests, one line each.
    pub(crate) problems: Vec<String>,
}

pub(crate) const STAGES: &[Stage] = &[
    Stage { name: "format", checks: "`cargo fmt` would change nothing", run: format },
    Stage { name: "clippy", checks: "no lint and no compiler warning, in tests too", run: clippy },
    Stage {
        name: "docs",
        checks: "API docs build without warnings, generated text is up to date, links between files resolve",
        run: docs,
    },
    Stage { name: "cases", checks: "no numbered case that is owned lacks a test", run: cases },
    Stage { name: "unit", checks: "unit, integration and doc tests of every crate", run: unit },
];

fn format(workspace: &Workspace) -> Result<Outcome> {
    cargo(workspace, &["fmt", "--all", "--check"], &[])
}

fn clippy(workspace: &Workspace) -> Result<Outcome> {
    cargo(workspace, &["clippy", "--workspace", "--all-targets", "--", "-D", "warnings"], &[])
}

fn docs(workspace: &Workspace) -> Result<Outcome> {
    let mut outcome =
        cargo(workspace, &["doc", "--workspace", "--no-deps"], &[("RUSTDOCFLAGS", "-D warnings")])?;
    outcome.problems.extend(docs::problems(workspace)?);
    Ok(outcome)
}

fn cases(workspace: &Workspace) -> Result<Outcome> {
    let mut outcome = Outcome::default();
    if cases::report(workspace, &cases::Options::default())? == Verdict::Bad {
        outcome.problems.push("a case is missing or misused: see the list above".to_owned());
    }
    Ok(outcome)
}

/// `--all-targets` leaves doc tests out, hence the second run.
fn unit(workspace: &Workspace) -> Result<Outcome> {
    let mut outcome = cargo(workspace, &["test", "--workspace", "--all-targets", "--no-fail-fast"], &[])?;
    let doc_tests = cargo(workspace, &["test", "--workspace", "--doc", "--no-fail-fast"], &[])?;
    outcome.tally += doc_tests.tally;
    outcome.problems.extend(doc_tests.problems);
    Ok(outcome)
}

fn cargo(workspace: &Workspace, args: &[&str], env: &[(&str, &str)]) -> Result<Outcome> {
    let mut outcome = Outcome::default();
    let mut command = workspace.cargo(args);
    command.envs(env.iter().copied());
    let ran = stream(&mut command, |line| {
        if let Some(more) = Tally::from_line(line) {
            outcome.tally += more;
        }
    })?;
    if !ran.ok {
        outcome.problems.push(format!("`cargo {}` failed", args.join(" ")));
    }
    outcome.problems.extend(ran.warnings);
    Ok(outcome)
}
