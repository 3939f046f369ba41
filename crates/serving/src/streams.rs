//! The requests of one HTTP/2 connection.

use std::sync::{Arc, Mutex, PoisonError};

use hyper::rt::Executor;
use tokio::task::JoinSet;

/// Runs the streams of one connection concurrently and drops them with it.
#[derive(Clone, Debug, Default)]
pub(crate) struct Streams(Arc<Mutex<JoinSet<()>>>);

impl<F> Executor<F> for Streams
where
    F: Future<Output = ()> + Send + 'static,
{
    fn execute(&self, stream: F) {
        let mut running = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        while running.try_join_next().is_some() {}
        running.spawn(stream);
    }
}
