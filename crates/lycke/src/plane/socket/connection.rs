//! A TCP client and its backend.

use std::{net::SocketAddr, sync::Arc, time::Duration};

use cloudberth_core::time::Tick;
use mio::net::TcpStream;
use socket2::SockRef;

use super::{
    relay::Direction,
    shared::{BackendShared, ListenerShared, Targets},
};

/// A client, and the backend that it is connected to, or will be. It holds no buffers while it is quiet.
#[derive(Debug)]
pub(crate) struct Connection {
    pub(crate) generation: u32,
    pub(crate) client: TcpStream,
    pub(crate) backend: TcpStream,
    pub(crate) up: Direction,
    pub(crate) down: Direction,
    pub(crate) listener: Arc<ListenerShared>,
    pub(crate) target: Arc<BackendShared>,
    /// There as long as the backend has not answered.
    pub(crate) attempt: Option<Box<Attempt>>,
    /// When a byte passed last.
    pub(crate) latest: Tick,
    pub(crate) idle: Option<Duration>,
    /// The client has sent something.
    pub(crate) spoke: bool,
    /// The socket of the backend was tuned.
    pub(crate) tuned: bool,
    /// The worker is told when the client takes bytes again.
    pub(crate) watches_client_writes: bool,
}

/// The search for a backend that answers.
#[derive(Debug)]
pub(crate) struct Attempt {
    pub(crate) client: SocketAddr,
    pub(crate) targets: Arc<Targets>,
    /// Those that were asked, the present one included.
    pub(crate) tried: Vec<u64>,
    pub(crate) node_port: u16,
    pub(crate) deadline: Tick,
}

/// Closes a socket so that the other side sees a reset, and never takes it for a proper end.
pub(crate) fn reset(stream: TcpStream) {
    reset_on_close(&stream);
    drop(stream);
}

pub(crate) fn reset_on_close(stream: &TcpStream) {
    // If it fails, the socket is dead already.
    let _ = SockRef::from(stream).set_linger(Some(Duration::ZERO));
}

impl Connection {
    /// Sees to it that small writes to the backend are sent at once, and that a backend that vanished is noticed some day.
    ///
    /// Neither matters to a connection that carries one small request, so this is done when it proves to be another one. The
    /// client's socket has inherited both from its listener.
    pub(crate) fn tune(&mut self) {
        if !std::mem::replace(&mut self.tuned, true) {
            // If it fails, the socket is dead already, and the next read says so.
            let _ = self.backend.set_nodelay(true);
            let _ = SockRef::from(&self.backend).set_keepalive(true);
        }
    }
}
