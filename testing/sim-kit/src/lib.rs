//! What every simulated server stands on: the embedded Kubernetes API and the simulated clouds.
//!
//! Nothing here asks the machine for the time or for chance: both are handed in as [`Surroundings`].

mod body;
mod calls;
mod control;
mod edge;
mod faults;
mod port;
mod surroundings;

pub use body::Body;
pub use calls::{CallLog, Outcome};
pub use control::{Control, FaultOrder, read_order};
pub use edge::{Answering, BODY_LIMIT, Behind, BoxError, Broken, Edge};
pub use faults::{Decision, Harm, Planner, Rule, Rules};
pub use port::accept;
pub use surroundings::{Surroundings, uuid};
