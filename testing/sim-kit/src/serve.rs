//! A simulated server on a port.

use std::{io, net::SocketAddr};

use http::{Request, Response};
use http_body::Body;
use hyper::body::Incoming;
use tokio::{net::TcpListener, task::JoinSet};
use tokio_rustls::TlsAcceptor;
use tower::Service;

use crate::{
    port::accept,
    service::{BoxError, Disconnected},
};

/// A server that is running. Dropping it stops it.
#[derive(Debug)]
pub struct Served {
    /// The address that it listens on.
    pub address: SocketAddr,
    scheme: &'static str,
    tasks: JoinSet<()>,
}

impl Served {
    /// The base URL of the API.
    pub fn url(&self) -> String {
        format!("{}://{}/", self.scheme, self.address)
    }

    /// Serves for ever: the listener does not fail.
    pub async fn wait(mut self) {
        while self.tasks.join_next().await.is_some() {}
    }
}

/// Serves on a port until the result is dropped, with TLS where there is an acceptor.
pub fn serve<S, B>(service: S, listener: TcpListener, acceptor: Option<TlsAcceptor>) -> io::Result<Served>
where
    S: Service<Request<Incoming>, Response = Response<B>, Error = Disconnected>
        + Clone
        + Send
        + Sync
        + 'static,
    S::Future: Send,
    B: Body + Send + 'static,
    B::Data: Send,
    B::Error: Into<BoxError>,
{
    let address = listener.local_addr()?;
    let scheme = if acceptor.is_some() { "https" } else { "http" };
    let mut tasks = JoinSet::new();
    tasks.spawn(accept(service, listener, acceptor));
    Ok(Served { address, scheme, tasks })
}
