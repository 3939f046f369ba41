//! Changes while traffic flows.

use std::{io::ErrorKind, time::Duration};

use cloudberth_lycke::plane::{Listener, Plane, Protocol};

use crate::fixture::{Client, Fixture, PORT, Server, ask, eventually, key, kind, within};

#[tokio::test]
async fn ports_come_and_go_without_touching_others() {
    let mut a = Server::start("a").await;
    a.open(30_443).await;
    let mut fixture = Fixture::new(&[&a]);
    fixture.apply().await;
    let mut old = Client::connect(fixture.at(PORT)).await.unwrap();
    old.ask().await.unwrap();
    fixture.config.listeners.push(Listener { protocol: Protocol::Tcp, port: 8443, node_port: 30_443 });
    fixture.apply().await;
    let mut tls = Client::connect(fixture.at(8443)).await.unwrap();
    assert_eq!(tls.ask().await.unwrap(), "a", "CL-34 the new port serves");
    assert_eq!(old.ask().await.unwrap(), "a", "CL-34 the old connection lives");
    fixture.config.listeners.pop();
    fixture.apply().await;
    assert_eq!(
        kind(ask(fixture.at(8443)).await),
        Some(ErrorKind::ConnectionRefused),
        "CL-35 refused at once"
    );
    assert_eq!(tls.ask().await.unwrap(), "a", "CL-35 the old connection drains");
    fixture.config.limits.drain = Duration::from_millis(100);
    fixture.config.listeners = vec![Listener { protocol: Protocol::Tcp, port: 9090, node_port: 30_443 }];
    fixture.apply().await;
    assert_eq!(
        kind(old.end().await),
        Some(ErrorKind::ConnectionReset),
        "CL-35 and is reset when time is over"
    );
}

#[tokio::test]
async fn a_changed_node_port_counts_for_new_connections() {
    let (mut a, mut b) = (Server::start("a").await, Server::dead("b"));
    b.open(31_000).await;
    a.open(31_000).await;
    let mut fixture = Fixture::new(&[&a]);
    fixture.apply().await;
    let mut old = Client::connect(fixture.at(PORT)).await.unwrap();
    old.ask().await.unwrap();
    fixture.config.listeners[0].node_port = 31_000;
    fixture.config.backends = vec![b.backend()];
    fixture.apply().await;
    assert_eq!(fixture.ask().await.unwrap(), "b", "CL-36 the new port");
    assert_eq!(old.ask().await.unwrap(), "a", "CL-36 the old connection stays");
}

#[tokio::test]
async fn a_removed_backend_drains_and_may_come_back() {
    let (a, b) = (Server::start("a").await, Server::start("b").await);
    let mut fixture = Fixture::new(&[&a]);
    fixture.config.limits.drain = Duration::from_secs(2);
    fixture.apply().await;
    let mut on_a = Client::connect(fixture.at(PORT)).await.unwrap();
    on_a.ask().await.unwrap();

    fixture.config.backends = vec![b.backend()];
    fixture.apply().await;
    assert_eq!(fixture.ask().await.unwrap(), "b", "CL-37 nobody new");
    fixture.config.backends = vec![a.backend(), b.backend()];
    fixture.apply().await;
    tokio::time::sleep(Duration::from_millis(2500)).await;
    assert_eq!(on_a.ask().await.unwrap(), "a", "CL-37 it came back while draining and keeps its connections");

    fixture.config.backends = vec![b.backend()];
    fixture.apply().await;
    assert_eq!(on_a.ask().await.unwrap(), "a", "CL-37 drains");
    assert_eq!(kind(on_a.end().await), Some(ErrorKind::ConnectionReset), "CL-37 time is over");
}

#[tokio::test]
async fn a_removed_load_balancer_refuses_and_drains() {
    let a = Server::start("a").await;
    let fixture = Fixture::new(&[&a]);
    fixture.apply().await;
    let mut old = Client::connect(fixture.at(PORT)).await.unwrap();
    old.ask().await.unwrap();
    within("remove", fixture.plane.remove(&key("web"))).await;
    assert_eq!(kind(fixture.ask().await), Some(ErrorKind::ConnectionRefused), "CL-38 refused");
    assert_eq!(old.ask().await.unwrap(), "a", "CL-38 drains");
    assert!(fixture.plane.report(&key("web")).is_none(), "CL-38 it is not known any more");
    within("remove again", fixture.plane.remove(&key("web"))).await;
    fixture.apply().await;
    assert_eq!(fixture.ask().await.unwrap(), "a", "CL-38 the port is free");
    assert_eq!(fixture.plane.totals().connections.accepted, 2, "CL-38 totals go on");
}

#[tokio::test]
async fn another_uid_restarts_the_counters_only() {
    let a = Server::start("a").await;
    let mut fixture = Fixture::new(&[&a]);
    fixture.apply().await;
    let mut old = Client::connect(fixture.at(PORT)).await.unwrap();
    old.ask().await.unwrap();
    fixture.counts("it is counted", 5, |all| all.bytes_in).await;
    fixture.config.uid = "u2".to_owned();
    fixture.apply().await;
    let counters = fixture.counters();
    let connections = counters.connections;
    assert_eq!((connections.open, connections.accepted, counters.bytes_in), (1, 0, 0), "CL-70 {counters:?}");
    assert_eq!(old.ask().await.unwrap(), "a", "CL-70 the connection lives");
    fixture.counts("CL-70 counted from zero", 5, |all| all.bytes_in).await;
}

#[tokio::test]
async fn closing_ends_with_the_last_connection() {
    let a = Server::start("a").await;
    let fixture = Fixture::new(&[&a]);
    fixture.apply().await;
    let mut old = Client::connect(fixture.at(PORT)).await.unwrap();
    old.ask().await.unwrap();
    let closed = tokio::spawn(fixture.plane.close());
    eventually("CL-73 refused", || match std::net::TcpStream::connect(fixture.at(PORT)) {
        Err(error) if error.kind() == ErrorKind::ConnectionRefused => Ok(()),
        other => Err(format!("{other:?}")),
    })
    .await;
    assert_eq!(old.ask().await.unwrap(), "a", "CL-73 connections may end");
    assert!(!closed.is_finished(), "CL-73 one connection is left");
    drop(old);
    within("CL-73 closed before the drain is over", closed).await.unwrap();
    assert_eq!(fixture.plane.totals().connections.open, 0, "CL-73");
}

#[tokio::test]
async fn closing_does_not_wait_longer_than_the_drain() {
    let a = Server::start("a").await;
    let mut fixture = Fixture::new(&[&a]);
    fixture.config.limits.drain = Duration::from_millis(200);
    fixture.apply().await;
    let mut old = Client::connect(fixture.at(PORT)).await.unwrap();
    old.ask().await.unwrap();
    within("close", fixture.plane.close()).await;
    assert_eq!(kind(old.end().await), Some(ErrorKind::ConnectionReset), "CL-73 what is left is reset");
    within("close again", fixture.plane.close()).await;
}
