//! A thread that carries traffic.
//!
//! Every worker waits for all listeners. Whoever accepts a client serves it, or hands it over to another worker that has
//! fewer; from then on it stays there. A worker never waits for anything but the next event: each event gets a bounded
//! piece of work, and what is left is done after the others.

use std::{
    collections::{BTreeMap, VecDeque},
    fs::File,
    io, mem,
    panic::{AssertUnwindSafe, catch_unwind},
    sync::{Arc, atomic::Ordering},
    time::Duration,
};

use cloudberth_core::time::Tick;
use mio::{Events, Poll, event::Event, net};
use slab::Slab;
use tokio::sync::mpsc;

use super::{
    connection::{Connection, reset},
    counters::Cell,
    inbox::{Command, Doomed, Inbox, Notice},
    listen::BACKLOG,
    relay::Tools,
    shared::{BalancerShared, CachedTargets, ListenerShared, PlaneShared, count},
    token::{Address, Source},
    udp::UdpListener,
    watch::{unwatch, watch_together},
};
use crate::plane::wheel::Wheel;

/// So many events are taken from the kernel at once.
const EVENTS: usize = 256;

/// A listener as this worker has it.
#[derive(Debug)]
pub(crate) struct TcpListenerHere {
    pub(crate) shared: Arc<ListenerShared>,
    pub(crate) socket: net::TcpListener,
    pub(crate) cached: CachedTargets,
    /// The round in which it was looked at last, whether or not somebody had come.
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
        let inbox = Arc::new(Inbox::new(poll.registry())?);
        let now = plane.clock.now();
        Ok(Self {
            number,
            plane,
            poll,
            inbox,
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
            if let Err(error) = self.turn(&mut events, wait) {
                tracing::error!(%error, worker = self.number, "data plane cannot wait for events");
                return;
            }
        }
    }

    /// Waits once, and does everything that there is to do then.
    pub(crate) fn turn(&mut self, events: &mut Events, wait: Option<Duration>) -> io::Result<()> {
        match self.poll.poll(events, wait) {
            Err(error) if error.kind() != io::ErrorKind::Interrupted => return Err(error),
            _ => {}
        }
        self.now = self.plane.clock.now();
        self.round = self.round.wrapping_add(1);
        for event in &*events {
            let Some(address) = Address::of(event.token()) else { continue };
            self.guarded(address, |worker| worker.handle(address, event));
        }
        for address in mem::take(&mut self.again) {
            self.guarded(address, |worker| worker.go_on(address));
        }
        self.handle_timers();
        Ok(())
    }

    /// A mistake of ours that one connection brings out ends this connection only.
    fn guarded(&mut self, address: Address, work: impl FnOnce(&mut Self)) {
        if catch_unwind(AssertUnwindSafe(|| work(self))).is_err() {
            tracing::error!(?address, worker = self.number, "data plane met a bug and drops a connection");
            let is_there = |c: &Connection| c.generation == address.generation;
            if matches!(address.source, Source::Client | Source::Backend)
                && self.connections.get(address.place).is_some_and(is_there)
            {
                self.drop_connection(address.place, true);
            }
        }
    }

    fn handle(&mut self, address: Address, event: &Event) {
        match address.source {
            Source::Inbox => self.handle_commands(address),
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
            Source::Client | Source::Backend => self.pump_on(address.place, address.generation),
            Source::UdpListener => self.datagrams_from_clients(address),
            Source::UdpFlow => self.datagrams_from_backend(address),
        }
    }

    /// Handles what is due by now.
    pub(crate) fn handle_timers(&mut self) {
        while let Some(timers) = self.wheel.due(self.now) {
            for timer in timers {
                let (source, place, generation) = match timer {
                    Timer::Connection { place, generation } => (Source::Client, place, generation),
                    Timer::UdpListener { place } => (Source::UdpListener, place, 0),
                    Timer::Accept { place } => (Source::Listener, place, 0),
                };
                let address = Address::new(source, usize::try_from(place).unwrap_or(usize::MAX), generation);
                self.guarded(address, |worker| match timer {
                    Timer::Connection { .. } => worker.connection_timer(address.place, generation),
                    Timer::UdpListener { .. } => worker.expire_flows(address.place),
                    Timer::Accept { .. } => worker.accept_again(address.place),
                });
            }
        }
    }

    fn handle_commands(&mut self, address: Address) {
        for command in self.inbox.take() {
            self.guarded(address, |worker| worker.handle_command(command));
        }
    }

    fn handle_command(&mut self, command: Command) {
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
                admitted.has_arrived(&self.plane, self.number);
                self.serve(*admitted);
            }
            Command::Reset(doomed) => self.reset(doomed),
            Command::Stop => self.stopped = true,
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
                // Who is connected already, by the kernel's word, is served. More than it keeps have come since.
                for _ in 0..BACKLOG {
                    if !self.accept_one(address.place) {
                        break;
                    }
                }
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

impl Drop for Worker {
    /// However it has come to an end, nobody waits for it, and nobody is counted as connected to it.
    fn drop(&mut self) {
        if !self.stopped {
            tracing::error!(worker = self.number, "data plane has lost a worker");
        }
        for command in self.inbox.close() {
            if let Command::Serve(admitted) = command {
                admitted.has_arrived(&self.plane, self.number);
                self.leave(&admitted.listener.balancer);
                reset(admitted.stream);
            }
        }
        self.reset(Doomed::All);
        let udp: Vec<_> = self.udp.iter().map(|(place, _)| place).collect();
        for place in udp {
            self.close_udp(place);
        }
    }
}
