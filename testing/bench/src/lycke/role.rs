//! What the processes do that `bench lycke` starts: the plane under measurement, and the backends behind every proxy.
//!
//! They are processes of their own, so that memory and processor time can be told apart, and each ends when its standard
//! input does.

use std::{
    io,
    net::{IpAddr, SocketAddr},
    sync::Arc,
    time::Duration,
};

use cloudberth_http::surroundings::SystemClock;
use cloudberth_lycke::plane::{
    Backend, BalancerConfig, BalancerKey, Counters, Health, HealthKind, Limits, Listener, LowPorts, Plane,
    PlaneEvent, PlaneObserver, Policy, Protocol, ProxyProtocol,
    socket::{PlaneSettings, SocketPlane},
};
use tokio::{
    io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader},
    net::{TcpListener, TcpStream, UdpSocket},
};

use super::{
    half_open, hostile,
    limits::raise_open_files,
    load::{Kind, Outcome, measure},
};

/// Every request is so long, and so is every answer.
pub(crate) const MESSAGE: usize = 128;
/// Answer, and expect the next request.
pub(crate) const KEEP: u8 = b'k';
/// Answer and close.
pub(crate) const ONCE: u8 = b'o';
/// Send bytes as long as somebody takes them.
pub(crate) const STREAM: u8 = b's';
/// Send a piece now and then, without an end.
pub(crate) const TICK: u8 = b't';
/// A piece of such a stream, and the pause after it.
pub(crate) const PIECE: usize = 4096;
const PAUSE: Duration = Duration::from_millis(20);

/// A part to play.
#[derive(Clone, Debug, clap::Subcommand)]
pub(crate) enum Role {
    /// The plane. Takes lines `NAME CONNECTIONS LISTEN BACKEND…` and answers each with a line; to `NAME` alone it says how many
    /// connections are open and how many were refused.
    Plane,
    /// A backend at each of these addresses.
    Backends { at: Vec<SocketAddr> },
    /// Loads a proxy for a while, and says how much it did: for `strace -c` and `perf` beside it.
    Load { kind: Kind, at: SocketAddr, seconds: u64 },
    /// Clients that say nothing, or a byte a second.
    Hostile,
    /// Clients that never end their handshake, with a plane and backends, in a network that nobody else uses.
    HalfOpen,
}

/// Plays a part until standard input ends.
pub(crate) async fn play(role: &Role) -> io::Result<()> {
    raise_open_files();
    match role {
        Role::Plane => plane().await,
        Role::Backends { at } => backends(at).await,
        Role::Load { kind, at, seconds } => {
            let Outcome { done, rate, p99, failed } =
                measure(*kind, *at, Duration::from_secs(*seconds)).await?;
            say(&format!("{done} done, {rate:.0} a second, p99 {p99:?}, {failed} failed")).await
        }
        Role::Hostile => hostile::crowd().await,
        Role::HalfOpen => say(&half_open::measure().await?.to_string()).await,
    }
}

struct Nobody;

impl PlaneObserver for Nobody {
    fn notice(&self, _key: &BalancerKey, _event: PlaneEvent) {}
}

async fn plane() -> io::Result<()> {
    let plane = SocketPlane::start(PlaneSettings::default(), Arc::new(Nobody), Arc::new(SystemClock::new()))?;
    let mut lines = BufReader::new(tokio::io::stdin()).lines();
    say("ready").await?;
    while let Some(line) = lines.next_line().await? {
        if let Some(Counters { connections, .. }) = plane.counters(&key(&line)) {
            say(&format!("{} {}", connections.open, connections.refused_limit)).await?;
            continue;
        }
        let Some((key, config)) = balancer(&line) else {
            return Err(io::Error::other(format!("not understood: {line}")));
        };
        let report = plane.apply(&key, config).await;
        match report.listeners.first().and_then(|listener| listener.bound) {
            Some(_) => say("done").await?,
            None => return Err(io::Error::other(format!("{report:?}"))),
        }
    }
    Ok(())
}

fn key(name: &str) -> BalancerKey {
    let [cluster, namespace, name] = ["bench", "bench", name].map(str::to_owned);
    BalancerKey { cluster, namespace, name }
}

fn balancer(line: &str) -> Option<(BalancerKey, BalancerConfig)> {
    let mut words = line.split_whitespace();
    let key = key(words.next()?);
    let connections = words.next()?.parse().ok()?;
    let listen: SocketAddr = words.next()?.parse().ok()?;
    let backends: Vec<SocketAddr> = words.map(|word| word.parse().ok()).collect::<Option<_>>()?;
    let node_port = backends.first()?.port();
    let machine = |address: IpAddr| Backend { machine: address.to_string(), address, down: None };
    let config = BalancerConfig {
        uid: String::new(),
        addresses: vec![listen.ip()],
        listeners: [Protocol::Tcp, Protocol::Udp]
            .map(|protocol| Listener { protocol, port: listen.port(), node_port })
            .into(),
        backends: backends.iter().map(|backend| machine(backend.ip())).collect(),
        affinity: None,
        source_ranges: Vec::new(),
        health: Health {
            kind: HealthKind::Auto,
            interval: Duration::from_secs(2),
            timeout: Duration::from_secs(1),
            healthy_threshold: 1,
            unhealthy_threshold: 2,
        },
        proxy_protocol: ProxyProtocol::None,
        policy: Policy::RoundRobin,
        idle_timeout: Some(Duration::from_secs(600)),
        limits: Limits {
            drain: Duration::from_secs(30),
            connections,
            udp_idle: Duration::from_secs(60),
            udp_flows: 4096,
            low_ports: LowPorts::Fail,
        },
    };
    Some((key, config))
}

async fn backends(at: &[SocketAddr]) -> io::Result<()> {
    for address in at {
        let socket = tokio::net::TcpSocket::new_v4()?;
        socket.set_reuseaddr(true)?;
        socket.bind(*address)?;
        let listener = socket.listen(4096)?;
        tokio::spawn(serve(listener));
        tokio::spawn(echo(UdpSocket::bind(*address).await?));
    }
    say("ready").await?;
    let mut rest = Vec::new();
    tokio::io::stdin().read_to_end(&mut rest).await?;
    Ok(())
}

async fn serve(listener: TcpListener) {
    loop {
        match listener.accept().await {
            Ok((stream, _)) => drop(tokio::spawn(answer(stream))),
            Err(_) => tokio::time::sleep(Duration::from_millis(10)).await,
        }
    }
}

async fn echo(socket: UdpSocket) -> io::Result<()> {
    let mut message = [0; MESSAGE];
    loop {
        let (length, client) = socket.recv_from(&mut message).await?;
        socket.send_to(message.get(..length).unwrap_or_default(), client).await?;
    }
}

async fn answer(mut stream: TcpStream) -> io::Result<()> {
    stream.set_nodelay(true)?;
    let mut message = [0; MESSAGE];
    loop {
        stream.read_exact(&mut message).await?;
        match message.first().copied() {
            Some(KEEP) => stream.write_all(&message).await?,
            Some(STREAM) => {
                let bytes = vec![b'.'; 256 * 1024];
                loop {
                    stream.write_all(&bytes).await?;
                }
            }
            Some(TICK) => loop {
                stream.write_all(&[b'.'; PIECE]).await?;
                tokio::time::sleep(PAUSE).await;
            },
            _ => return stream.write_all(&message).await,
        }
    }
}

pub(crate) async fn say(line: &str) -> io::Result<()> {
    let mut out = tokio::io::stdout();
    out.write_all(format!("{line}\n").as_bytes()).await?;
    out.flush().await
}
