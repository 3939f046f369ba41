//! The cloud itself: its resources, and the network in front of them.

mod handle;
mod network;
mod world;

pub use handle::{Cloud, SimSettings};
pub use network::{CallRecord, Fault, Request};
pub use world::{Balancer, FakeInstance, Listener, PowerState, Protocol, RouteRecord};

pub(crate) use network::{Kind, Network, Trouble, outcome};
