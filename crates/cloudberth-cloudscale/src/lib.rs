//! cloudscale.ch: machines and load balancers.
//!
//! # What a look costs
//! | Service | reads, in order | writes |
//! |---|---|---|
//! | any | load balancers, servers (the listing of the nodes serves too) | |
//! | with a recorded id that the listing lacks | that load balancer | |
//! | to be deleted | | 1 |
//! | to be created | | 1, then every poll is one listing of load balancers |
//! | with a load balancer that is `changing` | | |
//! | with a settled load balancer | pools, listeners, health monitors, members of each pool of its own | |
//! | … that names floating IPs | floating IPs | |
//!
//! The project-wide listings of a pass serve every Service of that pass. So a new load balancer with one port and ten
//! nodes takes two listings, one write, a listing per poll, three listings, thirteen writes; a node that joins, or a
//! change of who may connect, takes six reads and one write.

mod act;
pub mod annotations;
mod api;
mod find;
mod instances;
mod plan;
mod provider;
mod seen;
mod servers;
mod settings;
mod shell;
#[cfg(test)]
mod testkit;
pub mod uuid;
pub mod wire;
mod wish;

pub use act::{Act, Answer, Method, Request};
pub use api::Surroundings;
pub use find::{Trail, balancer_name, default_name};
pub use plan::{Planner, assume, claims, fold, knows_ip_mode, selector};
pub use provider::CloudscaleProvider;
pub use seen::{Machine, Machines, Parts, PrivateAddress, Seen, SeenPool, Standing, Survey};
pub use settings::{Settings, TOKEN};
