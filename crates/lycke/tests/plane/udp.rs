//! Datagrams.

use std::{net::SocketAddr, time::Duration};

use cloudberth_lycke::plane::{Counters, HealthKind, Listener, Protocol};
use tokio::{net::UdpSocket, task::JoinHandle, time::timeout};

use crate::fixture::{Fixture, NODE_PORT, PORT, Server, ask, eventually, within};

const UDP: Listener = Listener { protocol: Protocol::Udp, port: PORT, node_port: NODE_PORT };

/// Answers every datagram with the name of the machine and the datagram, twice.
async fn echo(server: &Server) -> JoinHandle<()> {
    let socket = UdpSocket::bind((server.address, NODE_PORT)).await.unwrap();
    let name = server.name.clone();
    tokio::spawn(async move {
        let mut buffer = vec![0; 65_536];
        while let Ok((length, client)) = socket.recv_from(&mut buffer).await {
            let answer = [name.as_bytes(), b":", &buffer[..length]].concat();
            for _ in 0..2 {
                let _ = socket.send_to(&answer, client).await;
            }
        }
    })
}

fn udp_fixture(servers: &[&Server]) -> Fixture {
    let mut fixture = Fixture::new(servers);
    fixture.config.listeners = vec![UDP];
    fixture.config.health.kind = HealthKind::None;
    fixture
}

async fn client(to: SocketAddr) -> UdpSocket {
    let socket = UdpSocket::bind("127.0.0.1:0").await.unwrap();
    socket.connect(to).await.unwrap();
    socket
}

/// Asks until there is an answer: datagrams may be lost.
async fn answer(socket: &UdpSocket) -> String {
    within("an answer", async {
        let mut buffer = [0; 100];
        loop {
            let _ = socket.send(b"x").await;
            if let Ok(Ok(length)) = timeout(Duration::from_millis(500), socket.recv(&mut buffer)).await {
                return String::from_utf8_lossy(&buffer[..length]).into_owned();
            }
        }
    })
    .await
}

#[tokio::test]
async fn every_reply_reaches_its_own_client() {
    let (a, b) = (Server::dead("a"), Server::dead("b"));
    let echoes = [echo(&a).await, echo(&b).await];
    let fixture = udp_fixture(&[&a, &b]);
    fixture.apply().await;
    let clients = [client(fixture.at(PORT)).await, client(fixture.at(PORT)).await];
    for number in 0..50 {
        for (name, client) in ["one", "two"].iter().zip(&clients) {
            client.send(format!("{name} {number}").as_bytes()).await.unwrap();
        }
    }
    for (name, client) in ["one", "two"].iter().zip(&clients) {
        let mut got = Vec::new();
        let mut buffer = [0; 100];
        while got.len() < 100 {
            let length = within("a reply", client.recv(&mut buffer)).await.unwrap();
            let reply = String::from_utf8_lossy(&buffer[..length]).into_owned();
            let (backend, rest) = reply.split_once(':').unwrap();
            let (whose, number) = rest.split_once(' ').unwrap();
            assert_eq!(whose, *name, "CL-56 a reply for its own client");
            got.push((backend.to_owned(), number.parse::<u32>().unwrap()));
        }
        let first = got[0].0.clone();
        assert!(got.iter().all(|(backend, _)| *backend == first), "CL-56 one backend for each flow");
        let mut numbers: Vec<_> = got.iter().map(|(_, number)| *number).collect();
        numbers.dedup();
        assert_eq!(numbers, (0..50).collect::<Vec<_>>(), "CL-56 each datagram, two replies, in order");
    }
    let seen = |all: &Counters| (all.udp.flows, all.udp.datagrams_in, all.udp.datagrams_out);
    fixture.counts("CL-56", (2, 100, 200), seen).await;
    echoes.iter().for_each(JoinHandle::abort);
}

#[tokio::test]
async fn datagrams_of_any_size_pass_unchanged() {
    let a = Server::dead("");
    let echoing = echo(&a).await;
    let fixture = udp_fixture(&[&a]);
    fixture.apply().await;
    let client = client(fixture.at(PORT)).await;
    let mut buffer = vec![0; 65_536];
    for length in [0, 1, 1500, 60_000, 65_506] {
        let sent: Vec<u8> = (0..length).map(|at: u32| at.to_le_bytes()[0] ^ at.to_le_bytes()[1]).collect();
        client.send(&sent).await.unwrap();
        for _ in 0..2 {
            let got = within("a reply", client.recv(&mut buffer)).await.unwrap();
            assert!(buffer[..got] == [b":", &sent[..]].concat(), "CL-57 {length} bytes, {got} came back");
        }
    }
    echoing.abort();
}

#[tokio::test]
async fn tcp_and_udp_share_a_port() {
    let a = Server::start("a").await;
    let echoing = echo(&a).await;
    let mut fixture = Fixture::new(&[&a]);
    fixture.config.listeners.push(UDP);
    let report = fixture.apply().await;
    assert!(
        report.listeners.iter().all(|listener| listener.bound == Some(fixture.at(PORT))),
        "CL-58 {report:?}"
    );
    assert_eq!(ask(fixture.at(PORT)).await.unwrap(), "a", "CL-58 TCP");
    assert_eq!(answer(&client(fixture.at(PORT)).await).await, "a:x", "CL-58 UDP");
    echoing.abort();
}

#[tokio::test]
async fn a_flow_moves_when_its_backend_is_removed_or_unreachable() {
    let servers = [Server::dead("a"), Server::dead("b")];
    let mut echoes = [echo(&servers[0]).await, echo(&servers[1]).await];
    for affinity in [None, Some(Duration::from_secs(3600))] {
        let mut fixture = udp_fixture(&[&servers[0], &servers[1]]);
        fixture.config.affinity = affinity;
        fixture.apply().await;
        let client = client(fixture.at(PORT)).await;
        let first = answer(&client).await;
        let (lost, other) = if first == "a:x" { (0, "b:x") } else { (1, "a:x") };
        fixture.config.backends.remove(lost);
        fixture.apply().await;
        // What was on its way may still arrive.
        within("CL-95 removed", async { while answer(&client).await != other {} }).await;

        fixture.config.backends = servers.iter().map(Server::backend).collect();
        fixture.apply().await;
        let unreachable = 1 - lost;
        echoes[unreachable].abort();
        let _ = (&mut echoes[unreachable]).await;
        within("CL-95 unreachable", async { while answer(&client).await != first {} }).await;
        assert_eq!(fixture.healthy(), [Some(true), Some(true)], "CL-95 this alone does not mark it down");
        echoes[unreachable] = echo(&servers[unreachable]).await;
    }
    echoes.iter().for_each(JoinHandle::abort);
}

#[tokio::test]
async fn the_oldest_flow_gives_way() {
    let a = Server::dead("a");
    let echoing = echo(&a).await;
    let mut fixture = udp_fixture(&[&a]);
    fixture.config.limits.udp_flows = 3;
    fixture.apply().await;
    let mut clients = Vec::new();
    for _ in 0..10 {
        let client = client(fixture.at(PORT)).await;
        answer(&client).await;
        clients.push(client);
        assert!(fixture.counters().udp.flows <= 3, "CL-56 never more than the limit");
    }
    assert_eq!(answer(&clients[0]).await, "a:x", "CL-56 one that gave way is served anew");
    echoing.abort();
}

#[tokio::test]
async fn quiet_flows_are_forgotten() {
    let a = Server::dead("a");
    let echoing = echo(&a).await;
    let mut fixture = udp_fixture(&[&a]);
    fixture.config.limits.udp_idle = Duration::from_millis(300);
    fixture.apply().await;
    let socket = client(fixture.at(PORT)).await;
    answer(&socket).await;
    eventually("CL-56 a quiet flow is forgotten", || match fixture.counters().udp.flows {
        0 => Ok(()),
        flows => Err(format!("{flows} flows")),
    })
    .await;
    assert_eq!(answer(&socket).await, "a:x", "CL-56 and begins anew");
    echoing.abort();
}

#[tokio::test]
async fn datagrams_from_elsewhere_are_dropped() {
    let a = Server::dead("a");
    let echoing = echo(&a).await;
    let mut fixture = udp_fixture(&[&a]);
    fixture.config.source_ranges = vec!["10.0.0.0/8".parse().unwrap()];
    fixture.apply().await;
    let socket = client(fixture.at(PORT)).await;
    socket.send(b"x").await.unwrap();
    eventually("CL-60 dropped", || match fixture.counters().udp.dropped {
        1 => Ok(()),
        dropped => Err(format!("{dropped} dropped")),
    })
    .await;
    fixture.config.source_ranges.push("127.0.0.0/8".parse().unwrap());
    fixture.apply().await;
    assert_eq!(answer(&socket).await, "a:x", "CL-60 let in");
    let hits = fixture.counters().source_ranges;
    assert!(hits[0].1 == 0 && hits[1].1 >= 1, "CL-60 counted at its range: {hits:?}");
    // Sources are checked with every datagram, also within a flow.
    fixture.config.source_ranges.pop();
    fixture.apply().await;
    let before = fixture.counters().udp.dropped;
    socket.send(b"x").await.unwrap();
    eventually("CL-60 dropped within a flow", || match fixture.counters().udp.dropped {
        dropped if dropped > before => Ok(()),
        dropped => Err(format!("{dropped} dropped")),
    })
    .await;
    echoing.abort();
}
