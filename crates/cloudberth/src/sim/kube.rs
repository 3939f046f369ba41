//! `cloudberth sim kube`: a Kubernetes API.

use std::io::Write as _;
use std::net::SocketAddr;
use std::path::PathBuf;

use clap::Args;
use embedded_kube::{KubeApi, Tls, serve};
use sim_kit::Surroundings;
use tokio::net::TcpListener;

use super::Stop;

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

pub(super) async fn run(options: Kube) -> Result<(), Box<dyn std::error::Error>> {
    let stop = Stop::listen()?;
    let mut world = Surroundings::of_this_machine();
    let token = options.token.unwrap_or_else(|| world.uuid());
    let api = KubeApi::new(world);
    let listener = TcpListener::bind(options.listen).await?;
    let served = serve(&api, listener, Some(Tls::for_loopback()?), Some(token))?;
    write_private(&options.write_kubeconfig, &served.kubeconfig())?;
    let file = options.write_kubeconfig.display();
    writeln!(std::io::stdout(), "listening on https://{}, kubeconfig in {file}", served.address)?;
    stop.told().await;
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
