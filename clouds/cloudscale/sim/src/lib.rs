//! A simulated cloudscale.ch: the servers, networks, load balancers and floating IPs of one project, behind the API
//! that its clients speak.
//!
//! [`Cloud`] is the handle for tests. Clients in the same process use [`Cloud::service`], all others need [`serve`]. The
//! resources and the rules of the API are synchronous; latency, faults and the journal are in the [`sim_kit::Front`].

mod fields;
mod handle;
mod health;
mod history;
mod projects;
mod refusal;
mod render;
#[cfg(feature = "testing")]
pub mod replaced;
mod resources;
mod route;
mod serve;
mod settings;
mod tags;
mod tokens;
mod world;

pub use handle::{Cloud, CloudService};
pub use history::PoolChange;
pub use projects::Projects;
pub use resources::{
    Address, Balancer, FloatingIp, HttpCheck, Interface, Listener, Member, Monitor, Network, Pool, Resources,
    Server, Subnet, Tags, Target, Vip,
};
pub use serve::{serve, serve_on_loopback};
pub use settings::{Limits, SimSettings};
pub use tokens::Access;

pub use sim_kit::{Body, Disconnected, Entry, Fault, Harm, Outcome, Request, Served, Tally};
