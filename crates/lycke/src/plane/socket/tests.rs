//! What can only be shown from within: limits that are the computer's own, and a worker that ends while the others go on.

mod by_hand;

use std::{
    io::{ErrorKind, Read, Write},
    net::{self, Ipv4Addr, SocketAddr, UdpSocket},
    time::Duration,
};

use cloudberth_http::surroundings::SystemClock;
use tokio::time::Instant;

use super::*;
use crate::plane::{
    config::{Backend, Health, HealthKind, Limits, Listener, LowPorts, Policy, Protocol, ProxyProtocol},
    report::PlaneEvent,
};

/// Ends a hang, also on a busy machine.
const DEADLINE: Duration = Duration::from_secs(120);

pub(super) struct Nobody;

impl PlaneObserver for Nobody {
    fn notice(&self, _key: &BalancerKey, _event: PlaneEvent) {}
}

pub(super) fn key(name: &str) -> BalancerKey {
    let [cluster, namespace, name] = ["c", "default", name].map(str::to_owned);
    BalancerKey { cluster, namespace, name }
}

/// A load balancer at a free port of this address, that leads to this port of loopback.
pub(super) fn config(
    protocol: Protocol,
    address: Ipv4Addr,
    backend: SocketAddr,
) -> (BalancerConfig, SocketAddr) {
    let free = SocketAddr::from((address, 0));
    let at = match protocol {
        Protocol::Tcp => net::TcpListener::bind(free).unwrap().local_addr(),
        Protocol::Udp => UdpSocket::bind(free).unwrap().local_addr(),
    };
    let at = at.unwrap();
    let second = Duration::from_secs(1);
    let config = BalancerConfig {
        uid: String::new(),
        addresses: vec![at.ip()],
        listeners: vec![Listener { protocol, port: at.port(), node_port: backend.port() }],
        backends: vec![Backend { machine: "m".to_owned(), address: backend.ip(), down: None }],
        affinity: None,
        source_ranges: Vec::new(),
        health: Health {
            kind: HealthKind::None,
            interval: second,
            timeout: second,
            healthy_threshold: 1,
            unhealthy_threshold: 2,
        },
        proxy_protocol: ProxyProtocol::None,
        policy: Policy::RoundRobin,
        idle_timeout: None,
        limits: Limits {
            drain: Duration::from_secs(3600),
            connections: 4096,
            udp_idle: Duration::from_secs(3600),
            udp_flows: 4096,
            low_ports: LowPorts::Fail,
        },
    };
    (config, at)
}

fn plane() -> SocketPlane {
    let settings = PlaneSettings { workers: 2, ..PlaneSettings::default() };
    SocketPlane::start(settings, Arc::new(Nobody), Arc::new(SystemClock::new())).unwrap()
}

/// The answer of the plane, which must come.
fn answered<T>(answer: Answer<T>) -> T {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
    runtime.block_on(async { tokio::time::timeout(DEADLINE, answer).await }).expect("no answer")
}

/// Waits until something is so.
fn eventually(what: &str, so: impl Fn() -> bool) {
    let start = Instant::now();
    while !so() {
        assert!(start.elapsed() < DEADLINE, "{what}");
        thread::yield_now();
    }
}

/// A backend that answers each byte with one.
fn echo() -> SocketAddr {
    let listener = net::TcpListener::bind("127.0.0.1:0").unwrap();
    let at = listener.local_addr().unwrap();
    thread::spawn(move || {
        while let Ok((mut stream, _)) = listener.accept() {
            thread::spawn(move || {
                let mut byte = [0];
                while stream.read_exact(&mut byte).is_ok() && stream.write_all(&byte).is_ok() {}
            });
        }
    });
    at
}

fn ask(stream: &mut net::TcpStream) -> io::Result<()> {
    stream.set_read_timeout(Some(DEADLINE))?;
    stream.write_all(b"?")?;
    stream.read_exact(&mut [0])
}

#[test]
fn a_worker_that_ends_takes_nobody_with_it_but_its_own_clients() {
    let plane = plane();
    let (config, at) = config(Protocol::Tcp, Ipv4Addr::new(127, 77, 254, 1), echo());
    assert!(answered(plane.apply(&key("web"), config)).listeners[0].bound.is_some());
    let connect = || {
        let mut client = net::TcpStream::connect(at).unwrap();
        ask(&mut client).map(|()| client)
    };
    let mut clients: Vec<_> = (0..16).map(|_| connect().unwrap()).collect();
    let cells = &plane.balancer(&key("web")).unwrap().cells;
    let loads = || [0, 1].map(|worker| cells.of(worker).unwrap().load());
    let [here, there] = loads();
    assert!(here > 0 && there > 0 && here + there == 16, "CL-86 both have some: {here} and {there}");

    plane.workers[0].send(Command::Stop);
    eventually("the worker ends", || plane.threads[0].is_finished());
    assert_eq!(loads(), [0, there], "CL-66 its clients are counted no more");
    clients.retain_mut(|client| match ask(client) {
        Ok(()) => true,
        Err(error) => {
            let reset = [ErrorKind::ConnectionReset, ErrorKind::BrokenPipe].contains(&error.kind());
            assert!(reset, "CL-85 no proper end: {error}");
            false
        }
    });
    assert_eq!(clients.len(), usize::try_from(there).unwrap(), "those of the other one go on");
    clients.extend((0..32).map(|_| connect().expect("a new client is served by the other one")));
    answered(plane.remove(&key("web")));
    assert!(net::TcpStream::connect(at).is_err(), "CL-38 nobody listens any more");
    drop(clients);
    answered(plane.close());
}

#[test]
fn flows_share_the_budget_of_descriptors() {
    let plane = plane();
    let backend = UdpSocket::bind("127.0.0.1:0").unwrap();
    let at = backend.local_addr().unwrap();
    thread::spawn(move || {
        let mut buffer = [0; 8];
        while let Ok((length, client)) = backend.recv_from(&mut buffer) {
            let _ = backend.send_to(&buffer[..length], client);
        }
    });
    // A quarter of them is for flows.
    plane.shared.descriptors.store(8, Relaxed);
    let [full, late] = [("full", 2), ("late", 3)].map(|(name, last)| {
        let (config, bound) = config(Protocol::Udp, Ipv4Addr::new(127, 77, 254, last), at);
        assert!(answered(plane.apply(&key(name), config)).listeners[0].bound.is_some());
        bound
    });
    let counted = |name| plane.counters(&key(name)).unwrap().udp;
    let mut buffer = [0; 8];
    let clients: Vec<_> = (0..3).map(|_| UdpSocket::bind("127.0.0.1:0").unwrap()).collect();
    for client in &clients {
        client.set_read_timeout(Some(DEADLINE)).unwrap();
        client.send_to(b"x", full).unwrap();
        client.recv_from(&mut buffer).unwrap();
        assert!(counted("full").flows <= 2, "CL-88 {:?}", counted("full"));
    }
    clients[0].send_to(b"x", late).unwrap();
    eventually("CL-88 no room for another listener", || counted("late").dropped == 1);
    assert_eq!((counted("full").flows, counted("late").flows), (2, 0), "CL-88");
    answered(plane.remove(&key("full")));
    clients[0].send_to(b"x", late).unwrap();
    clients[0].recv_from(&mut buffer).unwrap();
    assert_eq!(counted("late").flows, 1, "CL-88 there is room again");
}
