//! What is read and written, and in which order. It decides nothing.
//!
//! ```text
//!   Replica ── election, configuration, watches
//!      └─ Controllers ── a pass for each cluster, a pass for each quota, the sweep
//!            └─ Api ── one cluster: reads, and writes under the leader's claim
//! ```

mod api;
mod cluster;
mod config;
mod context;
mod controllers;
mod dry_run;
mod floating_ips;
mod helm;
mod inputs;
mod look;
mod memory;
mod quota;
mod replica;
mod stores;

pub use context::{Dial, Tokens};
pub use dry_run::{ClusterPlan, Plan};
pub use replica::{Ended, Parts, Replica};
pub use stores::Stores;

use api::{Api, Effects};
use context::Context;
use dry_run::dry_run;

use std::sync::{Mutex, MutexGuard, PoisonError};

/// Locks even after a panic, which is caught at its worker; the data is still usable.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
