//! TCP: from a client that was let in to the last byte.

use std::{
    io::{self, ErrorKind},
    mem,
    sync::{Arc, atomic::Ordering::Relaxed},
};

use mio::{Interest, event::Event, net::TcpStream};

use super::{
    accept::Admitted,
    connection::{Attempt, Connection, reset, reset_on_close},
    inbox::Notice,
    relay::{Direction, Offer, Pumped, is_reset},
    shared::{BalancerShared, ListenerShared, Target},
    token::{Address, Source, next_generation},
    worker::{Timer, Worker},
};
use crate::plane::{config::ProxyProtocol, proxy_header};

/// What is longer than this may have been written in pieces.
const MESSAGE: usize = 16 * 1024;

/// A client that has no backend yet.
struct Newcomer {
    listener: Arc<ListenerShared>,
    stream: TcpStream,
    /// What it has said so far, if no backend has taken that.
    up: Direction,
    /// How much it has said so far.
    said: usize,
    attempt: Attempt,
}

impl Worker {
    /// Serves a client that was let in.
    pub(crate) fn serve(&mut self, admitted: Admitted) {
        let Admitted { listener, targets, stream, client } = admitted;
        self.count(&listener.balancer, |cell| cell.opened.add(1));
        let up = Direction::of_newcomer();
        let deadline = self.now + self.plane.connect_timeout;
        let attempt = Attempt { client, targets, tried: Vec::new(), node_port: 0, deadline };
        self.attempt(Newcomer { listener, stream, up, said: 0, attempt });
    }

    /// Asks backends, one after the other, until one may answer.
    fn attempt(&mut self, mut newcomer: Newcomer) {
        let listener = Arc::clone(&newcomer.listener);
        let targets = Arc::clone(&newcomer.attempt.targets);
        loop {
            let Newcomer { attempt, .. } = &mut newcomer;
            let Some(target) = targets.choose(&listener.port, attempt.client, &attempt.tried, self.now)
            else {
                break;
            };
            attempt.tried.push(target.backend.id);
            attempt.node_port = target.address.port();
            attempt.deadline = self.now + self.plane.connect_timeout;
            let failure = match TcpStream::connect(target.address) {
                Ok(mut backend) => match self.offer(&mut newcomer, &mut backend) {
                    Offer::Answered => return self.insert(newcomer, backend, target, true),
                    Offer::Waits => return self.insert(newcomer, backend, target, false),
                    Offer::Refused(why) => why,
                    Offer::NobodyAsks => {
                        self.one_less(&listener.balancer);
                        reset(backend);
                        return reset(newcomer.stream);
                    }
                },
                Err(error) if out_of_descriptors(&error) => {
                    self.count(&listener.balancer, |cell| cell.refused_limit.add(1));
                    self.one_less(&listener.balancer);
                    return reset(newcomer.stream);
                }
                Err(error) => error,
            };
            self.connect_failed(&listener, target, failure.to_string());
        }
        self.count(&listener.balancer, |cell| cell.failed.add(1));
        self.one_less(&listener.balancer);
        reset(newcomer.stream);
    }

    /// Offers the backend what the client has said already. One on the same computer has often answered by now, and then
    /// nobody has to wait for its answer to be announced.
    fn offer(&mut self, newcomer: &mut Newcomer, backend: &mut TcpStream) -> Offer {
        let Newcomer { listener, stream, up, said, attempt } = newcomer;
        // Something has to go before it, or a backend that did not answer has it in line already.
        if attempt.targets.proxy_protocol != ProxyProtocol::None || up.keeps_bytes() {
            return Offer::Waits;
        }
        let (read, offer) = up.offer(stream, backend, &mut self.tools);
        *said += read;
        self.count(&listener.balancer, |cell| cell.bytes_in.add_len(read));
        offer
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

    /// Keeps a client together with its backend, which has `answered` or may still do so.
    fn insert(&mut self, newcomer: Newcomer, mut backend: TcpStream, target: &Target, answered: bool) {
        let Newcomer { listener, stream: client, up, said, attempt } = newcomer;
        self.generation = next_generation(self.generation);
        let generation = self.generation;
        let place = self.connections.vacant_key();
        let token = Address::new(Source::Backend, place, generation).token();
        let watches_backend_writes = !answered || up.keeps_bytes();
        let interest = interest(watches_backend_writes);
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
            up,
            down: Direction::default(),
            listener,
            target: Arc::clone(&target.backend),
            attempt: Some(Box::new(attempt)),
            latest: self.now,
            idle,
            said,
            tuned: false,
            kept_alive: false,
            watches_client_writes: false,
            watches_backend_writes,
            queued: false,
            broken: false,
        };
        let place = self.connections.insert(connection);
        if let Ok(place) = u32::try_from(place) {
            self.wheel.file(self.now + wait, Timer::Connection { place, generation });
        }
        if answered {
            self.established(place);
        }
    }

    /// Something has happened at one of the sockets of a connection.
    pub(crate) fn connection_event(&mut self, address: Address, event: &Event) {
        let Some(connection) = self.connections.get_mut(address.place) else { return };
        if connection.generation != address.generation {
            return;
        }
        if connection.attempt.is_some() {
            if event.is_error() || event.is_write_closed() {
                let error = connection.backend.take_error().ok().flatten();
                if error.as_ref().is_some_and(is_reset) {
                    // It had answered by then, and may have said something.
                    connection.down.readable = true;
                    connection.broken = true;
                    return self.established(address.place);
                }
                let failure = error.map_or_else(|| "connection closed".to_owned(), |error| error.to_string());
                self.try_next(address.place, failure);
            } else if event.is_writable() {
                // A backend that speaks first may have done so by now, and even be at its end: that is announced once.
                connection.down.readable = event.is_readable() || event.is_read_closed();
                connection.down.ending = event.is_read_closed();
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
        if connection.said > MESSAGE {
            connection.tune();
        }
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
        let interest = interest(connection.watches_client_writes);
        let token = Address::new(Source::Client, place, generation).token();
        if self.poll.registry().register(&mut connection.client, token, interest).is_err() {
            self.drop_connection(place, true);
        }
    }

    /// The backend of a connection did not answer: the next one is asked.
    fn try_next(&mut self, place: usize, failure: String) {
        let Some(connection) = self.connections.try_remove(place) else { return };
        let Connection { client, listener, up, said, attempt: Some(attempt), target, .. } = connection else {
            return;
        };
        target.open.fetch_sub(1, Relaxed);
        target.failures.fetch_add(1, Relaxed);
        self.connect_failed_at(&listener, target.id, attempt.node_port, failure);
        self.attempt(Newcomer { listener, stream: client, up, said, attempt: *attempt });
    }

    /// Does what a connection was to do after the others.
    pub(crate) fn pump_on(&mut self, place: usize, generation: u32) {
        if let Some(connection) = self.connections.get_mut(place).filter(|c| c.generation == generation) {
            connection.queued = false;
        }
        self.pump(place, generation);
    }

    /// Moves bytes both ways, as far as a share goes.
    pub(crate) fn pump(&mut self, place: usize, generation: u32) {
        let Some(connection) = self.connections.get_mut(place) else { return };
        if connection.generation != generation || connection.attempt.is_some() {
            return;
        }
        if connection.said > 0 && connection.up.readable && !connection.up.ending {
            connection.tune();
        }
        let Connection { client, backend, up, down, broken, .. } = connection;
        let (sent, sending) = if *broken {
            (Pumped::default(), Err(ErrorKind::ConnectionReset.into()))
        } else {
            up.pump(client, backend, &mut self.tools, down.is_done())
        };
        if sending.is_err() {
            // A backend that has closed for good may have said why, and that may not have been announced yet. It must not
            // look like a proper end.
            *broken = true;
            down.readable = true;
        }
        let (received, receiving) = down.pump(backend, client, &mut self.tools, up.is_done() || *broken);
        let is_done = up.is_done() && down.is_done();
        if sent.bytes + received.bytes > 0 {
            connection.latest = self.now;
            connection.said = connection.said.saturating_add(sent.bytes);
            if sent.bytes > MESSAGE {
                connection.tune();
            }
            let balancer: &BalancerShared = &connection.listener.balancer;
            super::shared::count(&self.plane, balancer, self.number, |cell| {
                cell.bytes_in.add_len(sent.bytes);
                cell.bytes_out.add_len(received.bytes);
            });
        }
        if sending.is_err() || receiving.is_err() {
            return self.drop_connection(place, true);
        }
        if is_done {
            return self.drop_connection(place, false);
        }
        if !connection.down.writable && !mem::replace(&mut connection.watches_client_writes, true) {
            let token = Address::new(Source::Client, place, generation).token();
            // Before it is registered at all, this fails, and it will be registered for both.
            let _ = self.poll.registry().reregister(&mut connection.client, token, interest(true));
        }
        if !connection.up.writable && !mem::replace(&mut connection.watches_backend_writes, true) {
            let token = Address::new(Source::Backend, place, generation).token();
            let _ = self.poll.registry().reregister(&mut connection.backend, token, interest(true));
        }
        if (sent.more || received.more) && !mem::replace(&mut connection.queued, true) {
            self.again.push_back(Address::new(Source::Client, place, generation));
        }
    }

    /// A connection may have waited for too long.
    pub(crate) fn connection_timer(&mut self, place: usize, generation: u32) {
        let connection = self.connections.get_mut(place).filter(|c| c.generation == generation);
        let Some(connection) = connection else { return };
        if connection.attempt.is_none() {
            connection.keep_alive();
        }
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

/// What a socket is watched for.
fn interest(writes: bool) -> Interest {
    if writes { Interest::READABLE | Interest::WRITABLE } else { Interest::READABLE }
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
