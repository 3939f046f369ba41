//! TCP: who is let in, and which worker serves whom.

use std::{
    fs::File,
    io::{self, ErrorKind},
    net::SocketAddr,
    sync::{Arc, atomic::Ordering::Relaxed},
};

use mio::net::TcpStream;

use super::{
    connection::reset,
    counters::{Cell, Cells},
    inbox::Command,
    shared::{ListenerShared, PlaneShared, Targets},
    tcp::out_of_descriptors,
    token::{Address, Source},
    watch,
    worker::{Timer, Worker},
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

impl Admitted {
    /// It is on its way to another worker.
    fn sets_out(&self, plane: &PlaneShared, worker: usize) {
        self.at_cells(plane, worker, |cell| cell.handed.fetch_add(1, Relaxed));
    }

    /// It is no longer on its way to a worker, however that ended.
    pub(crate) fn has_arrived(&self, plane: &PlaneShared, worker: usize) {
        self.at_cells(plane, worker, |cell| cell.handed.fetch_sub(1, Relaxed));
    }

    fn at_cells(&self, plane: &PlaneShared, worker: usize, count: impl Fn(&Cell) -> u64) {
        for cells in [&plane.cells, &self.listener.balancer.cells] {
            cells.of(worker).map(&count);
        }
    }
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
            Err(error) if concerns_one_client(&error) => {}
            Err(_) => {
                self.rest_from_accepting(place);
                return false;
            }
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
        if self.plane.open.fetch_add(1, Relaxed) >= self.plane.most_connections() {
            self.leave(balancer);
            self.count(balancer, |cell| cell.refused_limit.add(1));
            return reset(stream);
        }
        let other = less_busy(&self.plane.cells, &balancer.cells, self.number, |worker| {
            self.peers.get(worker).is_some_and(|inbox| !inbox.is_gone())
        });
        let other = other.and_then(|other| Some((other, self.peers.get(other)?)));
        let admitted = Admitted { listener, targets, stream, client };
        let Some((other, inbox)) = other else { return self.serve(admitted) };
        admitted.sets_out(&self.plane, other);
        if let Some(Command::Serve(admitted)) = inbox.send(Command::Serve(Box::new(admitted))) {
            // It has ended in this very moment.
            admitted.has_arrived(&self.plane, other);
            self.serve(*admitted);
        }
    }
}

/// A worker that had better serve the next client of a load balancer than the worker `here`.
///
/// Where several wait at a socket, the kernel always wakes the same one first, which would get most of those who come
/// slowly. What counts is who has more clients of this load balancer: were it all that a worker has, the clients of one load
/// balancer would decide where those of another go. All of them decide between workers that have as many of this one, or
/// the first client of every load balancer would go to the same worker.
fn less_busy(
    plane: &Cells,
    balancer: &Cells,
    here: usize,
    is_there: impl Fn(usize) -> bool,
) -> Option<usize> {
    let load = |worker: usize| Some((balancer.of(worker)?.load(), plane.of(worker)?.load()));
    let (own, own_of_all) = load(here)?;
    let others = (0..plane.len()).filter(|worker| *worker != here && is_there(*worker));
    let ((least, least_of_all), other) =
        others.filter_map(|worker| Some((load(worker)?, worker))).min_by_key(|(load, _)| *load)?;
    let is_uneven = if own == least { is_uneven(own_of_all, least_of_all) } else { is_uneven(own, least) };
    is_uneven.then_some(other)
}

/// Whether a worker with so many clients had better not take another one. A few more than the other one has are as good as
/// even: handing a client over wakes the other thread.
fn is_uneven(own: u64, least: u64) -> bool {
    own >= least.saturating_add((own / 4).clamp(1, 8))
}

/// Whether only the client that was about to be accepted is concerned: it has gone, or its network has failed, or a signal
/// came. After anything else, such as a lack of memory, the next attempt would fail as well.
fn concerns_one_client(error: &io::Error) -> bool {
    use rustix::io::Errno;
    let networks = [Errno::NETDOWN, Errno::NETUNREACH, Errno::HOSTDOWN, Errno::HOSTUNREACH, Errno::PROTO];
    matches!(error.kind(), ErrorKind::ConnectionAborted | ErrorKind::Interrupted)
        || networks.iter().any(|errno| error.raw_os_error() == Some(errno.raw_os_error()))
}

#[cfg(test)]
mod tests {
    use rustix::io::Errno;

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
            ("eight more of very many", 1008, 1000, true),
            ("seven more of very many", 1007, 1000, false),
            ("fewer than there", 5, 50, false),
        ];
        for (case, own, least, want) in table {
            assert_eq!(is_uneven(own, least), want, "{case}");
        }
    }

    /// Workers whose first one accepts every client, as it does when they come one after the other.
    struct Workers(Cells);

    impl Workers {
        fn new() -> Self {
            Self(Cells::new(2))
        }

        /// So many clients come to a load balancer, and stay; how many each worker has of it then.
        fn accept(&self, clients: usize, balancer: &Cells) -> [u64; 2] {
            for _ in 0..clients {
                let worker = less_busy(&self.0, balancer, 0, |_| true).unwrap_or(0);
                self.serve(worker, 1, balancer);
            }
            [0, 1].map(|worker| balancer.of(worker).unwrap().load())
        }

        fn serve(&self, worker: usize, clients: u64, balancer: &Cells) {
            for cells in [&self.0, balancer] {
                cells.of(worker).unwrap().opened.add(clients);
            }
        }
    }

    #[test]
    fn the_clients_of_one_load_balancer_do_not_decide_where_those_of_another_go() {
        for (case, idle) in [
            ("nobody else", [0, 0]),
            ("4,096 elsewhere", [2048, 2048]),
            ("all of them here", [4096, 0]),
            ("all of them there", [0, 4096]),
        ] {
            let (workers, one, other) = (Workers::new(), Cells::new(2), Cells::new(2));
            for (worker, idle) in idle.into_iter().enumerate() {
                workers.serve(worker, idle, &one);
            }
            let [here, there] = workers.accept(64, &other);
            assert!(here.abs_diff(there) <= 8, "CL-86 {case}: {here} and {there} of 64");
        }
    }

    #[test]
    fn many_load_balancers_with_a_client_each_share_the_workers() {
        let workers = Workers::new();
        for _ in 0..200 {
            workers.accept(1, &Cells::new(2));
        }
        let [here, there] = [0, 1].map(|worker| workers.0.of(worker).unwrap().load());
        assert!(here.abs_diff(there) <= 8, "CL-98 {here} and {there} of 200");
        let [here, there] = Workers::new().accept(1000, &Cells::new(2));
        assert!(here.abs_diff(there) <= 8, "CL-50 {here} and {there} of 1,000");
    }

    #[test]
    fn a_worker_that_is_gone_gets_nobody() {
        let (plane, balancer) = (Cells::new(2), Cells::new(2));
        for cells in [&plane, &balancer] {
            cells.of(0).unwrap().opened.add(10);
        }
        assert_eq!(less_busy(&plane, &balancer, 0, |_| true), Some(1));
        assert_eq!(less_busy(&plane, &balancer, 0, |_| false), None);
    }

    #[test]
    fn only_what_concerns_one_client_lets_the_next_one_be_tried_at_once() {
        let table = [
            (Errno::CONNABORTED, true),
            (Errno::INTR, true),
            (Errno::HOSTUNREACH, true),
            (Errno::PROTO, true),
            (Errno::NOMEM, false),
            (Errno::NOBUFS, false),
            (Errno::PERM, false),
        ];
        for (errno, want) in table {
            assert_eq!(concerns_one_client(&io::Error::from(errno)), want, "{errno}");
        }
    }
}
