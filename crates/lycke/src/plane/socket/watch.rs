//! Sockets at which several clients may wait, in the event loop.
//!
//! On Linux such a socket is announced for as long as somebody waits at it, so that nobody has to ask once more whether that
//! was the last one; and of the workers that wait at one socket, the kernel wakes one. Elsewhere all of them are woken, once,
//! and have to ask until nobody is left.

#[cfg(not(target_os = "linux"))]
pub(crate) use elsewhere::{ANNOUNCED_AGAIN, unwatch, watch, watch_together};
#[cfg(target_os = "linux")]
pub(crate) use linux::{ANNOUNCED_AGAIN, unwatch, watch, watch_together};

#[cfg(target_os = "linux")]
mod linux {
    use std::{io, os::fd::AsFd};

    use mio::{Registry, Token};
    use rustix::event::epoll::{self, EventData, EventFlags};

    pub(crate) const ANNOUNCED_AGAIN: bool = true;

    fn add(registry: &Registry, socket: &impl AsFd, token: Token, flags: EventFlags) -> io::Result<()> {
        Ok(epoll::add(registry, socket, EventData::new_u64(token.0 as u64), flags)?)
    }

    /// Announces a socket that one worker has.
    pub(crate) fn watch(registry: &Registry, socket: &mut impl AsFd, token: Token) -> io::Result<()> {
        add(registry, socket, token, EventFlags::IN)
    }

    /// Announces a socket that all workers have to one of those that do nothing else.
    pub(crate) fn watch_together(
        registry: &Registry,
        socket: &mut impl AsFd,
        token: Token,
    ) -> io::Result<()> {
        add(registry, socket, token, EventFlags::IN | EventFlags::EXCLUSIVE)
    }

    /// Announces it no more. Closing it is not enough where other workers have it too.
    pub(crate) fn unwatch(registry: &Registry, socket: &mut impl AsFd) {
        // It fails if it was not announced, which is as well.
        let _ = epoll::delete(registry, &*socket);
    }
}

#[cfg(not(target_os = "linux"))]
mod elsewhere {
    use std::io;

    use mio::{Interest, Registry, Token, event::Source};

    pub(crate) const ANNOUNCED_AGAIN: bool = false;

    /// Announces a socket that one worker has.
    pub(crate) fn watch(registry: &Registry, socket: &mut impl Source, token: Token) -> io::Result<()> {
        registry.register(socket, token, Interest::READABLE)
    }

    /// Announces a socket that all workers have to all of them.
    pub(crate) fn watch_together(
        registry: &Registry,
        socket: &mut impl Source,
        token: Token,
    ) -> io::Result<()> {
        watch(registry, socket, token)
    }

    /// Announces it no more.
    pub(crate) fn unwatch(registry: &Registry, socket: &mut impl Source) {
        // It fails if it was not announced, which is as well.
        let _ = registry.deregister(socket);
    }
}
