//! Strangers who fill the port, and those who get through all the same.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing, missing_docs)]

mod fixture;

use std::{
    net::{IpAddr, Ipv4Addr},
    time::Duration,
};

use cloudberth_serving::Limits;
use embedded_kube::{Fault, Harm};
use fixture::{Caller, PATIENCE, Port, Wants, client_of, cluster, delegated, start};
use http::HeaderValue;
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::TcpStream,
    time::timeout,
};
use tokio_rustls::client::TlsStream;

const fn address(last: u8) -> IpAddr {
    IpAddr::V4(Ipv4Addr::new(127, 0, 0, last))
}

fn from(last: u8) -> Caller {
    Caller { from: Some(address(last)), ..Caller::nobody() }
}

/// Eight places, four for each address, and patience enough that nobody leaves by itself.
fn small() -> Limits {
    let long = Duration::from_secs(120);
    Limits { connections: 8, per_peer: 4, header: long, idle: long, ..Limits::default() }
}

async fn silent(port: &Port, last: u8, number: usize) -> Vec<TcpStream> {
    let mut streams = Vec::new();
    for _ in 0..number {
        streams.push(port.connect(Some(address(last))).await.unwrap());
    }
    streams
}

/// Asks on a connection that is there already; `false` if it is not there any more.
async fn asks(stream: &mut TlsStream<TcpStream>) -> bool {
    let asked = async {
        stream.write_all(b"GET /healthz HTTP/1.1\r\nhost: x\r\n\r\n").await.ok()?;
        let mut answer = Vec::new();
        while !answer.ends_with(b"ok") {
            stream.read_buf(&mut answer).await.ok().filter(|read| *read > 0)?;
        }
        Some(())
    };
    timeout(PATIENCE, asked).await.unwrap().is_some()
}

async fn closed(stream: &mut TcpStream, within: Duration) -> bool {
    !matches!(timeout(within, stream.read_u8()).await, Err(_) | Ok(Ok(_)))
}

#[tokio::test]
async fn silence_locks_nobody_out() {
    let port = start(Wants { limits: small(), ..Wants::default() }).await;
    let mut known = port.tls(&from(1), port.roots()).await.unwrap();
    assert!(asks(&mut known).await);
    let mut strangers = silent(&port, 1, 100).await;
    assert_eq!(port.status("/livez", &from(1)).await, 200, "L11-900: from the strangers' own address");
    assert_eq!(port.status("/livez", &from(2)).await, 200, "L11-900: from another");
    assert!(asks(&mut known).await, "L11-902: who was answered is not closed for silent ones");
    assert!(closed(&mut strangers[0], PATIENCE).await, "L11-900: the oldest is");
    let newest = strangers.last_mut().unwrap();
    assert!(!closed(newest, Duration::from_millis(300)).await, "the newest is not");

    let crowd = [silent(&port, 3, 100).await, silent(&port, 4, 100).await, silent(&port, 5, 100).await];
    assert_eq!(
        port.status("/livez", &from(2)).await,
        200,
        "L11-900: all places are taken, by three addresses"
    );
    drop((strangers, crowd));
}

#[tokio::test]
async fn idlers_lock_nobody_out_either() {
    let port = start(Wants { limits: small(), ..Wants::default() }).await;
    let mut idlers = Vec::new();
    for _ in 0..4 {
        let mut stream = port.tls(&from(1), port.roots()).await.unwrap();
        assert!(asks(&mut stream).await);
        idlers.push(stream);
    }
    let caller = from(1);
    let (got, more) = tokio::join!(port.status("/livez", &caller), silent(&port, 1, 2));
    assert_eq!(got, 200, "L11-903: beside others that arrive");
    assert!(!asks(&mut idlers[0]).await, "L11-903: the longest idle made room");
    drop((idlers, more));
}

#[tokio::test]
async fn who_does_not_take_its_answer_is_cut_off() {
    let (_, client) = cluster();
    let limits = Limits { stall: Duration::from_millis(500), ..Limits::default() };
    let large = Wants { limits, metrics: "x".repeat(32 << 20), ..delegated(&client) };
    let port = start(large).await;
    let mut stream = port.tls(&Caller::nobody(), port.roots()).await.unwrap();
    let request = "GET /metrics HTTP/1.1\r\nhost: x\r\nauthorization: Bearer prometheus\r\n\r\n";
    stream.write_all(request.as_bytes()).await.unwrap();
    tokio::time::sleep(Duration::from_secs(3)).await;
    let mut read = 0;
    let reading = async {
        let mut buffer = vec![0; 1 << 20];
        while let Ok(more @ 1..) = stream.read(&mut buffer).await {
            read += more;
        }
    };
    timeout(PATIENCE, reading).await.unwrap();
    assert!(read > 0 && read < 32 << 20, "L12-904: {read} bytes came");
}

#[tokio::test]
async fn answers_that_nobody_takes_do_not_pile_up() {
    let limits = Limits { stall: Duration::from_secs(60), ..Limits::default() };
    let port = start(Wants { limits, ..Wants::default() }).await;
    let mut stream = port.tls(&Caller::nobody(), port.roots()).await.unwrap();
    // Answers to HEAD have no body, and it is before bodies that hyper looks at how much it holds already.
    let many = "HEAD /healthz HTTP/1.1\r\nhost: x\r\n\r\n".repeat(1_000);
    let mut sent = 0;
    // The kernel's buffers on both sides take some megabytes; then the other side has to stop reading.
    while sent < 32 << 20 {
        match timeout(Duration::from_secs(5), stream.write_all(many.as_bytes())).await {
            Ok(written) => written.unwrap(),
            Err(_) => return,
        }
        sent += many.len();
    }
    panic!("L12-905: {sent} bytes of requests were read although no answer was taken");
}

#[tokio::test]
async fn made_up_tokens_do_not_keep_others_from_being_reviewed() {
    let (api, _) = cluster();
    let mut slow = Fault::new(Harm::Latency { millis: 400 });
    "tokenreviews".clone_into(&mut slow.resource);
    api.add_fault(slow);
    let port = start(delegated(&client_of(&api, |_| {}))).await;
    let made_up = (0..60).map(|number| {
        let mut caller = Caller { http2: true, ..from(3) };
        let token = HeaderValue::from_str(&format!("Bearer made-up-{number}")).unwrap();
        caller.headers.insert("authorization", token);
        caller
    });
    let made_up: Vec<_> = made_up.collect();
    let strangers =
        futures_util::future::join_all(made_up.iter().map(|caller| port.status("/metrics", caller)));
    let one = Caller { from: Some(address(2)), ..Caller::token("prometheus") };
    let (strangers, known) = tokio::join!(strangers, async {
        tokio::time::sleep(Duration::from_millis(200)).await;
        port.get("/metrics", &one).await
    });
    assert_eq!((known.status, known.body.as_str()), (200, "up 1\n"), "L12-906");
    assert!(strangers.iter().all(|status| *status == 401), "{strangers:?}");
    let asked = api.calls(0).iter().filter(|call| call.resource == "tokenreviews").count();
    assert!(asked < 60, "L12-906: {asked} reviews; some of the 60 were turned away at once");
}
