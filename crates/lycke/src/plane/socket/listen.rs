//! Listening sockets, and why they could not be had.

use std::{
    io::{self, ErrorKind},
    net::{SocketAddr, TcpListener, UdpSocket},
    time::Duration,
};

use socket2::{Domain, Socket, TcpKeepalive, Type};

use super::tcp::out_of_descriptors;
use crate::plane::{
    config::{BalancerKey, Protocol},
    report::ListenerFault,
};

/// How many clients the kernel keeps until they are accepted; it lowers this to its own limit.
pub(crate) const BACKLOG: i32 = 4096;
/// After so long without a byte, the kernel looks whether a peer is still there.
const KEEP_ALIVE: Duration = Duration::from_secs(60);
/// Room for bursts of datagrams; the kernel lowers it to its own limit.
const UDP_ROOM: usize = 1024 * 1024;

/// A socket that listens.
#[derive(Debug)]
pub(crate) enum Bound {
    Tcp(TcpListener),
    Udp(UdpSocket),
}

impl Bound {
    pub(crate) fn address(&self) -> io::Result<SocketAddr> {
        match self {
            Self::Tcp(socket) => socket.local_addr(),
            Self::Udp(socket) => socket.local_addr(),
        }
    }
}

/// Listens at one address.
pub(crate) fn bind(protocol: Protocol, address: SocketAddr) -> io::Result<Bound> {
    let kind = match protocol {
        Protocol::Tcp => Type::STREAM,
        Protocol::Udp => Type::DGRAM,
    };
    let socket = Socket::new(Domain::for_address(address), kind, None)?;
    if address.is_ipv6() {
        socket.set_only_v6(true)?;
    }
    socket.set_nonblocking(true)?;
    match protocol {
        Protocol::Tcp => {
            // Old connections of an earlier process do not keep the port; a program that listens does.
            socket.set_reuse_address(true)?;
            socket.bind(&address.into())?;
            tune(&socket)?;
            socket.listen(BACKLOG)?;
            Ok(Bound::Tcp(socket.into()))
        }
        Protocol::Udp => {
            socket.bind(&address.into())?;
            // A wish: it works with less.
            let _ = socket.set_recv_buffer_size(UDP_ROOM);
            Ok(Bound::Udp(socket.into()))
        }
    }
}

/// What connections inherit from their listener.
pub(crate) fn tune(listener: &Socket) -> io::Result<()> {
    listener.set_tcp_nodelay(true)?;
    keep_alive(listener)
}

/// Has the kernel look whether the peer is still there when nothing arrives.
pub(crate) fn keep_alive(socket: &Socket) -> io::Result<()> {
    socket.set_tcp_keepalive(&TcpKeepalive::new().with_time(KEEP_ALIVE))
}

/// What a failure to bind means, and what people are told. `owner` is the load balancer of ours that has the port.
pub(crate) fn fault(
    error: &io::Error,
    at: SocketAddr,
    owner: Option<BalancerKey>,
) -> (ListenerFault, String) {
    if out_of_descriptors(error) {
        return (
            ListenerFault::TooManyFiles,
            format!("the process has too many files open to listen at {at}"),
        );
    }
    match error.kind() {
        ErrorKind::AddrInUse => {
            let message = match &owner {
                Some(owner) => format!("{at} is in use by load balancer {owner}"),
                None => format!("{at} is in use by another program"),
            };
            (ListenerFault::AddressInUse(owner), message)
        }
        ErrorKind::PermissionDenied => {
            (ListenerFault::PermissionDenied, format!("the process may not listen at {at}"))
        }
        _ => (ListenerFault::AddressNotAvailable, format!("cannot listen at {at}: {error}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn failures_are_told_apart() {
        let at: SocketAddr = "127.77.0.9:80".parse().unwrap();
        let owner = || {
            let [cluster, namespace, name] = ["c2", "default", "web"].map(str::to_owned);
            BalancerKey { cluster, namespace, name }
        };
        let table = [
            (
                "CL-67 another load balancer",
                io::Error::from(ErrorKind::AddrInUse),
                Some(owner()),
                ListenerFault::AddressInUse(Some(owner())),
                "127.77.0.9:80 is in use by load balancer c2/default/web",
            ),
            (
                "CL-63 another program",
                io::Error::from(ErrorKind::AddrInUse),
                None,
                ListenerFault::AddressInUse(None),
                "127.77.0.9:80 is in use by another program",
            ),
            (
                "CL-64 no privilege",
                io::Error::from(ErrorKind::PermissionDenied),
                None,
                ListenerFault::PermissionDenied,
                "the process may not listen at 127.77.0.9:80",
            ),
            (
                "CL-88 no descriptors",
                io::Error::from(rustix::io::Errno::MFILE),
                None,
                ListenerFault::TooManyFiles,
                "the process has too many files open to listen at 127.77.0.9:80",
            ),
        ];
        for (case, error, owner, want, message) in table {
            assert_eq!(fault(&error, at, owner), (want, message.to_owned()), "{case}");
        }
        let (found, _) = fault(&io::Error::from(ErrorKind::AddrNotAvailable), at, None);
        assert_eq!(found, ListenerFault::AddressNotAvailable, "CL-63 no such address");
    }
}
