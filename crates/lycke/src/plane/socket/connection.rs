//! A TCP client and its backend.

use std::{mem, net::SocketAddr, sync::Arc, time::Duration};

use cloudberth_core::time::Tick;
use mio::net::TcpStream;
use socket2::SockRef;

use super::{
    listen::keep_alive,
    relay::Direction,
    shared::{BackendShared, ListenerShared, Targets},
};

/// A client, and the backend that it is connected to, or will be. It holds no buffers while it is quiet.
#[expect(
    clippy::struct_excessive_bools,
    reason = "what was done to its sockets is a set of facts, not a state"
)]
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
    /// How much the client has sent.
    pub(crate) said: usize,
    /// Small writes to the backend are sent at once.
    pub(crate) tuned: bool,
    /// The kernel looks whether the backend is still there.
    pub(crate) kept_alive: bool,
    /// The worker is told when the client takes bytes again.
    pub(crate) watches_client_writes: bool,
    /// The same for the backend.
    pub(crate) watches_backend_writes: bool,
    /// It is among those that the worker goes on with after the others.
    pub(crate) queued: bool,
    /// Nothing can be sent to the backend. What it has said is passed on, and then the connection is reset.
    pub(crate) broken: bool,
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
    /// Sees to it that small writes to the backend are sent at once.
    ///
    /// That does not matter to a connection that carries one small request, so it is done when it proves to be another one.
    /// The client's socket has inherited it from its listener.
    pub(crate) fn tune(&mut self) {
        if !mem::replace(&mut self.tuned, true) {
            // If it fails, the socket is dead already, and the next read says so.
            let _ = self.backend.set_nodelay(true);
        }
    }

    /// Sees to it that a backend that vanished is noticed some day. That is done when a connection is looked at for the first
    /// time: most have ended by then. The client's socket has inherited this too.
    pub(crate) fn keep_alive(&mut self) {
        if !mem::replace(&mut self.kept_alive, true) {
            let _ = keep_alive(&SockRef::from(&self.backend));
        }
    }
}
