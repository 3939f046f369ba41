//! Connections that are never whole: backends or clients that do not finish the handshake, clients that go before they are
//! served.

use std::{io::ErrorKind, net::SocketAddr, time::Duration};

use cloudberth_lycke::{
    plane::{Backend, HealthKind, Plane, socket::PlaneSettings},
    testing::half_open::{HalfOpen, in_a_network_of_its_own, why_no_network},
};
use socket2::{Domain, SockRef, Socket, Type};
use tokio::task::JoinSet;

use crate::{
    alone::alone,
    fixture::{Client, Fixture, NODE_PORT, PORT, Server, ask, config, eventually, fresh_address, key, kind},
};

const CLIENTS: usize = 200;

/// A machine whose node port takes no more connections: its queue is full and nobody accepts. Attempts get no answer.
struct Swallower {
    backend: Backend,
    _sockets: Vec<Socket>,
}

impl Swallower {
    fn new() -> Self {
        let address = fresh_address();
        let listener = Socket::new(Domain::IPV4, Type::STREAM, None).unwrap();
        let at = SocketAddr::new(address, NODE_PORT).into();
        listener.bind(&at).unwrap();
        listener.listen(0).unwrap();
        let mut sockets = vec![listener];
        // The queue holds one or two more than it was asked for.
        for _ in 0..4 {
            let socket = Socket::new(Domain::IPV4, Type::STREAM, None).unwrap();
            let _ = socket.connect_timeout(&at, Duration::from_millis(100));
            sockets.push(socket);
        }
        let machine = "swallower".to_owned();
        Self { backend: Backend { machine, address, down: None }, _sockets: sockets }
    }
}

#[tokio::test]
async fn attempts_without_an_answer_end_and_hold_nobody_up() {
    let (swallower, b) = (Swallower::new(), Server::start("b").await);
    let settings =
        PlaneSettings { workers: 2, connect_timeout: Duration::from_millis(500), ..PlaneSettings::default() };
    let mut fixture = Fixture::with(&[], settings);
    fixture.config.backends = vec![swallower.backend.clone()];
    // Checks would find out before the clients do.
    fixture.config.health.kind = HealthKind::None;
    fixture.config.limits.connections = CLIENTS / 2;
    fixture.apply().await;
    let other = config(fresh_address(), vec![b.backend()]);
    let at_other = (other.addresses[0], PORT).into();
    fixture.apply_as("other", other).await;

    let mut clients = JoinSet::new();
    for _ in 0..CLIENTS {
        let at = fixture.at(PORT);
        clients.spawn(async move {
            let mut client = Client::connect(at).await?;
            client.end().await
        });
    }
    for _ in 0..CLIENTS {
        assert_eq!(ask(at_other).await.unwrap(), "b", "CL-86 the other load balancer serves");
    }
    while let Some(client) = clients.join_next().await {
        assert_eq!(kind(client.unwrap()), Some(ErrorKind::ConnectionReset), "CL-84 nobody is left hanging");
    }
    eventually("CL-84 nothing is left of them", || match fixture.counters().connections {
        counted if counted.open == 0 => Ok(()),
        counted => Err(format!("{counted:?}")),
    })
    .await;
    let counted = fixture.counters().connections;
    assert_eq!(
        (counted.accepted, counted.failed + counted.refused_limit),
        (0, CLIENTS as u64),
        "CL-66 {counted:?}"
    );
    assert_eq!(fixture.plane.counters(&key("other")).unwrap().connections.failed, 0, "CL-86");
}

#[tokio::test]
async fn clients_that_go_before_they_are_served_leave_nothing() {
    let a = Server::start("a").await;
    let fixture = Fixture::new(&[&a]);
    fixture.apply().await;
    for _ in 0..500 {
        let client = std::net::TcpStream::connect(fixture.at(PORT)).unwrap();
        // Closed with a reset, often before anybody has accepted it.
        SockRef::from(&client).set_linger(Some(Duration::ZERO)).unwrap();
    }
    eventually("CL-85 nothing is left of them", || match fixture.plane.totals().connections.open {
        0 => Ok(()),
        open => Err(format!("{open} open")),
    })
    .await;
    assert_eq!(fixture.ask().await.unwrap(), "a", "CL-85 others are served");
    let counted = fixture.counters().connections;
    assert_eq!((counted.failed, counted.no_backend), (0, 0), "CL-85 no backend is blamed: {counted:?}");
}

/// Clients that send the first segment of a handshake and nothing more.
const HALF_OPEN: u32 = 5_000;

#[test]
fn clients_that_never_end_their_handshake_slow_nobody() {
    let start = |tests| why_no_network().map_or_else(|| Ok(in_a_network_of_its_own(tests)), Err);
    let name = "half_open::clients_that_never_end_their_handshake_slow_nobody";
    alone("CL-86 with half-open clients", name, start, half_open_clients());
}

async fn half_open_clients() {
    let (a, b) = (Server::start("a").await, Server::start("b").await);
    let mut fixture = Fixture::new(&[&a]);
    // So few that each half-open client would be missed, if it counted.
    fixture.config.limits.connections = 10;
    fixture.apply().await;
    let other = config(fresh_address(), vec![b.backend()]);
    let at_other = (other.addresses[0], PORT).into();
    fixture.apply_as("other", other).await;
    let SocketAddr::V4(at) = fixture.at(PORT) else { panic!("an IPv6 address") };

    HalfOpen::new().unwrap().begin(at, HALF_OPEN).unwrap();
    let held = HalfOpen::held(at).unwrap();
    assert!(held > 1_000, "CL-86 the kernel holds {held} half-open connections");
    let mut client = Client::connect(at_other).await.unwrap();
    for _ in 0..500 {
        assert_eq!(client.ask().await.unwrap(), "b", "CL-86 the other load balancer serves");
        assert_eq!(ask(at_other).await.unwrap(), "b", "CL-86 new clients too");
    }
    assert!(HalfOpen::held(at).unwrap() > 1_000, "CL-86 they were there all the time");
    let cookies = std::fs::read_to_string("/proc/sys/net/ipv4/tcp_syncookies").unwrap();
    if cookies.trim() != "0" {
        assert_eq!(fixture.ask().await.unwrap(), "a", "CL-86 the same one serves, too");
    }
    let counted = fixture.counters().connections;
    assert_eq!((counted.refused_limit, counted.failed), (0, 0), "CL-86 they are no clients yet: {counted:?}");
}
