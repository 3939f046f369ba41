//! Running a test program for as long as it may take.

use std::os::unix::process::CommandExt;
use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use crate::Result;

/// The least that a test program is given before it counts as hanging.
const PATIENCE: Duration = Duration::from_secs(20);

/// How much memory a program may ask for, in KiB: a loop that a mutant made endless may ask for all there is.
const MEMORY: u32 = 12 << 20;

/// The moment; everything here that measures time starts with it.
#[expect(clippy::disallowed_methods, reason = "a program that hangs hangs in real time; nothing replays it")]
pub(crate) fn now() -> Instant {
    Instant::now()
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ended {
    Passed,
    Failed,
    TimedOut,
}

/// How long a program may take that takes this long when nothing is broken.
pub(crate) fn limit(usual: Duration) -> Duration {
    PATIENCE.max(usual * 5)
}

/// Runs a command in silence and ends it, with all that it started, when the time is over.
pub(crate) fn run(command: &Command, limit: Duration) -> Result<Ended> {
    let named = |why| format!("{}: {why}", command.get_program().display());
    let mut child = bounded(command).process_group(0).spawn().map_err(named)?;
    let group = child.id();
    let end = now() + limit;
    let mut pause = Duration::from_millis(1);
    loop {
        let ended = match child.try_wait().map_err(named)? {
            Some(status) if status.success() => return Ok(Ended::Passed),
            Some(_) => Ended::Failed,
            None if now() < end => {
                thread::sleep(pause);
                pause = (pause * 2).min(Duration::from_millis(20));
                continue;
            }
            None => Ended::TimedOut,
        };
        // Tests that fail may leave programs behind.
        let _ = Command::new("kill")
            .args(["-KILL", "--", &format!("-{group}")])
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .status();
        child.wait().map_err(named)?;
        return Ok(ended);
    }
}

/// The command through a shell, which can set a limit for memory.
fn bounded(command: &Command) -> Command {
    let mut shell = Command::new("sh");
    shell.args(["-c", &format!("ulimit -v {MEMORY}; exec \"$0\" \"$@\"")]);
    shell.arg(command.get_program()).args(command.get_args());
    if let Some(folder) = command.get_current_dir() {
        shell.current_dir(folder);
    }
    for (name, value) in command.get_envs() {
        match value {
            Some(value) => shell.env(name, value),
            None => shell.env_remove(name),
        };
    }
    shell.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    shell
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shell(script: &str, limit: Duration) -> Ended {
        let mut command = Command::new("sh");
        command.args(["-c", script]).env("WANTED", "yes").current_dir("/");
        run(&command, limit).unwrap()
    }

    #[test]
    fn a_program_passes_fails_or_takes_too_long() {
        let long = Duration::from_secs(60);
        assert_eq!(shell("test $WANTED = yes && test $PWD = /", long), Ended::Passed);
        assert_eq!(shell("exit 3", long), Ended::Failed);
        assert_eq!(shell("kill -SEGV $$", long), Ended::Failed);
        let start = now();
        assert_eq!(shell("sleep 300 & sleep 300", Duration::from_millis(50)), Ended::TimedOut);
        assert!(start.elapsed() < long);
    }

    #[test]
    fn what_a_failing_program_started_ends_with_it() {
        let file = std::env::temp_dir().join(format!("xtask-{}-left", std::process::id()));
        let script = format!("sleep 300 & echo $! > {}; exit 1", file.display());
        assert_eq!(shell(&script, Duration::from_secs(60)), Ended::Failed);
        let left = std::fs::read_to_string(&file).unwrap();
        let state = || std::fs::read_to_string(format!("/proc/{}/stat", left.trim())).ok();
        // Gone, or waiting for somebody to ask how it ended.
        let gone = |state: &Option<String>| state.as_ref().is_none_or(|state| state.contains(") Z "));
        let end = now() + Duration::from_secs(120);
        while !gone(&state()) && now() < end {
            thread::sleep(Duration::from_millis(5));
        }
        assert!(gone(&state()), "{left} is still there");
        std::fs::remove_file(&file).unwrap();
    }

    #[test]
    fn patience_grows_with_what_is_usual() {
        assert_eq!(limit(Duration::from_secs(1)), PATIENCE);
        assert_eq!(limit(Duration::from_secs(30)), Duration::from_secs(150));
    }
}
