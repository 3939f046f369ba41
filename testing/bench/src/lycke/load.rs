//! The load, the same for every proxy.

use std::{
    io,
    net::{Ipv4Addr, SocketAddr},
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, Ordering::Relaxed},
    },
    time::Duration,
};

use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpStream, UdpSocket},
    task::JoinSet,
    time::{Instant, sleep, timeout},
};

use super::{
    proxies::{HAPROXY, NGINX},
    role::{KEEP, MESSAGE, ONCE, STREAM},
};

/// A datagram that is not answered for so long is lost.
const LOST: Duration = Duration::from_secs(1);

/// What is measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Kind {
    /// A connection for each request.
    NewConnections,
    /// Requests on 64 connections that stay.
    Requests,
    /// Requests on 1,000 connections that stay.
    ManyConnections,
    /// Four downloads.
    Bytes,
    /// Datagrams with an answer each, of 64 clients.
    Datagrams,
}

pub(crate) const KINDS: [Kind; 5] =
    [Kind::NewConnections, Kind::Requests, Kind::ManyConnections, Kind::Bytes, Kind::Datagrams];

impl Kind {
    pub(crate) fn title(self) -> &'static str {
        match self {
            Self::NewConnections => "new connections/s",
            Self::Requests => "requests/s, 64 kept",
            Self::ManyConnections => "requests/s, 1000 kept",
            Self::Bytes => "MB/s, 4 downloads",
            Self::Datagrams => "UDP requests/s, 64 flows",
        }
    }

    /// Who is the one to compare with, and how much at least of what that one does.
    pub(crate) fn goal(self) -> (&'static str, f64) {
        match self {
            Self::NewConnections => (HAPROXY, 0.9),
            Self::Requests | Self::ManyConnections | Self::Bytes => (HAPROXY, 1.0),
            // `HAProxy` carries none.
            Self::Datagrams => (NGINX, 0.9),
        }
    }

    fn clients(self) -> usize {
        match self {
            Self::NewConnections | Self::Requests | Self::Datagrams => 64,
            Self::ManyConnections => 1000,
            Self::Bytes => 4,
        }
    }
}

/// What came out of one round.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Outcome {
    /// In each second that counts.
    pub(crate) rate: f64,
    /// In all, with what does not count.
    pub(crate) done: f64,
    /// The time that one request in a hundred exceeds.
    pub(crate) p99: Duration,
    pub(crate) failed: u64,
}

struct Shared {
    at: SocketAddr,
    over: AtomicBool,
    /// Counting begins when every client is connected.
    counts: AtomicBool,
    done: AtomicU64,
    all: AtomicU64,
    failed: AtomicU64,
}

/// Loads a proxy for a while.
pub(crate) async fn measure(kind: Kind, at: SocketAddr, time: Duration) -> io::Result<Outcome> {
    let shared = Arc::new(Shared {
        at,
        over: AtomicBool::new(false),
        counts: AtomicBool::new(false),
        done: AtomicU64::new(0),
        all: AtomicU64::new(0),
        failed: AtomicU64::new(0),
    });
    let mut clients = JoinSet::new();
    for _ in 0..kind.clients() {
        let stream = match kind {
            Kind::NewConnections | Kind::Datagrams => None,
            _ => Some(connect(at).await?),
        };
        let shared = Arc::clone(&shared);
        clients.spawn(async move {
            match (kind, stream) {
                (Kind::Bytes, Some(stream)) => download(stream, &shared).await,
                (_, Some(stream)) => requests(stream, &shared).await,
                (Kind::Datagrams, None) => datagrams(&shared).await,
                (_, None) => connections(&shared).await,
            }
        });
    }
    sleep(Duration::from_millis(200)).await;
    shared.counts.store(true, Relaxed);
    let start = Instant::now();
    sleep(time).await;
    shared.over.store(true, Relaxed);
    let (done, seconds) = (shared.done.load(Relaxed), start.elapsed().as_secs_f64());
    let mut times = Vec::new();
    while let Some(client) = clients.join_next().await {
        times.extend(client.unwrap_or_default());
    }
    times.sort_unstable();
    let p99 = times.get(times.len() * 99 / 100).copied().unwrap_or_default();
    #[expect(clippy::cast_precision_loss, reason = "numbers for people")]
    let (rate, done) = (done as f64 / seconds, shared.all.load(Relaxed) as f64);
    Ok(Outcome { rate, done, p99: Duration::from_micros(p99.into()), failed: shared.failed.load(Relaxed) })
}

pub(crate) async fn connect(at: SocketAddr) -> io::Result<TcpStream> {
    let stream = TcpStream::connect(at).await?;
    stream.set_nodelay(true)?;
    Ok(stream)
}

fn request(kind: u8) -> [u8; MESSAGE] {
    [kind; MESSAGE]
}

pub(crate) async fn ask(stream: &mut TcpStream, kind: u8) -> io::Result<()> {
    stream.write_all(&request(kind)).await?;
    let mut answer = [0; MESSAGE];
    stream.read_exact(&mut answer).await?;
    Ok(())
}

fn micros(time: Duration) -> u32 {
    u32::try_from(time.as_micros()).unwrap_or(u32::MAX)
}

impl Shared {
    fn is_over(&self) -> bool {
        self.over.load(Relaxed)
    }

    fn note(&self, times: &mut Vec<u32>, start: Instant) {
        self.all.fetch_add(1, Relaxed);
        if self.counts.load(Relaxed) && !self.is_over() {
            self.done.fetch_add(1, Relaxed);
            times.push(micros(start.elapsed()));
        }
    }
}

async fn requests(mut stream: TcpStream, shared: &Shared) -> Vec<u32> {
    let mut times = Vec::new();
    while !shared.is_over() {
        let start = Instant::now();
        if ask(&mut stream, KEEP).await.is_err() {
            shared.failed.fetch_add(1, Relaxed);
            return times;
        }
        shared.note(&mut times, start);
    }
    times
}

async fn connections(shared: &Shared) -> Vec<u32> {
    let mut times = Vec::new();
    while !shared.is_over() {
        let start = Instant::now();
        let asked = async {
            let mut stream = connect(shared.at).await?;
            ask(&mut stream, ONCE).await?;
            // The backend closes first, so that no port of ours is kept waiting.
            stream.read_u8().await.map(|_| ()).or_else(|error| match error.kind() {
                io::ErrorKind::UnexpectedEof => Ok(()),
                _ => Err(error),
            })
        };
        match asked.await {
            Ok(()) => shared.note(&mut times, start),
            Err(_) => {
                shared.failed.fetch_add(1, Relaxed);
            }
        }
    }
    times
}

/// One datagram after the other; one that is lost, on either way, fails.
async fn datagrams(shared: &Shared) -> Vec<u32> {
    let mut times = Vec::new();
    let opened = async {
        let socket = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).await?;
        socket.connect(shared.at).await.map(|()| socket)
    };
    let Ok(socket) = opened.await else {
        shared.failed.fetch_add(1, Relaxed);
        return times;
    };
    let mut answer = [0; MESSAGE];
    while !shared.is_over() {
        let start = Instant::now();
        let asked = async {
            socket.send(&request(KEEP)).await?;
            socket.recv(&mut answer).await
        };
        match timeout(LOST, asked).await {
            Ok(Ok(MESSAGE)) => shared.note(&mut times, start),
            _ => drop(shared.failed.fetch_add(1, Relaxed)),
        }
    }
    times
}

async fn download(mut stream: TcpStream, shared: &Shared) -> Vec<u32> {
    let mut buffer = vec![0; 256 * 1024];
    if stream.write_all(&request(STREAM)).await.is_err() {
        shared.failed.fetch_add(1, Relaxed);
        return Vec::new();
    }
    while !shared.is_over() {
        let Ok(length @ 1..) = stream.read(&mut buffer).await else {
            shared.failed.fetch_add(1, Relaxed);
            return Vec::new();
        };
        let length = u64::try_from(length).unwrap_or_default();
        shared.all.fetch_add(length, Relaxed);
        if shared.counts.load(Relaxed) {
            shared.done.fetch_add(length, Relaxed);
        }
    }
    Vec::new()
}
