//! Sockets that whoever started this process has opened for it, as systemd does: ports that it may not bind itself.

use std::{
    collections::{BTreeMap, BTreeSet},
    io::{self, ErrorKind},
    net::{Shutdown, TcpListener, UdpSocket},
};

use socket2::SockRef;

use super::listen::{BACKLOG, Bound, tune};
use crate::plane::{config::Protocol, diff::Endpoint};

/// Datagrams that wait in a socket nobody reads; more than these the kernel has dropped.
const MOST_WAITING: usize = 100_000;

/// The sockets of this process before anybody uses them.
#[derive(Debug, Default)]
pub struct InheritedSockets(Vec<Bound>);

impl InheritedSockets {
    /// These sockets, each at an address of its own.
    pub fn new(tcp: impl IntoIterator<Item = TcpListener>, udp: impl IntoIterator<Item = UdpSocket>) -> Self {
        let tcp = tcp.into_iter().map(Bound::Tcp);
        Self(tcp.chain(udp.into_iter().map(Bound::Udp)).collect())
    }

    /// Those that `LISTEN_FDS` and `LISTEN_PID` announce, as systemd sets them. What is no socket of ours is left alone.
    #[cfg(feature = "inherited")]
    pub fn of_this_process() -> Self {
        let mut given = listenfd::ListenFd::from_env();
        let mut all = Self::default();
        for at in 0..given.len() {
            // A socket of the wrong kind is an error, and is still there for the other kind.
            if let Ok(Some(socket)) = given.take_tcp_listener(at) {
                all.0.push(Bound::Tcp(socket));
            } else if let Ok(Some(socket)) = given.take_udp_socket(at) {
                all.0.push(Bound::Udp(socket));
            } else {
                tracing::warn!(
                    number = at,
                    "inherited descriptor is neither a TCP listener nor a UDP socket"
                );
            }
        }
        for address in all.0.iter().filter_map(|socket| socket.address().ok()) {
            tracing::info!(%address, "socket inherited");
        }
        all
    }
}

/// The same for a plane: each is lent to one listener at a time.
#[derive(Debug, Default)]
pub(crate) struct SocketLender {
    sockets: BTreeMap<Endpoint, Bound>,
    lent: BTreeSet<Endpoint>,
}

impl SocketLender {
    /// Nobody listens on them until they are lent: clients are refused meanwhile.
    pub(crate) fn new(inherited: InheritedSockets) -> Self {
        let mut lender = Self::default();
        for socket in inherited.0 {
            match socket.address() {
                Ok(address) => {
                    rest(&socket);
                    lender.sockets.insert(Endpoint { protocol: socket.protocol(), address }, socket);
                }
                Err(error) => tracing::warn!(%error, "inherited socket has no address"),
            }
        }
        lender
    }

    /// The socket at this place; `None` where there is none, and an error where somebody has it.
    pub(crate) fn lend(&mut self, endpoint: Endpoint) -> Option<io::Result<Bound>> {
        let socket = self.sockets.get(&endpoint)?;
        if self.lent.contains(&endpoint) {
            return Some(Err(ErrorKind::AddrInUse.into()));
        }
        let lent = wake(socket);
        if lent.is_ok() {
            self.lent.insert(endpoint);
        }
        Some(lent)
    }

    /// Its listener is closed.
    pub(crate) fn take_back(&mut self, endpoint: Endpoint) {
        if self.lent.remove(&endpoint)
            && let Some(socket) = self.sockets.get(&endpoint)
        {
            rest(socket);
        }
    }
}

/// Has the socket listen again, and gives a copy of it.
fn wake(socket: &Bound) -> io::Result<Bound> {
    match socket {
        Bound::Tcp(listener) => {
            let copy = listener.try_clone()?;
            copy.set_nonblocking(true)?;
            tune(&SockRef::from(&copy))?;
            SockRef::from(&copy).listen(BACKLOG)?;
            Ok(Bound::Tcp(copy))
        }
        Bound::Udp(socket) => {
            let copy = socket.try_clone()?;
            copy.set_nonblocking(true)?;
            // What was sent while nobody read is not meant for whoever reads now.
            for _ in 0..MOST_WAITING {
                if copy.recv_from(&mut [0; 1]).is_err() {
                    break;
                }
            }
            Ok(Bound::Udp(copy))
        }
    }
}

/// Has nobody connect any more; the port stays ours.
fn rest(socket: &Bound) {
    if let Bound::Tcp(listener) = socket {
        // If it fails, clients wait in vain until somebody listens, and are no worse off than before.
        let _ = SockRef::from(listener).shutdown(Shutdown::Both);
    }
}

impl Bound {
    fn protocol(&self) -> Protocol {
        match self {
            Self::Tcp(_) => Protocol::Tcp,
            Self::Udp(_) => Protocol::Udp,
        }
    }
}
