//! A simulated cloudscale.ch: the servers, networks, load balancers and floating IPs of one project, behind the API
//! that its clients speak.
//!
//! [`Cloud`] is the handle for tests. Clients in the same process use [`Cloud::service`], all others need [`serve`]. The
//! resources and the rules of the API are synchronous; latency, queues, faults and the journal are in front of them.

mod control;
mod exchange;
mod faults;
mod fields;
mod handle;
mod health;
mod history;
mod journal;
mod refusal;
mod render;
mod resources;
mod route;
mod serve;
mod service;
mod settings;
mod shared;
mod tags;
mod tokens;
mod world;

pub use faults::{Fault, Request};
pub use handle::Cloud;
pub use history::PoolChange;
pub use journal::{Entry, Tally};
pub use resources::{
    Address, Balancer, FloatingIp, HttpCheck, Interface, Listener, Member, Monitor, Network, Pool, Resources,
    Server, Subnet, Tags, Target, Vip,
};
pub use serve::{Served, serve, serve_on_loopback};
pub use service::{CloudHandler, CloudService};
pub use settings::{Limits, SimSettings};
pub use tokens::Access;

pub use sim_kit::{Body, Disconnected, Harm, Outcome};
