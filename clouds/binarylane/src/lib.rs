//! BinaryLane: instances, load balancers and routes.
//!
//! # What a look costs
//! | Service | reads, in order | writes |
//! |---|---|---|
//! | any | all load balancers, once for all Services of a pass; 200 to a page | |
//! | whose recorded id the listing lacks | that load balancer | |
//! | whose load balancer we are building | that load balancer, and nothing else | |
//! | to be created, or built | all servers, shared with the whole cluster | 1 to create |
//! | whose nodes changed | | 1 for those that come, 1 for those that go |
//! | whose ports or health check changed | | 1 |
//! | to be deleted | | 1 |
//!
//! Routes cost one read for each VPC and pass, and one write for each VPC in which something changes, however many nodes
//! come and go.

mod action;
pub mod annotations;
mod api;
mod factory;
mod find;
mod id;
mod instances;
mod names;
mod observed;
mod plan;
mod provider;
mod reasons;
mod routes;
mod servers;
mod settings;
mod shell;
mod spec;
pub mod wire;
mod zones;

pub use action::{Action, Answer};
pub use api::Surroundings;
pub use factory::FACTORY;
pub use find::{Found, KnownServers, ListedBalancers};
pub use id::read_id;
pub use observed::{BackendServer, Build, Observed};
pub use plan::{Planner, assume, fold};
pub use provider::BinaryLaneProvider;
pub use routes::{Gateway, Gateways};
pub use servers::{Facts, instance};
pub use settings::{FileSettings, NodeSettings, Settings, Sources, TOKENS};
