//! What every simulated server is built from: the embedded Kubernetes API and the simulated clouds.
//!
//! Nothing here reads the system's clock or draws random numbers by itself: both come in as [`Surroundings`].

mod body;
mod calls;
mod control;
mod faults;
mod port;
mod service;
mod surroundings;

pub use body::Body;
pub use calls::{CallLog, Outcome};
pub use control::{Control, FaultOrder, read_order};
pub use faults::{Decision, Harm, Planner, Rule, Rules};
pub use port::accept;
pub use service::{BODY_LIMIT, BoxError, Disconnected, Handler, ResponseFuture, SimService};
pub use surroundings::Surroundings;
