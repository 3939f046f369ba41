//! What every controller stands on: watches over trimmed objects, keyed queues with workers, a writer that asks the
//! leader's claim, and events for people.
//!
//! Nothing here decides what is to be done with an object; nothing in the controllers speaks to the API server past
//! this crate.
//!
//! ```text
//!   watch ──► Informer (store, listeners) ──► WorkerPool (queue, workers) ──► a controller ──► Cluster, EventRecorder
//! ```

pub mod bug;
pub mod cluster;
pub mod election;
pub mod informer;
pub mod metrics;
pub mod object;
pub mod recorder;
pub mod rest;
pub mod single_flight;
mod store;
pub mod trouble;
mod watch;
pub mod worker_pool;

use std::sync::{Mutex, MutexGuard, PoisonError};

/// A panic while a lock was held is caught at the worker that met it; what it left behind is still usable.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
