//! `cargo xtask mutants`: breaks the code on purpose and counts how often the tests notice.
//!
//! The work is done by `cargo-mutants` in a copy of the tree; this chore pins its version, draws a sample that
//! can be drawn again, and prints one score.

mod sample;
mod score;

use std::fs;
use std::process::Command;

use lexopt::prelude::*;
use serde::Deserialize;

use crate::workspace::Workspace;
use crate::{Result, Verdict};
use score::Score;

const VERSION: &str = "27.1.0";

/// The score in per cent below which the chore fails.
const BAR: f64 = 90.0;

/// Where the results go, relative to the root; `cargo-mutants` makes `mutants.out` in it.
const OUTPUT: &str = "target/mutants";

#[derive(Debug, PartialEq, Eq)]
struct Options {
    packages: Vec<String>,
    /// How many to try; `None` means all.
    sample: Option<usize>,
    seed: u64,
    jobs: usize,
}

impl Options {
    fn parse(mut args: lexopt::Parser) -> std::result::Result<Self, lexopt::Error> {
        let mut options = Self { packages: Vec::new(), sample: Some(100), seed: 1, jobs: 1 };
        while let Some(arg) = args.next()? {
            match arg {
                Short('p') | Long("package") => options.packages.push(args.value()?.string()?),
                Long("sample") => options.sample = Some(args.value()?.parse()?),
                Long("all") => options.sample = None,
                Long("seed") => options.seed = args.value()?.parse()?,
                Short('j') | Long("jobs") => options.jobs = args.value()?.parse()?,
                other => return Err(other.unexpected()),
            }
        }
        if options.packages.is_empty() {
            return Err("name at least one crate with -p".into());
        }
        Ok(options)
    }
}

/// One entry of `cargo mutants --list --json`, as far as it matters here.
#[derive(Deserialize)]
struct Mutant {
    name: String,
}

pub(crate) fn command(workspace: &Workspace, args: lexopt::Parser) -> Result<Verdict> {
    let options = Options::parse(args).map_err(|why| why.to_string())?;
    install(workspace)?;
    let names = list(workspace, &options.packages)?;
    let picked =
        options.sample.map_or_else(|| names.clone(), |count| sample::draw(&names, count, options.seed));
    println!("{} of {} mutants, seed {}", picked.len(), names.len(), options.seed);
    if picked.is_empty() {
        return Ok(Verdict::Good);
    }
    let narrow = (picked.len() < names.len()).then_some(picked.as_slice());
    try_out(workspace, &options, narrow)?;
    let score = Score::read(&picked, |file| workspace.read(&format!("{OUTPUT}/mutants.out/{file}")))?;
    if score.tried() != picked.len() {
        return Err(format!("{} mutants were picked, but {} were tried", picked.len(), score.tried()));
    }
    println!("\n{score}");
    Ok(if score.percent().is_none_or(|percent| percent >= BAR) { Verdict::Good } else { Verdict::Bad })
}

fn install(workspace: &Workspace) -> Result<()> {
    let found = workspace.cargo(&["mutants", "--version"]).output().map_err(|why| format!("cargo: {why}"))?;
    if found.status.success() {
        return Ok(());
    }
    println!("cargo-mutants is missing: installing {VERSION}");
    let args = ["install", "cargo-mutants", "--locked", "--version", VERSION];
    let installed = workspace.cargo(&args).status().map_err(|why| format!("cargo: {why}"))?;
    if installed.success() { Ok(()) } else { Err(format!("`cargo {}` failed", args.join(" "))) }
}

fn list(workspace: &Workspace, packages: &[String]) -> Result<Vec<String>> {
    let mut command = workspace.cargo(&["mutants", "--list", "--json"]);
    let listed = select(&mut command, packages).output().map_err(|why| format!("cargo mutants: {why}"))?;
    if !listed.status.success() {
        return Err(format!("cargo mutants --list: {}", String::from_utf8_lossy(&listed.stderr).trim()));
    }
    let mutants: Vec<Mutant> = serde_json::from_slice(&listed.stdout)
        .map_err(|why| format!("cargo mutants --list --json: {why}"))?;
    Ok(mutants.into_iter().map(|mutant| mutant.name).collect())
}

fn select<'c>(command: &'c mut Command, packages: &[String]) -> &'c mut Command {
    command.args(packages.iter().flat_map(|package| ["--package", package.as_str()]))
}

/// Tries the mutants named, or all. Only the tests of the crate that holds the mutant run, and no doc tests:
/// they would compile anew for every mutant.
fn try_out(workspace: &Workspace, options: &Options, names: Option<&[String]>) -> Result<()> {
    let output = workspace.path(OUTPUT);
    fs::create_dir_all(&output).map_err(|why| format!("{}: {why}", output.display()))?;
    let mut command = workspace.cargo(&["mutants", "--test-workspace=false", "--cargo-arg=--tests"]);
    select(&mut command, &options.packages)
        .arg("--output")
        .arg(&output)
        .arg("-j")
        .arg(options.jobs.to_string());
    for name in names.unwrap_or_default() {
        command.arg("--re").arg(sample::exactly(name));
    }
    // Unoptimised code without debug information is what compiles fastest.
    command.env("CARGO_PROFILE_DEV_DEBUG", "false").env("CARGO_PROFILE_TEST_DEBUG", "false");
    let status = command.status().map_err(|why| format!("cargo mutants: {why}"))?;
    judged(status.code())
}

/// Whether `cargo-mutants` came to results, by its exit code.
fn judged(code: Option<i32>) -> Result<()> {
    match code {
        // All caught; some missed; some timed out.
        Some(0 | 2 | 3) => Ok(()),
        Some(4) => Err("the tests fail before anything is broken; see the output above".to_owned()),
        Some(code) => Err(format!("cargo mutants ended with code {code}")),
        None => Err("cargo mutants was stopped by a signal".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(args: &[&str]) -> std::result::Result<Options, String> {
        Options::parse(lexopt::Parser::from_args(args)).map_err(|why| why.to_string())
    }

    #[test]
    fn options_are_read_in_any_order() {
        let want = Options {
            packages: vec!["one".to_owned(), "two".to_owned()],
            sample: Some(300),
            seed: 9,
            jobs: 2,
        };
        assert_eq!(parse(&["--seed", "9", "-p", "one", "--sample=300", "-j2", "-ptwo"]).unwrap(), want);
        assert_eq!(parse(&["-p", "one", "--all"]).unwrap().sample, None);
    }

    #[test]
    fn only_a_run_that_came_to_results_is_judged() {
        for code in [0, 2, 3] {
            assert_eq!(judged(Some(code)), Ok(()), "{code}");
        }
        for (code, want) in [(Some(4), "before anything is broken"), (Some(70), "code 70"), (None, "signal")]
        {
            let why = judged(code).unwrap_err();
            assert!(why.contains(want), "{why}");
        }
    }

    #[test]
    fn mistakes_are_refused() {
        let table: &[(&[&str], &str)] = &[
            (&[], "name at least one crate with -p"),
            (&["-p", "one", "--sample", "few"], "few"),
            (&["-p", "one", "--sede", "1"], "--sede"),
            (&["one"], "one"),
        ];
        for (args, want) in table {
            let why = parse(args).unwrap_err();
            assert!(why.contains(want), "{why}");
        }
    }
}
