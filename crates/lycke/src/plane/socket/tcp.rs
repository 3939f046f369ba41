//! TCP: from a client that knocks to the last byte.

use std::{
    fs::File,
    io::{self, ErrorKind},
    mem,
    net::SocketAddr,
    sync::{Arc, atomic::Ordering::Relaxed},
};

use mio::{Interest, event::Event, net::TcpStream};

use super::{
    connection::{Attempt, Connection, reset, reset_on_close},
    relay::Direction,
    shared::{BalancerShared, ListenerShared, Target},
    token::{Address, Source, next_generation},
    worker::{Notice, Timer, Worker},
};
use crate::plane::{proxy_header, wheel::GRAIN};

/// So many clients are accepted before others get their turn.
const CLIENTS: usize = 16;
/// What is longer than this may have been written in pieces.
const MESSAGE: usize = 16 * 1024;

impl Worker {
    /// Accepts clients; those that are left come up again.
    pub(crate) fn accept(&mut self, address: Address) {
        for _ in 0..CLIENTS {
            if !self.accept_one(address.place) {
                return;
            }
        }
        self.again.push_back(address);
    }

    /// Accepts a client if there is one.
    pub(crate) fn accept_one(&mut self, place: usize) -> bool {
        let Some(listener) = self.listeners.get(place) else { return false };
        let balancer = Arc::clone(&listener.shared.balancer);
        match listener.socket.accept() {
            Ok((stream, client)) if self.has_spare() => self.admit(place, stream, client),
            Ok((stream, _)) => {
                reset(stream);
                self.count(&balancer, |cell| cell.refused_limit.add(1));
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
                reset(stream);
                self.count(&balancer, |cell| cell.refused_limit.add(1));
                true
            }
            Err(error) if error.kind() == ErrorKind::WouldBlock => false,
            Err(_) => {
                // Another thread was faster with the descriptor. The client waits; nobody spins.
                if let Ok(place) = u32::try_from(place) {
                    self.wheel.file(self.now + GRAIN, Timer::Accept { place });
                }
                false
            }
        };
        self.has_spare();
        gone_on
    }

    fn admit(&mut self, place: usize, stream: TcpStream, client: SocketAddr) {
        let Some(listener) = self.listeners.get_mut(place) else { return };
        listener.shared.refresh(&mut listener.cached);
        let (shared, targets) = (Arc::clone(&listener.shared), Arc::clone(&listener.cached.targets));
        let balancer = &shared.balancer;
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
        let total = self.plane.open.fetch_add(1, Relaxed);
        self.count(balancer, |cell| cell.opened.add(1));
        if total >= self.plane.most.load(Relaxed) {
            self.one_less(balancer);
            self.count(balancer, |cell| cell.refused_limit.add(1));
            return reset(stream);
        }
        let deadline = self.now + self.plane.connect_timeout;
        let attempt = Attempt { client, targets, tried: Vec::new(), node_port: 0, deadline };
        self.attempt(shared, stream, attempt);
    }

    /// Asks backends, one after the other, until one may answer.
    fn attempt(&mut self, listener: Arc<ListenerShared>, client: TcpStream, mut attempt: Attempt) {
        let targets = Arc::clone(&attempt.targets);
        while let Some(target) = targets.choose(&listener.port, attempt.client, &attempt.tried, self.now) {
            attempt.tried.push(target.backend.id);
            attempt.node_port = target.address.port();
            attempt.deadline = self.now + self.plane.connect_timeout;
            match TcpStream::connect(target.address) {
                Ok(backend) => return self.insert(listener, client, backend, target, attempt),
                Err(error) if out_of_descriptors(&error) => {
                    self.count(&listener.balancer, |cell| cell.refused_limit.add(1));
                    self.one_less(&listener.balancer);
                    return reset(client);
                }
                Err(error) => self.connect_failed(&listener, target, error.to_string()),
            }
        }
        self.count(&listener.balancer, |cell| cell.failed.add(1));
        self.one_less(&listener.balancer);
        reset(client);
    }

    fn connect_failed(&self, listener: &Arc<ListenerShared>, target: &Target, failure: String) {
        self.connect_failed_at(listener, target.backend.id, target.address.port(), failure);
        target.backend.failures.fetch_add(1, Relaxed);
    }

    fn connect_failed_at(
        &self,
        listener: &Arc<ListenerShared>,
        backend: u64,
        node_port: u16,
        failure: String,
    ) {
        let listener = Arc::clone(listener);
        self.notice(Notice::ConnectFailed { listener, backend, node_port, failure });
    }

    fn insert(
        &mut self,
        listener: Arc<ListenerShared>,
        client: TcpStream,
        mut backend: TcpStream,
        target: &Target,
        attempt: Attempt,
    ) {
        self.generation = next_generation(self.generation);
        let generation = self.generation;
        let place = self.connections.vacant_key();
        let token = Address::new(Source::Backend, place, generation).token();
        let interest = Interest::READABLE | Interest::WRITABLE;
        if self.poll.registry().register(&mut backend, token, interest).is_err() {
            self.count(&listener.balancer, |cell| cell.refused_limit.add(1));
            self.one_less(&listener.balancer);
            return reset(client);
        }
        target.backend.open.fetch_add(1, Relaxed);
        let idle = attempt.targets.idle;
        let wait = idle.map_or(self.plane.connect_timeout, |idle| idle.min(self.plane.connect_timeout));
        let connection = Connection {
            generation,
            client,
            backend,
            up: Direction::default(),
            down: Direction::default(),
            listener,
            target: Arc::clone(&target.backend),
            attempt: Some(Box::new(attempt)),
            latest: self.now,
            idle,
            spoke: false,
            tuned: false,
            watches_client_writes: false,
        };
        let place = self.connections.insert(connection);
        if let Ok(place) = u32::try_from(place) {
            self.wheel.file(self.now + wait, Timer::Connection { place, generation });
        }
    }

    /// Something has happened at one of the sockets of a connection.
    pub(crate) fn connection_event(&mut self, address: Address, event: &Event) {
        let Some(connection) = self.connections.get_mut(address.place) else { return };
        if connection.generation != address.generation {
            return;
        }
        if connection.attempt.is_some() {
            if event.is_error() || event.is_write_closed() || event.is_read_closed() {
                let error = connection.backend.take_error().ok().flatten();
                let failure = error.map_or_else(|| "connection closed".to_owned(), |error| error.to_string());
                self.try_next(address.place, failure);
            } else if event.is_writable() {
                self.established(address.place);
            }
            return;
        }
        let (from_it, to_it) = match address.source {
            Source::Client => (&mut connection.up, &mut connection.down),
            _ => (&mut connection.down, &mut connection.up),
        };
        let broken = event.is_error();
        from_it.readable |= event.is_readable() || event.is_read_closed() || broken;
        from_it.ending |= event.is_read_closed();
        to_it.writable |= event.is_writable();
        self.pump(address.place, address.generation);
        if broken && self.connections.get(address.place).is_some_and(|c| c.generation == address.generation) {
            // What could be passed on was. The rest would hide that this side has been reset.
            self.drop_connection(address.place, true);
        }
    }

    fn established(&mut self, place: usize) {
        let Some(connection) = self.connections.get_mut(place) else { return };
        let Some(attempt) = connection.attempt.take() else { return };
        connection.target.connections.fetch_add(1, Relaxed);
        connection.latest = self.now;
        connection.up.writable = true;
        connection.down.writable = true;
        // Most clients speak first, and have spoken by now.
        connection.up.readable = true;
        let header =
            proxy_header::encode(attempt.targets.proxy_protocol, attempt.client, connection.listener.bound);
        if !header.is_empty() {
            connection.up.send_first(header);
            connection.tune();
        }
        let generation = connection.generation;
        let listener = Arc::clone(&connection.listener);
        self.count(&listener.balancer, |cell| cell.accepted.add(1));
        self.pump(place, generation);
        let Some(connection) = self.connections.get_mut(place).filter(|c| c.generation == generation) else {
            return;
        };
        // Only now, so that nothing is announced that was read already.
        let interest = if connection.watches_client_writes {
            Interest::READABLE | Interest::WRITABLE
        } else {
            Interest::READABLE
        };
        let token = Address::new(Source::Client, place, generation).token();
        if self.poll.registry().register(&mut connection.client, token, interest).is_err() {
            self.drop_connection(place, true);
        }
    }

    /// The backend of a connection did not answer: the next one is asked.
    fn try_next(&mut self, place: usize, failure: String) {
        let Some(mut connection) = self.connections.try_remove(place) else { return };
        let Some(attempt) = connection.attempt.take() else { return };
        connection.target.open.fetch_sub(1, Relaxed);
        connection.target.failures.fetch_add(1, Relaxed);
        self.connect_failed_at(&connection.listener, connection.target.id, attempt.node_port, failure);
        self.attempt(connection.listener, connection.client, *attempt);
    }

    /// Moves bytes both ways, as far as a share goes.
    pub(crate) fn pump(&mut self, place: usize, generation: u32) {
        let Some(connection) = self.connections.get_mut(place) else { return };
        if connection.generation != generation || connection.attempt.is_some() {
            return;
        }
        if connection.spoke && connection.up.readable && !connection.up.ending {
            connection.tune();
        }
        let Connection { client, backend, up, down, .. } = connection;
        let sent = up.pump(client, backend, &mut self.tools, down.is_done());
        let received = down.pump(backend, client, &mut self.tools, up.is_done());
        let (Ok(sent), Ok(received)) = (sent, received) else { return self.drop_connection(place, true) };
        let is_done = up.is_done() && down.is_done();
        if sent.bytes + received.bytes > 0 {
            connection.latest = self.now;
            connection.spoke |= sent.bytes > 0;
            if sent.bytes > MESSAGE {
                connection.tune();
            }
            let balancer: &BalancerShared = &connection.listener.balancer;
            super::shared::count(&self.plane, balancer, self.number, |cell| {
                cell.bytes_in.add_len(sent.bytes);
                cell.bytes_out.add_len(received.bytes);
            });
        }
        if is_done {
            return self.drop_connection(place, false);
        }
        if !connection.down.writable && !mem::replace(&mut connection.watches_client_writes, true) {
            let token = Address::new(Source::Client, place, generation).token();
            let interest = Interest::READABLE | Interest::WRITABLE;
            // Before it is registered at all, this fails, and it will be registered for both.
            let _ = self.poll.registry().reregister(&mut connection.client, token, interest);
        }
        if sent.more || received.more {
            self.again.push_back(Address::new(Source::Client, place, generation));
        }
    }

    /// A connection may have waited for too long.
    pub(crate) fn connection_timer(&mut self, place: usize, generation: u32) {
        let Some(connection) = self.connections.get(place).filter(|c| c.generation == generation) else {
            return;
        };
        let due = match (&connection.attempt, connection.idle) {
            (Some(attempt), _) => attempt.deadline,
            (None, Some(idle)) => connection.latest + idle,
            (None, None) => return,
        };
        if due > self.now {
            if let Ok(place) = u32::try_from(place) {
                self.wheel.file(due, Timer::Connection { place, generation });
            }
        } else if connection.attempt.is_some() {
            self.try_next(place, "connection attempt timed out".to_owned());
        } else {
            self.drop_connection(place, false);
        }
    }

    /// Ends a connection.
    pub(crate) fn drop_connection(&mut self, place: usize, with_reset: bool) {
        let Some(mut connection) = self.connections.try_remove(place) else { return };
        if with_reset {
            reset_on_close(&connection.client);
            reset_on_close(&connection.backend);
        }
        connection.up.release(&mut self.tools);
        connection.down.release(&mut self.tools);
        connection.target.open.fetch_sub(1, Relaxed);
        self.one_less(&connection.listener.balancer);
    }
}

/// Neither this process nor the system has any left.
pub(crate) fn out_of_descriptors(error: &io::Error) -> bool {
    let code = |errno: rustix::io::Errno| Some(errno.raw_os_error());
    let of = error.raw_os_error();
    of == code(rustix::io::Errno::MFILE) || of == code(rustix::io::Errno::NFILE)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lack_of_descriptors_is_known_by_its_number() {
        for (errno, want) in [
            (rustix::io::Errno::MFILE, true),
            (rustix::io::Errno::NFILE, true),
            (rustix::io::Errno::AGAIN, false),
        ] {
            assert_eq!(out_of_descriptors(&io::Error::from(errno)), want, "CL-88 {errno}");
        }
    }
}
