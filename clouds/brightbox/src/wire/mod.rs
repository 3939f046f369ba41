//! The API's resources as they go over the wire.
//!
//! Reading is lenient about fields that no decision needs, and about words that are not known yet. Where a decision needs
//! a field that the API always sends, a missing one does not mean "none" (law 1): the resource cannot be read whole, and
//! only its identity is known. A listing in which not even that can be read proves nothing.

#![allow(missing_docs, reason = "the fields are those of the API's documentation")]

mod identity;
mod read;
mod write;

pub use identity::Named;
pub use read::{
    Account, Acme, AcmeDomain, BalancerStatus, CloudIp, CloudIpStatus, Handle, HealthCheck, Interface,
    Listener, LoadBalancer, Policy, Rule, Server, ServerCloudIp, ServerGroup, ServerStatus, Stub,
};
pub use write::{BalancerOptions, CheckOptions, ListenerOptions, NewPolicy, NodeRef, RuleOptions};
