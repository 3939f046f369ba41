//! Connections: which backend they reach, and what arrives.

use std::{collections::BTreeMap, io::ErrorKind, net::SocketAddr, time::Duration};

use cloudberth_lycke::plane::{HealthKind, Plane, Policy, ProxyProtocol, socket::PlaneSettings};
use socket2::SockRef;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, TcpStream},
};

use crate::fixture::{Client, Fixture, NODE_PORT, PORT, Server, ask, eventually, kind, within};

#[tokio::test]
async fn round_robin_is_exact_to_one() {
    let (a, b) = (Server::start("a").await, Server::start("b").await);
    let fixture = Fixture::new(&[&a, &b]);
    fixture.apply().await;
    for _ in 0..1000 {
        fixture.ask().await.unwrap();
    }
    assert_eq!((a.answered(), b.answered()), (500, 500), "CL-50 half each");
    fixture.counts("all are closed", 0, |all| all.connections.open).await;
    let counters = fixture.counters();
    assert_eq!(counters.connections.accepted, 1000, "CL-50");
    assert_eq!(counters.backends.iter().map(|b| b.connections).collect::<Vec<_>>(), [500, 500], "CL-50");
    assert_eq!((counters.bytes_in, counters.bytes_out), (5000, 2000), "CL-50 every byte is counted");
}

#[tokio::test]
async fn round_robin_is_exact_whichever_thread_accepts() {
    let servers = [Server::start("a").await, Server::start("b").await, Server::start("c").await];
    let fixture = Fixture::new(&servers.iter().collect::<Vec<_>>());
    fixture.apply().await;
    let at = fixture.at(PORT);
    let clients: Vec<_> = (0..10)
        .map(|_| {
            tokio::spawn(async move {
                for _ in 0..31 {
                    ask(at).await.unwrap();
                }
            })
        })
        .collect();
    for client in clients {
        within("clients", client).await.unwrap();
    }
    let mut answered: Vec<_> = servers.iter().map(Server::answered).collect();
    answered.sort_unstable();
    assert_eq!(answered, [103, 103, 104], "CL-50 310 clients over three backends");
}

#[tokio::test]
async fn both_directions_end_on_their_own() {
    let backend = Server::dead("a");
    let listener = TcpListener::bind((backend.address, NODE_PORT)).await.unwrap();
    let fixture = Fixture::new(&[&backend]);
    fixture.apply().await;
    let served = tokio::spawn(async move {
        // Checks connect too, and say nothing.
        loop {
            let (mut stream, _) = listener.accept().await.unwrap();
            let mut all = Vec::new();
            if stream.read_to_end(&mut all).await.is_ok() && !all.is_empty() {
                stream.write_all(&all.repeat(50_000)).await.unwrap();
                return;
            }
        }
    });
    let mut client = TcpStream::connect(fixture.at(PORT)).await.unwrap();
    client.write_all(b"all of it").await.unwrap();
    client.shutdown().await.unwrap();
    let mut answer = Vec::new();
    within("the answer", client.read_to_end(&mut answer)).await.unwrap();
    assert_eq!(answer, b"all of it".repeat(50_000), "CL-54 the whole answer after a half-close");
    served.await.unwrap();
}

#[tokio::test]
async fn a_backend_that_ends_lets_the_client_go_on() {
    let backend = Server::dead("a");
    let listener = TcpListener::bind((backend.address, NODE_PORT)).await.unwrap();
    let fixture = Fixture::new(&[&backend]);
    fixture.apply().await;
    let served = tokio::spawn(async move {
        loop {
            let (mut stream, _) = listener.accept().await.unwrap();
            let mut first = [0; 1];
            if stream.read_exact(&mut first).await.is_err() {
                continue;
            }
            stream.shutdown().await.unwrap();
            let mut rest = String::new();
            stream.read_to_string(&mut rest).await.unwrap();
            return rest;
        }
    });
    let mut client = Client::connect(fixture.at(PORT)).await.unwrap();
    client.0.write_all(b"1").await.unwrap();
    assert_eq!(client.end().await.unwrap(), b"", "CL-85 the backend's end is passed on as an end");
    client.0.write_all(b"still here").await.unwrap();
    client.0.shutdown().await.unwrap();
    assert_eq!(within("the rest", served).await.unwrap(), "still here", "CL-85 the client may still send");
}

/// It may have spoken and closed before anybody has noticed that it was connected.
#[tokio::test]
async fn a_backend_that_speaks_first_is_heard() {
    let backend = Server::dead("a");
    // Not a task of this thread: it answers while the plane is still about to look.
    let listener = std::net::TcpListener::bind((backend.address, NODE_PORT)).unwrap();
    std::thread::spawn(move || {
        while let Ok((mut stream, _)) = listener.accept() {
            let _ = std::io::Write::write_all(&mut stream, b"220 ready");
        }
    });
    let mut fixture = Fixture::new(&[&backend]);
    fixture.config.health.kind = HealthKind::None;
    fixture.apply().await;
    for round in 0..500 {
        let mut client = Client::connect(fixture.at(PORT)).await.unwrap();
        assert_eq!(client.end().await.unwrap(), b"220 ready", "CL-85 round {round}");
    }
    assert_eq!(fixture.counters().connections.failed, 0, "CL-85 none of them was a failed attempt");
}

#[tokio::test]
async fn a_reset_is_seen_as_a_reset() {
    let backend = Server::dead("a");
    let listener = TcpListener::bind((backend.address, NODE_PORT)).await.unwrap();
    let fixture = Fixture::new(&[&backend]);
    fixture.apply().await;
    let (sender, mut resets) = tokio::sync::mpsc::unbounded_channel();
    tokio::spawn(async move {
        loop {
            let (mut stream, _) = listener.accept().await.unwrap();
            let sender = sender.clone();
            tokio::spawn(async move {
                match stream.read_u8().await {
                    Ok(b'r') => SockRef::from(&stream).set_linger(Some(Duration::ZERO)).unwrap(),
                    Ok(_) => {
                        stream.write_all(b"!").await.unwrap();
                        let _ = sender.send(stream.read_u8().await.map_err(|error| error.kind()));
                    }
                    Err(_) => {}
                }
            });
        }
    });
    let mut client = Client::connect(fixture.at(PORT)).await.unwrap();
    client.0.write_all(b"r").await.unwrap();
    assert_eq!(kind(client.end().await), Some(ErrorKind::ConnectionReset), "CL-85 the backend resets");

    let mut client = Client::connect(fixture.at(PORT)).await.unwrap();
    client.0.write_all(b"w").await.unwrap();
    assert_eq!(client.0.read_u8().await.unwrap(), b'!', "CL-85 connected");
    SockRef::from(client.0.get_ref()).set_linger(Some(Duration::ZERO)).unwrap();
    drop(client);
    let seen = within("the backend's side", resets.recv()).await.unwrap();
    assert_eq!(seen, Err(ErrorKind::ConnectionReset), "CL-85 the client resets");
}

const LENGTH: usize = 100_000_000;

/// Bytes that are nowhere the same.
fn pattern(length: usize, seed: u32) -> Vec<u8> {
    let mut state = seed;
    let mut next = || {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        state.to_le_bytes()[3]
    };
    (0..length).map(|_| next()).collect()
}

/// Sends all bytes and receives all bytes, at the same time.
async fn exchange(stream: TcpStream, seed: u32) -> Vec<u8> {
    let (mut read, mut write) = stream.into_split();
    let sending = tokio::spawn(async move {
        write.write_all(&pattern(LENGTH, seed)).await.unwrap();
        write.shutdown().await.unwrap();
        write
    });
    let mut got = Vec::with_capacity(LENGTH);
    read.read_to_end(&mut got).await.unwrap();
    sending.await.unwrap();
    got
}

#[tokio::test]
async fn many_bytes_both_ways_arrive_as_they_were_sent() {
    let backend = Server::dead("a");
    let listener = TcpListener::bind((backend.address, NODE_PORT)).await.unwrap();
    let fixture = Fixture::new(&[&backend]);
    fixture.apply().await;
    let served = tokio::spawn(async move {
        loop {
            let (stream, _) = listener.accept().await.unwrap();
            if stream.peek(&mut [0]).await.is_ok_and(|seen| seen == 1) {
                return exchange(stream, 2).await;
            }
        }
    });
    let client = TcpStream::connect(fixture.at(PORT)).await.unwrap();
    let got = within("the client", exchange(client, 1)).await;
    assert!(got == pattern(LENGTH, 2), "CL-55 what the backend sent");
    assert!(within("the backend", served).await.unwrap() == pattern(LENGTH, 1), "CL-55 what the client sent");
    fixture.counts("CL-55", (100_000_000, 100_000_000), |all| (all.bytes_in, all.bytes_out)).await;
}

#[tokio::test]
async fn the_backend_is_told_who_its_client_is() {
    let backend = Server::dead("a");
    let listener = TcpListener::bind((backend.address, NODE_PORT)).await.unwrap();
    let mut fixture = Fixture::new(&[&backend]);
    let (sender, mut received) = tokio::sync::mpsc::unbounded_channel();
    tokio::spawn(async move {
        loop {
            let (mut stream, _) = listener.accept().await.unwrap();
            let mut all = Vec::new();
            if stream.read_to_end(&mut all).await.is_ok() {
                let _ = sender.send(all);
            }
        }
    });
    for version in [ProxyProtocol::V1, ProxyProtocol::V2] {
        fixture.config.proxy_protocol = version;
        fixture.apply().await;
        let mut client = Client::connect(fixture.at(PORT)).await.unwrap();
        let port = client.0.get_ref().local_addr().unwrap().port();
        client.0.write_all(b"hello").await.unwrap();
        client.0.shutdown().await.unwrap();
        let got = loop {
            let got = within("bytes at the backend", received.recv()).await.unwrap();
            // Checks come with nothing at all.
            if !got.is_empty() {
                break got;
            }
        };
        let (from, to) = (client.0.get_ref().local_addr().unwrap().ip(), fixture.config.addresses[0]);
        let want = if version == ProxyProtocol::V1 {
            format!("PROXY TCP4 {from} {to} {port} {PORT}\r\n").into_bytes()
        } else {
            let (std::net::IpAddr::V4(from), std::net::IpAddr::V4(to)) = (from, to) else { panic!() };
            let mut want = b"\r\n\r\n\0\r\nQUIT\n\x21\x11\0\x0c".to_vec();
            want.extend(from.octets());
            want.extend(to.octets());
            want.extend(port.to_be_bytes());
            want.extend(PORT.to_be_bytes());
            want
        };
        assert_eq!(
            got,
            [want, b"hello".to_vec()].concat(),
            "CL-62 {version:?}, and then what the client sent"
        );
    }
}

#[tokio::test]
async fn least_connections_fills_the_emptier_backend() {
    let (a, b) = (Server::start("a").await, Server::start("b").await);
    let mut fixture = Fixture::new(&[&a]);
    fixture.config.policy = Policy::LeastConnections;
    fixture.apply().await;
    let mut kept = Vec::new();
    for _ in 0..3 {
        let mut client = Client::connect(fixture.at(PORT)).await.unwrap();
        assert_eq!(client.ask().await.unwrap(), "a", "CL-83");
        kept.push(client);
    }
    fixture.config.backends.push(b.backend());
    fixture.apply().await;
    for _ in 0..3 {
        let mut client = Client::connect(fixture.at(PORT)).await.unwrap();
        assert_eq!(client.ask().await.unwrap(), "b", "CL-83 the emptier one");
        kept.push(client);
    }
    assert_eq!(fixture.counters().backends.iter().map(|b| b.open).collect::<Vec<_>>(), [3, 3], "CL-83");
}

#[tokio::test]
async fn source_hash_keeps_a_client_on_its_backend() {
    let servers = [Server::start("a").await, Server::start("b").await, Server::start("c").await];
    let mut fixture = Fixture::new(&servers.iter().collect::<Vec<_>>());
    fixture.config.policy = Policy::SourceHash;
    fixture.apply().await;
    let at = fixture.at(PORT);
    let ask_from = |last: u8| async move {
        let socket = tokio::net::TcpSocket::new_v4().unwrap();
        socket.bind((std::net::Ipv4Addr::new(127, 9, 9, last), 0).into()).unwrap();
        let stream = socket.connect(at).await.unwrap();
        Client(tokio::io::BufReader::new(stream)).ask().await.unwrap()
    };
    let mut before = BTreeMap::new();
    for last in 1..=30 {
        before.insert(last, ask_from(last).await);
        assert_eq!(ask_from(last).await, before[&last], "CL-83 it stays");
    }
    fixture.config.backends.retain(|backend| backend.machine != "b");
    fixture.apply().await;
    for (last, backend) in before {
        let now = ask_from(last).await;
        assert!(now == backend || backend == "b", "CL-83 {last} moved from {backend} to {now}");
    }
}

#[tokio::test]
async fn a_client_keeps_its_backend_for_a_while() {
    let (mut a, mut b) = (Server::start("a").await, Server::start("b").await);
    let mut fixture = Fixture::new(&[&a, &b]);
    fixture.config.affinity = Some(Duration::from_secs(3600));
    fixture.apply().await;
    let first = fixture.ask().await.unwrap();
    for _ in 0..10 {
        assert_eq!(fixture.ask().await.unwrap(), first, "CL-59 within its time");
    }
    let (pinned, other) = if first == "a" { (&mut a, &mut b) } else { (&mut b, &mut a) };
    pinned.die().await;
    for _ in 0..10 {
        assert_eq!(fixture.ask().await.unwrap(), other.name, "CL-59 bound anew");
    }
    pinned.open(NODE_PORT).await;
    fixture.until_healthy(&[Some(true), Some(true)]).await;
    assert_eq!(fixture.ask().await.unwrap(), other.name, "CL-59 and stays there");
    fixture.config.affinity = Some(Duration::from_millis(1));
    fixture.apply().await;
    let mut seen = std::collections::BTreeSet::new();
    while seen.len() < 2 {
        seen.insert(fixture.ask().await.unwrap());
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
    assert!(
        fixture.plane.report(&crate::fixture::key("web")).is_some(),
        "CL-59 after its time it may change"
    );
}

#[tokio::test]
async fn a_silent_connection_is_closed_and_a_busy_one_kept() {
    let a = Server::start("a").await;
    let mut fixture = Fixture::new(&[&a]);
    fixture.config.idle_timeout = Some(Duration::from_secs(2));
    fixture.apply().await;
    let mut silent = Client::connect(fixture.at(PORT)).await.unwrap();
    let mut busy = Client::connect(fixture.at(PORT)).await.unwrap();
    silent.ask().await.unwrap();
    let start = tokio::time::Instant::now();
    let mut ended = Box::pin(async {
        silent.end().await.unwrap();
        start.elapsed()
    });
    let after = loop {
        tokio::select! {
            after = &mut ended => break after,
            () = tokio::time::sleep(Duration::from_millis(100)) => {
                busy.ask().await.expect("CL-65 an active connection is kept");
            }
        }
    };
    assert!(after >= Duration::from_millis(1900), "CL-65 not before its time: {after:?}");
    busy.ask().await.expect("CL-65 an active connection is kept");
}

/// The timers of established connections of this computer to `peer`, as the kernel shows them: `02` is that of keep-alive.
fn timers(peer: SocketAddr) -> Vec<String> {
    let SocketAddr::V4(peer) = peer else { panic!("an IPv6 address") };
    let remote = format!("{:08X}:{:04X}", u32::from_ne_bytes(peer.ip().octets()), peer.port());
    let table = std::fs::read_to_string("/proc/self/net/tcp").unwrap();
    let rows = table.lines().map(|line| line.split_whitespace().collect::<Vec<_>>());
    rows.filter(|row| row[2] == remote && row[3] == "01").map(|row| row[5][..2].to_owned()).collect()
}

#[tokio::test]
async fn both_sides_of_a_quiet_connection_are_kept_alive() {
    let a = Server::start("a").await;
    let settings =
        PlaneSettings { workers: 2, connect_timeout: Duration::from_millis(200), ..PlaneSettings::default() };
    let mut fixture = Fixture::with(&[&a], settings);
    // Checks would be seen beside it, and nothing else would end it if its backend vanished.
    fixture.config.health.kind = HealthKind::None;
    fixture.config.idle_timeout = None;
    fixture.apply().await;
    let mut client = Client::connect(fixture.at(PORT)).await.unwrap();
    assert_eq!(client.ask().await.unwrap(), "a");
    for peer in [(a.address, NODE_PORT).into(), client.0.get_ref().local_addr().unwrap()] {
        eventually("kept alive", || match timers(peer) {
            timers if timers == ["02"] => Ok(()),
            timers => Err(format!("{peer}: {timers:?}")),
        })
        .await;
    }
    assert_eq!(client.ask().await.unwrap(), "a");
}
