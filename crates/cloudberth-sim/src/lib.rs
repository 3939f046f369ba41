//! Simulated surroundings for cloudberth: an embedded Kubernetes API, in memory for tests and on a port for people.
//!
//! Nothing here asks the machine for the time or for chance: both are handed in as [`Surroundings`].

mod surroundings;

pub mod kube;

pub use surroundings::Surroundings;
