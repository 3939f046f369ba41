//! A simulated Brightbox: the servers, groups, firewall policies, load balancers and Cloud IPs of one account in one
//! region, behind the API that its clients speak, with the token endpoint in front.
//!
//! [`Cloud`] is the handle for tests. Clients in the same process use [`Cloud::service`], all others need [`serve`]. The
//! resources and the rules of the API are synchronous; latency, faults and the journal are in the [`sim_kit::Front`].

mod access;
mod account;
mod control;
mod fields;
mod handle;
mod history;
mod refusal;
mod render;
#[cfg(feature = "testing")]
pub mod replaced;
mod resources;
mod route;
mod serve;
mod settings;
mod token;
mod world;

pub use access::Credentials;
pub use account::Account;
pub use handle::{Cloud, CloudService};
pub use history::NodesChange;
pub use resources::{
    Balancer, CloudIp, Destination, Domain, FirewallPolicy, FirewallRule, Group, HealthCheck, Interface,
    Listener, Resources, Server,
};
pub use serve::{serve, serve_on_loopback};
pub use settings::{Delays, Limits, Rate, SimSettings, TokenSettings};

pub use sim_kit::{Body, Disconnected, Entry, Fault, Harm, Outcome, Request, Served, Tally};
