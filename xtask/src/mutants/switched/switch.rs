//! The switches of mutants. This file is not part of xtask: it becomes a module of the crate whose mutants are compiled.

use std::fs::{self, OpenOptions};
use std::io::Write;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};

/// One more than the highest number. This line is rewritten for the crate.
const COUNT: usize = 16;

/// The number of the mutant that is on.
const NUMBER: &str = "CLOUDBERTH_MUTANT";
/// The file that gets the number of every mutant that is reached, a line for each.
const REACHED: &str = "CLOUDBERTH_MUTANTS_REACHED";

struct Settings {
    number: Option<usize>,
    reached: Option<String>,
}

static SETTINGS: OnceLock<Settings> = OnceLock::new();
static SEEN: [AtomicBool; COUNT] = [const { AtomicBool::new(false) }; COUNT];

/// Whether this mutant is the one to be tried.
pub fn on(number: usize) -> bool {
    let settings = SETTINGS.get_or_init(|| Settings {
        number: variable(NUMBER).and_then(|text| text.parse().ok()),
        reached: variable(REACHED),
    });
    if let Some(path) = &settings.reached {
        note(number, path);
    }
    settings.number == Some(number)
}

fn note(number: usize, path: &str) {
    if SEEN.get(number).is_some_and(|seen| !seen.swap(true, Ordering::Relaxed)) {
        let file = OpenOptions::new().append(true).create(true).open(path);
        // One write, so that programs that write at the same time do not mix.
        let _ = file.and_then(|mut file| file.write_all(format!("{number}\n").as_bytes()));
    }
}

/// From the environment of this program or, since tests start programs with an empty one, of the one that started it.
fn variable(name: &str) -> Option<String> {
    std::env::var(name).ok().or_else(|| {
        let environment = fs::read(format!("/proc/{}/environ", std::os::unix::process::parent_id())).ok()?;
        let mut entries =
            environment.split(|byte| *byte == 0).filter_map(|entry| std::str::from_utf8(entry).ok());
        entries.find_map(|entry| entry.strip_prefix(name)?.strip_prefix('=').map(str::to_owned))
    })
}
