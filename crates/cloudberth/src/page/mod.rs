//! The page of the sandbox: a picture of a cluster and its cloud that moves, and buttons that do what a person would.
//!
//! ```text
//!   browser ──► port ──► door ──► routes ──► assets               what the page is made of, compiled in
//!                                   ├──────► stream ◄── world     `GET /events`: how it is, and what happens
//!                                   └──────► world                `POST /do`: a command
//! ```
//!
//! The server is for one person on this computer. Guarantees:
//!
//! - It listens on loopback only. A request is answered with 403 unless its `Host` is the page's own, it does not come
//!   from another origin, and it has the cookie that the token of the link was exchanged for. The token works once.
//! - Nothing is loaded from elsewhere and no script runs that is not a file of the page (`Content-Security-Policy`);
//!   nothing is stored by caches.
//! - What it keeps is bounded, however many connect and however slow they read: there is no queue per reader, since a
//!   stream is made from the newest snapshot and what the world remembers, and who does not read is disconnected.

mod assets;
mod door;
mod frames;
mod port;
mod routes;
mod secrets;
mod stream;
#[cfg(test)]
mod tests;

use std::{fmt, io, net::SocketAddr, sync::Arc};

use tokio::{net::TcpListener, task::JoinSet};

pub use self::secrets::Secrets;
use self::{door::Door, port::Limits, routes::Shared};
use crate::world::Watched;

/// A page that is being served. Dropping it stops it and ends all its connections.
pub struct Page {
    address: SocketAddr,
    link: String,
    _serving: JoinSet<()>,
}

impl Page {
    /// Serves the page of this world until the result is dropped.
    ///
    /// An address that other computers can reach is refused: whoever has the page can do anything to the world.
    pub fn serve(world: Arc<dyn Watched>, listener: TcpListener, secrets: Secrets) -> io::Result<Self> {
        Self::serve_within(world, listener, secrets, Limits::default())
    }

    fn serve_within(
        world: Arc<dyn Watched>,
        listener: TcpListener,
        secrets: Secrets,
        limits: Limits,
    ) -> io::Result<Self> {
        let address = listener.local_addr()?;
        if !address.ip().is_loopback() {
            let why =
                format!("the page is for this computer alone: {} is not a loopback address", address.ip());
            return Err(io::Error::new(io::ErrorKind::InvalidInput, why));
        }
        let link = format!("http://{address}/?token={}", secrets.token);
        let shared = Arc::new(Shared::new(world, Door::new(address, secrets), limits));
        let mut serving = JoinSet::new();
        serving.spawn(port::accept(listener, shared));
        Ok(Self { address, link, _serving: serving })
    }

    /// Where it listens.
    pub const fn address(&self) -> SocketAddr {
        self.address
    }

    /// What a person opens, once: the token in it is exchanged for a cookie of the browser.
    pub fn link(&self) -> &str {
        &self.link
    }
}

/// Without the link, which holds the token.
impl fmt::Debug for Page {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Page").field("address", &self.address).finish_non_exhaustive()
    }
}
