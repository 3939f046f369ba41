//! Runs seeds and prints those that fail, with the line that replays each.
#![allow(clippy::print_stdout, clippy::print_stderr, reason = "a command talks to the person who runs it")]

use std::{
    process::ExitCode,
    sync::{
        Mutex, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use simulation::{Broken, Schedule, run, shrink};

/// So many failed seeds are shown in a line each, beside the one that is explained.
const SHOWN: usize = 20;

struct Options {
    seeds: u64,
    first: u64,
    only: bool,
    broken: Option<Broken>,
    law: Option<String>,
    log: bool,
}

fn options() -> Result<Options, String> {
    use lexopt::prelude::*;
    let mut options = Options { seeds: 200, first: 0, only: false, broken: None, law: None, log: false };
    let mut args = lexopt::Parser::from_env();
    let number = |args: &mut lexopt::Parser| -> Result<u64, lexopt::Error> { args.value()?.parse() };
    while let Some(arg) = args.next().map_err(|e| e.to_string())? {
        match arg {
            Long("seeds") => options.seeds = number(&mut args).map_err(|e| e.to_string())?,
            Long("first") => options.first = number(&mut args).map_err(|e| e.to_string())?,
            Long("seed") => {
                options.first = number(&mut args).map_err(|e| e.to_string())?;
                options.only = true;
            }
            Long("log") => options.log = true,
            Long("break") => {
                let law = args.value().map_err(|e| e.to_string())?.to_string_lossy().into_owned();
                options.broken = Some(
                    Broken::named(&law)
                        .ok_or_else(|| format!("--break {law}: it must be one of {}", Broken::names()))?,
                );
                options.law = Some(law);
            }
            other => return Err(other.unexpected().to_string()),
        }
    }
    if options.only {
        options.seeds = 1;
    }
    Ok(options)
}

#[derive(Default)]
struct Tally {
    runs: u64,
    /// The seeds that failed, and the first thing that was wrong with each.
    failed: Vec<(u64, String)>,
    terms: usize,
    slowest: Duration,
    digest: u64,
}

/// A number that differs when any log differs. Logs arrive in any order, so it must not depend on it.
fn digest(seed: u64, log: &str) -> u64 {
    let step = |hash: u64, byte: u8| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
    log.bytes().fold(0xcbf2_9ce4_8422_2325 ^ seed, step)
}

fn main() -> ExitCode {
    let options = match options() {
        Ok(options) => options,
        Err(error) => {
            eprintln!("sim: {error}");
            return ExitCode::FAILURE;
        }
    };
    let next = AtomicU64::new(options.first);
    let end = options.first.saturating_add(options.seeds);
    let tally = Mutex::new(Tally::default());
    let work = || {
        loop {
            let seed = next.fetch_add(1, Ordering::Relaxed);
            // A broken program that is caught has shown what it should.
            let caught = options.broken.is_some()
                && !tally.lock().unwrap_or_else(PoisonError::into_inner).failed.is_empty();
            if seed >= end || caught {
                return;
            }
            let account = run(&Schedule::draw(seed), options.broken);
            if options.log {
                print!("{}", account.log);
            }
            let mut tally = tally.lock().unwrap_or_else(PoisonError::into_inner);
            tally.runs += 1;
            tally.terms += account.terms;
            tally.slowest = tally.slowest.max(account.rested_after);
            tally.digest = tally.digest.wrapping_add(digest(seed, &account.log));
            if let Some(first) = account.wrong.into_iter().next() {
                tally.failed.push((seed, first));
            }
        }
    };
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    std::thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(work);
        }
    });
    let mut tally = tally.into_inner().unwrap_or_else(PoisonError::into_inner);
    tally.failed.sort();
    report(&options, &tally)
}

fn report(options: &Options, tally: &Tally) -> ExitCode {
    println!(
        "{} seeds, {} failed, {} times somebody came to lead, at rest after at most {} s of virtual time, digest {:016x}",
        tally.runs,
        tally.failed.len(),
        tally.terms,
        tally.slowest.as_secs(),
        tally.digest
    );
    for (seed, wrong) in tally.failed.iter().skip(1).take(SHOWN) {
        println!("seed {seed}: {wrong}");
    }
    if let Some((seed, _)) = tally.failed.first() {
        explain(options, *seed);
    }
    // To be caught is what a broken program is for; its replay has to fail like any other.
    let wanted = options.law.is_some() && !options.only;
    if let (Some(law), true) = (&options.law, wanted) {
        let verdict = if tally.failed.is_empty() { "NOT caught" } else { "caught" };
        println!("a program with --break {law} is {verdict}");
    }
    if tally.failed.is_empty() == wanted { ExitCode::FAILURE } else { ExitCode::SUCCESS }
}

/// Says what is wrong with a seed, what of its schedule is enough for that, and how to see it again.
fn explain(options: &Options, seed: u64) {
    let schedule = Schedule::draw(seed);
    let small = shrink(&schedule, options.broken);
    println!("seed {seed} fails:");
    for wrong in run(&schedule, options.broken).wrong {
        println!("  {wrong}");
    }
    println!("{} of its {} deeds are enough:", small.size(), schedule.size());
    print!("{small}");
    for wrong in run(&small, options.broken).wrong {
        println!("  {wrong}");
    }
    let law = options.law.as_ref().map(|law| format!(" --break {law}")).unwrap_or_default();
    println!("replay: cargo xtask sim --seed {seed}{law}");
}
