//! The stages of the suite, in the order in which they run. A new stage is one more row of [`STAGES`].

use std::thread;

use crate::built::TestProgram;
use crate::process::stream;
use crate::tally::Tally;
use crate::workspace::Workspace;
use crate::{Result, Verdict, cases, chart, deps, docs, kube, monitoring, page, sim, words};

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

impl Outcome {
    /// Adds what another part of the stage found out. Both see the warnings of what they share.
    pub(crate) fn add(&mut self, more: Self) {
        self.tally += more.tally;
        for problem in more.problems {
            if !self.problems.contains(&problem) {
                self.problems.push(problem);
            }
        }
    }
}

pub(crate) const STAGES: &[Stage] = &[
    Stage { name: "format", checks: "`cargo fmt` would change nothing", run: format },
    Stage { name: "clippy", checks: "no lint and no compiler warning, in tests too", run: clippy },
    Stage {
        name: "docs",
        checks: "API docs build without warnings, generated text is up to date, no crate depends on a higher one, links between files and to headings resolve, every page is in the table of contents once, commands name what is there and runnable ones are run by a test, no retired word is used",
        run: docs,
    },
    Stage {
        name: "deps",
        checks: "no dependency breaks a rule of `deny.toml`: licences, versions, sources",
        run: deps::stage,
    },
    Stage {
        name: "cases",
        checks: "no numbered case that is owned lacks a test of code that the program uses",
        run: cases,
    },
    Stage {
        name: "unit",
        checks: "unit, integration and doc tests of every crate that needs no real Kubernetes and no browser",
        run: unit,
    },
    Stage {
        name: "simulation",
        checks: "200 seeds keep every law, and a program that breaks one is caught",
        run: sim::stage,
    },
    Stage {
        name: "monitoring",
        checks: "every alert fires in one test and is silent in another, has a runbook, and asks for metrics that the program exports, as the dashboard does; promtool finds no fault with a metric but what is accepted by name",
        run: monitoring::stage,
    },
    Stage {
        name: "page",
        checks: "the sandbox's page works in a real browser, by mouse and by keyboard, and the browser finds no fault with it",
        run: page::stage,
    },
    Stage {
        name: "chart",
        checks: "helm finds no fault with the chart, the plain manifests and the snapshots are what it makes, values that it cannot carry out are refused by name",
        run: chart::stage,
    },
    Stage {
        name: "kube",
        checks: "a real control plane, kubectl and client-go agree with the embedded API; every scenario passes on both; nothing is left behind",
        run: kube::stage,
    },
];

/// The packages whose tests start real Kubernetes programs; the kube stage runs them.
pub(crate) const NEEDS_KUBERNETES: &[&str] = &["cloudberth-e2e"];

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
    outcome.problems.extend(words::problems(workspace)?);
    Ok(outcome)
}

fn cases(workspace: &Workspace) -> Result<Outcome> {
    let mut outcome = Outcome::default();
    if cases::report(workspace, &cases::Options::default())? == Verdict::Bad {
        outcome.problems.push("a case is missing or misused: see the list above".to_owned());
    }
    Ok(outcome)
}

/// The packages whose tests mostly wait: for sockets, for other programs, for real time. They run one after the other,
/// because some want the same ports; the others compute, and do so beside them.
const WAIT: &[&str] = &[
    "cloudberth",
    "cloudberth-cloudlycke",
    "cloudberth-lycke",
    "cloudberth-rancher-fip",
    "cloudberth-serving",
    "embedded-kube",
    "kube-assets",
    "xtask",
];

fn unit(workspace: &Workspace) -> Result<Outcome> {
    let built = workspace.built()?;
    let run = |tests: &[&TestProgram]| {
        let mut outcome = Outcome::default();
        for test in tests {
            outcome.add(test.run_as_one(&["--skip", page::IN_A_BROWSER], &[])?);
        }
        Ok(outcome)
    };
    let here = built.tests.iter().filter(|test| !NEEDS_KUBERNETES.contains(&test.package.as_str()));
    let (wait, compute): (Vec<_>, Vec<_>) = here.partition(|test| WAIT.contains(&test.package.as_str()));
    let mut outcome = side_by_side([&|| run(&wait), &|| run(&compute)])?;
    outcome.problems.extend_from_slice(&built.warnings);
    // Of the whole workspace, so that nothing is compiled again.
    outcome.add(cargo(workspace, &["test", "--workspace", "--doc", "--no-fail-fast"], &[])?);
    Ok(outcome)
}

/// Runs parts of a stage at the same time.
pub(crate) fn side_by_side<const N: usize>(
    parts: [&(dyn Fn() -> Result<Outcome> + Sync); N],
) -> Result<Outcome> {
    let ended = thread::scope(|scope| {
        let started = parts.map(|part| scope.spawn(part));
        started.map(|part| part.join().unwrap_or_else(|_| Err("a part of the stage panicked".to_owned())))
    });
    let mut outcome = Outcome::default();
    for part in ended {
        outcome.add(part?);
    }
    Ok(outcome)
}

/// Runs cargo, counts the tests in its output and keeps its warnings.
pub(crate) fn cargo(workspace: &Workspace, args: &[&str], env: &[(&str, &str)]) -> Result<Outcome> {
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

    const MANIFEST: &str =
        "[package]\nname = \"sample\"\nedition = \"2024\"\n[workspace]\nmembers = [\"e2e\"]\n";
    const NOT_HERE: &str = "[package]\nname = \"cloudberth-e2e\"\nedition = \"2024\"\n";

    /// A workspace of two: one package, and one whose tests would fail without a real Kubernetes.
    fn sample(name: &str, lib: &str, test: &str) -> Sample {
        Sample::new(
            name,
            &[
                ("Cargo.toml", MANIFEST),
                ("src/lib.rs", lib),
                ("tests/a.rs", test),
                ("e2e/Cargo.toml", NOT_HERE),
                ("e2e/src/lib.rs", "#[test]\nfn a() {\n    panic!()\n}\n"),
            ],
        )
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
        assert!(has("warning: function `unused` is never used"), "{outcome:?}");
        assert!(has("the tests in sample of sample failed"), "{outcome:?}");
    }

    #[test]
    fn parts_run_at_the_same_time_and_add_up() {
        let meet = std::sync::Barrier::new(2);
        let part = |problems: &[&str]| {
            meet.wait();
            let problems = problems.iter().map(ToString::to_string).collect();
            Ok(Outcome { tally: Tally { passed: 1, ..Tally::default() }, problems })
        };
        let outcome = side_by_side([&|| part(&["both", "first"]), &|| part(&["both"])]).unwrap();
        let problems = vec!["both".to_owned(), "first".to_owned()];
        assert_eq!(outcome, Outcome { tally: Tally { passed: 2, ..Tally::default() }, problems });
        assert_eq!(side_by_side([&|| Err("no cargo".to_owned())]), Err("no cargo".to_owned()));
    }

    #[test]
    fn the_format_stage_sees_what_rustfmt_would_change() {
        let good = sample("format good", "pub fn f() {}\n", "use sample as _;\n");
        assert_eq!(format(&good.workspace).unwrap(), Outcome::default());
        let bad = sample("format bad", "pub fn f( ) { }\n", "use sample as _;\n");
        assert_eq!(format(&bad.workspace).unwrap().problems, ["`cargo fmt --all --check` failed"]);
    }
}
