//! Moving bytes between two sockets inside the kernel.
//!
//! `splice` needs a pipe between the sockets. Pipes are kept for the next connection: making one costs more than it saves.

#[cfg(not(target_os = "linux"))]
pub(crate) use elsewhere::{Pipe, Pipes};
#[cfg(target_os = "linux")]
pub(crate) use linux::{Pipe, Pipes};

/// How much one move takes at most: what a pipe holds unless somebody changes it.
pub(crate) const PIPE_SIZE: usize = 64 * 1024;

#[cfg(target_os = "linux")]
mod linux {
    use std::{
        io,
        os::fd::{AsFd, OwnedFd},
    };

    use rustix::pipe::{PipeFlags, SpliceFlags, pipe_with, splice};

    use super::PIPE_SIZE;

    /// The kernel lets a user without privileges have about a thousand full-sized pipes in all.
    const MOST: usize = 128;

    /// The pipes of one worker.
    #[derive(Debug, Default)]
    pub(crate) struct Pipes {
        spare: Vec<Pipe>,
        made: usize,
    }

    /// A pipe, and how many bytes are in it.
    #[derive(Debug)]
    pub(crate) struct Pipe {
        read: OwnedFd,
        write: OwnedFd,
        held: usize,
    }

    impl Pipes {
        /// An empty pipe, unless very many are in use.
        pub(crate) fn take(&mut self) -> Option<Pipe> {
            if let Some(pipe) = self.spare.pop() {
                return Some(pipe);
            }
            if self.made >= MOST {
                return None;
            }
            let (read, write) = pipe_with(PipeFlags::CLOEXEC | PipeFlags::NONBLOCK).ok()?;
            self.made += 1;
            Some(Pipe { read, write, held: 0 })
        }

        /// Takes a pipe back. One with bytes in it is of no use to others and is closed.
        pub(crate) fn give_back(&mut self, pipe: Pipe) {
            if pipe.held == 0 {
                self.spare.push(pipe);
            } else {
                self.made -= 1;
            }
        }
    }

    impl Pipe {
        pub(crate) fn held(&self) -> usize {
            self.held
        }

        /// Takes what the socket has into the pipe, which must be empty. No bytes mean that the other side has ended.
        pub(crate) fn fill(&mut self, from: impl AsFd) -> io::Result<usize> {
            let moved = splice(from, None, &self.write, None, PIPE_SIZE, SpliceFlags::NONBLOCK)?;
            self.held += moved;
            Ok(moved)
        }

        /// Gives the socket what is in the pipe, as far as it takes it.
        pub(crate) fn empty(&mut self, to: impl AsFd) -> io::Result<usize> {
            let moved = splice(&self.read, None, to, None, self.held, SpliceFlags::NONBLOCK)?;
            self.held = self.held.saturating_sub(moved);
            Ok(moved)
        }
    }
}

#[cfg(not(target_os = "linux"))]
mod elsewhere {
    use std::{io, os::fd::AsFd};

    /// There are none: everything is copied.
    #[derive(Debug, Default)]
    pub(crate) struct Pipes;

    /// Cannot be made.
    #[derive(Debug)]
    pub(crate) enum Pipe {}

    impl Pipes {
        pub(crate) fn take(&mut self) -> Option<Pipe> {
            None
        }

        pub(crate) fn give_back(&mut self, pipe: Pipe) {
            match pipe {}
        }
    }

    impl Pipe {
        pub(crate) fn held(&self) -> usize {
            match *self {}
        }

        pub(crate) fn fill(&mut self, _from: impl AsFd) -> io::Result<usize> {
            match *self {}
        }

        pub(crate) fn empty(&mut self, _to: impl AsFd) -> io::Result<usize> {
            match *self {}
        }
    }
}
