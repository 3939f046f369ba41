//! What there is for one Service.

#![allow(missing_docs, reason = "plain data whose names say what it is")]

use std::{collections::BTreeSet, time::Duration};

use cloudberth_core::lb::{Located, Notice};

use crate::{
    servers::Facts,
    wire::{LoadBalancer, Progress},
};

/// A node and its server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BackendServer {
    pub node: String,
    pub facts: Facts,
}

/// What is known about the building of a load balancer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Build {
    /// How long ago we sent the creation.
    pub age: Duration,
    /// What the action says, if it was asked.
    pub progress: Option<Progress>,
}

/// What there is for one Service. There may be no load balancer yet; the servers are known all the same.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Observed {
    /// The load balancer, if there is one.
    pub existing: Option<LoadBalancer>,
    /// The name by which it proves to be this Service's: the generated one if it has any of this Service's names, else
    /// its own.
    pub known_as: String,
    /// We created it, not long ago.
    pub build: Option<Build>,
    /// Load balancers that are surely left over from this Service: id and name.
    pub surplus: Vec<(i64, String)>,
    /// What people should hear about what was found.
    pub notices: Vec<Notice>,
    /// The servers of the nodes that should be behind it.
    pub servers: Located<BackendServer>,
    /// Servers that turned out not to exist any more.
    pub gone: BTreeSet<i64>,
}
