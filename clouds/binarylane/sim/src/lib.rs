//! A simulated BinaryLane: the servers, load balancers and VPCs of one account, behind the API that its clients speak.
//!
//! [`Cloud`] is the handle for tests. Clients in the same process use [`Cloud::service`], all others need [`serve`]. The
//! resources and the rules of the API are synchronous; latency, faults, the rate limit and the journal are in front of
//! them. What nobody knows about the real API can be switched: see [`Switches`].

mod answers;
mod control;
mod exchange;
mod faults;
mod fields;
mod handle;
mod history;
mod journal;
mod paging;
mod refusal;
mod render;
mod resources;
mod route;
mod serve;
mod service;
mod settings;
mod shared;
mod switches;
mod tokens;
mod world;

pub use faults::{Fault, Request};
pub use handle::Cloud;
pub use history::PoolChange;
pub use journal::{Entry, Tally};
pub use resources::{
    Action, Address, Balancer, Blocked, Effect, HealthCheck, Resources, RouteEntry, Server, Vpc,
};
pub use serve::{Served, serve, serve_on_loopback};
pub use service::{CloudHandler, CloudService};
pub use settings::{Limits, REGIONS, RateLimit, SimSettings};
pub use switches::{Cancellation, Question, Shift, Switches};
pub use tokens::Access;
pub use world::NewServer;

pub use sim_kit::{Body, Disconnected, Harm, Outcome};
