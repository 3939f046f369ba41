//! `cloudberth sim`: simulated parts on ports of this machine.

mod cloud;
mod kube;

use std::io::Write as _;
use std::process::ExitCode;

use clap::Subcommand;
use tokio::signal::unix::{Signal, SignalKind, signal};

/// Which part to simulate.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// A Kubernetes API, for kubectl and any other client, until the process is told to stop.
    Kube(kube::Kube),
    /// The API of a cloud, for any client of it, until the process is told to stop.
    Cloud(cloud::Options),
}

/// Runs until SIGTERM or SIGINT.
pub(crate) fn run(command: Command) -> ExitCode {
    let name = match command {
        Command::Kube(_) => "kube",
        Command::Cloud(_) => "cloud",
    };
    let part = async {
        match command {
            Command::Kube(options) => kube::run(options).await,
            Command::Cloud(options) => cloud::run(options).await,
        }
    };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    match runtime.map_err(Into::into).and_then(|runtime| runtime.block_on(part)) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            let _ = writeln!(std::io::stderr(), "cloudberth sim {name}: {error}");
            ExitCode::FAILURE
        }
    }
}

/// The signals that end a part.
struct Stop {
    terminate: Signal,
    interrupt: Signal,
}

impl Stop {
    fn listen() -> std::io::Result<Self> {
        Ok(Self { terminate: signal(SignalKind::terminate())?, interrupt: signal(SignalKind::interrupt())? })
    }

    async fn told(mut self) {
        tokio::select! {
            biased;
            _ = self.terminate.recv() => {}
            _ = self.interrupt.recv() => {}
        }
    }
}
