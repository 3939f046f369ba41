//! The server: sockets in, answers out.

use std::{net::SocketAddr, sync::Arc, time::Duration};

use cloudberth_core::Clock;
use tokio::{
    net::TcpListener,
    sync::watch,
    task::{JoinSet, yield_now},
    time::{sleep, timeout},
};
use tokio_rustls::TlsAcceptor;

use crate::{
    auth::Guard,
    connection::{Shared, connection},
    error::{Error, Result},
    pages::{Pages, Router},
    pulse::Patience,
    room::{Room, Space},
    tls::{self, settings::Settled, store::CertificateStore},
};

/// The wait after a connection could not be accepted, which happens when files run out.
const ACCEPT_AGAIN: Duration = Duration::from_millis(100);
/// So many connections are accepted before those that are there get their turn.
const AT_A_TIME: usize = 16;

/// Limits in time and number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// For a handshake and the header of the first request together, and for each header after that.
    pub header: Duration,
    /// From one request of a connection to the next.
    pub idle: Duration,
    /// For a client that takes nothing of its answer.
    pub stall: Duration,
    /// For an answer, with all that has to be asked for it.
    pub answer: Duration,
    /// For requests under way when the server stops.
    pub grace: Duration,
    /// How often files are looked at for changes.
    pub look: Duration,
    /// Connections at once; for one more, another is closed.
    pub connections: usize,
    /// Connections of one address at once.
    pub per_peer: usize,
    /// `--http2-max-streams-per-connection`; 0 means 100.
    pub streams: u32,
    /// Not `--disable-http2-serving`.
    pub http2: bool,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            header: Duration::from_secs(5),
            idle: Duration::from_secs(90),
            stall: Duration::from_secs(10),
            answer: Duration::from_secs(30),
            grace: Duration::from_secs(10),
            look: Duration::from_secs(10),
            connections: 192,
            per_peer: 64,
            streams: 0,
            http2: true,
        }
    }
}

/// A server that is ready to run.
pub struct Server {
    listener: TcpListener,
    acceptor: TlsAcceptor,
    certificates: Arc<CertificateStore>,
    shared: Arc<Shared>,
}

impl Server {
    /// Puts everything together. Nothing is served before [`Server::run`].
    pub fn new(
        listener: TcpListener,
        tls: &Settled,
        certificates: Arc<CertificateStore>,
        guard: Guard,
        pages: Pages,
        limits: Limits,
        clock: Arc<dyn Clock>,
    ) -> Result<Self> {
        let config = tls::server_config(tls, Arc::clone(&certificates), limits.http2, Arc::clone(&clock))?;
        let shared = Arc::new(Shared { guard, router: Router::new(pages, clock), limits });
        Ok(Self { listener, acceptor: TlsAcceptor::from(config), certificates, shared })
    }

    /// Where it listens.
    pub fn local_addr(&self) -> Result<SocketAddr> {
        self.listener.local_addr().map_err(|error| Error::new(error.to_string()))
    }

    /// Serves until `stop` is done. Then nothing new is accepted, requests under way are answered within the grace, and
    /// whatever is left is dropped. Dropping the future drops all connections at once.
    pub async fn run(self, stop: impl Future<Output = ()>) {
        let Self { listener, acceptor, certificates, shared } = self;
        let limits = shared.limits;
        let (close, closing) = watch::channel(false);
        let mut connections = JoinSet::new();
        let room = Room::new(
            Space { total: limits.connections, each: limits.per_peer },
            Patience { header: limits.header, idle: limits.idle, stall: limits.stall },
            shared.guard.metrics().clone(),
        );
        let serving = async {
            let mut in_a_row = 0;
            loop {
                // A connection can only show that it is not silent when it gets its turn.
                if in_a_row == AT_A_TIME {
                    in_a_row = 0;
                    yield_now().await;
                }
                tokio::select! {
                    biased;
                    Some(ended) = connections.join_next() => {
                        if let Err(error) = ended {
                            tracing::error!(%error, "a connection ended by a bug");
                        }
                    }
                    accepted = listener.accept() => match accepted {
                        Ok((stream, from)) => {
                            in_a_row += 1;
                            let (shared, seat) = (Arc::clone(&shared), room.enter(from.ip()));
                            connections.spawn(connection(shared, acceptor.clone(), stream, seat, closing.clone()));
                        }
                        Err(error) => {
                            tracing::warn!(%error, "a connection could not be accepted");
                            sleep(ACCEPT_AGAIN).await;
                        }
                    },
                }
            }
        };
        let keeping = async {
            tokio::join!(shared.guard.keep(limits.look), keep_certificates(&certificates, limits.look));
        };
        tokio::select! {
            biased;
            () = stop => {}
            () = serving => {}
            () = keeping => {}
        }
        drop(listener);
        close.send_replace(true);
        let drained = timeout(limits.grace, async { while connections.join_next().await.is_some() {} }).await;
        if drained.is_err() {
            tracing::warn!(left = connections.len(), "requests under way are dropped: the grace is over");
        }
    }
}

impl std::fmt::Debug for Server {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Server").field("listener", &self.listener).finish_non_exhaustive()
    }
}

/// Takes over changed certificates; never ends.
async fn keep_certificates(certificates: &CertificateStore, every: Duration) {
    loop {
        sleep(every).await;
        for problem in certificates.refresh() {
            tracing::warn!("{problem}");
        }
    }
}
