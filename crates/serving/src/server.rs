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
    activity::Timeouts,
    auth::Guard,
    connection::{Secure, Shared, connection},
    error::{Error, Result},
    limiter::{Capacity, ConnectionLimiter},
    metrics::Metrics,
    pages::{Pages, Router},
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
    /// For a client that does not read its response.
    pub stall: Duration,
    /// For a response, including the reviews that it needs.
    pub answer: Duration,
    /// For requests in flight when the server stops.
    pub grace: Duration,
    /// How often files are checked for changes.
    pub look: Duration,
    /// Open connections; to accept one more, another is evicted.
    pub connections: usize,
    /// Open connections of one address.
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
    metrics: Metrics,
    shared: Arc<Shared>,
}

impl Server {
    /// A server that speaks TLS and asks `guard` about every request. It serves nothing before [`Server::run`].
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
        let metrics = guard.metrics().clone();
        metrics.certificate_ends(certificates.ends());
        let secure = Secure { acceptor: TlsAcceptor::from(config), certificates, guard };
        let shared = Arc::new(Shared { secure: Some(secure), router: Router::new(pages, clock), limits });
        Ok(Self { listener, metrics, shared })
    }

    /// A server of plain HTTP/1.1 for everybody, with the same limits. Only health and metrics are served: pages that
    /// need a guard are left out.
    pub fn plain(
        listener: TcpListener,
        pages: Pages,
        limits: Limits,
        metrics: Metrics,
        clock: Arc<dyn Clock>,
    ) -> Self {
        let router = Router::new(Pages { guarded: None, ..pages }, clock);
        Self { listener, metrics, shared: Arc::new(Shared { secure: None, router, limits }) }
    }

    /// The address that it listens on.
    pub fn local_addr(&self) -> Result<SocketAddr> {
        self.listener.local_addr().map_err(|error| Error::new(error.to_string()))
    }

    /// Serves until `stop` completes. Then it accepts nothing new, lets requests in flight finish within the grace period
    /// and drops the rest. Dropping the future drops all connections at once.
    pub async fn run(self, stop: impl Future<Output = ()>) {
        let Self { listener, metrics, shared } = self;
        let limits = shared.limits;
        let (close, closing) = watch::channel(false);
        let mut connections = JoinSet::new();
        let limiter = ConnectionLimiter::new(
            Capacity { total: limits.connections, each: limits.per_peer },
            Timeouts { header: limits.header, idle: limits.idle, stall: limits.stall },
            metrics,
        );
        let serving = async {
            let mut in_a_row = 0;
            loop {
                // Let the accepted connections run: one that has sent something must not look silent.
                if in_a_row == AT_A_TIME {
                    in_a_row = 0;
                    yield_now().await;
                }
                tokio::select! {
                    biased;
                    Some(ended) = connections.join_next() => {
                        if let Err(error) = ended {
                            tracing::error!(%error, "internal error: connection panicked");
                        }
                    }
                    accepted = listener.accept() => match accepted {
                        Ok((stream, from)) => {
                            in_a_row += 1;
                            let (shared, slot) = (Arc::clone(&shared), limiter.enter(from.ip()));
                            connections.spawn(connection(shared, stream, slot, closing.clone()));
                        }
                        Err(error) => {
                            tracing::warn!(%error, "accept failed");
                            sleep(ACCEPT_AGAIN).await;
                        }
                    },
                }
            }
        };
        let keeping = async {
            match &shared.secure {
                Some(Secure { guard, certificates, .. }) => {
                    let keeping = keep_certificates(certificates, guard.metrics(), limits.look);
                    tokio::join!(guard.follow(limits.look), keeping);
                }
                None => std::future::pending().await,
            }
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
            tracing::warn!(left = connections.len(), "grace period over: dropping requests in flight");
        }
    }
}

impl std::fmt::Debug for Server {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Server").field("listener", &self.listener).finish_non_exhaustive()
    }
}

/// Reloads certificates that changed; never ends.
async fn keep_certificates(certificates: &CertificateStore, metrics: &Metrics, every: Duration) {
    loop {
        sleep(every).await;
        for problem in certificates.refresh() {
            tracing::warn!("{problem}");
        }
        metrics.certificate_ends(certificates.ends());
    }
}
