//! A thread that carries traffic.
//!
//! Every worker waits for all listeners, and whoever is free first accepts a client and keeps it. A worker never waits for
//! anything but the next event: each event gets a bounded piece of work, and what is left is done after the others.

use std::{
    collections::{BTreeMap, VecDeque},
    fs::File,
    io, mem,
    panic::{AssertUnwindSafe, catch_unwind},
    sync::{
        Arc, Mutex,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use cloudberth_core::time::Tick;
use mio::{Events, Poll, Waker, event::Event, net};
use slab::Slab;
use tokio::sync::{mpsc, oneshot};

use super::{
    accept::Admitted,
    connection::Connection,
    counters::Cell,
    relay::Tools,
    shared::{BalancerShared, CachedTargets, ListenerShared, PlaneShared, count, lock},
    token::{Address, Source},
    udp::UdpListener,
    watch::{unwatch, watch_together},
};
use crate::plane::wheel::Wheel;

/// So many events are taken from the kernel at once.
const EVENTS: usize = 256;

/// What the coordinator asks of a worker.
#[derive(Debug)]
pub(crate) enum Command {
    Listen {
        listener: Arc<ListenerShared>,
        socket: std::net::TcpListener,
    },
    ListenUdp {
        listener: Arc<ListenerShared>,
        socket: std::net::UdpSocket,
    },
    /// Stops listening; answered when the socket is closed.
    Close {
        listener: u64,
        closed: oneshot::Sender<()>,
    },
    /// The targets of a UDP listener have changed: flows that lead elsewhere end.
    Sweep {
        listener: u64,
    },
    /// Another worker has let a client in, and has more than enough of them.
    Serve(Box<Admitted>),
    /// Ends connections whose time to drain is over.
    Reset(Doomed),
    Stop,
}

/// Whose connections are reset.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Doomed {
    Backend(u64),
    Listener(u64),
    Balancer(u64),
    All,
}

/// What a worker tells the coordinator.
#[derive(Debug)]
pub(crate) enum Notice {
    /// A client could not be connected to a backend.
    ConnectFailed { listener: Arc<ListenerShared>, backend: u64, node_port: u16, failure: String },
    /// The plane is closing, and no connection is left.
    NoneLeft,
}

/// How a worker is reached.
#[derive(Debug)]
pub(crate) struct Inbox {
    commands: Mutex<Vec<Command>>,
    /// Clients among them.
    pub(crate) handed: AtomicU64,
    waker: Waker,
}

impl Inbox {
    pub(crate) fn send(&self, command: Command) {
        lock(&self.commands).push(command);
        // It fails only if the worker is gone, and then nobody reads commands either.
        let _ = self.waker.wake();
    }
}

/// A listener as this worker has it.
#[derive(Debug)]
pub(crate) struct TcpListenerHere {
    pub(crate) shared: Arc<ListenerShared>,
    pub(crate) socket: net::TcpListener,
    pub(crate) cached: CachedTargets,
    /// The round in which a client was accepted last.
    pub(crate) round: u64,
    /// Nobody is accepted for a moment.
    pub(crate) rests: bool,
}

/// What comes up when its time has come.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Timer {
    Connection {
        place: u32,
        generation: u32,
    },
    UdpListener {
        place: u32,
    },
    /// A listener that could not accept for lack of descriptors.
    Accept {
        place: u32,
    },
}

/// A thread's state. The parts that handle TCP and UDP are in files of their own.
pub(crate) struct Worker {
    pub(crate) number: usize,
    pub(crate) plane: Arc<PlaneShared>,
    pub(crate) poll: Poll,
    pub(crate) inbox: Arc<Inbox>,
    /// All workers, this one included.
    pub(crate) peers: Vec<Arc<Inbox>>,
    pub(crate) notices: mpsc::UnboundedSender<Notice>,
    pub(crate) tools: Tools,
    pub(crate) listeners: Slab<TcpListenerHere>,
    pub(crate) connections: Slab<Connection>,
    pub(crate) udp: Slab<UdpListener>,
    /// For each socket that leads to a UDP backend: its listener, and its place among that one's flows.
    pub(crate) routes: Slab<(usize, usize)>,
    /// Where each listener is, by its id.
    pub(crate) places: BTreeMap<u64, Address>,
    pub(crate) generation: u32,
    /// How often it has waited for events.
    pub(crate) round: u64,
    /// What has more to do than its share.
    pub(crate) again: VecDeque<Address>,
    pub(crate) wheel: Wheel<Timer>,
    pub(crate) now: Tick,
    /// Kept for the moment in which there are no descriptors left.
    pub(crate) spare: Option<File>,
    stopped: bool,
}

impl Worker {
    pub(crate) fn new(
        number: usize,
        plane: Arc<PlaneShared>,
        notices: mpsc::UnboundedSender<Notice>,
    ) -> io::Result<Self> {
        let poll = Poll::new()?;
        let waker = Waker::new(poll.registry(), Address::new(Source::Inbox, 0, 0).token())?;
        let now = plane.clock.now();
        Ok(Self {
            number,
            plane,
            poll,
            inbox: Arc::new(Inbox { commands: Mutex::default(), handed: AtomicU64::new(0), waker }),
            peers: Vec::new(),
            notices,
            tools: Tools::default(),
            listeners: Slab::new(),
            connections: Slab::new(),
            udp: Slab::new(),
            routes: Slab::new(),
            places: BTreeMap::new(),
            generation: 0,
            // Not one after those of listeners that have accepted nobody.
            round: 1,
            again: VecDeque::new(),
            wheel: Wheel::new(now),
            now,
            spare: File::open("/dev/null").ok(),
            stopped: false,
        })
    }

    pub(crate) fn inbox(&self) -> Arc<Inbox> {
        Arc::clone(&self.inbox)
    }

    /// Carries traffic until it is told to stop.
    pub(crate) fn run(mut self) {
        let mut events = Events::with_capacity(EVENTS);
        while !self.stopped {
            let wait = if self.again.is_empty() { self.wheel.wait(self.now) } else { Some(Duration::ZERO) };
            if let Err(error) = self.poll.poll(&mut events, wait)
                && error.kind() != io::ErrorKind::Interrupted
            {
                tracing::error!(%error, worker = self.number, "data plane cannot wait for events");
                return;
            }
            self.now = self.plane.clock.now();
            self.round = self.round.wrapping_add(1);
            for event in &events {
                let Some(address) = Address::of(event.token()) else { continue };
                self.guarded(address, |worker| worker.handle(address, event));
            }
            for address in mem::take(&mut self.again) {
                self.guarded(address, |worker| worker.go_on(address));
            }
            while let Some(timers) = self.wheel.due(self.now) {
                for timer in timers {
                    self.handle_timer(timer);
                }
            }
        }
    }

    /// A mistake of ours that one connection brings out ends this connection only.
    fn guarded(&mut self, address: Address, work: impl FnOnce(&mut Self)) {
        if catch_unwind(AssertUnwindSafe(|| work(self))).is_err() {
            tracing::error!(?address, worker = self.number, "data plane met a bug and drops a connection");
            if matches!(address.source, Source::Client | Source::Backend) {
                self.drop_connection(address.place, true);
            }
        }
    }

    fn handle(&mut self, address: Address, event: &Event) {
        match address.source {
            Source::Inbox => self.handle_commands(),
            Source::Listener => self.accept(address),
            Source::Client | Source::Backend => self.connection_event(address, event),
            Source::UdpListener => self.datagrams_from_clients(address),
            Source::UdpFlow => self.datagrams_from_backend(address),
        }
    }

    fn go_on(&mut self, address: Address) {
        match address.source {
            Source::Inbox => {}
            Source::Listener => self.accept(address),
            Source::Client | Source::Backend => self.pump(address.place, address.generation),
            Source::UdpListener => self.datagrams_from_clients(address),
            Source::UdpFlow => self.datagrams_from_backend(address),
        }
    }

    fn handle_timer(&mut self, timer: Timer) {
        match timer {
            Timer::Connection { place, generation } => {
                self.connection_timer(usize::try_from(place).unwrap_or(usize::MAX), generation);
            }
            Timer::UdpListener { place } => self.expire_flows(usize::try_from(place).unwrap_or(usize::MAX)),
            Timer::Accept { place } => {
                self.accept_again(usize::try_from(place).unwrap_or(usize::MAX));
            }
        }
    }

    fn handle_commands(&mut self) {
        let commands = mem::take(&mut *lock(&self.inbox.commands));
        for command in commands {
            match command {
                Command::Listen { listener, socket } => self.listen(listener, socket),
                Command::ListenUdp { listener, socket } => self.listen_udp(listener, socket),
                Command::Close { listener, closed } => {
                    self.close_listener(listener);
                    // Whoever asked may be gone.
                    let _ = closed.send(());
                }
                Command::Sweep { listener } => {
                    if let Some(address) = self.places.get(&listener).copied() {
                        self.sweep_flows(address.place);
                    }
                }
                Command::Serve(admitted) => {
                    self.inbox.handed.fetch_sub(1, Ordering::Relaxed);
                    self.serve(*admitted);
                }
                Command::Reset(doomed) => self.reset(doomed),
                Command::Stop => self.stopped = true,
            }
        }
    }

    fn listen(&mut self, listener: Arc<ListenerShared>, socket: std::net::TcpListener) {
        let id = listener.id;
        let mut socket = net::TcpListener::from_std(socket);
        let entry = self.listeners.vacant_entry();
        let address = Address::new(Source::Listener, entry.key(), 0);
        match watch_together(self.poll.registry(), &mut socket, address.token()) {
            Ok(()) => {
                let cached = CachedTargets::default();
                entry.insert(TcpListenerHere { shared: listener, socket, cached, round: 0, rests: false });
                self.places.insert(id, address);
            }
            Err(error) => tracing::error!(%error, worker = self.number, "data plane cannot watch a listener"),
        }
    }

    fn close_listener(&mut self, id: u64) {
        let Some(address) = self.places.get(&id).copied() else { return };
        match address.source {
            Source::Listener => {
                // Who is connected already, by the kernel's word, is served.
                while self.accept_one(address.place) {}
                if let Some(mut listener) = self.listeners.try_remove(address.place) {
                    unwatch(self.poll.registry(), &mut listener.socket);
                }
            }
            Source::UdpListener => self.close_udp(address.place),
            _ => {}
        }
        self.places.remove(&id);
    }

    fn reset(&mut self, doomed: Doomed) {
        let dies = |connection: &Connection| match doomed {
            Doomed::Backend(id) => connection.target.id == id,
            Doomed::Listener(id) => connection.listener.id == id,
            Doomed::Balancer(id) => connection.listener.balancer.id == id,
            Doomed::All => true,
        };
        let places: Vec<_> =
            self.connections.iter().filter(|(_, c)| dies(c)).map(|(place, _)| place).collect();
        for place in places {
            self.drop_connection(place, true);
        }
    }

    /// Counts at a load balancer and for the whole plane.
    pub(crate) fn count(&self, balancer: &BalancerShared, add: impl Fn(&Cell)) {
        count(&self.plane, balancer, self.number, add);
    }

    pub(crate) fn notice(&self, notice: Notice) {
        // Fails only while the plane is being torn down.
        let _ = self.notices.send(notice);
    }

    /// A connection is gone, whichever way.
    pub(crate) fn one_less(&self, balancer: &BalancerShared) {
        self.count(balancer, |cell| cell.closed.add(1));
        self.leave(balancer);
    }

    /// There is room for a connection again.
    pub(crate) fn leave(&self, balancer: &BalancerShared) {
        balancer.open.fetch_sub(1, Ordering::Relaxed);
        let before = self.plane.open.fetch_sub(1, Ordering::SeqCst);
        if before == 1 && self.plane.closing.load(Ordering::SeqCst) {
            self.notice(Notice::NoneLeft);
        }
    }
}
