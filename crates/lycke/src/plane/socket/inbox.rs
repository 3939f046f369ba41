//! How workers and the coordinator reach each other.

use std::{
    io, mem,
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, Ordering},
    },
};

use mio::{Registry, Waker};
use tokio::sync::oneshot;

use super::{
    accept::Admitted,
    shared::{ListenerShared, lock},
    token::{Address, Source},
};

/// What the coordinator asks of a worker.
#[derive(Debug)]
pub(crate) enum Command {
    Listen {
        listener: Arc<ListenerShared>,
        socket: std::net::TcpListener,
    },
    ListenUdp {
        listener: Arc<ListenerShared>,
        socket: std::net::UdpSocket,
    },
    /// Stops listening; answered when the socket is closed.
    Close {
        listener: u64,
        closed: oneshot::Sender<()>,
    },
    /// The targets of a UDP listener have changed: flows that lead elsewhere end.
    Sweep {
        listener: u64,
    },
    /// Another worker has let a client in, and has more than enough of them.
    Serve(Box<Admitted>),
    /// Ends connections whose time to drain is over.
    Reset(Doomed),
    Stop,
}

/// Whose connections are reset.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Doomed {
    Backend(u64),
    Listener(u64),
    Balancer(u64),
    All,
}

/// What a worker tells the coordinator.
#[derive(Debug)]
pub(crate) enum Notice {
    /// A client could not be connected to a backend.
    ConnectFailed { listener: Arc<ListenerShared>, backend: u64, node_port: u16, failure: String },
    /// The plane is closing, and no connection is left.
    NoneLeft,
}

/// How a worker is reached.
#[derive(Debug)]
pub(crate) struct Inbox {
    commands: Mutex<Vec<Command>>,
    /// Nobody reads commands any more.
    gone: AtomicBool,
    waker: Waker,
}

impl Inbox {
    /// It is announced to this worker as [`Source::Inbox`].
    pub(crate) fn new(registry: &Registry) -> io::Result<Self> {
        let waker = Waker::new(registry, Address::new(Source::Inbox, 0, 0).token())?;
        Ok(Self { commands: Mutex::default(), gone: AtomicBool::new(false), waker })
    }

    /// Gives the command back if the worker is gone. Whoever would be answered by it is answered when it is dropped.
    pub(crate) fn send(&self, command: Command) -> Option<Command> {
        let mut commands = lock(&self.commands);
        // Under the lock, so that nothing is put in after the worker has looked for the last time.
        if self.is_gone() {
            return Some(command);
        }
        commands.push(command);
        drop(commands);
        // It fails only if the worker is gone by now, and then it has seen the command.
        let _ = self.waker.wake();
        None
    }

    pub(crate) fn is_gone(&self) -> bool {
        self.gone.load(Ordering::Relaxed)
    }

    /// What has come since the last time.
    pub(crate) fn take(&self) -> Vec<Command> {
        mem::take(&mut *lock(&self.commands))
    }

    /// Lets nothing in any more; what was left.
    pub(crate) fn close(&self) -> Vec<Command> {
        let mut commands = lock(&self.commands);
        self.gone.store(true, Ordering::Relaxed);
        mem::take(&mut *commands)
    }
}
