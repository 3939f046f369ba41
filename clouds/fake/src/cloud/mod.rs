//! The cloud itself: what there is, and the network in front of it.

mod handle;
mod network;
mod world;

pub use handle::{Cloud, Manners};
pub use network::{CallRecord, Fault, Request};
pub use world::{Balancer, Listener, Machine, MachineState, Protocol, RouteRecord};

pub(crate) use network::{Kind, Network, Trouble, outcome};
