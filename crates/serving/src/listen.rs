//! Opening the port.

use std::net::{IpAddr, SocketAddr, TcpListener};

use tokio::net::TcpSocket;

use crate::error::{Error, Result};

const BACKLOG: u32 = 1024;

/// The address and port to listen on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bind {
    /// `--bind-address`.
    pub address: IpAddr,
    /// `--secure-port`; 0 means not at all.
    pub port: u16,
    /// `--permit-port-sharing`: others may listen on the same port.
    pub share_port: bool,
    /// The flags that say so, for the message if it cannot be opened.
    pub flags: &'static str,
}

/// Opens the port; `None` if it is 0. It belongs to no runtime yet, so another thread can serve it. An address that was
/// in use a moment ago can be used again at once, whatever `--permit-address-sharing` says.
pub fn listen(bind: &Bind) -> Result<Option<TcpListener>> {
    if bind.port == 0 {
        return Ok(None);
    }
    let address = SocketAddr::new(bind.address, bind.port);
    open(address, bind.share_port)
        .map(Some)
        .map_err(|error| Error::new(format!("cannot listen on {address} ({}): {error}", bind.flags)))
}

fn open(address: SocketAddr, share_port: bool) -> std::io::Result<TcpListener> {
    let socket = if address.is_ipv4() { TcpSocket::new_v4()? } else { TcpSocket::new_v6()? };
    socket.set_reuseaddr(true)?;
    #[cfg(unix)]
    socket.set_reuseport(share_port)?;
    socket.bind(address)?;
    socket.listen(BACKLOG)?.into_std()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_port_is_opened_shared_or_left_alone() {
        let loopback = IpAddr::from([127, 0, 0, 1]);
        let at = |port, share_port| Bind { address: loopback, port, share_port, flags: "--secure-port" };
        assert!(listen(&at(0, false)).unwrap().is_none(), "FW-345 port 0 opens nothing");

        let first = open((loopback, 0).into(), true).unwrap();
        let port = first.local_addr().unwrap().port();
        let error = listen(&at(port, false)).unwrap_err().to_string();
        assert!(error.contains(&format!("127.0.0.1:{port}")) && error.contains("--secure-port"), "{error}");
        assert!(listen(&at(port, true)).unwrap().is_some(), "both sides agree to share");
    }
}
