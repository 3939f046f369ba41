//! `cargo xtask mutants`: breaks the code on purpose and counts how often the tests notice.
//!
//! `cargo-mutants`, whose version is pinned here, lists what can be broken; this chore draws a sample that can be drawn
//! again, tries it, and prints one score. `switched` tries all mutants with one build; with `--rebuild`, `cargo-mutants`
//! does it with a build for each.

mod listed;
mod options;
mod sample;
mod score;
mod switched;

use std::fs;

use crate::workspace::Workspace;
use crate::{Result, Verdict};
use listed::{Mutant, list, select};
use options::Options;
use score::Score;

const VERSION: &str = "27.1.0";

/// Where the results go, relative to the root; `cargo-mutants` makes `mutants.out` in it.
const OUTPUT: &str = "target/mutants";

/// The environment of randomised tests, unless the caller's environment says otherwise. Every mutant pays for
/// every repetition, and what is broken for all inputs is noticed by the first few; fewer repetitions can only let more
/// mutants through, and never make the score better than it is. Nobody reads the smallest input that fails either, and
/// looking for it takes so long that a mutant which was noticed would seem to hang.
const HASTE: [(&str, &str); 3] =
    [("PROPTEST_CASES", "64"), ("PROPTEST_MAX_SHRINK_ITERS", "0"), ("CLOUDBERTH_SEEDS", "20")];

pub(crate) fn command(workspace: &Workspace, args: lexopt::Parser) -> Result<Verdict> {
    let options = Options::parse(args).map_err(|why| why.to_string())?;
    install(workspace)?;
    let listed = list(workspace, &options.packages)?;
    let names: Vec<String> = listed.iter().map(|mutant| mutant.name.clone()).collect();
    let picked =
        options.sample.map_or_else(|| names.clone(), |count| sample::draw(&names, count, options.seed));
    println!("{} of {} mutants, seed {}", picked.len(), names.len(), options.seed);
    if picked.is_empty() {
        return Ok(Verdict::Good);
    }
    let score = if options.rebuild {
        rebuilt(workspace, &options, &names, &picked)?
    } else {
        let mutants: Vec<Mutant> =
            listed.into_iter().filter(|mutant| picked.contains(&mutant.name)).collect();
        switched::score(workspace, &options, &mutants)?
    };
    for (file, text) in score.files() {
        let path = workspace.path(OUTPUT).join(file);
        fs::write(&path, text).map_err(|why| format!("{}: {why}", path.display()))?;
    }
    println!("\n{score}");
    Ok(if score.reaches(options.bar) { Verdict::Good } else { Verdict::Bad })
}

/// Lets `cargo-mutants` try those that were picked.
fn rebuilt(workspace: &Workspace, options: &Options, names: &[String], picked: &[String]) -> Result<Score> {
    let narrow = (picked.len() < names.len()).then_some(picked);
    if options.quick.is_empty() {
        return pass(workspace, options, &["--tests".to_owned()], narrow, picked);
    }
    println!("first with the quick tests: {}", options.quick.join(" "));
    let first = pass(workspace, options, &options.quick, narrow, picked)?;
    println!("\n{first}\n");
    slow_pass(workspace, options, first)
}

/// Tries again, with all tests, what the quick ones let through. Those that timed out are not among them: the
/// tests that hung would hang again.
fn slow_pass(workspace: &Workspace, options: &Options, first: Score) -> Result<Score> {
    if first.missed.is_empty() {
        return Ok(first);
    }
    println!("{} survived the quick tests: now all tests", first.missed.len());
    let second = pass(workspace, options, &["--tests".to_owned()], Some(&first.missed), &first.missed)?;
    Ok(first.followed_by(second))
}

/// Tries the mutants of `narrow`, or all, and reads what became of those that were `picked`.
fn pass(
    workspace: &Workspace,
    options: &Options,
    targets: &[String],
    narrow: Option<&[String]>,
    picked: &[String],
) -> Result<Score> {
    try_out(workspace, options, targets, narrow)?;
    let score = Score::read(picked, |file| workspace.read(&format!("{OUTPUT}/mutants.out/{file}")))?;
    if score.tried() != picked.len() {
        return Err(format!("{} mutants were picked, but {} were tried", picked.len(), score.tried()));
    }
    Ok(score)
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

/// Tries the mutants named, or all, with the given test targets. Only the tests of the crate that
/// holds the mutant run, and no doc tests: they would be compiled again for every mutant.
fn try_out(
    workspace: &Workspace,
    options: &Options,
    targets: &[String],
    names: Option<&[String]>,
) -> Result<()> {
    let output = workspace.path(OUTPUT);
    fs::create_dir_all(&output).map_err(|why| format!("{}: {why}", output.display()))?;
    let mut command = workspace.cargo(&["mutants", "--test-workspace=false"]);
    command.args(targets.iter().map(|target| format!("--cargo-arg={target}")));
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
    // Reading the symbols of every panic takes longer than the tests.
    command.env("RUST_BACKTRACE", "0");
    command.envs(HASTE.into_iter().filter(|(name, _)| std::env::var_os(name).is_none()));
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
}
