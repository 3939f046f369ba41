//! Connections that dawdle, and a server that stops.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing, missing_docs)]

mod fixture;

use std::{sync::Arc, time::Duration};

use cloudberth_serving::{Authorization, Limits};
use embedded_kube::{Fault, Harm};
use fixture::{Caller, PATIENCE, Wants, client_of, cluster, delegated, start};
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    sync::Notify,
    time::{Instant, timeout},
};

/// A cluster that takes its time over tokens, a client for it, and news of the first question about one.
fn slow_cluster(millis: u64) -> (kube::Client, Arc<Notify>) {
    let (api, _) = cluster();
    let mut slow = Fault::new(Harm::Latency { millis });
    "tokenreviews".clone_into(&mut slow.resource);
    api.add_fault(slow);
    let asked = Arc::new(Notify::new());
    let news = Arc::clone(&asked);
    let client = client_of(&api, move |path| {
        if path.ends_with("/tokenreviews") {
            news.notify_one();
        }
    });
    (client, asked)
}

#[tokio::test]
async fn requests_under_way_are_answered_before_the_server_stops() {
    for http2 in [false, true] {
        let (client, asked) = slow_cluster(500);
        let mut port = start(delegated(&client)).await;
        // One that is idle, and one that never gets through its handshake, hold up nothing.
        let idle = port.tls(&Caller::nobody(), port.roots()).await.unwrap();
        let silent = tokio::net::TcpStream::connect(port.address).await.unwrap();
        let stop = port.stop.take().unwrap();
        let caller = Caller { http2, ..Caller::token("prometheus") };
        let (got, ()) = tokio::join!(port.get("/metrics", &caller), async {
            asked.notified().await;
            stop.send(()).unwrap();
        });
        assert_eq!((got.status, got.body.as_str()), (200, "up 1\n"), "HTTP/2: {http2}");
        timeout(PATIENCE, &mut port.task).await.expect("the server never stops").unwrap();
        assert!(tokio::net::TcpStream::connect(port.address).await.is_err(), "nothing listens any more");
        drop((idle, silent));
    }
}

#[tokio::test]
async fn the_grace_has_an_end() {
    let (client, asked) = slow_cluster(3_600_000);
    let limits = Limits { grace: Duration::from_millis(100), ..Limits::default() };
    let mut port = start(Wants { limits, ..delegated(&client) }).await;
    let stop = port.stop.take().unwrap();
    let caller = Caller::token("prometheus");
    let both = async {
        tokio::join!(port.try_get("/metrics", &caller), async {
            asked.notified().await;
            stop.send(()).unwrap();
        })
    };
    let (got, ()) = timeout(PATIENCE, both).await.expect("it waits for the review");
    assert!(got.is_err(), "{got:?}");
    timeout(PATIENCE, &mut port.task).await.expect("the server never stops").unwrap();
}

#[tokio::test]
async fn an_answer_has_a_deadline() {
    let (client, _) = slow_cluster(30_000);
    let limits = Limits { answer: Duration::from_millis(200), ..Limits::default() };
    let port = start(Wants { limits, ..delegated(&client) }).await;
    let got = port.get("/metrics", &Caller::token("prometheus")).await;
    assert_eq!(got.status, 504, "L12-908: {}", got.body);
}

#[tokio::test]
async fn who_dawdles_is_cut_off() {
    // What is sent meets one of two patiences, and the other is longer than the test. The short one is long enough for
    // the handshakes of a slow machine.
    let (short, long) = (Duration::from_secs(4), Duration::from_secs(3_600));
    let with =
        |header, idle| Wants { limits: Limits { header, idle, ..Limits::default() }, ..Wants::default() };
    let (header, idle) = (start(with(short, long)).await, start(with(long, short)).await);
    let request = b"GET /healthz HTTP/1.1\r\nhost: x\r\n\r\n";
    let half = &request[..20];
    // What is sent, what follows the answer, whether it is HTTP/2, and where.
    let table = [
        ("L12-902 nothing", &b""[..], &b""[..], false, &header),
        ("L12-902 nothing, and it is HTTP/2", b"", b"", true, &header),
        ("L12-902 half a header", half, b"", false, &header),
        ("a request", request, b"", false, &idle),
        ("L12-903 a request and a half", request, half, false, &header),
    ];
    let each = table.map(async |(case, sent, then, http2, port)| {
        let began = Instant::now();
        let mut stream = port.tls(&Caller { http2, ..Caller::nobody() }, port.roots()).await.unwrap();
        stream.write_all(sent).await.unwrap();
        let mut answer = Vec::new();
        while sent == request && !answer.ends_with(b"ok") {
            stream.read_buf(&mut answer).await.unwrap();
        }
        stream.write_all(then).await.unwrap();
        // The other side may or may not say goodbye.
        let _ = timeout(PATIENCE, stream.read_to_end(&mut answer)).await.expect("it stays open");
        let took = began.elapsed();
        assert!(took >= short, "{case}: {took:?}");
        assert_eq!(answer.ends_with(b"ok"), sent == request, "{case}");
    });
    futures_util::future::join_all(each).await;
    let mut silent = tokio::net::TcpStream::connect(header.address).await.unwrap();
    let end = timeout(PATIENCE, silent.read_u8()).await.expect("no handshake, and it stays open");
    assert!(end.is_err());
}

#[tokio::test]
async fn a_header_has_a_size() {
    let port = start(Wants { authorization: Authorization::default(), ..Wants::default() }).await;
    for (size, http2, want) in
        [(60 << 10, false, true), (70 << 10, false, false), (60 << 10, true, true), (70 << 10, true, false)]
    {
        let caller = Caller { http2, ..Caller::nobody() }.header("x-padding", &"x".repeat(size));
        // A client that is still sending may be cut off before it reads the refusal.
        let got = port.try_get("/healthz", &caller).await.map(|got| got.status);
        assert_eq!(got == Ok(200), want, "L12-907: {size} bytes, HTTP/2 {http2}: {got:?}");
        assert!(want || got == Ok(431) || got.is_err(), "{size} bytes: {got:?}");
    }
}
