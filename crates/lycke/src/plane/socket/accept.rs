//! TCP: who is let in, and which worker serves whom.

use std::{
    fs::File,
    io::ErrorKind,
    net::SocketAddr,
    sync::{Arc, atomic::Ordering::Relaxed},
};

use mio::net::TcpStream;

use super::{
    connection::reset,
    counters::Cell,
    shared::{ListenerShared, Targets},
    tcp::out_of_descriptors,
    token::{Address, Source},
    watch,
    worker::{Command, Inbox, Timer, Worker},
};
use crate::plane::wheel::GRAIN;

/// So many clients are accepted before others get their turn.
const CLIENTS: usize = 16;

/// A client that is let in, and counted as open.
#[derive(Debug)]
pub(crate) struct Admitted {
    pub(crate) listener: Arc<ListenerShared>,
    pub(crate) targets: Arc<Targets>,
    pub(crate) stream: TcpStream,
    pub(crate) client: SocketAddr,
}

impl Worker {
    /// Accepts clients; those that are left come up again.
    ///
    /// Where the kernel says again that somebody waits, asking costs as much as being told: one client at a time is
    /// accepted, unless they come round after round.
    pub(crate) fn accept(&mut self, address: Address) {
        let Some(listener) = self.listeners.get_mut(address.place) else { return };
        let in_crowds = listener.round.wrapping_add(1) == self.round;
        listener.round = self.round;
        let most = if watch::ANNOUNCED_AGAIN && !in_crowds { 1 } else { CLIENTS };
        for _ in 0..most {
            if !self.accept_one(address.place) {
                return;
            }
        }
        if !watch::ANNOUNCED_AGAIN {
            self.again.push_back(address);
        }
    }

    /// Accepts a client if there is one.
    pub(crate) fn accept_one(&mut self, place: usize) -> bool {
        let Some(listener) = self.listeners.get(place) else { return false };
        let balancer = Arc::clone(&listener.shared.balancer);
        match listener.socket.accept() {
            Ok((stream, client)) if self.has_spare() => self.admit(place, stream, client),
            Ok((stream, _)) => {
                self.count(&balancer, |cell| cell.refused_limit.add(1));
                reset(stream);
            }
            Err(error) if error.kind() == ErrorKind::WouldBlock => return false,
            Err(error) if out_of_descriptors(&error) => return self.refuse_without_descriptors(place),
            // The client has gone meanwhile, or a signal came.
            Err(_) => {}
        }
        true
    }

    /// Whether there is a descriptor for the time when there is none. Nobody is let in without.
    fn has_spare(&mut self) -> bool {
        if self.spare.is_none() {
            self.spare = File::open("/dev/null").ok();
        }
        self.spare.is_some()
    }

    /// Uses the spare descriptor to let a client know that it is not served.
    fn refuse_without_descriptors(&mut self, place: usize) -> bool {
        self.spare = None;
        let Some(listener) = self.listeners.get(place) else { return false };
        let accepted = listener.socket.accept();
        let balancer = Arc::clone(&listener.shared.balancer);
        let gone_on = match accepted {
            Ok((stream, _)) => {
                self.count(&balancer, |cell| cell.refused_limit.add(1));
                reset(stream);
                true
            }
            Err(error) if error.kind() == ErrorKind::WouldBlock => false,
            Err(_) => {
                // Another thread was faster with the descriptor. The client waits; nobody spins.
                self.rest_from_accepting(place);
                false
            }
        };
        self.has_spare();
        gone_on
    }

    /// Hears nothing of a listener for a moment.
    fn rest_from_accepting(&mut self, place: usize) {
        let Some(listener) = self.listeners.get_mut(place) else { return };
        watch::unwatch(self.poll.registry(), &mut listener.socket);
        listener.rests = true;
        if let Ok(place) = u32::try_from(place) {
            self.wheel.file(self.now + GRAIN, Timer::Accept { place });
        }
    }

    /// The moment is over. Who waits there is announced at once.
    pub(crate) fn accept_again(&mut self, place: usize) {
        let Some(listener) = self.listeners.get_mut(place).filter(|listener| listener.rests) else { return };
        let token = Address::new(Source::Listener, place, 0).token();
        match watch::watch_together(self.poll.registry(), &mut listener.socket, token) {
            Ok(()) => listener.rests = false,
            Err(_) => self.rest_from_accepting(place),
        }
    }

    fn admit(&mut self, place: usize, stream: TcpStream, client: SocketAddr) {
        let Some(here) = self.listeners.get_mut(place) else { return };
        here.shared.refresh(&mut here.cached);
        let (listener, targets) = (Arc::clone(&here.shared), Arc::clone(&here.cached.targets));
        let balancer = &listener.balancer;
        if !targets.admits(client) {
            self.count(balancer, |cell| cell.refused_source.add(1));
            return reset(stream);
        }
        if targets.usable.is_empty() {
            self.count(balancer, |cell| cell.no_backend.add(1));
            return reset(stream);
        }
        if balancer.open.fetch_add(1, Relaxed) >= balancer.most.load(Relaxed) {
            balancer.open.fetch_sub(1, Relaxed);
            self.count(balancer, |cell| cell.refused_limit.add(1));
            return reset(stream);
        }
        if self.plane.open.fetch_add(1, Relaxed) >= self.plane.most.load(Relaxed) {
            self.leave(balancer);
            self.count(balancer, |cell| cell.refused_limit.add(1));
            return reset(stream);
        }
        let admitted = Admitted { listener, targets, stream, client };
        match self.less_busy() {
            Some(other) => {
                other.handed.fetch_add(1, Relaxed);
                other.send(Command::Serve(Box::new(admitted)));
            }
            None => self.serve(admitted),
        }
    }

    /// A worker that has far fewer connections than this one. The kernel prefers whoever has waited longest for clients,
    /// and would give most of those that come slowly to one worker.
    fn less_busy(&self) -> Option<&Arc<Inbox>> {
        let open = |worker: usize, inbox: &Inbox| {
            let here = self.plane.cells.of(worker).map_or(0, Cell::open);
            here.saturating_add(inbox.handed.load(Relaxed))
        };
        let own = open(self.number, &self.inbox);
        let others = self.peers.iter().enumerate().filter(|(worker, _)| *worker != self.number);
        let (least, other) =
            others.map(|(worker, inbox)| (open(worker, inbox), inbox)).min_by_key(|one| one.0)?;
        is_uneven(own, least).then_some(other)
    }
}

/// Whether a worker with so many connections had better not take another one. A quarter more than the other one is as good
/// as even: handing a client over wakes the other thread.
fn is_uneven(own: u64, least: u64) -> bool {
    own >= least.saturating_add((own / 4).max(1))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clients_are_handed_over_only_where_it_matters() {
        let table = [
            ("nobody is here", 0, 0, false),
            ("the second of two", 1, 0, true),
            ("even", 1, 1, false),
            ("one more", 2, 1, true),
            ("one more of many", 20, 19, false),
            ("a quarter more", 20, 15, true),
            ("fewer than there", 5, 50, false),
        ];
        for (case, own, least, want) in table {
            assert_eq!(is_uneven(own, least), want, "{case}");
        }
        let (mut here, mut there) = (0, 0);
        for _ in 0..1000 {
            if is_uneven(here, there) { there += 1 } else { here += 1 }
        }
        assert!(here - there <= here / 4, "CL-50 {here} and {there}");
    }
}
