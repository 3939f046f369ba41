//! A simulated cloudscale.ch: the servers, networks, load balancers and floating IPs of one project, behind the API
//! that its clients speak.
//!
//! [`Cloud`] is the handle for tests. [`Cloud::service`] is the way in for clients in the same process, [`serve`] the
//! one for everyone else. What there is and how it changes is plain state without waiting; latency, queues, faults and
//! the journal lie in front of it.

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
mod route;
mod serve;
mod service;
mod settings;
mod shared;
mod stock;
mod tags;
mod tokens;
mod world;

pub use faults::{Fault, Request};
pub use handle::Cloud;
pub use history::PoolChange;
pub use journal::{Entry, Tally};
pub use serve::{Served, serve, serve_on_loopback};
pub use service::{Asker, CloudService};
pub use settings::{Limits, SimSettings};
pub use stock::{
    Address, Balancer, FloatingIp, HttpCheck, Interface, Listener, Member, Monitor, Network, Pool, Server,
    Stock, Subnet, Tags, Target, Vip,
};
pub use tokens::Access;

pub use sim_kit::{Body, Broken, Harm, Outcome};
