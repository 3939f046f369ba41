//! The vocabulary of cloudberth and every decision it takes.
//!
//! Nothing here does IO, reads a clock or asks the system for randomness: time, randomness and observations come in as
//! values, and a decision goes out. The crates above gather the facts and carry out the decisions; they decide nothing
//! themselves. So every rule can be tested with plain values, and a simulation replays exactly.
//!
//! ```text
//!   view      Kubernetes objects, read once from JSON
//!   instance  instances, as a cloud describes them
//!   lb        the load-balancer loop: lock keys, survey, observe, decide, execute, fold
//!   provider  what a cloud has to offer, as object-safe traits
//!   decide    the pure decisions of the controllers
//! ```

pub mod address;
pub mod annotation;
pub mod call;
pub mod decide;
pub mod error;
pub mod instance;
pub mod label;
pub mod lb;
pub mod lookup;
pub mod metric;
pub mod net;
pub mod provider;
pub mod provider_id;
pub mod rate;
pub mod reason;
pub mod rights;
pub mod route;
pub mod secret;
pub mod time;
pub mod view;

pub use address::{AddressKind, NodeAddress};
pub use call::{Call, Gate};
pub use error::{Category, Error, Result};
pub use instance::{Instance, InstanceState};
pub use label::{LabelKey, LabelValue, Region, Zone};
pub use lookup::{Listing, Lookup};
pub use provider::{Instances, LoadBalancers, Provider, Routes, Zones};
pub use provider_id::ProviderId;
pub use reason::Reason;
pub use secret::Secret;
pub use time::{Clock, Random, Tick};
pub use view::{NodeView, ObjectKey, Pairs, ServiceView};
