//! A simulated BinaryLane: the servers, load balancers and VPCs of one account, behind the API that its clients speak.
//!
//! [`Cloud`] is the handle for tests. Clients in the same process use [`Cloud::service`], all others need [`serve`]. The
//! resources and the rules of the API are synchronous; latency, faults and the journal are in the [`sim_kit::Front`].
//! What nobody knows about the real API can be switched: see [`Switches`].

mod accounts;
mod control;
mod fields;
mod handle;
mod history;
mod paging;
mod refusal;
mod render;
#[cfg(feature = "testing")]
pub mod replaced;
mod resources;
mod route;
mod serve;
mod settings;
mod switches;
mod tokens;
mod world;

pub use accounts::Accounts;
pub use handle::{Cloud, CloudService};
pub use history::PoolChange;
pub use resources::{
    Action, Address, Balancer, Blocked, Effect, HealthCheck, Resources, RouteEntry, Server, Vpc,
};
pub use serve::{serve, serve_on_loopback};
pub use settings::{Limits, REGIONS, RateLimit, SimSettings};
pub use switches::{Cancellation, Question, Shift, Switches};
pub use tokens::Access;
pub use world::NewServer;

pub use sim_kit::{Body, Disconnected, Entry, Fault, Harm, Outcome, Request, Served, Tally};
