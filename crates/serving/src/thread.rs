//! A thread of its own for the port.

use tokio::{
    runtime::{Builder, Handle},
    sync::oneshot,
    task::JoinHandle,
};

use crate::error::{Error, Result};

/// A thread with its own runtime, so that handshakes and requests of strangers never delay the thread that renews the
/// Lease. Dropping it ends everything on it.
#[derive(Debug)]
pub struct Thread {
    handle: Handle,
    _alive: oneshot::Sender<()>,
}

impl Thread {
    /// Starts the thread and its runtime.
    pub fn start(name: &str) -> Result<Self> {
        let cannot = |error: std::io::Error| Error::new(format!("no thread for the port: {error}"));
        let runtime = Builder::new_current_thread().enable_all().build().map_err(cannot)?;
        let handle = runtime.handle().clone();
        let (alive, over) = oneshot::channel::<()>();
        let run = move || drop(runtime.block_on(over));
        std::thread::Builder::new().name(name.to_owned()).spawn(run).map_err(cannot)?;
        Ok(Self { handle, _alive: alive })
    }

    /// Runs `work` on the thread.
    pub fn spawn<F>(&self, work: F) -> JoinHandle<F::Output>
    where
        F: Future<Output: Send + 'static> + Send + 'static,
    {
        self.handle.spawn(work)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn what_runs_there_holds_up_nothing_here() {
        let thread = Thread::start("port").unwrap();
        let (let_go, held) = std::sync::mpsc::channel::<()>();
        let blocked = thread
            .spawn(async move { (held.recv().is_ok(), std::thread::current().name().map(str::to_owned)) });
        // Whoever waited for it here could never let it go.
        tokio::time::sleep(std::time::Duration::from_millis(1)).await;
        let_go.send(()).unwrap();
        assert_eq!(blocked.await.unwrap(), (true, Some("port".to_owned())), "L11-905");
        let forever = thread.spawn(std::future::pending::<()>());
        drop(thread);
        assert!(forever.await.unwrap_err().is_cancelled());
    }
}
