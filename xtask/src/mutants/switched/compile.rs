//! Compiling mutants: all in one build, which takes some rounds until only those are left that compile; or one.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::process::Command;

use serde_json::Value;

use super::blame::{Message, Regions, culprits, refused};
use super::rewrite::rewrite;
use super::tree::Tree;
use crate::Result;
use crate::built::Built;
use crate::mutants::listed::Mutant;
use crate::mutants::score::Fate;
use crate::workspace::Workspace;

/// Compiles a package of the tree.
pub(crate) struct Compiler<'w> {
    pub(crate) workspace: &'w Workspace,
    pub(crate) package: String,
    /// Where cargo puts what it builds.
    pub(crate) target: PathBuf,
}

/// What came of a build.
pub(crate) struct Compiled {
    pub(crate) ok: bool,
    pub(crate) errors: Vec<Message>,
    pub(crate) built: Built,
    /// What cargo said besides.
    said: String,
}

impl Compiled {
    /// What an error of the compiler says of the only mutant. Cargo itself may fail too, which says nothing.
    pub(crate) fn refused(&self) -> Result<Fate> {
        if self.errors.is_empty() { Err(format!("cargo failed:\n{}", self.said)) } else { Ok(Fate::Unviable) }
    }
}

impl Compiler<'_> {
    /// Looks for errors in the libraries and programs; much quicker than building them.
    pub(crate) fn check(&self, tree: &Tree) -> Result<Compiled> {
        self.run(tree, &["check"])
    }

    /// Builds the tests.
    pub(crate) fn tests(&self, tree: &Tree) -> Result<Compiled> {
        self.run(tree, &["test", "--tests", "--no-run"])
    }

    fn run(&self, tree: &Tree, args: &[&str]) -> Result<Compiled> {
        let mut command = self.workspace.cargo(args);
        command.current_dir(&tree.root).args(["--package", &self.package, "--message-format=json"]);
        // Added to the flags that the workspace has. What is only untidy must not look broken.
        command.args(["--config", "build.rustflags=[\"--cap-lints=allow\"]"]).env_remove("RUSTFLAGS");
        command.env("CARGO_TARGET_DIR", &self.target);
        unoptimised(&mut command);
        let ran = command.output().map_err(|why| format!("cargo: {why}"))?;
        let mut compiled = Compiled {
            ok: ran.status.success(),
            errors: Vec::new(),
            built: Built::default(),
            said: String::from_utf8_lossy(&ran.stderr).into_owned(),
        };
        for line in String::from_utf8_lossy(&ran.stdout).lines() {
            compiled.built.hear(line);
            compiled.errors.extend(error(line));
        }
        Ok(compiled)
    }
}

/// Code without debug information is what compiles fastest.
pub(crate) fn unoptimised(command: &mut Command) {
    command.env("CARGO_PROFILE_DEV_DEBUG", "false").env("CARGO_PROFILE_TEST_DEBUG", "false");
}

/// The error that a message of cargo is about.
fn error(line: &str) -> Option<Message> {
    let mut value: Value = serde_json::from_str(line).ok()?;
    let message: Message = serde_json::from_value(value.get_mut("message")?.take()).ok()?;
    message.level.starts_with("error").then_some(message)
}

/// The build with all mutants that can be in it.
pub(crate) struct SideBySide {
    pub(crate) built: Built,
    /// The numbers of those that are in it.
    pub(crate) kept: BTreeSet<usize>,
    /// The numbers of those that do not compile in any build. The others have to be built alone to know.
    pub(crate) refused: BTreeSet<usize>,
}

/// Writes the mutants into the tree, and builds the tests with those that compile.
pub(crate) fn all(
    compiler: &Compiler<'_>,
    tree: &Tree,
    roots: &[String],
    mutants: &BTreeMap<usize, &Mutant>,
) -> Result<SideBySide> {
    let mut kept: BTreeSet<usize> = mutants.keys().copied().collect();
    let mut hopeless = BTreeSet::new();
    let returns_some = |number: &usize| {
        let function = mutants.get(number).and_then(|mutant| mutant.function.as_ref());
        function.is_some_and(|function| function.return_type.contains("impl "))
    };
    tree.write_switches(mutants.keys().last().map_or(1, |last| last + 1))?;
    let mut checked = false;
    for round in 1.. {
        let regions = write(tree, roots, mutants, &mut kept)?;
        let result = if checked { compiler.tests(tree)? } else { compiler.check(tree)? };
        if result.ok && checked {
            return Ok(SideBySide { built: result.built, kept, refused: hopeless });
        }
        checked |= result.ok;
        if result.ok {
            println!(
                "after {round} rounds {} mutants compile side by side, {} compile nowhere, {} are to be built alone",
                kept.len(),
                hopeless.len(),
                mutants.len() - kept.len() - hopeless.len()
            );
            continue;
        }
        let found: BTreeSet<usize> =
            result.errors.iter().flat_map(|error| culprits(error, &regions)).collect();
        if found.is_empty() {
            return Err(unexplained(&result));
        }
        let found_for_good = result.errors.iter().flat_map(|error| refused(error, &regions));
        hopeless.extend(found_for_good.filter(|number| !returns_some(number)));
        kept.retain(|number| !found.contains(number));
    }
    Err("compiling has no end".to_owned())
}

/// Writes every file that has mutants or is the first of a crate. Those without a place are no longer kept.
fn write(
    tree: &Tree,
    roots: &[String],
    mutants: &BTreeMap<usize, &Mutant>,
    kept: &mut BTreeSet<usize>,
) -> Result<Regions> {
    let mut files: BTreeMap<&str, Vec<(usize, &Mutant)>> =
        roots.iter().map(|root| (root.as_str(), Vec::new())).collect();
    for (number, mutant) in mutants {
        let here = files.entry(mutant.file.as_str()).or_default();
        if kept.contains(number) {
            here.push((*number, *mutant));
        }
    }
    let mut regions = Regions::new();
    for (file, here) in files {
        let mut done = rewrite(&tree.original(file)?, &here);
        if roots.iter().any(|root| root == file) {
            done.text.push_str(&tree.module());
        }
        tree.write(file, &done.text)?;
        kept.retain(|number| !done.left.contains(number));
        regions.insert(file.to_owned(), done.regions);
    }
    Ok(regions)
}

fn unexplained(compiled: &Compiled) -> String {
    let shown: Vec<&str> = compiled.errors.iter().filter_map(|error| error.rendered.as_deref()).collect();
    let shown = if shown.is_empty() { compiled.said.clone() } else { shown.join("\n") };
    format!(
        "the build with all mutants fails, and no mutant explains why (--rebuild builds one mutant at a time):\n{shown}"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_errors_of_the_compiler_are_taken() {
        let table = [
            (
                r#"{"reason":"compiler-message","message":{"level":"error","rendered":"bad","spans":[],"children":[]}}"#,
                Some("bad"),
            ),
            (
                r#"{"reason":"compiler-message","message":{"level":"warning","rendered":"odd","spans":[]}}"#,
                None,
            ),
            (r#"{"reason":"build-finished","success":false}"#, None),
            ("not json", None),
        ];
        for (line, want) in table {
            assert_eq!(error(line).and_then(|error| error.rendered).as_deref(), want, "{line}");
        }
    }
}
