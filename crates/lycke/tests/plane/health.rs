//! Health: who is used, and who is not.

use std::{io::ErrorKind, time::Duration};

use cloudberth_lycke::plane::{HealthKind, Listener, PlaneEvent, Protocol};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, TcpSocket},
    time::Instant,
};

use crate::fixture::{Client, Fixture, NODE_PORT, PORT, Server, ask, eventually, kind, within};

#[tokio::test]
async fn a_backend_that_refuses_costs_no_client() {
    let (mut a, b) = (Server::start("a").await, Server::start("b").await);
    let fixture = Fixture::new(&[&a, &b]);
    fixture.apply().await;
    fixture.until_healthy(&[Some(true), Some(true)]).await;
    a.die().await;
    for _ in 0..10 {
        assert_eq!(fixture.ask().await.unwrap(), "b", "CL-51 the next backend takes the client");
    }
    fixture.until_healthy(&[Some(false), Some(true)]).await;
    let down =
        |event: &PlaneEvent| matches!(event, PlaneEvent::BackendDown { machine, .. } if machine == "a");
    assert_eq!(fixture.events().iter().filter(|event| down(event)).count(), 1, "CL-51 told once");
    a.open(NODE_PORT).await;
    fixture.until_healthy(&[Some(true), Some(true)]).await;
    let seen = [fixture.ask().await.unwrap(), fixture.ask().await.unwrap()];
    assert!(seen.contains(&"a".to_owned()), "CL-52 used again: {seen:?}");
    assert_eq!(fixture.counters().connections.failed, 0, "CL-51 no client was lost");
}

#[tokio::test]
async fn one_failed_connection_marks_down_and_one_good_check_brings_back() {
    let (mut a, b) = (Server::start("a").await, Server::start("b").await);
    let mut fixture = Fixture::new(&[&a, &b]);
    // So slow that only a client can find out.
    fixture.config.health.interval = Duration::from_secs(3600);
    fixture.apply().await;
    fixture.until_healthy(&[Some(true), Some(true)]).await;
    a.die().await;
    for _ in 0..4 {
        assert_eq!(fixture.ask().await.unwrap(), "b", "CL-96");
    }
    fixture.until_healthy(&[Some(false), Some(true)]).await;
    let failures = |fixture: &Fixture| fixture.counters().backends[0].failures;
    let before = failures(&fixture);
    assert!(before >= 1, "CL-96 the client's connection failed");
    for _ in 0..4 {
        assert_eq!(fixture.ask().await.unwrap(), "b", "CL-96");
    }
    assert_eq!(failures(&fixture), before, "CL-96 nobody tries it any more");
    a.open(NODE_PORT).await;
    // Another interval: checks begin anew, and what is known is kept until there is a result.
    fixture.config.health.interval = Duration::from_secs(3000);
    fixture.config.health.healthy_threshold = 3;
    fixture.apply().await;
    fixture.until_healthy(&[Some(true), Some(true)]).await;
}

#[tokio::test]
async fn without_a_healthy_backend_clients_are_reset_at_once() {
    let a = Server::dead("a");
    let fixture = Fixture::new(&[&a]);
    fixture.apply().await;
    fixture.until_healthy(&[Some(false)]).await;
    for _ in 0..5 {
        let mut client = Client::connect(fixture.at(PORT)).await;
        let end = match &mut client {
            Ok(client) => kind(client.end().await),
            Err(error) => Some(error.kind()),
        };
        assert_eq!(end, Some(ErrorKind::ConnectionReset), "CL-53 reset, and no empty answer");
    }
    assert_eq!(fixture.counters().connections.no_backend, 5, "CL-53 counted");
    assert_eq!(
        fixture.report().backends[0].reason.as_deref(),
        Some("node port 30080: connection refused"),
        "CL-53"
    );
}

/// A port that never answers: its queue is full.
fn swallowing(server: &Server) -> (TcpListener, Vec<tokio::task::JoinHandle<()>>) {
    let socket = TcpSocket::new_v4().unwrap();
    let at = (server.address, NODE_PORT).into();
    socket.bind(at).unwrap();
    let listener = socket.listen(1).unwrap();
    let fillers = (0..4).map(|_| {
        tokio::spawn(async move {
            let _stream = tokio::net::TcpStream::connect(at).await;
            std::future::pending::<()>().await;
        })
    });
    (listener, fillers.collect())
}

#[tokio::test]
async fn a_backend_that_swallows_attempts_costs_two_seconds_once() {
    let (a, b) = (Server::dead("a"), Server::start("b").await);
    let (_listener, fillers) = swallowing(&a);
    let full = || async {
        let attempt = tokio::net::TcpStream::connect((a.address, NODE_PORT));
        tokio::time::timeout(Duration::from_millis(300), attempt).await.is_err()
    };
    while !full().await {}
    let mut fixture = Fixture::new(&[&a, &b]);
    // The first check must not find out before the client does.
    fixture.config.health.timeout = Duration::from_secs(3600);
    fixture.apply().await;
    let start = Instant::now();
    while fixture.counters().backends[0].failures == 0 {
        assert_eq!(fixture.ask().await.unwrap(), "b", "CL-84 the next one serves the client");
    }
    assert!(start.elapsed() >= Duration::from_millis(1900), "CL-84 after two seconds");
    fixture.until_healthy(&[Some(false), Some(true)]).await;
    for _ in 0..20 {
        assert_eq!(fixture.ask().await.unwrap(), "b", "CL-84");
    }
    assert_eq!(fixture.counters().backends[0].failures, 1, "CL-84 once marked down nobody waits for it");
    fillers.iter().for_each(tokio::task::JoinHandle::abort);
}

#[tokio::test]
async fn the_answer_of_an_http_check_decides() {
    let (a, b) = (Server::start("a").await, Server::start("b").await);
    let mut tasks = Vec::new();
    for (server, status) in [(&a, "200 OK"), (&b, "503 Service Unavailable")] {
        let listener = TcpListener::bind((server.address, 32_000)).await.unwrap();
        tasks.push(tokio::spawn(async move {
            while let Ok((mut stream, _)) = listener.accept().await {
                let mut request = vec![0; 1024];
                let _ = stream.read(&mut request).await;
                let _ = stream
                    .write_all(format!("HTTP/1.1 {status}\r\ncontent-length: 0\r\n\r\n").as_bytes())
                    .await;
            }
        }));
    }
    let mut fixture = Fixture::new(&[&a, &b]);
    fixture.config.health.kind = HealthKind::Http { port: 32_000, path: "/healthz".to_owned() };
    fixture.apply().await;
    fixture.until_healthy(&[Some(true), Some(false)]).await;
    for _ in 0..4 {
        assert_eq!(fixture.ask().await.unwrap(), "a", "CL-61 only the one with endpoints");
    }
    let reason = fixture.report().backends[1].reason.clone().unwrap();
    assert_eq!(reason, format!("GET http://{}:32000/healthz answered 503", b.address), "CL-61");
    tasks.iter().for_each(tokio::task::JoinHandle::abort);
}

#[tokio::test]
async fn a_dead_node_port_concerns_its_listener_only() {
    let (mut a, mut b) = (Server::start("a").await, Server::start("b").await);
    a.open(30_443).await;
    b.open(30_444).await;
    let mut fixture = Fixture::new(&[&a, &b]);
    fixture.config.listeners.push(Listener { protocol: Protocol::Tcp, port: 8443, node_port: 30_443 });
    fixture.apply().await;
    fixture.until_healthy(&[Some(true), Some(false)]).await;
    for _ in 0..4 {
        assert_eq!(ask(fixture.at(8443)).await.unwrap(), "a", "CL-97 the worker left this listener");
    }
    let seen = [fixture.ask().await.unwrap(), fixture.ask().await.unwrap()];
    assert_ne!(seen[0], seen[1], "CL-97 and serves the other");
    let reason = fixture.report().backends[1].reason.clone();
    assert_eq!(
        reason.as_deref(),
        Some("node port 30443: connection refused"),
        "CL-97 the reason names the port"
    );
}

#[tokio::test]
async fn a_stopped_machine_gives_its_traffic_away_and_comes_back() {
    let (a, b) = (Server::start("a").await, Server::start("b").await);
    let mut fixture = Fixture::new(&[&a, &b]);
    fixture.config.limits.drain = Duration::from_millis(200);
    fixture.apply().await;
    let mut on_a = loop {
        let mut client = Client::connect(fixture.at(PORT)).await.unwrap();
        if client.ask().await.unwrap() == "a" {
            break client;
        }
    };
    fixture.config.backends[0].down = Some("machine stopped".to_owned());
    let report = fixture.apply().await;
    assert_eq!(report.backends[0].healthy, Some(false), "CL-82");
    assert_eq!(report.backends[0].reason.as_deref(), Some("machine stopped"), "CL-82");
    for _ in 0..4 {
        assert_eq!(fixture.ask().await.unwrap(), "b", "CL-82 traffic moves");
    }
    let end = kind(on_a.end().await);
    assert_eq!(end, Some(ErrorKind::ConnectionReset), "CL-82 its connections drain, then they are reset");
    fixture.config.backends[0].down = None;
    fixture.apply().await;
    within("back", async { while fixture.ask().await.unwrap() != "a" {} }).await;
    eventually("CL-82 back", || match fixture.healthy()[0] {
        Some(true) => Ok(()),
        other => Err(format!("{other:?}")),
    })
    .await;
}
