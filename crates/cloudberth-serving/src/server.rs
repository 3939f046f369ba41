//! The server: sockets in, answers out.

use std::{
    net::SocketAddr,
    panic::{AssertUnwindSafe, catch_unwind},
    sync::Arc,
    time::Duration,
};

use cloudberth_core::Clock;
use http::{HeaderMap, Request, StatusCode};
use http_body_util::{BodyExt as _, Limited};
use hyper::{body::Incoming, service::service_fn};
use hyper_util::{
    rt::{TokioIo, TokioTimer},
    server::conn::auto::Builder,
};
use rustls::pki_types::CertificateDer;
use tokio::{
    net::{TcpListener, TcpStream},
    sync::watch,
    task::JoinSet,
    time::{sleep, sleep_until, timeout},
};
use tokio_rustls::TlsAcceptor;

use crate::{
    answer::{Answer, denied, text},
    auth::Guard,
    error::{Error, Result},
    pages::{Pages, Router},
    pulse::{Heard, Patience, Pulse},
    streams::Streams,
    tls::{self, settings::Settled, store::CertificateStore},
};

const MAX_HEADER: u32 = 1 << 20;
const MAX_BODY: usize = 4096;
/// The wait after a connection could not be accepted, which happens when files run out.
const ACCEPT_AGAIN: Duration = Duration::from_millis(100);

/// Limits in time and number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// For a handshake, and for the header of a request.
    pub header: Duration,
    /// From one request of a connection to the next.
    pub idle: Duration,
    /// For requests under way when the server stops.
    pub grace: Duration,
    /// How often files are looked at for changes.
    pub look: Duration,
    /// Connections at once; more wait to be accepted.
    pub connections: usize,
    /// `--http2-max-streams-per-connection`; 0 means 100.
    pub streams: u32,
    /// Not `--disable-http2-serving`.
    pub http2: bool,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            header: Duration::from_secs(32),
            idle: Duration::from_secs(90),
            grace: Duration::from_secs(10),
            look: Duration::from_secs(10),
            connections: 1024,
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

struct Shared {
    guard: Guard,
    router: Router,
    limits: Limits,
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
        let serving = async {
            loop {
                tokio::select! {
                    biased;
                    Some(ended) = connections.join_next() => {
                        if let Err(error) = ended {
                            tracing::error!(%error, "a connection ended by a bug");
                        }
                    }
                    accepted = listener.accept(), if connections.len() < limits.connections => match accepted {
                        Ok((stream, _)) => {
                            connections.spawn(connection(Arc::clone(&shared), acceptor.clone(), stream, closing.clone()));
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

async fn connection(
    shared: Arc<Shared>,
    acceptor: TlsAcceptor,
    stream: TcpStream,
    mut closing: watch::Receiver<bool>,
) {
    let limits = shared.limits;
    let _ = stream.set_nodelay(true);
    let handshake = timeout(limits.header, acceptor.accept(stream));
    let stream = tokio::select! {
        biased;
        // Nobody has asked for anything yet.
        _ = closing.wait_for(|closing| *closing) => return,
        done = handshake => match done {
            Ok(Ok(stream)) => stream,
            Ok(Err(error)) => return tracing::debug!(%error, "no handshake"),
            Err(_) => return tracing::debug!("no handshake in time"),
        },
    };
    let (_, session) = stream.get_ref();
    let http2 = session.alpn_protocol() == Some(b"h2");
    let chain: Arc<[CertificateDer<'static>]> = session.peer_certificates().unwrap_or_default().into();
    let pulse = Pulse::new(Patience { header: (!http2).then_some(limits.header), idle: limits.idle });
    let io = TokioIo::new(Heard { stream, pulse: Arc::clone(&pulse) });
    let beat = Arc::clone(&pulse);
    let service = service_fn(move |request: Request<Incoming>| {
        let (shared, chain, busy) = (Arc::clone(&shared), Arc::clone(&chain), beat.begin());
        async move {
            let answer = shared.respond(request, &chain).await;
            drop(busy);
            Ok::<_, std::convert::Infallible>(answer)
        }
    });
    let builder = protocol(http2, limits);
    let serving = builder.serve_connection(io, service);
    tokio::pin!(serving);
    let mut told = false;
    loop {
        let deadline = pulse.deadline();
        tokio::select! {
            biased;
            // An error here is a client that went away or made no sense.
            _ = serving.as_mut() => return,
            _ = closing.wait_for(|closing| *closing), if !told => {
                told = true;
                serving.as_mut().graceful_shutdown();
            }
            () = pulse.changed.notified() => {}
            () = async { if let Some(at) = deadline { sleep_until(at).await } }, if deadline.is_some() => return,
        }
    }
}

fn protocol(http2: bool, limits: Limits) -> Builder<Streams> {
    let mut builder = Builder::new(Streams::default());
    // The pulse of the connection watches over its header.
    builder.http1().timer(TokioTimer::new()).header_read_timeout(None).max_buf_size(MAX_HEADER as usize);
    builder
        .http2()
        .timer(TokioTimer::new())
        .max_header_list_size(MAX_HEADER)
        .max_concurrent_streams(if limits.streams == 0 { 100 } else { limits.streams });
    if http2 { builder.http2_only() } else { builder.http1_only() }
}

fn header_size(headers: &HeaderMap) -> usize {
    headers.iter().map(|(name, value)| name.as_str().len() + value.len()).sum()
}

impl Shared {
    async fn respond(&self, request: Request<Incoming>, chain: &[CertificateDer<'static>]) -> Answer {
        let (request, body) = request.into_parts();
        // The reader's own limit lets the last piece that it read pass.
        if header_size(&request.headers) > MAX_HEADER as usize {
            return text(
                StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE,
                "the header of the request is too large\n",
            );
        }
        if let Err(why) = self.guard.admit(&request, chain).await {
            return denied(&why, request.uri.path());
        }
        let body = if Router::reads_body(&request) {
            match timeout(self.limits.header, Limited::new(body, MAX_BODY).collect()).await {
                Ok(Ok(body)) => body.to_bytes(),
                Ok(Err(error)) => {
                    return text(StatusCode::BAD_REQUEST, format!("error reading request body: {error}"));
                }
                Err(_) => {
                    return text(StatusCode::REQUEST_TIMEOUT, "the request's body did not arrive in time\n");
                }
            }
        } else {
            bytes::Bytes::new()
        };
        // A bug behind one page is that page's trouble alone.
        catch_unwind(AssertUnwindSafe(|| self.router.page(&request, &body))).unwrap_or_else(|_| {
            tracing::error!(path = request.uri.path(), "a page met a bug");
            text(StatusCode::INTERNAL_SERVER_ERROR, "This page met a bug; the log says more.\n")
        })
    }
}
