//! What every simulated server stands on: the embedded Kubernetes API and the simulated clouds.
//!
//! Nothing here asks the machine for the time or for chance: both are handed in as [`Surroundings`].

mod edge;
mod port;
mod surroundings;

pub use edge::{Answering, BODY_LIMIT, Behind, BoxError, Broken, Edge};
pub use port::accept;
pub use surroundings::Surroundings;
