//! The quick way to try mutants: all of a sample are compiled into one build, each behind a switch, and the tests run
//! once for each with an environment variable that turns it on.

mod batches;
mod blame;
mod compile;
mod rewrite;
mod run;
mod source;
mod survey;
mod tree;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicUsize, Ordering};

use super::listed::Mutant;
use super::options::Options;
use super::score::{Fate, Score};
use super::{HASTE, OUTPUT};
use crate::Result;
use crate::built::TestProgram;
use crate::workspace::Workspace;
use batches::batches;
use compile::{Compiler, SideBySide};
use run::{Ended, limit, now};
use survey::{Program, Setting, Test};
use tree::Tree;

/// Tries mutants of any number of packages, each with the tests of its own.
pub(crate) fn score(workspace: &Workspace, options: &Options, mutants: &[Mutant]) -> Result<Score> {
    let output = workspace.path(OUTPUT);
    let tree = Tree::copy(workspace, &output)?;
    let mut score = Score::default();
    for package in mutants.iter().map(|mutant| mutant.package.as_str()).collect::<BTreeSet<_>>() {
        let here: BTreeMap<usize, &Mutant> =
            mutants.iter().enumerate().filter(|(_, mutant)| mutant.package == package).collect();
        let compiler = Compiler { workspace, package: package.to_owned(), target: output.join("build") };
        let roots = tree::roots(workspace, package)?;
        let setting =
            Setting { environment: environment(), jobs: options.jobs, notes: output.join("reached") };
        try_package(&compiler, &tree, &roots, &setting, &here, &mut score)?;
    }
    score.sort();
    Ok(score)
}

/// What test programs find in their environment, unless the caller's says otherwise.
fn environment() -> Vec<(&'static str, &'static str)> {
    let usual = [
        // Reading the symbols of every panic takes longer than the tests.
        ("RUST_BACKTRACE", "0"),
        // A function with many mutants has a large frame.
        ("RUST_MIN_STACK", "33554432"),
        // What one mutant failed on would be tried again with every other.
        ("PROPTEST_DISABLE_FAILURE_PERSISTENCE", "true"),
    ];
    let given = |name: &str| std::env::var_os(name).is_some();
    usual.into_iter().chain(HASTE.into_iter().filter(|(name, _)| !given(name))).collect()
}

fn try_package(
    compiler: &Compiler<'_>,
    tree: &Tree,
    roots: &[String],
    setting: &Setting,
    mutants: &BTreeMap<usize, &Mutant>,
    score: &mut Score,
) -> Result<()> {
    let start = now();
    println!("{}: compiling {} mutants side by side", compiler.package, mutants.len());
    let SideBySide { built, kept, refused } = compile::all(compiler, tree, roots, mutants)?;
    println!("built after {} s: running all tests with no mutant on", start.elapsed().as_secs());
    let programs = survey::programs(&built, setting)?;
    let tests = survey::tests(&programs, setting)?;
    println!("{} tests known after {} s: trying the mutants", tests.len(), start.elapsed().as_secs());
    let switched: Vec<(usize, &Mutant)> = mutants
        .iter()
        .filter(|(number, _)| kept.contains(number))
        .map(|(number, mutant)| (*number, *mutant))
        .collect();
    let progress = Progress::new(switched.len());
    let fates = survey::parallel(&switched, setting.jobs, |_, (number, mutant)| {
        let fate = try_switched(&programs, &tests, setting, *number)?;
        progress.tell(mutant, fate);
        Ok(fate)
    })?;
    for ((_, mutant), fate) in switched.iter().zip(fates) {
        score.put(&mutant.name, fate);
    }
    let (refused, left): (Vec<_>, Vec<_>) = mutants
        .iter()
        .filter(|(number, _)| !kept.contains(number))
        .partition(|(number, _)| refused.contains(number));
    for (_, mutant) in refused {
        score.put(&mutant.name, Fate::Unviable);
    }
    println!(
        "after {} s {} mutants are left, which are built one by one",
        start.elapsed().as_secs(),
        left.len()
    );
    for file in roots.iter().chain(mutants.values().map(|mutant| &mutant.file)) {
        tree.restore(file)?;
    }
    let progress = Progress::new(left.len());
    for (_, mutant) in left {
        let fate = try_alone(compiler, tree, &programs, setting, mutant)?;
        tree.restore(&mutant.file)?;
        progress.tell(mutant, fate);
        score.put(&mutant.name, fate);
    }
    println!("{}: done after {} s", compiler.package, start.elapsed().as_secs());
    Ok(())
}

/// Runs the tests that reach a mutant until one notices it.
fn try_switched(programs: &[Program], tests: &[Test], setting: &Setting, number: usize) -> Result<Fate> {
    let on = number.to_string();
    for batch in batches(tests, number) {
        let program = programs.get(batch.program).ok_or("a test has no program")?;
        let args = [&["--exact"], batch.names.as_slice()].concat();
        let more = [("CLOUDBERTH_MUTANT", on.as_str())];
        match setting.run(&program.program, &args, &more, limit(batch.took))? {
            Ended::Passed => {}
            Ended::Failed => return Ok(Fate::Caught),
            Ended::TimedOut => return Ok(Fate::TimedOut),
        }
    }
    Ok(Fate::Missed)
}

/// Builds the tests with one mutant and no switch, and runs all of them.
fn try_alone(
    compiler: &Compiler<'_>,
    tree: &Tree,
    usual: &[Program],
    setting: &Setting,
    mutant: &Mutant,
) -> Result<Fate> {
    let text = rewrite::plainly(&tree.original(&mutant.file)?, mutant)
        .ok_or_else(|| format!("{}: the file has no such place", mutant.name))?;
    tree.write(&mutant.file, &text)?;
    let checked = compiler.check(tree)?;
    if !checked.ok {
        return checked.refused();
    }
    let tests = compiler.tests(tree)?;
    if !tests.ok {
        return tests.refused();
    }
    let took = |program: &TestProgram| {
        let same = usual.iter().filter(|known| known.program.target == program.target);
        // A library and a program may have the same name.
        same.map(|known| known.took).max().unwrap_or_default()
    };
    let mut programs: Vec<&TestProgram> = tests.built.tests.iter().collect();
    programs.sort_by_key(|program| took(program));
    for program in programs {
        match setting.run(program, &[], &[], limit(took(program)))? {
            Ended::Passed => {}
            Ended::Failed => return Ok(Fate::Caught),
            Ended::TimedOut => return Ok(Fate::TimedOut),
        }
    }
    Ok(Fate::Missed)
}

/// Says what has come of the mutants so far.
struct Progress {
    all: usize,
    done: AtomicUsize,
}

impl Progress {
    fn new(all: usize) -> Self {
        Self { all, done: AtomicUsize::new(0) }
    }

    fn tell(&self, mutant: &Mutant, fate: Fate) {
        let done = 1 + self.done.fetch_add(1, Ordering::Relaxed);
        match fate {
            Fate::Missed => println!("survived   {}", mutant.name),
            Fate::TimedOut => println!("timed out  {}", mutant.name),
            Fate::Caught | Fate::Unviable => {}
        }
        if done.is_multiple_of(50) {
            println!("{done} of {}", self.all);
        }
    }
}

#[cfg(test)]
mod tests;
