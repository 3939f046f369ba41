//! What there is for one Service.

#![allow(missing_docs, reason = "plain data whose names say what it is")]

use cloudberth_core::lb::Located;

use crate::{machines::Facts, wire::LoadBalancer};

/// A node and its machine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BackendMachine {
    pub node: String,
    pub facts: Facts,
}

/// What there is for one Service. There may be no load balancer yet; the machines are known all the same.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Observed {
    /// The load balancer, if there is one.
    pub existing: Option<LoadBalancer>,
    /// The machines of the nodes that should be behind it.
    pub machines: Located<BackendMachine>,
    /// An address that was asked for and refused a while ago, and why.
    pub refused_address: Option<(String, String)>,
    /// The service has taken the newest spec in this turn, so that nothing is left of an address mode that an annotation
    /// asked for earlier.
    pub mode_is_sent: bool,
}
