//! Connections: accepted on a port, bounded in number, and ended when nobody reads.

use std::{
    convert::Infallible,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use hyper::{server::conn::http1, service::service_fn};
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::{
    net::{TcpListener, TcpStream},
    sync::Semaphore,
    task::JoinSet,
    time::{Instant, sleep, sleep_until},
};

use super::routes::{Shared, answer};

/// How much of everything there may be.
#[derive(Clone, Copy, Debug)]
pub(super) struct Limits {
    /// Open at once; further ones wait.
    pub(super) connections: usize,
    /// Streams at once; further ones are told to come back.
    pub(super) readers: usize,
    /// Between two pieces of a stream.
    pub(super) pace: Duration,
    /// A stream says something at least this often.
    pub(super) heartbeat: Duration,
    /// For the header of a request, and between requests.
    pub(super) header: Duration,
    /// For a command.
    pub(super) command: Duration,
    /// A connection whose other side takes nothing for so long is closed. Longer than heartbeat, header and command.
    pub(super) silence: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            connections: 64,
            readers: 8,
            pace: Duration::from_millis(150),
            heartbeat: Duration::from_secs(10),
            header: Duration::from_secs(15),
            command: Duration::from_secs(30),
            silence: Duration::from_secs(45),
        }
    }
}

/// The header of a request with cookies, at most.
const MAX_HEADER: usize = 32 << 10;

/// When something was last heard from a connection: a request, or that its stream can take more.
#[derive(Debug)]
pub(super) struct Pulse(Mutex<Instant>);

impl Pulse {
    fn new() -> Self {
        Self(Mutex::new(Instant::now()))
    }

    pub(super) fn beat(&self) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Instant::now();
    }

    /// Waits until nothing was heard for so long.
    async fn silent(&self, limit: Duration) {
        loop {
            let due = *self.0.lock().unwrap_or_else(PoisonError::into_inner) + limit;
            if due <= Instant::now() {
                return;
            }
            sleep_until(due).await;
        }
    }
}

/// Accepts connections for ever. They end when this future is dropped.
pub(super) async fn accept(listener: TcpListener, shared: Arc<Shared>) {
    let room = Arc::new(Semaphore::new(shared.limits.connections));
    let mut connections = JoinSet::new();
    loop {
        let Ok(place) = Arc::clone(&room).acquire_owned().await else { return };
        while connections.try_join_next().is_some() {}
        match listener.accept().await {
            Ok((stream, _)) => {
                let shared = Arc::clone(&shared);
                connections.spawn(async move {
                    serve(stream, shared).await;
                    drop(place);
                });
            }
            // Out of file handles, say: others will close.
            Err(_) => sleep(Duration::from_millis(100)).await,
        }
    }
}

async fn serve(stream: TcpStream, shared: Arc<Shared>) {
    let _ = stream.set_nodelay(true);
    let limits = shared.limits;
    let pulse = Arc::new(Pulse::new());
    let heard = Arc::clone(&pulse);
    let service = service_fn(move |request| {
        heard.beat();
        let (shared, pulse) = (Arc::clone(&shared), Arc::clone(&heard));
        async move { Ok::<_, Infallible>(answer(&shared, request, pulse).await) }
    });
    let mut builder = http1::Builder::new();
    builder.timer(TokioTimer::new()).header_read_timeout(limits.header).max_buf_size(MAX_HEADER);
    tokio::select! {
        biased;
        // An error here is a browser that went away, or one that sent nonsense.
        _ = builder.serve_connection(TokioIo::new(stream), service) => {}
        () = pulse.silent(limits.silence) => {}
    }
}
