//! Child processes that end with this one.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use tokio::process::{Child, Command};
use tokio::time::{sleep, timeout};

use super::BenchError;
use crate::memory::{MemoryUse, memory_of};

/// How long a program must be idle to count as quiet.
const QUIET: Duration = Duration::from_secs(5);
/// How much CPU time it may use within [`QUIET`], in hundredths of a second: leases are renewed.
const TICKS: u64 = 5;

/// A program that runs. Dropping it kills it.
#[derive(Debug)]
pub(crate) struct Running {
    child: Child,
    log: PathBuf,
}

impl Running {
    /// Starts a program; what it prints goes to `log`.
    pub(crate) fn start(command: &mut Command, log: PathBuf) -> Result<Self, BenchError> {
        let file = File::create(&log)?;
        let child =
            command.stdin(Stdio::null()).stdout(file.try_clone()?).stderr(file).kill_on_drop(true).spawn()?;
        Ok(Self { child, log })
    }

    /// Waits for a file that the program writes.
    pub(crate) async fn until_written(&mut self, file: &Path) -> Result<(), BenchError> {
        while !file.metadata().is_ok_and(|data| data.len() > 0) {
            self.must_run()?;
            sleep(Duration::from_millis(50)).await;
        }
        Ok(())
    }

    /// Waits until it is idle, and returns its memory use then.
    pub(crate) async fn until_quiet(&mut self) -> Result<MemoryUse, BenchError> {
        loop {
            let before = self.worked()?;
            sleep(QUIET).await;
            self.must_run()?;
            if self.worked()? <= before + TICKS {
                let id = self.child.id().unwrap_or_default();
                return memory_of(id).ok_or_else(|| self.lost("its memory cannot be seen"));
            }
        }
    }

    /// Terminates it, as a cluster would, and waits for its end.
    pub(crate) async fn stop(mut self) -> Result<(), BenchError> {
        let id = self.child.id().unwrap_or_default().to_string();
        Command::new("kill").args(["-TERM", &id]).status().await?;
        let ended = timeout(Duration::from_secs(20), self.child.wait()).await;
        ended.map_err(|_| self.lost("it does not stop"))?.map(drop).map_err(BenchError::from)
    }

    /// An error with the last lines of the program's log.
    pub(crate) fn lost(&self, why: &str) -> BenchError {
        let log = std::fs::read_to_string(&self.log).unwrap_or_default();
        let lines: Vec<_> = log.lines().rev().take(10).collect();
        BenchError::Program(why.to_owned(), lines.into_iter().rev().collect::<Vec<_>>().join("\n"))
    }

    fn must_run(&mut self) -> Result<(), BenchError> {
        match self.child.try_wait()? {
            Some(status) => Err(self.lost(&format!("it ended: {status}"))),
            None => Ok(()),
        }
    }

    /// The CPU time that it has used, in milliseconds.
    pub(crate) fn cpu(&self) -> Result<u64, BenchError> {
        self.worked().map(|ticks| ticks * 10)
    }

    /// The CPU time that it has used, in hundredths of a second.
    fn worked(&self) -> Result<u64, BenchError> {
        let id = self.child.id().unwrap_or_default();
        let stat = std::fs::read_to_string(format!("/proc/{id}/stat"))?;
        ticks(&stat).ok_or_else(|| self.lost("its time cannot be seen"))
    }
}

/// User and system time, fields 14 and 15. The second field may hold anything, and ends with a bracket.
fn ticks(stat: &str) -> Option<u64> {
    let (_, rest) = stat.rsplit_once(')')?;
    let mut times = rest.split_whitespace().skip(11).map(str::parse::<u64>);
    Some(times.next()?.ok()? + times.next()?.ok()?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn time_is_read_behind_the_name() {
        let table = [
            ("7 (a b) c) S 1 7 7 0 -1 4194560 1 2 3 4 30 12 0 0 20", Some(42)),
            ("7 (short) S 1 7", None),
            ("", None),
        ];
        for (stat, want) in table {
            assert_eq!(ticks(stat), want, "{stat}");
        }
    }
}
