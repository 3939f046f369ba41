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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::workspace::Sample;

    const MANIFEST: &str = "[package]\nname = \"sample\"\nedition = \"2024\"\n[workspace]\n";

    fn sample(name: &str, lib: &str, test: &str) -> Sample {
        Sample::new(name, &[("Cargo.toml", MANIFEST), ("src/lib.rs", lib), ("tests/a.rs", test)])
    }

    #[test]
    fn the_unit_stage_adds_up_every_kind_of_test() {
        let lib =
            "/// ```\n/// assert!(true);\n/// ```\npub fn f() {}\n#[test] fn a() {}\n#[test] fn b() {}\n";
        let tests = "#[test] fn good() {}\n#[test] #[ignore] fn slow() {}\n";
        let outcome = unit(&sample("unit good", lib, tests).workspace).unwrap();
        assert_eq!(outcome, Outcome { tally: Tally { passed: 4, failed: 0, skipped: 1 }, problems: vec![] });
    }

    #[test]
    fn the_unit_stage_goes_on_after_a_failure_and_fails_on_a_warning() {
        let lib = "#[test] fn a() { assert!(std::env::args().count() == 0) }\n";
        let tests = "fn unused() {}\n#[test] fn good() {}\n";
        let outcome = unit(&sample("unit bad", lib, tests).workspace).unwrap();
        assert_eq!(outcome.tally, Tally { passed: 1, failed: 1, skipped: 0 });
        let has = |text| outcome.problems.iter().any(|problem| problem.contains(text));
        assert!(has("warning: function `unused` is never used") && has("`cargo test"), "{outcome:?}");
    }

    #[test]
    fn the_format_stage_sees_what_rustfmt_would_change() {
        let good = sample("format good", "pub fn f() {}\n", "use sample as _;\n");
        assert_eq!(format(&good.workspace).unwrap(), Outcome::default());
        let bad = sample("format bad", "pub fn f( ) { }\n", "use sample as _;\n");
        assert_eq!(format(&bad.workspace).unwrap().problems, ["`cargo fmt --all --check` failed"]);
    }
}
