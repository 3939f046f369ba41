//! `cloudberth sim`: simulated parts on ports of this machine.

use std::io::Write as _;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Args, Subcommand};
use cloudberth_sim::Surroundings;
use cloudberth_sim::kube::{KubeApi, Tls, serve};
use tokio::net::TcpListener;
use tokio::signal::unix::{SignalKind, signal};

/// Which part to simulate.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// A Kubernetes API, for kubectl and any other client, until the process is told to stop.
    Kube(Kube),
}

#[derive(Debug, Args)]
pub(crate) struct Kube {
    /// Address and port to listen on; port 0 takes a free one and prints it.
    #[arg(long, value_name = "ADDRESS:PORT")]
    listen: SocketAddr,
    /// Where to write the file that clients find the API by.
    #[arg(long, value_name = "FILE")]
    write_kubeconfig: PathBuf,
    /// The administrator's token; a random one if none is given.
    #[arg(long, value_name = "TOKEN")]
    token: Option<String>,
}

/// Runs until SIGTERM or SIGINT.
pub(crate) fn run(command: Command) -> ExitCode {
    let Command::Kube(options) = command;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    match runtime.map_err(Into::into).and_then(|runtime| runtime.block_on(kube(options))) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            let _ = writeln!(std::io::stderr(), "cloudberth sim kube: {error}");
            ExitCode::FAILURE
        }
    }
}

async fn kube(options: Kube) -> Result<(), Box<dyn std::error::Error>> {
    let (mut terminate, mut interrupt) = (signal(SignalKind::terminate())?, signal(SignalKind::interrupt())?);
    let mut world = Surroundings::of_this_machine();
    let token = options.token.unwrap_or_else(|| world.uuid());
    let api = KubeApi::new(world);
    let listener = TcpListener::bind(options.listen).await?;
    let served = serve(&api, listener, Some(Tls::for_loopback()?), Some(token))?;
    write_private(&options.write_kubeconfig, &served.kubeconfig())?;
    let file = options.write_kubeconfig.display();
    writeln!(std::io::stdout(), "listening on https://{}, kubeconfig in {file}", served.address)?;
    tokio::select! {
        _ = terminate.recv() => {}
        _ = interrupt.recv() => {}
    }
    drop(served);
    Ok(())
}

/// The file holds a token: nobody else may read it.
fn write_private(path: &PathBuf, content: &str) -> std::io::Result<()> {
    use std::os::unix::fs::OpenOptionsExt as _;
    let mut options = std::fs::OpenOptions::new();
    let mut file = options.write(true).create(true).truncate(true).mode(0o600).open(path)?;
    file.write_all(content.as_bytes())
}
