//! The cloud on a port.

use std::io;

use sim_kit::Served;
use tokio::net::TcpListener;

use super::handle::Cloud;

/// Serves the cloud on a port, without TLS, until the result is dropped.
pub fn serve(cloud: &Cloud, listener: TcpListener) -> io::Result<Served> {
    sim_kit::serve(cloud.service(), listener, None)
}

/// Serves the cloud on a free port of the loopback interface.
pub async fn serve_on_loopback(cloud: &Cloud) -> io::Result<Served> {
    serve(cloud, TcpListener::bind(("127.0.0.1", 0)).await?)
}
