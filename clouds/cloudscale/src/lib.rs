//! cloudscale.ch: instances and load balancers.
//!
//! # What a look costs
//! | Service | reads, in order | writes |
//! |---|---|---|
//! | with a recorded id | that load balancer | |
//! | without, or where the id leads nowhere or the name differs | all load balancers, and the one that fits | |
//! | to be deleted | | 1 |
//! | whose load balancer is `changing` | nothing else: a poll is one question | |
//! | to be created, or settled | all servers | 1 to create |
//! | settled | all pools, listeners and health monitors; the members of its own pools | what differs |
//! | settled, and naming floating IPs | all floating IPs | |
//!
//! The listings of a pass serve every Service of that pass, and nothing is asked that no Service needs. With one port
//! and ten nodes a new load balancer takes two listings and one write, a question per poll, five reads and thirteen
//! writes; a node that joins, or a change of who may connect, takes six reads and one write; a deletion takes one read
//! and one write.

mod action;
pub mod annotations;
mod api;
mod factory;
mod find;
#[cfg(test)]
mod fixture;
mod instances;
mod observed;
mod plan;
mod provider;
mod reasons;
mod servers;
mod settings;
mod shell;
mod spec;
pub mod uuid;
pub mod wire;

pub use action::{Action, Answer, Method, Request};
pub use api::Surroundings;
pub use factory::FACTORY;
pub use find::{
    all_told, backend_instance, balancer_name, default_name, follow, identity, name_for, read_id, trail_of,
};
pub use observed::{
    BackendInstance, BackendInstances, FlawedPart, Observed, ObservedBalancer, ObservedPool, Parts,
    PrivateAddress,
};
pub use plan::{assume, decide, fold, lock_keys, selector};
pub use provider::CloudscaleProvider;
pub use servers::instance;
pub use settings::{Settings, TOKEN};
