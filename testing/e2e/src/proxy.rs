//! A TCP proxy in front of a server that can cut, hold up and refuse connections.
//!
//! It forwards bytes without looking at them, so TLS goes from end to end and it works with any server.

use std::net::{Ipv4Addr, SocketAddr};
use std::path::Path;

use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::task::JoinSet;

use crate::Error;

/// What happens to connections. A new `era` ends those that began under an earlier one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Rule {
    open: bool,
    /// Nothing is forwarded, and connections stay open.
    held: bool,
    era: u64,
}

/// The proxy. Dropping it cuts all connections.
#[derive(Debug)]
pub(crate) struct Proxy {
    address: SocketAddr,
    rule: watch::Sender<Rule>,
    _tasks: JoinSet<()>,
}

impl Proxy {
    /// A proxy in front of `server`; `dir` is for the message when there is no port.
    pub(crate) async fn to(server: SocketAddr, dir: &Path) -> Result<Self, Error> {
        let listener =
            TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.map_err(Error::io("no port for", dir))?;
        let address = listener.local_addr().map_err(Error::io("no port for", dir))?;
        let (rule, follow) = watch::channel(Rule { open: true, held: false, era: 0 });
        let mut tasks = JoinSet::new();
        tasks.spawn(keep(listener, server, follow));
        Ok(Self { address, rule, _tasks: tasks })
    }

    pub(crate) fn address(&self) -> SocketAddr {
        self.address
    }

    /// Ends every connection. New ones are let through at once.
    pub(crate) fn cut(&self) {
        self.rule.send_modify(|rule| rule.era += 1);
    }

    /// Ends every connection, and new ones as they come, until it is opened again.
    pub(crate) fn close(&self) {
        self.rule.send_modify(|rule| *rule = Rule { open: false, held: false, era: rule.era + 1 });
    }

    /// Holds up all traffic. Connections stay open, and new ones can be made.
    pub(crate) fn hold(&self) {
        self.rule.send_modify(|rule| rule.held = true);
    }

    /// Lets everything through, also what was held up.
    pub(crate) fn open(&self) {
        self.rule.send_modify(|rule| *rule = Rule { open: true, held: false, ..*rule });
    }
}

async fn keep(listener: TcpListener, server: SocketAddr, follow: watch::Receiver<Rule>) {
    let mut connections = JoinSet::new();
    loop {
        tokio::select! {
            biased;
            accepted = listener.accept() => {
                let Ok((client, _)) = accepted else { continue };
                let rule = *follow.borrow();
                if rule.open {
                    connections.spawn(pass(client, server, rule.era, follow.clone()));
                }
            }
            Some(_) = connections.join_next() => {}
        }
    }
}

async fn pass(mut client: TcpStream, server: SocketAddr, era: u64, mut follow: watch::Receiver<Rule>) {
    let passing = async {
        let Ok(mut server) = TcpStream::connect(server).await else { return };
        let _ = (client.set_nodelay(true), server.set_nodelay(true));
        let _ = tokio::io::copy_bidirectional(&mut client, &mut server).await;
    };
    let mut passing = std::pin::pin!(passing);
    let over = |rule: &Rule| rule.era != era;
    loop {
        let Ok(rule) = follow.wait_for(|rule| over(rule) || !rule.held).await.map(|rule| *rule) else {
            return;
        };
        if over(&rule) {
            return;
        }
        tokio::select! {
            biased;
            _ = follow.wait_for(|rule| over(rule) || rule.held) => {}
            () = &mut passing => return,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    use tokio::time::timeout;

    /// A server that answers every byte with the next.
    async fn server() -> (SocketAddr, JoinSet<()>) {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
        let (address, mut tasks) = (listener.local_addr().unwrap(), JoinSet::new());
        tasks.spawn(async move {
            let mut clients = JoinSet::new();
            while let Ok((mut client, _)) = listener.accept().await {
                clients.spawn(async move {
                    while let Ok(byte) = client.read_u8().await {
                        let _ = client.write_u8(byte + 1).await;
                    }
                });
            }
        });
        (address, tasks)
    }

    async fn ask(connection: &mut TcpStream) -> Option<u8> {
        connection.write_u8(1).await.ok()?;
        timeout(Duration::from_secs(60), connection.read_u8()).await.expect("neither answer nor end").ok()
    }

    #[tokio::test]
    async fn connections_can_be_cut_refused_and_held_up() {
        let (address, _server) = server().await;
        let proxy = Proxy::to(address, Path::new("/")).await.unwrap();
        let mut old = TcpStream::connect(proxy.address()).await.unwrap();
        assert_eq!(ask(&mut old).await, Some(2));
        proxy.cut();
        assert_eq!(ask(&mut old).await, None);
        let mut new = TcpStream::connect(proxy.address()).await.unwrap();
        assert_eq!(ask(&mut new).await, Some(2));

        proxy.hold();
        new.write_u8(7).await.unwrap();
        let mut newest = TcpStream::connect(proxy.address()).await.unwrap();
        newest.write_u8(8).await.unwrap();
        let nothing = timeout(Duration::from_millis(200), new.read_u8()).await;
        assert!(nothing.is_err(), "{nothing:?}");
        proxy.open();
        for (connection, want) in [(&mut new, 8), (&mut newest, 9)] {
            let late = timeout(Duration::from_secs(60), connection.read_u8()).await.expect("nothing came");
            assert_eq!(late.ok(), Some(want));
        }

        proxy.close();
        assert_eq!(ask(&mut new).await, None);
        assert_eq!(ask(&mut TcpStream::connect(proxy.address()).await.unwrap()).await, None);
        proxy.open();
        assert_eq!(ask(&mut TcpStream::connect(proxy.address()).await.unwrap()).await, Some(2));
    }
}
