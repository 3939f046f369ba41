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

/// What a pump has done.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Pumped {
    pub(crate) bytes: usize,
    /// There may be more to do at once: the share was used up.
    pub(crate) more: bool,
}

impl Direction {
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
    ) -> io::Result<Pumped> {
        let mut pumped = Pumped::default();
        loop {
            if self.rest.is_some() && !(self.writable && self.flush(to, tools)?) {
                return Ok(pumped);
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
                return Ok(pumped);
            }
            if pumped.bytes >= SHARE {
                pumped.more = true;
                return Ok(pumped);
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
            Err(error) if error.kind() == ErrorKind::WouldBlock => 0,
            Err(error) if error.kind() == ErrorKind::Interrupted => 0,
            Err(error) => return Err(error),
        };
        let rest = bytes.get(taken..).unwrap_or_default();
        if !rest.is_empty() {
            self.rest = Some(Box::new(Leftover::Bytes { bytes: rest.into(), taken: 0 }));
        }
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
            Err(error) if error.kind() == ErrorKind::WouldBlock || error.kind() == ErrorKind::Interrupted => {
            }
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
