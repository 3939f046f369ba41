//! Cloudlycke: instances and load balancers of a local cloud.
//!
//! # What a look costs
//! | what | reads | writes |
//! |---|---|---|
//! | all nodes of a pass | the machines of the cluster, once | |
//! | a node that the listing lacks | that machine | |
//! | all Services of a pass | the load balancers of the cluster, once | |
//! | a Service to be created, or changed | | 1 |
//! | a Service to be deleted | | 1 |
//! | a Service of which a port is not served | the load balancers, every 5 s | |

mod action;
pub mod annotations;
mod api;
#[cfg(feature = "embedded")]
mod embedded;
mod factory;
mod id;
mod instances;
mod machines;
mod observed;
mod others;
mod plan;
mod provider;
mod reasons;
mod settings;
mod shell;
mod spec;
pub mod wire;

pub use action::{Action, Answer, Refused, Unavailable};
pub use api::{Key, Surroundings};
pub use factory::FACTORY;
pub use id::read_id;
pub use machines::Facts;
pub use observed::{BackendMachine, Observed};
pub use plan::{assume, decide, fold, lock_keys, name_for};
pub use provider::CloudlyckeProvider;
pub use settings::{ClusterChoice, FileSettings, Service, Settings, Sources, TOKEN};
