//! Bytes from one socket to the other, in one direction.
//!
//! A direction that is quiet holds no buffer. What arrives is read into the buffer of the worker and written at once; only
//! what the other side does not take yet is kept, and nothing more is read until it is gone. Once whole buffers arrive one
//! after the other, the kernel moves the bytes itself.

use std::{
    io::{self, ErrorKind, Read, Write},
    net::Shutdown,
};

use mio::net::TcpStream;

use super::pipes::{PIPE_SIZE, Pipe, Pipes};

/// How much one direction moves before others get their turn.
const SHARE: usize = 8 * PIPE_SIZE;
/// So many whole buffers in a row make a direction bulky.
const BULKY: u8 = 2;
/// Less than this at a time is cheaper to copy.
const TRICKLE: usize = PIPE_SIZE / 4;

/// What a worker lends to the connection that it works on.
#[derive(Debug)]
pub(crate) struct Tools {
    pub(crate) buffer: Box<[u8]>,
    pub(crate) pipes: Pipes,
}

impl Default for Tools {
    fn default() -> Self {
        Self { buffer: vec![0; PIPE_SIZE].into_boxed_slice(), pipes: Pipes::default() }
    }
}

/// What the receiver has not taken yet.
#[derive(Debug)]
enum Leftover {
    Bytes { bytes: Box<[u8]>, taken: usize },
    Pipe(Pipe),
}

/// One direction of a connection.
#[expect(clippy::struct_excessive_bools, reason = "readiness is a set of facts, not a state")]
#[derive(Debug, Default)]
pub(crate) struct Direction {
    /// The sender may have something to read.
    pub(crate) readable: bool,
    /// The receiver may take something.
    pub(crate) writable: bool,
    /// The sender has said that it is at its end, maybe behind bytes that are still to be read.
    pub(crate) ending: bool,
    /// The sender's end was read.
    ended: bool,
    /// The receiver was told.
    told: bool,
    whole_buffers: u8,
    rest: Option<Box<Leftover>>,
}

/// What became of bytes that were offered to a receiver that may not have answered yet.
#[derive(Debug)]
pub(crate) enum Offer {
    /// It has answered. What it has not taken is kept, also if it has reset the connection since: the next write meets that.
    Answered,
    /// There were none, or it has not answered; they are kept for it.
    Waits,
    /// It does not answer; they are kept for another one.
    Refused(io::Error),
    /// The sender is gone.
    NobodyAsks,
}

/// What a pump has done.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Pumped {
    pub(crate) bytes: usize,
    /// There may be more to do at once: the share was used up.
    pub(crate) more: bool,
}

impl Direction {
    /// What a client is about to send: most speak first, and soon.
    pub(crate) fn of_newcomer() -> Self {
        Self { readable: true, ..Self::default() }
    }

    /// Everything was passed on, the end included.
    pub(crate) fn is_done(&self) -> bool {
        self.told
    }

    /// Puts bytes before everything else that is sent.
    pub(crate) fn send_first(&mut self, bytes: Vec<u8>) {
        if !bytes.is_empty() {
            self.rest = Some(Box::new(Leftover::Bytes { bytes: bytes.into_boxed_slice(), taken: 0 }));
        }
    }

    /// Bytes wait for the receiver.
    pub(crate) fn keeps_bytes(&self) -> bool {
        self.rest.is_some()
    }

    /// Reads once, and has the receiver take it if it can. Says how much was read.
    pub(crate) fn offer(
        &mut self,
        from: &mut TcpStream,
        to: &mut TcpStream,
        tools: &mut Tools,
    ) -> (usize, Offer) {
        let read = match from.read(&mut tools.buffer) {
            Ok(0) => {
                self.ended = true;
                return (0, Offer::Waits);
            }
            Ok(read) => read,
            Err(error) if is_passing(&error) => return (0, Offer::Waits),
            Err(_) => return (0, Offer::NobodyAsks),
        };
        // What comes after it is announced when the sender is watched.
        self.readable = read == tools.buffer.len();
        let bytes = tools.buffer.get(..read).unwrap_or_default();
        let (taken, offer) = match to.write(bytes) {
            Ok(taken) => (taken, Offer::Answered),
            Err(error) if is_reset(&error) => (0, Offer::Answered),
            Err(error) if is_passing(&error) || error.kind() == ErrorKind::NotConnected => (0, Offer::Waits),
            Err(error) => (0, Offer::Refused(error)),
        };
        self.keep(bytes.get(taken..).unwrap_or_default());
        (read, offer)
    }

    /// Keeps bytes that the receiver has not taken.
    fn keep(&mut self, bytes: &[u8]) {
        if !bytes.is_empty() {
            self.rest = Some(Box::new(Leftover::Bytes { bytes: bytes.into(), taken: 0 }));
        }
    }

    /// Gives a pipe back.
    pub(crate) fn release(&mut self, tools: &mut Tools) {
        if let Some(Leftover::Pipe(pipe)) = self.rest.take().map(|rest| *rest) {
            tools.pipes.give_back(pipe);
        }
    }

    /// Moves bytes as long as there are some, the receiver takes them and the share lasts. An error means that one of the
    /// sockets is broken; the other one must be reset then. Once both directions are done, both sockets must be closed.
    pub(crate) fn pump(
        &mut self,
        from: &mut TcpStream,
        to: &mut TcpStream,
        tools: &mut Tools,
        other_is_done: bool,
    ) -> (Pumped, io::Result<()>) {
        let mut pumped = Pumped::default();
        let result = self.move_bytes(from, to, tools, other_is_done, &mut pumped);
        (pumped, result)
    }

    fn move_bytes(
        &mut self,
        from: &mut TcpStream,
        to: &mut TcpStream,
        tools: &mut Tools,
        other_is_done: bool,
        pumped: &mut Pumped,
    ) -> io::Result<()> {
        loop {
            if self.rest.is_some() && !(self.writable && self.flush(to, tools)?) {
                return Ok(());
            }
            if self.ended && !self.told {
                self.told = true;
                // When nothing is left to do in the other direction either, closing the socket says the same.
                if !other_is_done {
                    // The receiver may be gone by now; that shows when something is read from it.
                    let _ = to.shutdown(Shutdown::Write);
                }
            }
            if self.ended || !self.readable || !self.writable {
                return Ok(());
            }
            if pumped.bytes >= SHARE {
                pumped.more = true;
                return Ok(());
            }
            pumped.bytes += if self.whole_buffers >= BULKY {
                self.splice(from, to, tools)?
            } else {
                self.copy(from, to, tools)?
            };
        }
    }

    fn copy(&mut self, from: &mut TcpStream, to: &mut TcpStream, tools: &mut Tools) -> io::Result<usize> {
        let read = match from.read(&mut tools.buffer) {
            Ok(0) => {
                self.ended = true;
                return Ok(0);
            }
            Ok(read) => read,
            Err(error) => return self.not_readable(error),
        };
        if read == tools.buffer.len() {
            self.whole_buffers = self.whole_buffers.saturating_add(1);
        } else {
            self.whole_buffers = 0;
            // All was read. More will be announced, except for an end that was announced already.
            self.readable = self.ending;
        }
        let bytes = tools.buffer.get(..read).unwrap_or_default();
        let taken = match to.write(bytes) {
            Ok(taken) => taken,
            Err(error) if is_passing(&error) => 0,
            Err(error) => return Err(error),
        };
        self.keep(bytes.get(taken..).unwrap_or_default());
        Ok(read)
    }

    fn splice(&mut self, from: &mut TcpStream, to: &mut TcpStream, tools: &mut Tools) -> io::Result<usize> {
        let Some(mut pipe) = tools.pipes.take() else { return self.copy(from, to, tools) };
        let filled = pipe.fill(&*from);
        let moved = match filled {
            Ok(0) => {
                self.ended = true;
                tools.pipes.give_back(pipe);
                return Ok(0);
            }
            Ok(moved) => moved,
            Err(error) => {
                tools.pipes.give_back(pipe);
                return self.not_readable(error);
            }
        };
        if moved < TRICKLE {
            self.whole_buffers = 0;
        }
        match pipe.empty(&*to) {
            Ok(_) => {}
            Err(error) if is_passing(&error) => {}
            Err(error) => {
                tools.pipes.give_back(pipe);
                return Err(error);
            }
        }
        if pipe.held() == 0 {
            tools.pipes.give_back(pipe);
        } else {
            self.rest = Some(Box::new(Leftover::Pipe(pipe)));
        }
        Ok(moved)
    }

    fn not_readable(&mut self, error: io::Error) -> io::Result<usize> {
        match error.kind() {
            ErrorKind::WouldBlock => self.readable = false,
            ErrorKind::Interrupted => {}
            _ => return Err(error),
        }
        Ok(0)
    }

    /// Writes what was kept; whether all of it is gone.
    fn flush(&mut self, to: &mut TcpStream, tools: &mut Tools) -> io::Result<bool> {
        let Some(rest) = &mut self.rest else { return Ok(true) };
        loop {
            let written = match &mut **rest {
                Leftover::Bytes { bytes, taken } => {
                    let left = bytes.get(*taken..).unwrap_or_default();
                    if left.is_empty() {
                        break;
                    }
                    to.write(left).inspect(|more| *taken += more)
                }
                Leftover::Pipe(pipe) if pipe.held() == 0 => break,
                Leftover::Pipe(pipe) => pipe.empty(&*to),
            };
            match written {
                Ok(_) => {}
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) if error.kind() == ErrorKind::WouldBlock => {
                    self.writable = false;
                    return Ok(false);
                }
                Err(error) => return Err(error),
            }
        }
        self.release(tools);
        Ok(true)
    }
}

/// Nothing is wrong; it may go on later.
fn is_passing(error: &io::Error) -> bool {
    matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted)
}

/// The other side had answered, and has reset the connection since. Where nobody listens, it is refused instead.
pub(crate) fn is_reset(error: &io::Error) -> bool {
    matches!(error.kind(), ErrorKind::ConnectionReset | ErrorKind::BrokenPipe)
}

#[cfg(test)]
mod tests {
    use std::net::{self, SocketAddr, TcpListener};

    use super::*;

    fn listener() -> (TcpListener, SocketAddr) {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let at = listener.local_addr().unwrap();
        (listener, at)
    }

    /// A connection, the end of the worker first.
    fn pair() -> (TcpStream, net::TcpStream) {
        let (listener, at) = listener();
        let theirs = net::TcpStream::connect(at).unwrap();
        let (ours, _) = listener.accept().unwrap();
        ours.set_nonblocking(true).unwrap();
        (TcpStream::from_std(ours), theirs)
    }

    #[test]
    fn what_one_backend_does_not_take_goes_to_the_next() {
        let (mut tools, mut up) = (Tools::default(), Direction::of_newcomer());
        let (mut client, mut asks) = pair();
        asks.write_all(b"hello").unwrap();
        let closed = listener().1;
        let mut nobody = TcpStream::connect(closed).unwrap();
        let (read, offer) = up.offer(&mut client, &mut nobody, &mut tools);
        assert!(
            matches!(&offer, Offer::Refused(why) if why.kind() == ErrorKind::ConnectionRefused),
            "CL-51 {offer:?}"
        );
        assert!(read == 5 && up.keeps_bytes(), "CL-51 nothing is lost");
        let (mut backend, mut serves) = pair();
        up.writable = true;
        up.pump(&mut client, &mut backend, &mut tools, false).1.unwrap();
        let mut got = [0; 5];
        serves.read_exact(&mut got).unwrap();
        assert_eq!(&got, b"hello", "CL-51");
    }

    #[test]
    fn an_offer_tells_what_became_of_it() {
        let mut tools = Tools::default();
        let ((mut client, mut asks), (mut backend, mut serves)) = (pair(), pair());
        let mut up = Direction::of_newcomer();
        assert!(
            matches!(up.offer(&mut client, &mut backend, &mut tools), (0, Offer::Waits)),
            "it says nothing yet"
        );
        assert!(up.readable, "it may have spoken when the backend answers");
        asks.write_all(b"x").unwrap();
        assert!(matches!(up.offer(&mut client, &mut backend, &mut tools), (1, Offer::Answered)));
        assert!(!up.readable && !up.keeps_bytes(), "what comes next is announced");
        serves.read_exact(&mut [0]).unwrap();
        asks.shutdown(Shutdown::Write).unwrap();
        let mut up = Direction::of_newcomer();
        assert!(
            matches!(up.offer(&mut client, &mut backend, &mut tools), (0, Offer::Waits)),
            "CL-54 its end waits too"
        );
        let (mut client, asks) = pair();
        socket2::SockRef::from(&asks).set_linger(Some(std::time::Duration::ZERO)).unwrap();
        drop(asks);
        let offer = Direction::of_newcomer().offer(&mut client, &mut backend, &mut tools);
        assert!(matches!(offer, (0, Offer::NobodyAsks)), "CL-85 {offer:?}");
    }
}
