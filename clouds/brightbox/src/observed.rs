//! What there is for one Service.

use std::{
    collections::{BTreeMap, BTreeSet},
    net::IpAddr,
};

use cloudberth_core::{Lookup, lb::Located};

use crate::wire::{BalancerStatus, CloudIp, LoadBalancer, Policy, ServerGroup};

/// The marker that some tools put behind the name of a load balancer.
const MARKER: &str = "#type:container";

/// A load balancer's name without what some tools put around it.
pub fn trimmed(name: &str) -> &str {
    let name = name.trim();
    name.strip_suffix(MARKER).unwrap_or(name).trim()
}

/// Everything of a Service's name, and what the decision needs beside it. Each part may be missing.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Observed {
    /// The load balancers of the name that are not deleted, in the API's order.
    pub balancers: Vec<LoadBalancer>,
    /// The Cloud IPs that have the name, that are mapped to these load balancers, or that the Service asks for, in the API's
    /// order.
    pub cloud_ips: Vec<CloudIp>,
    /// The server groups of the name.
    pub groups: Vec<ServerGroup>,
    /// The firewall policies of the name.
    pub policies: Vec<Policy>,
    /// The servers of the nodes that should take traffic, in the order of the nodes.
    pub servers: Located<String>,
    /// What was found for domains, by their names in small letters.
    pub resolved: BTreeMap<String, Lookup<Vec<IpAddr>>>,
    /// The Cloud IPs that other Services ask for: these are not ours to delete.
    pub claimed: BTreeSet<String>,
    /// The digest of the settings with which this Service was first seen.
    pub first_digest: Option<String>,
    /// The load balancer was created or written in this turn.
    pub written: bool,
    /// Mappings that were asked for in this turn and do not show yet.
    pub mapping: BTreeSet<String>,
    /// What shows beside the above that the Service had a load balancer, with its id and name: a Cloud IP that has to go
    /// too, or the load balancer itself, which is deleted and listed for a while.
    pub trace: Option<(String, String)>,
    /// The load balancer that failed and is being replaced in this turn.
    pub replaced: Option<String>,
    /// Cloud IPs whose mapping was asked to end in this turn.
    pub unmapping: BTreeSet<String>,
}

impl Observed {
    /// The load balancer that serves, or soon will.
    pub fn live(&self) -> Option<&LoadBalancer> {
        self.balancers.iter().find(|balancer| balancer.status.is_alive())
    }

    pub(crate) fn live_mut(&mut self) -> Option<&mut LoadBalancer> {
        self.balancers.iter_mut().find(|balancer| balancer.status.is_alive())
    }

    /// One that the cloud gave up on.
    pub(crate) fn failed(&self) -> Option<&LoadBalancer> {
        let dead =
            |status: &BalancerStatus| matches!(status, BalancerStatus::Failed | BalancerStatus::Failing);
        self.balancers.iter().find(|balancer| dead(&balancer.status))
    }

    /// Whether anything is left of a load balancer that has to go, or shows that there was one.
    pub(crate) fn is_anything_left(&self) -> bool {
        !self.balancers.is_empty()
            || !self.groups.is_empty()
            || !self.policies.is_empty()
            || self.trace.is_some()
    }

    /// Whether this is one of the load balancers of the name.
    pub(crate) fn balancer(&self, id: &str) -> Option<&LoadBalancer> {
        self.balancers.iter().find(|balancer| balancer.id == id)
    }
}
