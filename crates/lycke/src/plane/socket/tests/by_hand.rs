//! A worker that is turned by hand: what has happened when it looks is decided, and not a race.

use std::{
    io::{ErrorKind, Read, Write},
    net::{self, SocketAddr},
    os::fd::AsFd,
    sync::{
        Arc, Mutex,
        atomic::{AtomicUsize, Ordering::Relaxed},
    },
    time::Duration,
};

use cloudberth_http::surroundings::SystemClock;
use mio::net::TcpStream;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use slab::Slab;
use tokio::{sync::mpsc, time::Instant};

use super::{DEADLINE, key};
use crate::plane::{
    config::{Policy, ProxyProtocol},
    report::{BalancerReport, Counters},
    socket::{
        accept::Admitted,
        connection::{Connection, reset_on_close},
        counters::Cells,
        inbox::Notice,
        relay::{Direction, Offer, Tools},
        shared::{
            BackendShared, BalancerShared, ListenerShared, PlaneShared, PortShared, Target, Targets, View,
        },
        worker::Worker,
    },
};

/// A client, and the plane's end of its connection.
fn pair() -> (net::TcpStream, TcpStream) {
    let listener = net::TcpListener::bind("127.0.0.1:0").unwrap();
    let theirs = net::TcpStream::connect(listener.local_addr().unwrap()).unwrap();
    theirs.set_read_timeout(Some(DEADLINE)).unwrap();
    let (ours, _) = listener.accept().unwrap();
    ours.set_nonblocking(true).unwrap();
    (theirs, TcpStream::from_std(ours))
}

/// Waits until the kernel says this of a socket. That takes nothing from it, not even an error.
fn until(what: PollFlags, stream: &impl AsFd) {
    let mut fds = [PollFd::new(stream, what)];
    let timeout = Timespec { tv_sec: 120, tv_nsec: 0 };
    assert_eq!(poll(&mut fds, Some(&timeout)).unwrap(), 1, "{what:?}");
    assert!(fds[0].revents().contains(what), "{what:?}");
}

/// A worker without a thread, and a load balancer with one backend. Nothing happens but what a test does.
struct ByHand {
    worker: Worker,
    notices: mpsc::UnboundedReceiver<Notice>,
    backend: net::TcpListener,
    balancer: Arc<BalancerShared>,
    targets: Targets,
}

impl ByHand {
    fn new() -> Self {
        let plane = PlaneShared::new(Arc::new(SystemClock::new()), 1, Duration::from_secs(2));
        let (sender, notices) = mpsc::unbounded_channel();
        let backend = net::TcpListener::bind("127.0.0.1:0").unwrap();
        let targets = Targets {
            usable: vec![target(1, backend.local_addr().unwrap())],
            idle: Some(Duration::from_secs(600)),
            ..Targets::default()
        };
        let view = View {
            report: BalancerReport { listeners: Vec::new(), backends: Vec::new() },
            backends: Vec::new(),
            ranges: Vec::new(),
            baseline: Counters::default(),
            since: plane.clock.wall(),
        };
        let balancer = Arc::new(BalancerShared {
            id: 1,
            key: key("web"),
            cells: Cells::new(1),
            open: AtomicUsize::new(0),
            most: AtomicUsize::new(10),
            view: Mutex::new(view),
        });
        let worker = Worker::new(0, Arc::new(plane), sender).unwrap();
        Self { worker, notices, backend, balancer, targets }
    }

    /// A client that has said this much is served; the backend's end is second.
    fn serve(&mut self, words: &[u8]) -> (net::TcpStream, net::TcpStream) {
        let client = self.admit(words);
        (client, self.backend.accept().unwrap().0)
    }

    fn admit(&mut self, words: &[u8]) -> net::TcpStream {
        let (mut theirs, stream) = pair();
        theirs.write_all(words).unwrap();
        if !words.is_empty() {
            until(PollFlags::IN, &stream);
        }
        let client = theirs.local_addr().unwrap();
        let bound = stream.local_addr().unwrap();
        let port = Arc::new(PortShared::default());
        let listener = Arc::new(ListenerShared::new(1, Arc::clone(&self.balancer), port, bound));
        self.balancer.open.fetch_add(1, Relaxed);
        self.worker.plane.open.fetch_add(1, Relaxed);
        let targets = Arc::new(std::mem::take(&mut self.targets));
        self.worker.serve(Admitted { listener, targets, stream, client });
        theirs
    }

    /// Has the worker look at the only connection, as if its client had been announced.
    fn look_at_client(&mut self) {
        let (place, connection) = self.worker.connections.iter_mut().next().unwrap();
        connection.up.readable = true;
        let generation = connection.generation;
        self.worker.pump(place, generation);
    }

    /// Has the worker handle events until its connections are so.
    fn turn_until(&mut self, so: impl Fn(&Slab<Connection>) -> bool) {
        let start = Instant::now();
        let mut events = mio::Events::with_capacity(8);
        while !so(&self.worker.connections) {
            assert!(start.elapsed() < DEADLINE, "{} connections", self.worker.connections.len());
            self.worker.turn(&mut events, Some(Duration::from_millis(10))).unwrap();
        }
    }
}

fn target(id: u64, address: SocketAddr) -> Target {
    Target { backend: Arc::new(BackendShared::new(id, &format!("m{id}"))), address }
}

/// What a client gets until its connection is reset.
fn until_reset(mut client: net::TcpStream) -> Vec<u8> {
    let mut got = Vec::new();
    let end = client.read_to_end(&mut got).map_err(|error| error.kind());
    assert_eq!(end, Err(ErrorKind::ConnectionReset), "CL-85 no proper end, after {got:?}");
    got
}

#[test]
fn an_answer_that_has_arrived_is_passed_on_though_nothing_more_can_be_sent() {
    for answer in [&b"413"[..], b""] {
        let mut here = ByHand::new();
        let (mut client, mut backend) = here.serve(b"upload");
        here.turn_until(|connections| connections.iter().all(|(_, c)| c.attempt.is_none()));
        until(PollFlags::IN, &backend);
        backend.write_all(answer).unwrap();
        // It has not read what it was sent, so this resets the connection.
        drop(backend);
        client.write_all(b"more of it").unwrap();
        let (_, connection) = here.worker.connections.iter().next().unwrap();
        until(PollFlags::HUP, &connection.backend);
        until(PollFlags::IN, &connection.client);
        here.look_at_client();
        assert!(here.worker.connections.is_empty(), "CL-85 it is over");
        assert_eq!(until_reset(client), answer, "CL-85");
        let counted = here.balancer.counters();
        assert_eq!(counted.bytes_in, 6, "CL-85 what was sent before is counted");
        assert_eq!(usize::try_from(counted.bytes_out).unwrap(), answer.len(), "CL-85 this, too");
    }
}

#[test]
fn a_backend_that_answers_and_resets_at_once_was_connected() {
    for (case, words, proxy_protocol) in [
        ("a silent client", &b""[..], ProxyProtocol::None),
        ("a client that speaks first", b"hello", ProxyProtocol::None),
        ("a header goes first", b"hello", ProxyProtocol::V1),
    ] {
        let mut here = ByHand::new();
        here.targets.proxy_protocol = proxy_protocol;
        let (client, backend) = here.serve(words);
        reset_on_close(&TcpStream::from_std(backend));
        here.turn_until(Slab::is_empty);
        assert_eq!(until_reset(client), b"", "CL-85 {case}");
        let counted = here.balancer.counters().connections;
        assert_eq!((counted.accepted, counted.failed, counted.open), (1, 0, 0), "CL-85 {case}");
        assert!(here.notices.try_recv().is_err(), "CL-85 {case}: nobody is taken for dead");
    }
}

#[test]
fn what_was_reset_before_it_could_be_offered_was_connected() {
    let (mut tools, mut up) = (Tools::default(), Direction::of_newcomer());
    let ((mut asks, mut client), (serves, mut backend)) = (pair(), pair());
    asks.write_all(b"hello").unwrap();
    reset_on_close(&TcpStream::from_std(serves));
    until(PollFlags::HUP, &backend);
    until(PollFlags::IN, &client);
    let (read, offer) = up.offer(&mut client, &mut backend, &mut tools);
    assert!(matches!(offer, Offer::Answered), "CL-85 {offer:?}");
    assert!(read == 5 && up.keeps_bytes(), "CL-85 the next write meets the reset");
}

#[test]
fn a_connection_waits_for_its_turn_once() {
    let mut here = ByHand::new();
    let (client, backend) = here.serve(b"x");
    for stream in [&client, &backend] {
        stream.set_nonblocking(true).unwrap();
    }
    let piece = vec![b'.'; 64 * 1024];
    let mut buffer = vec![0; 64 * 1024];
    let mut left = 10_000;
    while left > 0 {
        while (&client).write(&piece).is_ok() {}
        while (&backend).read(&mut buffer).is_ok() {}
        if let Some((_, connection)) = here.worker.connections.iter_mut().next() {
            connection.up.writable = true;
        }
        here.look_at_client();
        // Once it waits for its turn, it is looked at a few times more.
        left = if here.worker.again.is_empty() { left - 1 } else { left.min(20) - 1 };
    }
    assert_eq!(here.worker.again.len(), 1, "CL-86");
    let address = here.worker.again.pop_front().unwrap();
    while (&backend).read(&mut buffer).is_ok() {}
    here.worker.pump_on(address.place, address.generation);
    assert!(here.worker.again.len() <= 1, "CL-86 and again after that");
}

#[test]
#[cfg_attr(not(debug_assertions), ignore = "only a debug build notices the overflow")]
fn a_bug_that_a_timer_meets_ends_one_connection_only() {
    let mut here = ByHand::new();
    // Nothing is offered to the backend, so that the attempt is still under way when its time is over.
    here.targets.proxy_protocol = ProxyProtocol::V1;
    let other = target(2, here.targets.usable[0].address);
    here.targets.usable.push(other.clone());
    here.targets.policy = Policy::LeastConnections;
    let _client = here.admit(b"x");
    assert!(here.worker.connections.iter().all(|(_, c)| c.attempt.is_some()));
    // Counts that cannot be, for any bug: adding them up overflows.
    other.backend.open.store(u64::MAX, Relaxed);
    other.backend.flows.store(1, Relaxed);
    here.worker.now = here.worker.now + Duration::from_secs(3);
    here.worker.handle_timers();
    assert!(here.worker.connections.is_empty(), "CL-84");
}
