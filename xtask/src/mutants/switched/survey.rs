//! Running the tests with no mutant on: whether they pass, how long each takes, and which mutants each reaches.
//!
//! Every test runs in a process of its own for this. What a test does not reach then it would not notice, whichever
//! threads it starts and whatever it shares with other tests; so only the tests that reach a mutant need to run with it.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::Duration;

use super::run::{Ended, limit, now, run};
use crate::Result;
use crate::built::{Built, TestProgram};

/// How long all tests of a program may take when nothing is broken.
const WHOLE: Duration = Duration::from_secs(1800);

/// One program with tests, and how long all of them take together.
pub(crate) struct Program {
    pub(crate) program: TestProgram,
    pub(crate) took: Duration,
}

/// One test.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Test {
    /// The place of its program in the list.
    pub(crate) program: usize,
    pub(crate) name: String,
    pub(crate) took: Duration,
    pub(crate) reaches: BTreeSet<usize>,
}

/// How test programs are run.
pub(crate) struct Setting {
    pub(crate) environment: Vec<(&'static str, &'static str)>,
    pub(crate) jobs: usize,
    /// A folder for what the programs write down.
    pub(crate) notes: PathBuf,
}

impl Setting {
    pub(crate) fn run(
        &self,
        program: &TestProgram,
        args: &[&str],
        more: &[(&str, &str)],
        limit: Duration,
    ) -> Result<Ended> {
        let environment = [self.environment.as_slice(), more].concat();
        run(&program.command(args, &environment), limit)
    }
}

/// Runs all tests of the programs; the quickest program comes first in what is returned. An error if any fails.
pub(crate) fn programs(built: &Built, setting: &Setting) -> Result<Vec<Program>> {
    let mut programs = Vec::new();
    for program in &built.tests {
        let start = now();
        if setting.run(program, &[], &[], WHOLE)? != Ended::Passed {
            return Err(format!("the tests in {} fail before anything is broken", program.target));
        }
        programs.push(Program { program: program.clone(), took: start.elapsed() });
    }
    programs.sort_by_key(|program| program.took);
    Ok(programs)
}

/// Runs every test by itself.
pub(crate) fn tests(programs: &[Program], setting: &Setting) -> Result<Vec<Test>> {
    fs::create_dir_all(&setting.notes).map_err(|why| format!("{}: {why}", setting.notes.display()))?;
    let mut wanted = Vec::new();
    for (place, program) in programs.iter().enumerate() {
        wanted.extend(names(&program.program)?.into_iter().map(|name| (place, name)));
    }
    parallel(&wanted, setting.jobs, |at, (place, name)| {
        let program = programs.get(*place).ok_or("a test has no program")?;
        let notes = setting.notes.join(at.to_string());
        // Once more, because a test that runs in real time can fail on a computer that is busy.
        let tried = alone(program, name, setting, &notes)?
            .map_or_else(|| alone(program, name, setting, &notes), |good| Ok(Some(good)))?;
        let (took, reaches) = tried.ok_or_else(|| {
            format!("{name} in {} fails when it runs alone, with no mutant on", program.program.target)
        })?;
        Ok(Test { program: *place, name: name.clone(), took, reaches })
    })
}

/// Runs one test; `None` if it does not pass.
fn alone(
    program: &Program,
    name: &str,
    setting: &Setting,
    notes: &Path,
) -> Result<Option<(Duration, BTreeSet<usize>)>> {
    let _ = fs::remove_file(notes);
    let path = notes.to_string_lossy();
    let start = now();
    let ended = setting.run(
        &program.program,
        &["--exact", name],
        &[("CLOUDBERTH_MUTANTS_REACHED", &path)],
        limit(program.took),
    )?;
    let took = start.elapsed();
    let reaches = numbers(&fs::read_to_string(notes).unwrap_or_default());
    let _ = fs::remove_file(notes);
    Ok((ended == Ended::Passed).then_some((took, reaches)))
}

/// The tests of a program that are not ignored.
fn names(program: &TestProgram) -> Result<Vec<String>> {
    let list = |more: &[&str]| -> Result<Vec<String>> {
        let args = [&["--list", "--format", "terse"], more].concat();
        let ran = program.command(&args, &[]).output().map_err(|why| format!("{}: {why}", program.target))?;
        if !ran.status.success() {
            return Err(format!("{} does not list its tests", program.target));
        }
        let text = String::from_utf8_lossy(&ran.stdout);
        Ok(text.lines().filter_map(|line| line.strip_suffix(": test")).map(str::to_owned).collect())
    };
    let ignored = list(&["--ignored"])?;
    Ok(list(&[])?.into_iter().filter(|name| !ignored.contains(name)).collect())
}

/// The numbers that the switches wrote down.
fn numbers(text: &str) -> BTreeSet<usize> {
    text.lines().filter_map(|line| line.parse().ok()).collect()
}

/// Does the same with every item, some at a time, and returns the results in order, or the first error.
pub(crate) fn parallel<T: Sync, R: Send>(
    items: &[T],
    jobs: usize,
    work: impl Fn(usize, &T) -> Result<R> + Sync,
) -> Result<Vec<R>> {
    let next = AtomicUsize::new(0);
    let done = Mutex::new(Vec::new());
    thread::scope(|scope| {
        for _ in 0..jobs.max(1) {
            scope.spawn(|| {
                while let at = next.fetch_add(1, Ordering::Relaxed)
                    && let Some(item) = items.get(at)
                {
                    let result = work(at, item);
                    if result.is_err() {
                        next.store(items.len(), Ordering::Relaxed);
                    }
                    if let Ok(mut done) = done.lock() {
                        done.push((at, result));
                    }
                }
            });
        }
    });
    let mut done = done.into_inner().map_err(|_| "a worker stopped in the middle")?;
    done.sort_by_key(|(at, _)| *at);
    done.into_iter().map(|(_, result)| result).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_read_by_line_whatever_else_is_there() {
        assert_eq!(numbers("7\n3\n7\n\nodd\n12\n"), BTreeSet::from([3, 7, 12]));
        assert_eq!(numbers(""), BTreeSet::new());
    }

    #[test]
    fn results_keep_their_order_and_an_error_ends_the_work() {
        let items: Vec<usize> = (0..100).collect();
        for jobs in [0, 1, 3] {
            let doubled = parallel(&items, jobs, |at, item| Ok(at + item)).unwrap();
            assert_eq!(doubled, items.iter().map(|item| 2 * item).collect::<Vec<_>>());
        }
        let count = AtomicUsize::new(0);
        let why = parallel(&items, 1, |at, _| {
            count.fetch_add(1, Ordering::Relaxed);
            if at == 5 { Err("five".to_owned()) } else { Ok(()) }
        });
        assert_eq!((why.unwrap_err().as_str(), count.into_inner()), ("five", 6));
    }
}
