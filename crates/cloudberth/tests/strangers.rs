//! Strangers who reach the HTTPS port of a leader and mean it no good.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing, missing_docs)]
#![cfg(feature = "sim")]

mod fixture;

use std::{
    net::{IpAddr, Ipv4Addr, SocketAddr},
    sync::Arc,
    time::Duration,
};

use fixture::{Cluster, Process, free_port, until};
use futures_util::{StreamExt as _, stream};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use rustls::{
    ClientConfig, RootCertStore,
    crypto::ring,
    pki_types::{CertificateDer, ServerName, pem::PemObject as _},
};
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::{TcpSocket, TcpStream},
    time::{Instant, sleep, timeout},
};
use tokio_rustls::{TlsConnector, client::TlsStream};

const SILENT: usize = 2_000;
const HALF_SENT: usize = 500;
/// What all of them together may cost.
const MEMORY: u64 = 32 << 20;
/// The renewal deadline of the managers of these tests.
const RENEWAL: Duration = Duration::from_secs(4);

const LOOPBACK: IpAddr = IpAddr::V4(Ipv4Addr::LOCALHOST);
/// The kubelet comes from another address than the strangers.
const KUBELET: IpAddr = IpAddr::V4(Ipv4Addr::new(127, 0, 0, 2));

/// Both sides of every connection are files of somebody, and many systems begin with 1,024.
fn raise_file_limit() {
    let now = getrlimit(Resource::Nofile);
    let want = now.maximum.map_or(4_096, |most| most.min(4_096));
    if now.current.is_some_and(|current| current < want) {
        setrlimit(Resource::Nofile, Rlimit { current: Some(want), maximum: now.maximum }).unwrap();
    }
}

/// The port of a manager, as somebody sees it who knows its certificate.
#[derive(Clone)]
struct Door {
    port: u16,
    config: Arc<ClientConfig>,
}

impl Door {
    fn new(port: u16, certificates: &[u8]) -> Self {
        let mut roots = RootCertStore::empty();
        roots.add(CertificateDer::pem_slice_iter(certificates).last().unwrap().unwrap()).unwrap();
        let config = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_root_certificates(roots)
            .with_no_client_auth();
        Self { port, config: Arc::new(config) }
    }

    async fn connect(&self, from: IpAddr) -> std::io::Result<TcpStream> {
        let socket = TcpSocket::new_v4()?;
        socket.bind(SocketAddr::new(from, 0))?;
        socket.connect(SocketAddr::new(LOOPBACK, self.port)).await
    }

    async fn tls(&self, from: IpAddr) -> std::io::Result<TlsStream<TcpStream>> {
        let stream = self.connect(from).await?;
        TlsConnector::from(Arc::clone(&self.config)).connect(ServerName::from(LOOPBACK), stream).await
    }

    /// How long `/livez` took to say that all is well.
    async fn livez(&self, from: IpAddr) -> Option<Duration> {
        let began = Instant::now();
        let mut stream = self.tls(from).await.ok()?;
        stream.write_all(b"GET /livez HTTP/1.1\r\nhost: here\r\nconnection: close\r\n\r\n").await.ok()?;
        let mut answer = Vec::new();
        let _ = stream.read_to_end(&mut answer).await;
        answer.starts_with(b"HTTP/1.1 200 ").then(|| began.elapsed())
    }

    /// The best of several probes: a busy machine may spoil some, a port that is locked spoils all.
    async fn probe(&self, what: &str) {
        let mut best = None;
        for _ in 0..5 {
            let took = timeout(Duration::from_secs(5), self.livez(KUBELET)).await.ok().flatten();
            best = [best, took].into_iter().flatten().min();
            if best.is_some_and(|best| best < Duration::from_secs(1)) {
                return;
            }
        }
        panic!("L12-900: {what}: /livez is not answered within a second; at best {best:?}");
    }

    /// A request whose header does not end.
    async fn half_send(&self, from: IpAddr, size: usize) -> Option<TlsStream<TcpStream>> {
        let mut stream = self.tls(from).await.ok()?;
        stream.write_all(b"GET /livez HTTP/1.1\r\nhost: here\r\nx-padding: ").await.ok()?;
        // Whoever is cut off meanwhile keeps the socket.
        let _ = stream.write_all(&vec![b'x'; size]).await;
        let _ = stream.flush().await;
        Some(stream)
    }
}

/// A figure of `/proc/<pid>/status` in bytes.
fn memory(process: &Process, figure: &str) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{}/status", process.id())).unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix(figure)).unwrap();
    let kilobytes = line.trim_start_matches(':').trim_end_matches("kB").trim();
    kilobytes.parse::<u64>().unwrap() << 10
}

/// The names of its threads.
fn threads(process: &Process) -> Vec<String> {
    let tasks = std::fs::read_dir(format!("/proc/{}/task", process.id())).unwrap();
    let name = |task: std::fs::DirEntry| std::fs::read_to_string(task.path().join("comm")).unwrap();
    tasks.map(|task| name(task.unwrap()).trim().to_owned()).collect()
}

/// Looks at the Lease until it is over; tells the longest time between two renewals, and how many there were.
async fn longest_gap(cluster: &Cluster, over: &tokio::sync::Notify) -> (Duration, usize) {
    let (mut newest, mut seen_at) = (None, Instant::now());
    let (mut longest, mut renewals) = (Duration::ZERO, 0);
    let watching = async {
        loop {
            let renewed =
                cluster.lease().await.and_then(|lease| lease["renewTime"].as_str().map(str::to_owned));
            if renewed.is_some() && renewed != newest {
                if newest.is_some() {
                    renewals += 1;
                    longest = longest.max(seen_at.elapsed());
                }
                (newest, seen_at) = (renewed, Instant::now());
            }
            sleep(Duration::from_millis(50)).await;
        }
    };
    tokio::select! {
        () = watching => unreachable!(),
        () = over.notified() => {}
    }
    (longest.max(seen_at.elapsed()), renewals)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn strangers_at_the_port_cost_neither_the_probes_nor_memory_nor_the_lease() {
    raise_file_limit();
    let cluster = Cluster::start().await;
    let port = free_port();
    let secure = format!("--secure-port={port}");
    let mut manager =
        cluster.manager("manager", &["--bind-address=127.0.0.1", "--cert-dir=certificates", &secure]);
    manager.says(&["this replica leads"]).await;
    let certificates = cluster.place.path("certificates").join("cloud-controller-manager.crt");
    let door = Door::new(port, &std::fs::read(certificates).unwrap());
    until("the port answers", async || door.livez(KUBELET).await).await;
    assert!(threads(&manager).contains(&"port".to_owned()), "L11-906: {:?}", threads(&manager));
    let (holder, before) = (cluster.holder().await, memory(&manager, "VmRSS"));

    let over = tokio::sync::Notify::new();
    let strangers = async {
        let mut silent = Vec::new();
        for _ in 0..SILENT {
            // One that is not let in at once waits in the kernel; the next one may fare better.
            silent.extend(timeout(Duration::from_secs(1), door.connect(LOOPBACK)).await);
        }
        door.probe("silent connections").await;
        let door = &door;
        // Several hosts fill more than one could. Some send what is read, some as much as they can.
        let half = stream::iter(0..HALF_SENT).map(async |at| {
            let host = u8::try_from(at % 8).unwrap();
            let size = if at % 3 == 0 { 900 << 10 } else { 60 << 10 };
            let from = IpAddr::from([127, 0, 0, 10 + host]);
            timeout(Duration::from_secs(10), door.half_send(from, size)).await
        });
        let half: Vec<_> = half.buffer_unordered(64).collect().await;
        door.probe("silent connections and half-sent requests").await;
        let sent = half.iter().flatten().flatten().count();
        over.notify_one();
        (silent, half, sent)
    };
    let ((gap, renewals), (silent, half, sent)) = tokio::join!(longest_gap(&cluster, &over), strangers);
    let peak = memory(&manager, "VmHWM");
    println!(
        "{} silent, {sent} half sent; {} KiB more at the peak; {renewals} renewals, at most {gap:?} apart",
        silent.iter().flatten().count(),
        peak.saturating_sub(before) >> 10
    );

    assert!(peak < before + MEMORY, "L12-901: strangers cost {} KiB", (peak - before) >> 10);
    assert!(gap < RENEWAL, "L9-900: a renewal took {gap:?}");
    assert_eq!(cluster.holder().await, holder, "L9-901: {}", manager.log());
    assert_eq!(manager.log().matches("this replica leads").count(), 1, "L9-901: {}", manager.log());
    drop((silent, half));
    manager.signal("TERM");
    assert_eq!(manager.exit_code().await, Some(0), "{}", manager.log());
}
