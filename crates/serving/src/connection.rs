//! Serving one connection.

use std::{
    future::ready,
    panic::{AssertUnwindSafe, catch_unwind},
    sync::Arc,
};

use http::{HeaderMap, Request, StatusCode};
use http_body_util::{BodyExt as _, Limited};
use hyper::{body::Incoming, service::service_fn};
use hyper_util::{
    rt::{TokioIo, TokioTimer},
    server::conn::auto::Builder,
};
use rustls::pki_types::CertificateDer;
use tokio::{
    io::{AsyncRead, AsyncWrite},
    net::TcpStream,
    sync::watch,
    time::{Instant, sleep_until, timeout},
};
use tokio_rustls::TlsAcceptor;

use crate::{
    activity::{Activity, Tracked},
    answer::{Answer, denied, text},
    auth::Guard,
    limiter::{Peer, Slot},
    pages::Router,
    server::Limits,
    streams::Streams,
    tls::store::CertificateStore,
};

/// For the header of a request: a token or a certificate is the largest thing in it.
const MAX_HEADER: u32 = 64 << 10;
const MAX_BODY: usize = 4096;
/// How much of a body a client may send before we read it: the least that HTTP/2 allows.
const WINDOW: u32 = 65_535;

/// Serves a connection until it ends, the server stops or it is evicted.
pub(crate) async fn connection(
    shared: Arc<Shared>,
    stream: TcpStream,
    slot: Slot,
    closing: watch::Receiver<bool>,
) {
    let serving = async {
        let Some(secure) = &shared.secure else {
            if let Some(stream) = open(stream, &slot.activity, closing.clone(), |tcp| ready(Ok(tcp))).await {
                Box::pin(serve(&shared, stream, false, Arc::default(), &slot, closing)).await;
            }
            return;
        };
        let handshake = |tcp| Box::pin(secure.acceptor.accept(tcp));
        if let Some(stream) = open(stream, &slot.activity, closing.clone(), handshake).await {
            let (_, session) = stream.get_ref();
            let http2 = session.alpn_protocol() == Some(b"h2");
            let chain = session.peer_certificates().unwrap_or_default().into();
            Box::pin(serve(&shared, stream, http2, chain, &slot, closing)).await;
        }
    };
    tokio::select! {
        biased;
        () = slot.evicted() => tracing::debug!(peer = ?slot.peer, "connection evicted"),
        () = serving => {}
    }
}

/// Waits for the first byte and makes the handshake; `None` if it fails, times out or the server stops.
async fn open<S, F>(
    stream: TcpStream,
    activity: &Activity,
    mut closing: watch::Receiver<bool>,
    handshake: impl FnOnce(TcpStream) -> F,
) -> Option<S>
where
    F: Future<Output = std::io::Result<S>>,
{
    let _ = stream.set_nodelay(true);
    let opening = async {
        // Until the first byte arrives, a connection costs little more than its socket.
        stream.readable().await?;
        activity.sent_bytes();
        handshake(stream).await
    };
    tokio::select! {
        biased;
        // There is no request yet that would have to be answered.
        _ = closing.wait_for(|closing| *closing) => None,
        done = opening => done.inspect_err(|error| tracing::debug!(%error, "handshake failed")).ok(),
        () = until(activity.deadline()) => {
            tracing::debug!("handshake timed out");
            None
        }
    }
}

async fn serve<S>(
    shared: &Arc<Shared>,
    stream: S,
    http2: bool,
    chain: Arc<[CertificateDer<'static>]>,
    slot: &Slot,
    mut closing: watch::Receiver<bool>,
) where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let (peer, activity, limits) = (slot.peer, &slot.activity, shared.limits);
    activity.agreed(http2);
    let io = TokioIo::new(Tracked { stream, activity: Arc::clone(activity) });
    let (shared, state) = (Arc::clone(shared), Arc::clone(activity));
    let service = service_fn(move |request: Request<Incoming>| {
        let (shared, chain, busy) = (Arc::clone(&shared), Arc::clone(&chain), state.begin());
        async move {
            let answer = shared.respond(request, &chain, peer).await;
            drop(busy);
            Ok::<_, std::convert::Infallible>(answer)
        }
    });
    let builder = protocol(http2, limits);
    let serving = builder.serve_connection(io, service);
    tokio::pin!(serving);
    let mut told = false;
    loop {
        tokio::select! {
            biased;
            // An error here means that the client went away or sent nonsense.
            _ = serving.as_mut() => return,
            _ = closing.wait_for(|closing| *closing), if !told => {
                told = true;
                serving.as_mut().graceful_shutdown();
            }
            () = activity.changed.notified() => {}
            () = until(activity.deadline()) => return,
        }
    }
}

async fn until(deadline: Option<Instant>) {
    match deadline {
        Some(at) => sleep_until(at).await,
        None => std::future::pending().await,
    }
}

fn protocol(http2: bool, limits: Limits) -> Builder<Streams> {
    let mut builder = Builder::new(Streams::default());
    // `Activity` has the time limit for headers.
    builder.http1().timer(TokioTimer::new()).header_read_timeout(None).max_buf_size(MAX_HEADER as usize);
    builder
        .http2()
        .timer(TokioTimer::new())
        .max_header_list_size(MAX_HEADER)
        .initial_stream_window_size(WINDOW)
        .initial_connection_window_size(WINDOW)
        .max_send_buf_size(MAX_HEADER as usize)
        .max_concurrent_streams(if limits.streams == 0 { 100 } else { limits.streams });
    if http2 { builder.http2_only() } else { builder.http1_only() }
}

fn header_size(headers: &HeaderMap) -> usize {
    headers.iter().map(|(name, value)| name.as_str().len() + value.len()).sum()
}

pub(crate) struct Shared {
    /// `None` for plain HTTP without a guard.
    pub(crate) secure: Option<Secure>,
    pub(crate) router: Router,
    pub(crate) limits: Limits,
}

pub(crate) struct Secure {
    pub(crate) acceptor: TlsAcceptor,
    pub(crate) certificates: Arc<CertificateStore>,
    pub(crate) guard: Guard,
}

impl Shared {
    /// Answers within the time limit, if need be with an error.
    async fn respond(
        &self,
        request: Request<Incoming>,
        chain: &[CertificateDer<'static>],
        peer: Peer,
    ) -> Answer {
        timeout(self.limits.answer, self.find_out(request, chain, peer)).await.unwrap_or_else(|_| {
            text(StatusCode::GATEWAY_TIMEOUT, "whether you may see this could not be found out in time\n")
        })
    }

    async fn find_out(
        &self,
        request: Request<Incoming>,
        chain: &[CertificateDer<'static>],
        peer: Peer,
    ) -> Answer {
        let (request, body) = request.into_parts();
        // hyper checks its limit between reads, so more can get through.
        if header_size(&request.headers) > MAX_HEADER as usize {
            return text(
                StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE,
                "the header of the request is too large\n",
            );
        }
        if let Some(Secure { guard, .. }) = &self.secure
            && let Err(why) = guard.admit(&request, chain, peer).await
        {
            return denied(&why, request.uri.path());
        }
        let body = if self.router.reads_body(&request) {
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
        // A panic in one page must not take down the connection.
        catch_unwind(AssertUnwindSafe(|| self.router.page(&request, &body))).unwrap_or_else(|_| {
            tracing::error!(path = request.uri.path(), "internal error: page panicked");
            text(StatusCode::INTERNAL_SERVER_ERROR, "This page met a bug; the log says more.\n")
        })
    }
}
