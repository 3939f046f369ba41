//! Plain HTTP on a real port: health and metrics for everybody, the limits as with TLS, and nothing else.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing, missing_docs)]

mod fixture;

use std::{net::SocketAddr, sync::Arc, time::Duration};

use cloudberth_core::Clock;
use cloudberth_http::surroundings::SystemClock;
use cloudberth_serving::{Check, CheckFn, Checks, Limits, Metrics, Pages, Server};
use fixture::{PATIENCE, guarded};
use prometheus_client::registry::Registry;
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::{TcpListener, TcpStream},
    sync::oneshot,
    task::JoinHandle,
    time::timeout,
};

struct Port {
    address: SocketAddr,
    stop: oneshot::Sender<()>,
    task: JoinHandle<()>,
}

async fn start(limits: Limits) -> Port {
    let clock: Arc<dyn Clock> = Arc::new(SystemClock::new());
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let readyz = Checks::default();
    readyz.add([Arc::new(CheckFn::new("config", |_| Err("missing".to_owned()))) as Arc<dyn Check>]);
    let pages = Pages {
        healthz: Checks::default(),
        livez: Checks::default(),
        readyz,
        metrics: Arc::new(|| "up 1\n".to_owned()),
        guarded: Some(guarded()),
    };
    let metrics = Metrics::register(&mut Registry::default());
    let server = Server::plain(listener, pages, limits, metrics, clock);
    let address = server.local_addr().unwrap();
    let (stop, stopped) = oneshot::channel::<()>();
    let task = tokio::spawn(server.run(async { drop(stopped.await) }));
    Port { address, stop, task }
}

/// Everything that comes back for these bytes, until the other side closes.
async fn raw(address: SocketAddr, bytes: &[u8]) -> String {
    let mut stream = TcpStream::connect(address).await.unwrap();
    // Whoever says too much may be cut off before the end.
    let _ = stream.write_all(bytes).await;
    let mut got = Vec::new();
    let _ = timeout(PATIENCE, stream.read_to_end(&mut got)).await.expect("the connection stays open");
    String::from_utf8_lossy(&got).into_owned()
}

/// The status and the body.
async fn ask(address: SocketAddr, method: &str, path: &str) -> (u16, String) {
    let request =
        format!("{method} {path} HTTP/1.1\r\nhost: x\r\nconnection: close\r\ncontent-length: 1\r\n\r\n4");
    let got = raw(address, request.as_bytes()).await;
    let (head, body) = got.split_once("\r\n\r\n").unwrap();
    (head.split(' ').nth(1).unwrap().parse().unwrap(), body.to_owned())
}

#[tokio::test]
async fn health_and_metrics_are_for_everybody_and_nothing_else_is_there() {
    let port = start(Limits::default()).await;
    let nothing = "404 page not found\n";
    let table = [
        ("GET", "/healthz", 200, "ok"),
        ("GET", "/healthz/ping", 200, "ok"),
        ("GET", "/livez?verbose", 200, "[+]ping ok\nlivez check passed\n"),
        ("GET", "/readyz", 500, "[-]config failed: reason withheld\nreadyz check failed\n"),
        ("GET", "/metrics", 200, "up 1\n"),
        ("GET", "/configz", 404, nothing),
        ("GET", "/metrics/slis", 404, nothing),
        ("DELETE", "/metrics/slis", 404, nothing),
        ("GET", "/debug/flags", 404, nothing),
        ("PUT", "/debug/flags/v", 404, nothing),
        ("GET", "/", 404, nothing),
    ];
    for (method, path, status, want) in table {
        assert_eq!(ask(port.address, method, path).await, (status, want.to_owned()), "{method} {path}");
    }
}

#[tokio::test]
async fn neither_tls_nor_http2_is_spoken() {
    let port = start(Limits::default()).await;
    for bytes in [&b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03"[..], b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"] {
        let got = raw(port.address, bytes).await;
        assert!(got.is_empty() || got.starts_with("HTTP/1.1 4"), "{got:?}");
    }
    assert_eq!(ask(port.address, "GET", "/healthz").await.0, 200);
}

#[tokio::test]
async fn silence_locks_nobody_out() {
    let long = Duration::from_secs(600);
    let port =
        start(Limits { connections: 8, per_peer: 4, header: long, idle: long, ..Limits::default() }).await;
    let mut strangers = Vec::new();
    for _ in 0..100 {
        strangers.push(TcpStream::connect(port.address).await.unwrap());
    }
    assert_eq!(ask(port.address, "GET", "/livez").await.0, 200, "from the strangers' own address");
    let closed = timeout(PATIENCE, strangers[0].read_u8()).await.expect("the oldest made no room");
    assert!(closed.is_err());
}

#[tokio::test]
async fn who_never_ends_a_header_is_cut_off() {
    let port = start(Limits { header: Duration::from_millis(300), ..Limits::default() }).await;
    for bytes in [&b""[..], b"GET /healthz HTTP/1.1\r\nhost:"] {
        assert_eq!(raw(port.address, bytes).await, "", "law 12");
    }
    let large = format!("GET /healthz HTTP/1.1\r\nhost: x\r\nx: {}\r\n\r\n", "y".repeat(1 << 20));
    let got = raw(port.address, large.as_bytes()).await;
    assert!(got.is_empty() || got.starts_with("HTTP/1.1 431"), "{got:?}");
}

#[tokio::test]
async fn it_stops_when_it_is_told_to() {
    let port = start(Limits::default()).await;
    let idle = TcpStream::connect(port.address).await.unwrap();
    assert_eq!(ask(port.address, "GET", "/healthz").await.0, 200);
    port.stop.send(()).unwrap();
    timeout(PATIENCE, port.task).await.expect("the server never stops").unwrap();
    assert!(TcpStream::connect(port.address).await.is_err(), "nothing listens any more");
    drop(idle);
}
