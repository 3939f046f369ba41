//! Deterministic simulation: the whole program, twice, the embedded Kubernetes API and two clouds in one thread, in
//! virtual time, from one seed.
//!
//! A seed draws a [`Schedule`]: what people do, what goes wrong, when the leader changes. After the faults stop the world
//! must come to rest within a virtual deadline and stay there without a write; the laws are checked over the full log
//! of calls. The same seed gives the same log, to the byte, in any process.
//!
//! ```text
//!   schedule ──► world ──► two replicas of the manager ──► wire ──► embedded API ◄── people, kubelets
//!                                     └──► broken, perhaps ──► fake clouds `alpha` and `beta`
//!   witness (true time) ──► laws;   end: what is unfinished
//! ```

mod broken;
mod clock;
mod clouds;
mod draw;
mod laws;
mod people;
mod planned;
mod replica;
mod rest;
mod run;
mod schedule;
mod shrink;
mod touchy;
mod wire;
mod witness;
mod world;

use std::sync::{Mutex, MutexGuard, PoisonError};

pub use broken::Broken;
pub use run::{Account, run};
pub use schedule::Schedule;
pub use shrink::shrink;

/// A panic elsewhere leaves plain state behind that can still be looked at.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
