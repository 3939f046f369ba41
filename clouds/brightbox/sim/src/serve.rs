//! The cloud on a port.

use std::{io, net::SocketAddr};

use tokio::{net::TcpListener, task::JoinSet};

use super::handle::Cloud;
use sim_kit::accept;

/// A server that is running. Dropping it stops it.
#[derive(Debug)]
pub struct Served {
    /// The address that it listens on.
    pub address: SocketAddr,
    _tasks: JoinSet<()>,
}

impl Served {
    /// The base URL of the API.
    pub fn url(&self) -> String {
        format!("http://{}/", self.address)
    }
}

/// Serves the cloud on a port, without TLS, until the result is dropped.
pub fn serve(cloud: &Cloud, listener: TcpListener) -> io::Result<Served> {
    let address = listener.local_addr()?;
    let mut tasks = JoinSet::new();
    tasks.spawn(accept(cloud.service(), listener, None));
    Ok(Served { address, _tasks: tasks })
}

/// Serves the cloud on a free port of the loopback interface.
pub async fn serve_on_loopback(cloud: &Cloud) -> io::Result<Served> {
    serve(cloud, TcpListener::bind(("127.0.0.1", 0)).await?)
}
