//! The real `kubectl`, run against one server.

use std::path::PathBuf;
use std::process::Stdio;
use std::time::Duration;

use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader, Lines};
use tokio::process::{Child, ChildStdout, Command};
use tokio::time::timeout;

use crate::Error;

/// The longest that one command may take, on the busiest of machines.
const DEADLINE: Duration = Duration::from_mins(3);

/// How to call `kubectl`.
#[derive(Clone, Debug)]
pub struct Kubectl {
    /// The program.
    pub program: PathBuf,
    /// Where the server is and who asks.
    pub kubeconfig: PathBuf,
    /// Where it may keep its caches.
    pub home: PathBuf,
}

/// What a command printed.
#[derive(Clone, Debug)]
pub struct Output {
    /// It ended with exit code 0.
    pub ok: bool,
    /// Its standard output.
    pub stdout: String,
    /// Its standard error.
    pub stderr: String,
}

impl Kubectl {
    /// Runs `kubectl` with `args`.
    pub async fn run(&self, args: &[&str]) -> Result<Output, Error> {
        self.run_with_input(args, "").await
    }

    /// Runs `kubectl` with `args`, `input` being what `-f -` reads.
    pub async fn run_with_input(&self, args: &[&str], input: &str) -> Result<Output, Error> {
        let mut child = self.spawn(args)?;
        if let Some(mut stdin) = child.stdin.take() {
            // A command that does not read its input has closed it; that is no failure.
            let _ = stdin.write_all(input.as_bytes()).await;
        }
        let output = timeout(DEADLINE, child.wait_with_output())
            .await
            .map_err(|_| Error::Deadline { what: format!("kubectl {}", args.join(" ")) })?
            .map_err(Error::io("cannot run", &self.program))?;
        let text = |bytes: Vec<u8>| String::from_utf8_lossy(&bytes).into_owned();
        Ok(Output { ok: output.status.success(), stdout: text(output.stdout), stderr: text(output.stderr) })
    }

    /// Starts a command that goes on until it is dropped, such as `get -w`.
    pub fn follow(&self, args: &[&str]) -> Result<Following, Error> {
        let mut child = self.spawn(args)?;
        let lines = child.stdout.take().map(|stdout| BufReader::new(stdout).lines());
        Ok(Following { _child: child, lines, what: format!("kubectl {}", args.join(" ")) })
    }

    fn spawn(&self, args: &[&str]) -> Result<Child, Error> {
        Command::new(&self.program)
            .args(args)
            .env_clear()
            .env("KUBECONFIG", &self.kubeconfig)
            .env("HOME", &self.home)
            // Times are printed as this machine's owner likes them, unless told otherwise.
            .env("TZ", "UTC")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .kill_on_drop(true)
            .spawn()
            .map_err(Error::io("cannot start", &self.program))
    }
}

/// A command under way. Dropping it ends it.
#[derive(Debug)]
pub struct Following {
    _child: Child,
    lines: Option<Lines<BufReader<ChildStdout>>>,
    what: String,
}

impl Following {
    /// The next line that it prints; `None` when it has ended.
    pub async fn line(&mut self) -> Result<Option<String>, Error> {
        let Some(lines) = &mut self.lines else { return Ok(None) };
        let next = timeout(DEADLINE, lines.next_line()).await;
        let next = next.map_err(|_| Error::Deadline { what: format!("a line of {}", self.what) })?;
        next.map_err(|error| Error::transport(&self.what, &error))
    }
}
