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
        /// What it is now, if it is there.
        before: Option<Box<BalancerSpec>>,
        /// Where both families cannot be had, the first one alone will do.
        one_family_will_do: bool,
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
    /// The same; the address that was asked for was refused, for this reason, and it has the one that it had.
    WithoutAddress {
        /// The load balancer.
        balancer: Box<LoadBalancer>,
        /// The address.
        wanted: String,
        /// Why it was refused.
        why: String,
    },
    /// It is gone.
    Gone,
}
