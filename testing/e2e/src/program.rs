//! The shipped program as a child process that never outlives the test.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;
use std::time::Duration;

use crate::supervise::{Process, TempDir};
use crate::{Error, eventually};

/// Names a program to be tested instead of the one that is built from this checkout.
const INSTEAD: &str = "CLOUDBERTH_PROGRAM";
const NAME: &str = "cloudberth";
/// The same for the chores of the workspace.
const CHORES_INSTEAD: &str = "CLOUDBERTH_XTASK";
const CHORES: &str = "xtask";

/// The path of the shipped program, built from this checkout if necessary. The first call of a process may take minutes.
///
/// It is built with the profile of the tests and lies beside them. `CLOUDBERTH_PROGRAM` names another.
pub fn shipped() -> Result<PathBuf, Error> {
    static BUILT: OnceLock<Result<PathBuf, String>> = OnceLock::new();
    BUILT.get_or_init(|| build(NAME, INSTEAD)).clone().map_err(Error::Build)
}

/// The path of the program behind `cargo xtask`, built from this checkout if necessary. `CLOUDBERTH_XTASK` names another.
pub fn chores() -> Result<PathBuf, Error> {
    static BUILT: OnceLock<Result<PathBuf, String>> = OnceLock::new();
    BUILT.get_or_init(|| build(CHORES, CHORES_INSTEAD)).clone().map_err(Error::Build)
}

fn build(package: &str, instead: &str) -> Result<PathBuf, String> {
    if let Some(given) = std::env::var_os(instead).filter(|given| !given.is_empty()) {
        let given = PathBuf::from(given);
        return if given.is_file() {
            Ok(given)
        } else {
            Err(format!("{instead}={} is no file", given.display()))
        };
    }
    let test = std::env::current_exe().map_err(|why| why.to_string())?;
    // target/PROFILE/deps/test-0123
    let place = test.parent().and_then(Path::parent).ok_or("the test lies in no target directory")?;
    let target = place.parent().ok_or("the test lies in no target directory")?;
    let profile = match place.file_name().and_then(|name| name.to_str()) {
        Some("debug") | None => "dev",
        Some(name) => name,
    };
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let mut command = Command::new(cargo);
    // Cargo's variables of the test would look like a changed environment to build scripts, which would rebuild much
    // each time.
    for (name, _) in std::env::vars_os() {
        let word = name.to_string_lossy();
        if word.starts_with("CARGO_PKG_") || word.starts_with("CARGO_MANIFEST_") {
            command.env_remove(name);
        }
    }
    let built = command
        .args(["build", "--quiet", "--package", package, "--profile", profile, "--target-dir"])
        .arg(target)
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .output()
        .map_err(|why| why.to_string())?;
    if built.status.success() {
        Ok(place.join(package))
    } else {
        Err(String::from_utf8_lossy(&built.stderr).into_owned())
    }
}

/// A program under test. It is killed when this is dropped, and also soon after the process that holds it dies.
///
/// It sees no environment but what it is given (and `PATH`, and a `HOME` of its own).
#[derive(Debug)]
pub struct Program {
    process: Process,
    earlier: Vec<String>,
    how: How,
    // Dropped after the process, which writes to it.
    temp: TempDir,
}

/// How it is started, each time.
#[derive(Debug)]
struct How {
    program: PathBuf,
    args: Vec<String>,
    env: Vec<(String, String)>,
}

impl Program {
    /// Starts the shipped program.
    pub fn start(args: &[&str], env: &[(&str, &str)]) -> Result<Self, Error> {
        Self::start_other(&shipped()?, args, env)
    }

    /// Starts any program: the shipped one under another name, say.
    pub fn start_other(program: &Path, args: &[&str], env: &[(&str, &str)]) -> Result<Self, Error> {
        let temp = TempDir::new()?;
        let own = |text: &&str| (*text).to_owned();
        let mut env: Vec<_> = env.iter().map(|(name, value)| (own(name), own(value))).collect();
        if !env.iter().any(|(name, _)| name == "HOME") {
            env.push(("HOME".to_owned(), temp.dir().display().to_string()));
        }
        let how = How { program: program.to_path_buf(), args: args.iter().map(own).collect(), env };
        let process = how.start(&temp, 0)?;
        Ok(Self { process, earlier: Vec::new(), how, temp })
    }

    /// The name of its file.
    pub fn name(&self) -> &str {
        self.process.name()
    }

    /// A directory that lives as long as this.
    pub fn dir(&self) -> &Path {
        self.temp.dir()
    }

    /// The lines that it has written since it was (re)started, to either output.
    pub fn log(&self) -> Vec<String> {
        self.process.log().lines().map(str::to_owned).collect()
    }

    /// The lines of all its runs, in order.
    pub fn whole_log(&self) -> Vec<String> {
        let earlier = self.earlier.iter().flat_map(|log| log.lines());
        earlier.map(str::to_owned).chain(self.log()).collect()
    }

    /// Waits for a line of its current run that contains `part`.
    pub async fn says(&mut self, part: &str, within: Duration) -> Result<String, Error> {
        let process = &mut self.process;
        let what = format!("{} says {part:?}", process.name());
        eventually(within, &what, async || {
            let log = process.log();
            match log.lines().find(|line| line.contains(part)) {
                Some(line) => Ok(line.to_owned()),
                None if process.ended() => {
                    Err(format!("it ended with {:?}:\n{}", process.status(), process.log_tail()))
                }
                None => Err(process.log_tail()),
            }
        })
        .await
    }

    /// Whether it still runs.
    pub fn runs(&mut self) -> bool {
        !self.process.ended()
    }

    /// Asks it to end (SIGTERM) and does not wait.
    pub fn terminate(&mut self) {
        self.process.signal("TERM");
    }

    /// Suspends it (SIGSTOP).
    pub fn freeze(&mut self) {
        self.process.signal("STOP");
    }

    /// Resumes it (SIGCONT).
    pub fn thaw(&mut self) {
        self.process.signal("CONT");
    }

    /// Kills it (SIGKILL), and returns when it is dead.
    pub fn kill(&mut self) {
        self.process.kill();
    }

    /// Waits for its end: its exit code, or 128 plus the number of a signal.
    pub async fn ends(&mut self, within: Duration) -> Result<i32, Error> {
        let process = &mut self.process;
        let what = format!("{} ends", process.name());
        eventually(within, &what, async || process.status().ok_or_else(|| process.log_tail())).await
    }

    /// Kills it if it runs, and starts it again with the same arguments and environment.
    pub fn restart(&mut self) -> Result<(), Error> {
        self.process.kill();
        self.earlier.push(self.process.log());
        self.process = self.how.start(&self.temp, self.earlier.len())?;
        Ok(())
    }
}

impl How {
    fn start(&self, temp: &TempDir, life: usize) -> Result<Process, Error> {
        temp.start_in(&self.program, &self.args, Some(&self.env), temp.dir().join(format!("life-{life}.log")))
    }
}
