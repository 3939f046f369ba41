//! Simulated surroundings for cloudberth: an embedded Kubernetes API and simulated clouds, in memory for tests and on a
//! port for people.
//!
//! Nothing here asks the machine for the time or for chance: both are handed in as [`Surroundings`].

mod edge;
mod port;
mod surroundings;

pub mod cloudscale;
pub mod kube;

pub use edge::{Answering, Behind, Broken, Edge};
pub use surroundings::Surroundings;
