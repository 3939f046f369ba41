//! Which key is worked on next, and when a failed one comes back.
//!
//! [`WorkQueue`] hands a key to one worker at a time, combines all changes that arrive meanwhile into one further run, and
//! loses nothing. [`limiter`] says how long a failed key waits, [`policy`] turns the outcome of work into what the queue
//! does with its key. All of it is arithmetic over [`Tick`](crate::time::Tick): the shell sleeps, the queue never does.

pub mod limiter;
pub mod policy;
mod work;

#[cfg(test)]
mod model;

pub use limiter::ItemExponential;
pub use policy::{Requeue, requeue};
pub use work::{Added, Counters, Taken, WorkQueue};
