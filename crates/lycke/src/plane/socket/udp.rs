//! UDP: flows between clients and backends.
//!
//! A listener and all its flows belong to one worker, so that datagrams stay in order and nothing is locked.

use std::{
    io::{self, ErrorKind},
    mem,
    net::{Ipv4Addr, Ipv6Addr, SocketAddr},
    sync::{Arc, atomic::Ordering::Relaxed},
};

use mio::net::UdpSocket;

use super::{
    shared::{BackendShared, CachedTargets, ListenerShared, Targets},
    token::{Address, Source},
    watch::{ANNOUNCED_AGAIN, unwatch, watch},
    worker::{Timer, Worker},
};
use crate::plane::flows::{FlowTable, Place};

/// So many datagrams are passed on before others get their turn.
const DATAGRAMS: usize = 64;

/// A UDP port, and those who use it.
#[derive(Debug)]
pub(crate) struct UdpListener {
    shared: Arc<ListenerShared>,
    socket: UdpSocket,
    cached: CachedTargets,
    flows: FlowTable<Flow>,
    /// The round in which it was looked at last, whether or not something came.
    round: u64,
    /// A timer looks for quiet flows.
    watched: bool,
}

/// A client and its backend.
#[derive(Debug)]
struct Flow {
    backend: Arc<BackendShared>,
    /// `None` after the backend has said that nobody is there. The entry stays, so that the client's next datagram goes
    /// elsewhere.
    upstream: Option<Upstream>,
}

#[derive(Debug)]
struct Upstream {
    socket: UdpSocket,
    /// Its place among the worker's routes.
    route: usize,
    /// The round in which it was looked at last, whether or not something came.
    round: u64,
}

/// How many datagrams are read from a socket that was read in round `latest` before. Where the kernel says again that there
/// are more, asking costs as much as being told, so it is one, unless they come round after round.
fn share(latest: u64, round: u64) -> usize {
    if ANNOUNCED_AGAIN && latest.wrapping_add(1) != round { 1 } else { DATAGRAMS }
}

impl Worker {
    pub(crate) fn listen_udp(&mut self, shared: Arc<ListenerShared>, socket: std::net::UdpSocket) {
        let id = shared.id;
        let mut socket = UdpSocket::from_std(socket);
        let entry = self.udp.vacant_entry();
        let address = Address::new(Source::UdpListener, entry.key(), 0);
        match watch(self.poll.registry(), &mut socket, address.token()) {
            Ok(()) => {
                let (cached, flows) = (CachedTargets::default(), FlowTable::default());
                entry.insert(UdpListener { shared, socket, cached, flows, round: 0, watched: false });
                self.places.insert(id, address);
            }
            Err(error) => tracing::error!(%error, worker = self.number, "data plane cannot watch a listener"),
        }
    }

    pub(crate) fn close_udp(&mut self, place: usize) {
        let flows = self.udp.get(place).map(|listener| listener.flows.places()).unwrap_or_default();
        for flow in flows {
            self.end_flow(place, flow);
        }
        if let Some(mut listener) = self.udp.try_remove(place) {
            unwatch(self.poll.registry(), &mut listener.socket);
        }
    }

    pub(crate) fn datagrams_from_clients(&mut self, address: Address) {
        let Some(listener) = self.udp.get_mut(address.place) else { return };
        let share = share(mem::replace(&mut listener.round, self.round), self.round);
        for _ in 0..share {
            let Some(listener) = self.udp.get_mut(address.place) else { return };
            match listener.socket.recv_from(&mut self.tools.buffer) {
                Ok((length, client)) => self.datagram_from_client(address.place, client, length),
                Err(error) if error.kind() == ErrorKind::WouldBlock => return,
                // What an earlier datagram has met on its way to a client.
                Err(_) => {}
            }
        }
        if !ANNOUNCED_AGAIN {
            self.again.push_back(address);
        }
    }

    /// Passes on the datagram in the buffer.
    fn datagram_from_client(&mut self, place: usize, client: SocketAddr, length: usize) {
        let Some(listener) = self.udp.get_mut(place) else { return };
        listener.shared.refresh(&mut listener.cached);
        let shared = Arc::clone(&listener.shared);
        let targets = Arc::clone(&listener.cached.targets);
        let passed = targets.admits(client) && self.pass_on(place, client, length, &targets);
        self.count(&shared.balancer, |cell| {
            if passed {
                cell.datagrams_in.add(1);
                cell.bytes_in.add_len(length);
            } else {
                cell.dropped.add(1);
            }
        });
    }

    fn pass_on(&mut self, place: usize, client: SocketAddr, length: usize, targets: &Arc<Targets>) -> bool {
        let mut silent = None;
        if let Some(listener) = self.udp.get_mut(place)
            && let Some(at) = listener.flows.find(client)
            && let Some((_, flow)) = listener.flows.get_mut(at)
        {
            let id = flow.backend.id;
            match &flow.upstream {
                Some(upstream) if targets.has(id) => {
                    let bytes = self.tools.buffer.get(..length).unwrap_or_default();
                    match upstream.socket.send(bytes) {
                        Ok(_) => {
                            listener.flows.touch(at, self.now);
                            return true;
                        }
                        Err(error) if error.kind() == ErrorKind::ConnectionRefused => silent = Some(id),
                        Err(_) => return false,
                    }
                }
                Some(_) => {}
                None => silent = Some(id),
            }
            self.end_flow(place, at);
        }
        self.start_flow(place, client, length, targets, silent)
    }

    /// Chooses a backend, not the silent one if there is another, and sends it the datagram in the buffer.
    fn start_flow(
        &mut self,
        place: usize,
        client: SocketAddr,
        length: usize,
        targets: &Targets,
        silent: Option<u64>,
    ) -> bool {
        let Some(listener) = self.udp.get(place) else { return false };
        let shared = Arc::clone(&listener.shared);
        let target = targets
            .choose(&shared.port, client, silent.as_slice(), self.now)
            .or_else(|| targets.choose(&shared.port, client, &[], self.now));
        let Some(target) = target else { return false };
        while let Some(listener) = self.udp.get(place)
            && listener.flows.len() >= targets.udp_flows.max(1)
            && let Some((oldest, _)) = listener.flows.oldest()
        {
            self.end_flow(place, oldest);
        }
        while self.plane.flows.load(Relaxed) >= self.plane.most_flows() {
            // Only its own: clients of one listener do not end flows of another.
            let oldest = self.udp.get(place).and_then(|listener| listener.flows.oldest());
            let Some((oldest, _)) = oldest else { return false };
            self.end_flow(place, oldest);
        }
        let Ok(mut socket) = connected(target.address) else { return false };
        let entry = self.routes.vacant_entry();
        let (route, address) = (entry.key(), Address::new(Source::UdpFlow, entry.key(), 0));
        if watch(self.poll.registry(), &mut socket, address.token()).is_err() {
            return false;
        }
        let sent = socket.send(self.tools.buffer.get(..length).unwrap_or_default()).is_ok();
        let Some(listener) = self.udp.get_mut(place) else { return false };
        let flow = Flow {
            backend: Arc::clone(&target.backend),
            upstream: Some(Upstream { socket, route, round: 0 }),
        };
        entry.insert((place, listener.flows.insert(client, flow, self.now)));
        target.backend.flows.fetch_add(1, Relaxed);
        self.plane.flows.fetch_add(1, Relaxed);
        if !mem::replace(&mut listener.watched, true)
            && let Ok(place) = u32::try_from(place)
        {
            self.wheel.file(self.now + targets.udp_idle, Timer::UdpListener { place });
        }
        self.count(&shared.balancer, |cell| cell.flows_opened.add(1));
        sent
    }

    pub(crate) fn datagrams_from_backend(&mut self, address: Address) {
        let (mut passed, mut left) = ((0_u64, 0_usize), None);
        let mut again = true;
        while left != Some(0) {
            let Some((place, at)) = self.routes.get(address.place).copied() else { return };
            let Some(listener) = self.udp.get_mut(place) else { return };
            let Some((client, flow)) = listener.flows.get_mut(at) else { return };
            let Some(upstream) = &mut flow.upstream else { return };
            let share =
                left.unwrap_or_else(|| share(mem::replace(&mut upstream.round, self.round), self.round));
            left = Some(share - 1);
            match upstream.socket.recv(&mut self.tools.buffer) {
                Ok(length) => {
                    let bytes = self.tools.buffer.get(..length).unwrap_or_default();
                    if listener.socket.send_to(bytes, client).is_ok() {
                        passed = (passed.0 + 1, passed.1 + length);
                    }
                    listener.flows.touch(at, self.now);
                }
                Err(error) if error.kind() == ErrorKind::WouldBlock => {
                    again = false;
                    break;
                }
                Err(error) if error.kind() == ErrorKind::ConnectionRefused => {
                    self.silence_flow(place, at);
                    again = false;
                    break;
                }
                Err(_) => {}
            }
        }
        if again && !ANNOUNCED_AGAIN {
            self.again.push_back(address);
        }
        if passed.0 > 0
            && let Some((place, _)) = self.routes.get(address.place)
            && let Some(listener) = self.udp.get(*place)
        {
            self.count(&listener.shared.balancer, |cell| {
                cell.datagrams_out.add(passed.0);
                cell.bytes_out.add_len(passed.1);
            });
        }
    }

    /// The backend has said that nobody is there.
    fn silence_flow(&mut self, place: usize, at: Place) {
        let Some(listener) = self.udp.get_mut(place) else { return };
        let Some((_, flow)) = listener.flows.get_mut(at) else { return };
        let (backend, upstream) = (Arc::clone(&flow.backend), flow.upstream.take());
        let shared = Arc::clone(&listener.shared);
        self.close_upstream(&shared, &backend, upstream);
    }

    fn end_flow(&mut self, place: usize, at: Place) {
        let Some(listener) = self.udp.get_mut(place) else { return };
        let Some(flow) = listener.flows.remove(at) else { return };
        let shared = Arc::clone(&listener.shared);
        self.close_upstream(&shared, &flow.backend, flow.upstream);
    }

    fn close_upstream(
        &mut self,
        listener: &ListenerShared,
        backend: &BackendShared,
        upstream: Option<Upstream>,
    ) {
        let Some(upstream) = upstream else { return };
        self.routes.try_remove(upstream.route);
        backend.flows.fetch_sub(1, Relaxed);
        self.plane.flows.fetch_sub(1, Relaxed);
        self.count(&listener.balancer, |cell| cell.flows_closed.add(1));
    }

    /// Ends flows to backends that are no longer used.
    pub(crate) fn sweep_flows(&mut self, place: usize) {
        let Some(listener) = self.udp.get_mut(place) else { return };
        listener.shared.refresh(&mut listener.cached);
        let targets = Arc::clone(&listener.cached.targets);
        for at in listener.flows.places() {
            let lost = self
                .udp
                .get_mut(place)
                .and_then(|listener| listener.flows.get_mut(at))
                .is_some_and(|(_, flow)| !targets.has(flow.backend.id));
            if lost {
                self.end_flow(place, at);
            }
        }
    }

    /// Forgets flows that were quiet for too long.
    pub(crate) fn expire_flows(&mut self, place: usize) {
        let Some(listener) = self.udp.get_mut(place) else { return };
        listener.shared.refresh(&mut listener.cached);
        let idle = listener.cached.targets.udp_idle;
        while let Some(listener) = self.udp.get(place)
            && let Some(quiet) = listener.flows.expired(self.now, idle)
        {
            self.end_flow(place, quiet);
        }
        let Some(listener) = self.udp.get_mut(place) else { return };
        let next = listener.flows.oldest().map(|(_, latest)| latest + idle);
        listener.watched = next.is_some();
        if let (Some(next), Ok(place)) = (next, u32::try_from(place)) {
            self.wheel.file(next, Timer::UdpListener { place });
        }
    }
}

fn connected(backend: SocketAddr) -> io::Result<UdpSocket> {
    let any = match backend {
        SocketAddr::V4(_) => SocketAddr::from((Ipv4Addr::UNSPECIFIED, 0)),
        SocketAddr::V6(_) => SocketAddr::from((Ipv6Addr::UNSPECIFIED, 0)),
    };
    let socket = UdpSocket::bind(any)?;
    socket.connect(backend)?;
    Ok(socket)
}
