//! The tests of the whole workspace, built once for every stage that runs some of them.
//!
//! Cargo picks the features of a dependency by the packages that it is asked for: a stage that asked for its own package
//! alone would compile most of the others again.

use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

use crate::Result;
use crate::process::{Ran, listen, stream, stream_as_one};
use crate::stages::Outcome;
use crate::tally::Tally;
use crate::workspace::Workspace;

/// Everything that `cargo test` would run, doc tests aside.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Built {
    pub(crate) tests: Vec<TestProgram>,
    /// The programs of the workspace, as the tests see them.
    programs: Vec<PathBuf>,
    /// What the compiler said.
    pub(crate) warnings: Vec<String>,
}

/// One program with tests in it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct TestProgram {
    pub(crate) package: String,
    /// The name of the test file, library or program.
    pub(crate) target: String,
    /// Where the package is. Tests run there.
    folder: PathBuf,
    program: PathBuf,
}

impl Built {
    /// Builds what is not up to date.
    pub(crate) fn make(workspace: &Workspace) -> Result<Self> {
        let mut built = Self::default();
        let args = ["test", "--workspace", "--all-targets", "--no-run"];
        let mut command = workspace.cargo(&args);
        command.arg("--message-format=json-render-diagnostics");
        let ran = listen(&mut command, |line| built.hear(line))?;
        if !ran.ok {
            return Err(format!("`cargo {}` failed", args.join(" ")));
        }
        built.tests.sort_by(|a, b| (&a.package, &a.target).cmp(&(&b.package, &b.target)));
        built.warnings = ran.warnings;
        Ok(built)
    }

    /// Takes in one message of cargo.
    pub(crate) fn hear(&mut self, message: &str) {
        let Ok(message) = serde_json::from_str::<Value>(message) else { return };
        let text = |pointer: &str| message.pointer(pointer).and_then(Value::as_str);
        let (Some(program), Some(manifest), Some(target)) =
            (text("/executable"), text("/manifest_path"), text("/target/name"))
        else {
            return;
        };
        if message.pointer("/profile/test") != Some(&Value::Bool(true)) {
            self.programs.push(program.into());
            return;
        }
        let folder = Path::new(manifest).parent().unwrap_or(Path::new("")).to_path_buf();
        self.tests.push(TestProgram {
            package: package_name(text("/package_id").unwrap_or_default()),
            target: target.to_owned(),
            folder,
            program: program.into(),
        });
    }

    /// The path of a program of the workspace.
    pub(crate) fn program(&self, name: &str) -> Option<&Path> {
        self.programs
            .iter()
            .map(PathBuf::as_path)
            .find(|path| path.file_stem().is_some_and(|stem| stem == name))
    }

    /// The tests of one file of a package.
    pub(crate) fn test(&self, package: &str, target: &str) -> Result<&TestProgram> {
        let found = self.tests.iter().find(|test| test.package == package && test.target == target);
        found.ok_or_else(|| format!("{package} has no tests in {target}"))
    }
}

/// Builds an example of the workspace, with the features that the tests are built with, and says where it is.
pub(crate) fn example(workspace: &Workspace, name: &str) -> Result<PathBuf> {
    let mut built = Built::default();
    let args = ["build", "--workspace", "--example", name];
    let mut command = workspace.cargo(&args);
    command.arg("--message-format=json-render-diagnostics");
    let ran = listen(&mut command, |line| built.hear(line))?;
    let found = built.program(name).filter(|_| ran.ok).map(Path::to_path_buf);
    found.ok_or_else(|| format!("`cargo {}` failed", args.join(" ")))
}

/// Of `path+file:///src/crates/core#cloudberth-core@0.1.0`, or `…/crates/core#0.1.0` where the folder has the name.
fn package_name(id: &str) -> String {
    let (place, version) = id.rsplit_once('#').unwrap_or((id, ""));
    let name = version.split_once('@').map(|(name, _)| name);
    name.or_else(|| place.rsplit('/').next()).unwrap_or_default().to_owned()
}

impl TestProgram {
    /// The command that cargo would run.
    pub(crate) fn command(&self, args: &[&str], env: &[(&str, &str)]) -> Command {
        let mut command = Command::new(&self.program);
        command.args(args).current_dir(&self.folder);
        command.env("CARGO_MANIFEST_DIR", &self.folder).env("CARGO_PKG_NAME", &self.package);
        command.envs(env.iter().copied());
        command
    }

    /// Runs its tests and passes on what they print.
    pub(crate) fn run(&self, args: &[&str], env: &[(&str, &str)]) -> Result<Outcome> {
        println!("     Running {} of {}", self.target, self.package);
        self.judged(|command, on_line| stream(command, on_line), args, env)
    }

    /// The same, but all that they print comes at once when they have ended.
    pub(crate) fn run_as_one(&self, args: &[&str], env: &[(&str, &str)]) -> Result<Outcome> {
        let outcome = self.judged(|command, on_line| stream_as_one(command, on_line), args, env);
        println!("     Ran {} of {}", self.target, self.package);
        outcome
    }

    fn judged(
        &self,
        run: impl Fn(&mut Command, &mut (dyn FnMut(&str) + Send)) -> Result<Ran>,
        args: &[&str],
        env: &[(&str, &str)],
    ) -> Result<Outcome> {
        let mut outcome = Outcome::default();
        let ran = run(&mut self.command(args, env), &mut |line| {
            if let Some(more) = Tally::from_line(line) {
                outcome.tally += more;
            }
        })?;
        if !ran.ok {
            outcome.problems.push(format!("the tests in {} of {} failed", self.target, self.package));
        }
        Ok(outcome)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::workspace::Sample;

    #[test]
    fn packages_are_called_by_their_names() {
        let table = [
            ("path+file:///src/crates/core#cloudberth-core@0.1.0", "cloudberth-core"),
            ("path+file:///src/testing/bench#0.1.0", "bench"),
        ];
        for (id, name) in table {
            assert_eq!(package_name(id), name);
        }
    }

    #[test]
    fn tests_and_programs_are_told_apart_and_run_in_their_folder() {
        let files = [
            ("Cargo.toml", "[workspace]\nresolver = \"3\"\nmembers = [\"a\"]\n"),
            ("a/Cargo.toml", "[package]\nname = \"sample\"\nedition = \"2024\"\n"),
            ("a/src/main.rs", "fn main() {}\n"),
            ("a/examples/tool.rs", "fn main() {}\n"),
            ("a/here.txt", ""),
            (
                "a/tests/it.rs",
                "#[test] fn here() { assert!(std::fs::exists(\"here.txt\").unwrap()); }\n\
                 #[test] fn set() { assert_eq!(std::env::var(\"WANTED\").unwrap(), \"yes\"); }\n",
            ),
        ];
        let sample = Sample::new("built", &files);
        let built = sample.workspace.built().unwrap();
        assert!(built.program("sample").is_some() && built.program("it").is_none(), "{built:?}");
        let test = built.test("sample", "it").unwrap();
        let good = test.run(&[], &[("WANTED", "yes")]).unwrap();
        assert_eq!(good, Outcome { tally: Tally { passed: 2, failed: 0, skipped: 0 }, problems: vec![] });
        let bad = test.run_as_one(&[], &[("WANTED", "no")]).unwrap();
        assert_eq!(bad.tally, Tally { passed: 1, failed: 1, skipped: 0 });
        assert_eq!(bad.problems, ["the tests in it of sample failed"]);
        assert!(built.test("sample", "other").unwrap_err().contains("other"));
        assert!(example(&sample.workspace, "tool").unwrap().ends_with("examples/tool"));
        assert!(example(&sample.workspace, "none").is_err());
    }
}
