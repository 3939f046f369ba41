//! What every simulated server is built from: the embedded Kubernetes API and the simulated clouds.
//!
//! Nothing here reads the system's clock or draws random numbers by itself: both come in as [`Surroundings`].

mod body;
mod calls;
mod control;
mod exchange;
mod faults;
mod front;
mod journal;
mod left_behind;
mod port;
mod requests;
mod serve;
mod service;
mod surroundings;

pub use body::Body;
pub use calls::{CallLog, Outcome};
pub use control::{Control, FaultOrder, read_order};
pub use faults::{Decision, Harm, Planner, Rule, Rules};
pub use front::{Front, FrontHandler, FrontService, Incoming, Moment, Reply, RestCloud};
pub use journal::{Entry, Tally, micros};
pub use left_behind::{LeftBehind, merge};
pub use port::accept;
pub use requests::{Fault, Request};
pub use serve::{Served, serve};
pub use service::{BODY_LIMIT, BoxError, Disconnected, Handler, ResponseFuture, SimService};
pub use surroundings::Surroundings;
