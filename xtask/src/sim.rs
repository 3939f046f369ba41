//! `cargo xtask sim`: the deterministic simulation, by hand or as a stage of the suite.

use std::hash::{BuildHasher, RandomState};

use lexopt::prelude::*;

use crate::stages::{Outcome, cargo};
use crate::workspace::Workspace;
use crate::{Result, Verdict};

/// What the suite runs: every law holds and every plan is kept, and a program that breaks one is caught. That usually takes a few dozen seeds, and
/// the first one that catches it ends the run; with 200 from anywhere a rare fault would slip through now and then.
const SUITE: &[&[&str]] = &[
    &["--seeds", "200"],
    &["--seeds", "2000", "--break", "2"],
    &["--seeds", "2000", "--break", "2-uid"],
    &["--seeds", "2000", "--break", "4"],
    &["--seeds", "2000", "--break", "5"],
    &["--seeds", "2000", "--break", "6"],
    &["--seeds", "2000", "--break", "7"],
    &["--seeds", "2000", "--break", "9"],
    &["--seeds", "2000", "--break", "9-release"],
    &["--seeds", "2000", "--break", "plan"],
];

/// Says where the seeds begin; without it they begin somewhere else each time.
const BASE: &str = "CLOUDBERTH_SEED_BASE";

pub(crate) fn command(workspace: &Workspace, mut args: lexopt::Parser) -> Result<Verdict> {
    let args = accepted(&mut args).map_err(|why| why.to_string())?;
    let mut args: Vec<_> = args.iter().map(String::as_str).collect();
    let base;
    if !args.iter().any(|arg| matches!(*arg, "--first" | "--seed")) {
        base = first_seed(std::env::var(BASE).ok().as_deref())?.to_string();
        args.extend(["--first", &base]);
    }
    let outcome = run(workspace, &args)?;
    Ok(if outcome.problems.is_empty() { Verdict::Good } else { Verdict::Bad })
}

/// The arguments as they were given. What the simulation would refuse is refused before it is built.
fn accepted(args: &mut lexopt::Parser) -> std::result::Result<Vec<String>, lexopt::Error> {
    let mut all = Vec::new();
    while let Some(arg) = args.next()? {
        match arg {
            Long(name @ ("seeds" | "seed" | "first" | "break")) => {
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
    let base = first_seed(std::env::var(BASE).ok().as_deref())?.to_string();
    println!("seeds from {base} on; {BASE}={base} runs the same ones again");
    for args in SUITE {
        let args: Vec<_> = args.iter().copied().chain(["--first", &base]).collect();
        let ran = run(workspace, &args)?;
        if ran.problems.is_empty() {
            outcome.tally.passed += 1;
        } else {
            outcome.tally.failed += 1;
        }
        outcome.problems.extend(ran.problems);
    }
    Ok(outcome)
}

/// The first seed: the one that was asked for, or any. Whoever always began at the same one would live the same lives
/// again and again.
fn first_seed(asked: Option<&str>) -> Result<u64> {
    match asked {
        Some(text) => text.parse().map_err(|_| format!("{BASE} is {text:?}; it must be a number")),
        // Short enough to be read out.
        None => Ok(RandomState::new().hash_one(0) % 1_000_000_000),
    }
}

fn run(workspace: &Workspace, args: &[&str]) -> Result<Outcome> {
    let program = ["run", "--quiet", "--release", "--package", "simulation", "--"];
    let all: Vec<_> = program.into_iter().chain(args.iter().copied()).collect();
    cargo(workspace, &all, &[])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn seeds_begin_where_they_are_told_and_otherwise_anywhere() {
        assert_eq!(first_seed(Some("970887447")).unwrap(), 970_887_447);
        let why = first_seed(Some("x")).unwrap_err();
        assert_eq!(why, "CLOUDBERTH_SEED_BASE is \"x\"; it must be a number");
        let drawn: std::collections::BTreeSet<_> = (0..4).map(|_| first_seed(None).unwrap()).collect();
        assert!(drawn.len() > 1, "{drawn:?}");
    }
}
