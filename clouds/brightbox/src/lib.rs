//! Brightbox: instances and load balancers.
//!
//! # What a look costs
//! | Service | reads beside the four listings of a pass | writes |
//! |---|---|---|
//! | at rest | none; with https the load balancer itself, once an hour | |
//! | new | the load balancer, after the mapping | 7 |
//! | a node joins or leaves | with https the load balancer | 2 |
//! | to be deleted | | 5 |
//!
//! The listings (load balancers, Cloud IPs, server groups, firewall policies) serve every Service of a pass, and the servers
//! come from the listing that the whole cluster shares.

mod action;
pub mod annotations;
mod api;
mod digest;
mod factory;
pub mod ids;
mod instances;
mod observed;
mod plan;
mod provider;
mod reasons;
mod servers;
mod settings;
mod shell;
mod spec;
pub mod wire;

pub use action::{Action, Answer};
pub use api::Surroundings;
pub use factory::FACTORY;
pub use observed::{Observed, trimmed};
pub use plan::{assume, decide, fold, lock_keys};
pub use provider::BrightboxProvider;
pub use servers::{Reporting, instance};
pub use settings::{CLIENT, SECRET, Settings, Switches};
pub use spec::balancer_name;
