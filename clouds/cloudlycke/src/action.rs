//! The mutations of load balancers, one API request each, and what they are answered with.

use crate::{
    api::Key,
    wire::{BalancerSpec, LoadBalancer},
};

/// One mutation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Action {
    /// Makes a load balancer, or makes it be like the spec.
    Put {
        /// Its name.
        key: Key,
        /// What it should be.
        spec: Box<BalancerSpec>,
        /// There is none yet.
        creates: bool,
    },
    /// Deletes a load balancer.
    Delete {
        /// Its name.
        key: Key,
        /// Whose it is.
        uid: String,
    },
}

/// What the cloud answers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Answer {
    /// The load balancer as it is now.
    Balancer(Box<LoadBalancer>),
    /// Nothing has changed, because the service does not give this.
    Refused(Refused),
    /// It is gone.
    Gone,
}

/// What the service did not give, though the rest of the spec is well.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refused {
    /// What.
    pub what: Unavailable,
    /// The address mode that was asked for: another one may have it.
    pub mode: Option<String>,
    /// Why, in the service's words.
    pub why: String,
}

/// What a service may not have.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Unavailable {
    /// This address.
    Address(String),
    /// An address of each of these families.
    Families(Vec<String>),
}
