//! The service as the whole of a process: it listens to signals.

use std::{future::Future, io};

use tokio::{
    net::TcpListener,
    signal::unix::{Signal, SignalKind, signal},
    sync::Notify,
};

use super::{follow, port::accept};
use crate::{api::Api, control::Control, vagrant::Vagrant};

/// How the service came to its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ended {
    /// Every connection has ended, or the drain was over.
    Drained,
    /// A second signal cut it short.
    AtOnce,
}

struct Signals {
    terminate: Signal,
    interrupt: Signal,
}

impl Signals {
    fn listen() -> io::Result<Self> {
        Ok(Self { terminate: signal(SignalKind::terminate())?, interrupt: signal(SignalKind::interrupt())? })
    }

    async fn next(&mut self) {
        tokio::select! {
            biased;
            _ = self.terminate.recv() => {}
            _ = self.interrupt.recv() => {}
        }
    }
}

/// Serves until SIGTERM or SIGINT. Then listeners are closed at once and connections may end; a second signal ends them.
/// SIGHUP reads the inventory again. `beside` runs along and is dropped at the end.
pub async fn run(
    control: &Control,
    api: Api,
    listener: TcpListener,
    vagrant: &dyn Vagrant,
    beside: impl Future<Output = ()>,
) -> io::Result<Ended> {
    let mut signals = Signals::listen()?;
    let hang_up = signal(SignalKind::hangup())?;
    let reload = Notify::new();
    let port = accept(api, listener, control.closing());
    let port = async {
        port.await;
        // The port ends first; the connections of load balancers may go on.
        std::future::pending::<()>().await;
    };
    let serving = async {
        tokio::join!(
            control.restore_and_say(),
            port,
            follow(control, vagrant, &reload),
            reload_on(hang_up, &reload),
            beside
        );
    };
    tokio::pin!(serving);
    tokio::select! {
        biased;
        () = signals.next() => {}
        () = &mut serving => {}
    }
    tracing::info!("service ends: listeners are closed, connections may finish");
    tokio::select! {
        biased;
        () = signals.next() => Ok(Ended::AtOnce),
        () = control.close() => Ok(Ended::Drained),
        () = &mut serving => Ok(Ended::Drained),
    }
}

async fn reload_on(mut hang_up: Signal, reload: &Notify) {
    while hang_up.recv().await.is_some() {
        reload.notify_one();
    }
}

impl Control {
    async fn restore_and_say(&self) {
        self.restore().await;
        tracing::info!(load_balancers = self.balancers(None).len(), "service is ready");
    }
}
