//! What every controller uses: watches over trimmed objects, keyed queues with workers, writes that check the leader's
//! claim, and events.
//!
//! Nothing here decides what to do with an object, and the controllers talk to the API server only through this crate.
//!
//! ```text
//!   watch ──► Informer (store, listeners) ──► WorkerPool (queue, workers) ──► a controller ──► Cluster, EventRecorder ──► Writer
//! ```

pub mod api_error;
pub mod bug;
pub mod cluster;
pub mod connect;
pub mod dynamic;
pub mod election;
pub mod informer;
pub mod metrics;
pub mod object;
pub mod recorder;
pub mod rest;
pub mod scope;
pub mod single_flight;
mod store;
mod watch;
pub mod worker_pool;
pub mod writer;

use std::sync::{Mutex, MutexGuard, PoisonError};

/// Locks even after a panic, which is caught at its worker; the data is still usable.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
