//! A gate on the way to a server: connections can be cut or held up, and the way closed, without the server's
//! knowledge.
//!
//! It passes bytes and knows nothing of what they mean, so TLS goes from end to end and it works on any server.

use std::net::{Ipv4Addr, SocketAddr};
use std::path::Path;

use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::task::JoinSet;

use crate::Error;

/// Whether connections may stand. A new number ends those that began under another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Rule {
    open: bool,
    /// Nothing passes, and nobody is told.
    held: bool,
    era: u64,
}

/// The gate. Dropping it cuts everything.
#[derive(Debug)]
pub(crate) struct Gate {
    address: SocketAddr,
    rule: watch::Sender<Rule>,
    _tasks: JoinSet<()>,
}

impl Gate {
    /// A gate in front of `server`; `dir` is for the message when there is no port.
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

    /// Holds everything up that comes, without a word. Connections stand, and new ones can be made.
    pub(crate) fn hold(&self) {
        self.rule.send_modify(|rule| rule.held = true);
    }

    /// Lets everything through, what was held up included.
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
    async fn a_cut_ends_old_connections_and_a_closed_gate_new_ones_too_and_what_is_held_comes_late() {
        let (address, _server) = server().await;
        let gate = Gate::to(address, Path::new("/")).await.unwrap();
        let mut old = TcpStream::connect(gate.address()).await.unwrap();
        assert_eq!(ask(&mut old).await, Some(2));
        gate.cut();
        assert_eq!(ask(&mut old).await, None);
        let mut new = TcpStream::connect(gate.address()).await.unwrap();
        assert_eq!(ask(&mut new).await, Some(2));

        gate.hold();
        new.write_u8(7).await.unwrap();
        let mut newest = TcpStream::connect(gate.address()).await.unwrap();
        newest.write_u8(8).await.unwrap();
        let nothing = timeout(Duration::from_millis(200), new.read_u8()).await;
        assert!(nothing.is_err(), "{nothing:?}");
        gate.open();
        for (connection, want) in [(&mut new, 8), (&mut newest, 9)] {
            let late = timeout(Duration::from_secs(60), connection.read_u8()).await.expect("nothing came");
            assert_eq!(late.ok(), Some(want));
        }

        gate.close();
        assert_eq!(ask(&mut new).await, None);
        assert_eq!(ask(&mut TcpStream::connect(gate.address()).await.unwrap()).await, None);
        gate.open();
        assert_eq!(ask(&mut TcpStream::connect(gate.address()).await.unwrap()).await, Some(2));
    }
}
