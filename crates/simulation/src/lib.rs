//! Deterministic simulation: a program, the embedded Kubernetes API and a cloud in one thread, in virtual time, from
//! one seed.
//!
//! A seed draws a [`Schedule`]: what people do, what goes wrong, when the leader changes. After the faults stop the world
//! must come to rest within a virtual deadline and stay there without a write; the laws are checked over the full log
//! of calls. The same seed gives the same log, to the byte, in any process.

mod clock;
mod laws;
mod pass;
mod program;
mod replica;
mod run;
mod schedule;
mod shrink;
mod wire;
mod witness;
mod world;

pub use program::Broken;
pub use run::{Account, run};
pub use schedule::Schedule;
pub use shrink::shrink;
