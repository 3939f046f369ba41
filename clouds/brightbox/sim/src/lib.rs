//! A simulated Brightbox: the servers, groups, firewall policies, load balancers and Cloud IPs of one account in one
//! region, behind the API that its clients speak, with the token endpoint in front.
//!
//! [`Cloud`] is the handle for tests. Clients in the same process use [`Cloud::service`], all others need [`serve`]. The
//! resources and the rules of the API are synchronous; latency, faults and the journal are in front of them.

mod access;
mod control;
mod exchange;
mod faults;
mod fields;
mod handle;
mod history;
mod journal;
mod refusal;
mod render;
mod resources;
mod respond;
mod route;
mod serve;
mod service;
mod settings;
mod shared;
mod token;
mod world;

pub use access::Credentials;
pub use faults::{Fault, Request};
pub use handle::Cloud;
pub use history::NodesChange;
pub use journal::{Entry, Tally};
pub use resources::{
    Balancer, CloudIp, Destination, Domain, FirewallPolicy, FirewallRule, Group, HealthCheck, Interface,
    Listener, Resources, Server,
};
pub use serve::{Served, serve, serve_on_loopback};
pub use service::{CloudHandler, CloudService};
pub use settings::{Delays, Limits, Rate, SimSettings, TokenSettings};

pub use sim_kit::{Body, Disconnected, Harm, Outcome};
