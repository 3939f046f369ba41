//! Processes and files that do not outlive the test.
//!
//! `Drop` is not enough: a test may be killed. So every program runs under a small shell that reads a pipe from us and
//! kills the program when the pipe ends, which happens however our process dies. To send a signal, we write its name to the
//! pipe, so that we never signal a process id that has been reused. The directory is removed by another shell of this
//! kind. Its pipe is also held by the supervisors (as their standard output), so it ends only when we *and* all of them
//! are gone and nothing is written any more.

use std::fs;
use std::io::{PipeWriter, Read, Seek, SeekFrom, Write};
use std::os::unix::fs::DirBuilderExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};

use crate::Error;

const SWEEPER: &str = r#"cat >/dev/null; rm -rf -- "$1""#;

const SUPERVISOR: &str = r#"
log=$1; shift
exec 3<&0 </dev/null
"$@" >"$log" 2>&1 3<&- &
program=$!
( while read -r signal <&3; do kill -"$signal" "$program"; done; kill -KILL "$program" ) &
guard=$!
wait "$program"; status=$?
kill -KILL "$guard"; wait "$guard"
exit "$status"
"#;

/// How much of a log an error message quotes.
const QUOTED: u64 = 4_000;

/// A private temporary directory, gone when this and every [`Process`] started in it are gone.
#[derive(Debug)]
pub(crate) struct TempDir {
    dir: PathBuf,
    /// `None` only while dropping.
    pipe: Option<PipeWriter>,
    sweeper: Child,
}

impl TempDir {
    pub(crate) fn new() -> Result<Self, Error> {
        let dir = fresh_dir(&std::env::temp_dir())?;
        let made = std::io::pipe().and_then(|(reader, writer)| {
            let sweeper = shell(SWEEPER).arg(&dir).stdin(reader).stdout(Stdio::null()).spawn()?;
            Ok((writer, sweeper))
        });
        let (pipe, sweeper) = made.map_err(Error::io("cannot guard", &dir))?;
        Ok(Self { dir, pipe: Some(pipe), sweeper })
    }

    pub(crate) fn dir(&self) -> &Path {
        &self.dir
    }

    /// Starts `program`, its output going to `log`.
    pub(crate) fn start(&self, program: &Path, args: &[String], log: PathBuf) -> Result<Process, Error> {
        self.start_in(program, args, None, log)
    }

    /// Starts `program` with nothing in its environment but `env` and the search path; with ours if there is none.
    pub(crate) fn start_in(
        &self,
        program: &Path,
        args: &[String],
        env: Option<&[(String, String)]>,
        log: PathBuf,
    ) -> Result<Process, Error> {
        let stdout = match &self.pipe {
            Some(pipe) => pipe.try_clone().map(Stdio::from).map_err(Error::io("cannot guard", &self.dir))?,
            None => Stdio::null(),
        };
        let mut command = shell(SUPERVISOR);
        command.arg(&log).arg(program).args(args).stdin(Stdio::piped()).stdout(stdout);
        if let Some(env) = env {
            let path = std::env::var_os("PATH").unwrap_or_default();
            command.env_clear().env("PATH", path).envs(env.iter().map(|(name, value)| (name, value)));
        }
        let supervisor = command.spawn().map_err(Error::io("cannot start", program))?;
        let name = program.file_name().unwrap_or_default().to_string_lossy().into_owned();
        Ok(Process { name, log, supervisor })
    }
}

impl Drop for TempDir {
    fn drop(&mut self) {
        drop(self.pipe.take());
        let _ = self.sweeper.wait();
    }
}

/// A running program. Dropping it kills the program and waits for its end.
#[derive(Debug)]
pub(crate) struct Process {
    name: String,
    log: PathBuf,
    supervisor: Child,
}

impl Process {
    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    /// Whether the program has ended by itself.
    pub(crate) fn ended(&mut self) -> bool {
        !matches!(self.supervisor.try_wait(), Ok(None))
    }

    /// How it ended: its exit code, or 128 plus the number of the signal that ended it.
    pub(crate) fn status(&mut self) -> Option<i32> {
        self.supervisor.try_wait().ok().flatten().map(|status| status.code().unwrap_or(-1))
    }

    /// Sends it a signal: `TERM`, `STOP`, `CONT`, …
    pub(crate) fn signal(&mut self, name: &str) {
        if let Some(orders) = &mut self.supervisor.stdin {
            // A program that has ended gets no signals.
            let _ = writeln!(orders, "{name}").and_then(|()| orders.flush());
        }
    }

    /// Kills it, and returns when it is dead.
    pub(crate) fn kill(&mut self) {
        drop(self.supervisor.stdin.take());
        let _ = self.supervisor.wait();
    }

    /// Everything that it has written so far.
    pub(crate) fn log(&self) -> String {
        fs::read(&self.log).map(|text| String::from_utf8_lossy(&text).into_owned()).unwrap_or_default()
    }

    /// The end of its log.
    pub(crate) fn log_tail(&self) -> String {
        let mut text = Vec::new();
        let read = fs::File::open(&self.log).and_then(|mut file| {
            let length = file.metadata()?.len();
            file.seek(SeekFrom::Start(length.saturating_sub(QUOTED)))?;
            file.read_to_end(&mut text)
        });
        match read {
            Ok(_) => String::from_utf8_lossy(&text).into_owned(),
            Err(error) => format!("({} cannot be read: {error})", self.log.display()),
        }
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        self.kill();
    }
}

/// A shell in a process group of its own, so that Ctrl-C in a terminal goes only to the test.
fn shell(script: &str) -> Command {
    let mut command = Command::new("/bin/sh");
    command.args(["-c", script, "cloudberth-e2e"]).stderr(Stdio::null()).process_group(0);
    command
}

/// A new directory that only this user can enter. No name is given twice by one process, and names that other
/// processes left behind are skipped.
fn fresh_dir(within: &Path) -> Result<PathBuf, Error> {
    static GIVEN: AtomicU32 = AtomicU32::new(0);
    loop {
        let number = GIVEN.fetch_add(1, Ordering::Relaxed);
        let dir = within.join(format!("cloudberth-e2e-{}-{number}", std::process::id()));
        match fs::DirBuilder::new().mode(0o700).create(&dir) {
            Ok(()) => return Ok(dir),
            Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => {}
            Err(error) => return Err(Error::io("cannot create", &dir)(error)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    fn sleeper(temp: &TempDir) -> Process {
        let log = temp.dir().join("log");
        temp.start(Path::new("/bin/sh"), &["-c".into(), "echo $$; exec sleep 1000".into()], log).unwrap()
    }

    /// Looks, 5 ms apart: a minute, should the machine be busy.
    const LOOKS: usize = 12_000;

    fn pid(process: &Process) -> PathBuf {
        for _ in 0..LOOKS {
            if let Ok(pid) = process.log_tail().trim().parse::<u32>() {
                return PathBuf::from(format!("/proc/{pid}"));
            }
            std::thread::sleep(Duration::from_millis(5));
        }
        panic!("it did not say its pid: {}", process.log_tail());
    }

    #[test]
    fn a_dropped_process_is_dead_and_its_directory_gone() {
        let temp = TempDir::new().unwrap();
        let mut process = sleeper(&temp);
        let (proc, dir) = (pid(&process), temp.dir().to_path_buf());
        assert!(!process.ended() && proc.exists() && dir.exists());
        drop(process);
        assert!(!proc.exists());
        drop(temp);
        assert!(!dir.exists());
    }

    #[test]
    fn no_directory_gets_the_name_of_one_that_is_gone() {
        let first = TempDir::new().unwrap();
        let gone = first.dir().to_path_buf();
        drop(first);
        let second = TempDir::new().unwrap();
        assert_ne!(second.dir(), gone);
    }

    #[test]
    fn a_process_that_ends_by_itself_is_noticed() {
        let temp = TempDir::new().unwrap();
        let args = ["-c".into(), "echo goodbye; exit 3".into()];
        let mut process = temp.start(Path::new("/bin/sh"), &args, temp.dir().join("log")).unwrap();
        for _ in 0..LOOKS {
            if process.ended() {
                break;
            }
            std::thread::sleep(Duration::from_millis(5));
        }
        assert!(process.ended());
        assert_eq!((process.log_tail().as_str(), process.status()), ("goodbye\n", Some(3)));
    }

    #[test]
    fn signals_arrive_in_order_and_the_environment_is_what_was_given() {
        let temp = TempDir::new().unwrap();
        let script = "trap 'echo told' TERM; echo $GREETING $HOME; while :; do sleep 0.01; done";
        let env = [("GREETING".to_owned(), "hello".to_owned())];
        let args = ["-c".into(), script.into()];
        let log = temp.dir().join("log");
        let mut process = temp.start_in(Path::new("/bin/sh"), &args, Some(&env), log).unwrap();
        let until = |process: &Process, want: &str| {
            for _ in 0..LOOKS {
                if process.log() == want {
                    return;
                }
                std::thread::sleep(Duration::from_millis(5));
            }
            panic!("{:?} instead of {want:?}", process.log());
        };
        until(&process, "hello\n");
        process.signal("TERM");
        until(&process, "hello\ntold\n");
        process.signal("TERM");
        until(&process, "hello\ntold\ntold\n");
        process.kill();
        assert_eq!(process.status(), Some(128 + 9));
    }
}
