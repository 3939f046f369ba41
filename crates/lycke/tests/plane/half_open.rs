//! Connections that are never whole: backends that do not finish the handshake, clients that go before they are served.
//!
//! A client that sends a SYN and nothing more cannot be had without raw sockets. It never reaches the process: the kernel
//! keeps it, or answers with a cookie, and `accept` does not return it.

use std::{io::ErrorKind, time::Duration};

use cloudberth_lycke::plane::{Backend, HealthKind, Plane, socket::PlaneSettings};
use socket2::{Domain, SockRef, Socket, Type};
use tokio::task::JoinSet;

use crate::fixture::{
    Client, Fixture, NODE_PORT, PORT, Server, ask, config, eventually, fresh_address, key, kind,
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
        let at = std::net::SocketAddr::new(address, NODE_PORT).into();
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
