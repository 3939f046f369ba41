//! What there is for one Service.

#![allow(missing_docs, reason = "plain data whose names say what it is")]

use std::time::Duration;

use cloudberth_core::lb::Located;
use cloudberth_http::Flawed;

use crate::wire::{
    FloatingIdentity, FloatingIp, HealthMonitor, Listener, LoadBalancer, Member, PartIdentity, Pool,
};

/// The listings that observing a settled load balancer needs; project-wide, so one set serves every Service of a pass.
#[derive(Clone, Debug, Default)]
pub struct Parts {
    pub pools: Vec<Pool>,
    pub listeners: Vec<Listener>,
    pub monitors: Vec<HealthMonitor>,
    /// Every floating IP of the project; may stay empty where the Service names none.
    pub floating_ips: Vec<FloatingIp>,
    /// Parts that are there and cannot be read. Only the load balancer that they belong to is unknown for it.
    pub flawed: Vec<FlawedPart>,
    pub flawed_ips: Vec<Flawed<FloatingIdentity>>,
}

/// A part of some load balancer that cannot be read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FlawedPart {
    /// What it is: `pool`.
    pub kind: &'static str,
    /// Which one, and why it cannot be read.
    pub part: Flawed<PartIdentity>,
}

/// A pool with what is below it, in the API's order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ObservedPool {
    pub pool: Pool,
    pub members: Vec<Member>,
    pub listeners: Vec<Listener>,
    /// The monitors that watch it; the API allows one.
    pub monitors: Vec<HealthMonitor>,
}

/// A load balancer with all that is below it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ObservedBalancer {
    pub balancer: LoadBalancer,
    /// For how long it has been seen changing without a break; zero for one that just began, or that does not.
    pub changing_for: Duration,
    pub pools: Vec<ObservedPool>,
    /// All floating IPs of the project, as far as they were listed.
    pub floating_ips: Vec<FloatingIp>,
    /// We created it in this turn.
    pub new: bool,
}

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct PrivateAddress {
    /// The address, as the cloud writes it.
    pub address: String,
    pub subnet: String,
}

/// A node and the server that it runs on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BackendInstance {
    pub node: String,
    pub zone: Option<String>,
    /// Its private addresses, in the cloud's order.
    pub addresses: Vec<PrivateAddress>,
}

/// The servers of the nodes that a Service wants.
pub type BackendInstances = Located<BackendInstance>;

/// What there is for one Service. There may be no load balancer yet; the servers are known all the same, because a new
/// one is put where they are.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Observed {
    /// The load balancer, if there is one.
    pub existing: Option<ObservedBalancer>,
    /// The servers of the nodes that should be behind it.
    pub instances: BackendInstances,
}
