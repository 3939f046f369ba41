//! `cargo xtask sim`: the deterministic simulation, by hand or as a stage of the suite.

use lexopt::prelude::*;

use crate::stages::{Outcome, cargo};
use crate::workspace::Workspace;
use crate::{Result, Verdict};

/// What the suite runs: every law holds, and a program that breaks one is caught.
const SUITE: &[&[&str]] = &[
    &["--seeds", "200"],
    &["--seeds", "200", "--break", "2"],
    &["--seeds", "200", "--break", "4"],
    &["--seeds", "200", "--break", "5"],
    &["--seeds", "200", "--break", "6"],
    &["--seeds", "200", "--break", "7"],
    &["--seeds", "200", "--break", "9"],
];

pub(crate) fn command(workspace: &Workspace, mut args: lexopt::Parser) -> Result<Verdict> {
    let args = accepted(&mut args).map_err(|why| why.to_string())?;
    let args: Vec<_> = args.iter().map(String::as_str).collect();
    let outcome = run(workspace, &args)?;
    Ok(if outcome.problems.is_empty() { Verdict::Good } else { Verdict::Bad })
}

/// The arguments as they were given. What the simulation would refuse is refused before it is built.
fn accepted(args: &mut lexopt::Parser) -> std::result::Result<Vec<String>, lexopt::Error> {
    let mut all = Vec::new();
    while let Some(arg) = args.next()? {
        match arg {
            Long(name @ ("seeds" | "seed" | "break")) => {
                all.push(format!("--{name}"));
                all.push(args.value()?.string()?);
            }
            Long("log") => all.push("--log".to_owned()),
            other => return Err(other.unexpected()),
        }
    }
    Ok(all)
}

pub(crate) fn stage(workspace: &Workspace) -> Result<Outcome> {
    let mut outcome = Outcome::default();
    for args in SUITE {
        let ran = run(workspace, args)?;
        if ran.problems.is_empty() {
            outcome.tally.passed += 1;
        } else {
            outcome.tally.failed += 1;
        }
        outcome.problems.extend(ran.problems);
    }
    Ok(outcome)
}

fn run(workspace: &Workspace, args: &[&str]) -> Result<Outcome> {
    let program = ["run", "--quiet", "--release", "--package", "simulation", "--"];
    let all: Vec<_> = program.into_iter().chain(args.iter().copied()).collect();
    cargo(workspace, &all, &[])
}
