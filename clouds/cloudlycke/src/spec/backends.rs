//! The machines behind a load balancer.

use std::{collections::BTreeMap, net::IpAddr};

use cloudberth_core::{
    decide::nodeset::eligible::EXCLUDE_LABEL,
    lb::{Desired, Notice},
};

use super::Spec;
use crate::{
    machines::Facts,
    observed::Observed,
    reasons::{NO_NODES_BEHIND, NODE_NOT_IN_INVENTORY},
    wire::Backend,
};

/// How many of many are named in one message.
const NAMED: usize = 5;

impl Spec {
    /// The machines of the nodes. While a node's machine is not known, any backend may be its own, so none is surplus
    /// (law 5).
    pub(super) fn backends(&mut self, want: &Desired, observed: &Observed) {
        let v6 = self.wire.families.first().is_some_and(|family| family == "IPv6");
        let mut backends: BTreeMap<String, IpAddr> = BTreeMap::new();
        for one in &observed.machines.found {
            backends.insert(one.facts.machine.clone(), address(&one.facts, v6));
        }
        let before = observed.existing.iter().flat_map(|existing| &existing.spec.backends);
        if !observed.machines.unknown.is_empty() {
            for backend in before {
                backends.entry(backend.machine.clone()).or_insert(backend.address);
            }
        }
        let missing: Vec<_> =
            observed.machines.missing.iter().map(|(node, why)| format!("{node}: {why}")).collect();
        if !missing.is_empty() {
            let text = format!("nodes take no traffic: {}", few(&missing));
            self.notices.push(Notice::warning(NODE_NOT_IN_INVENTORY, text));
        }
        if backends.is_empty() && missing.is_empty() && observed.machines.unknown.is_empty() {
            self.notices.push(Notice::warning(NO_NODES_BEHIND, why_none(want)));
        }
        self.wire.backends =
            backends.into_iter().map(|(machine, address)| Backend { machine, address }).collect();
    }
}

/// Where the node ports of a machine answer: at the address of the inventory, unless it is of the other family than the
/// Service and the machine has one of this family.
fn address(facts: &Facts, v6: bool) -> IpAddr {
    let fits = |ip: &&IpAddr| ip.is_ipv6() == v6;
    let internal = facts.internal.iter().find(fits);
    if facts.backend.is_ipv6() == v6 { facts.backend } else { internal.copied().unwrap_or(facts.backend) }
}

/// Why there is no node behind a load balancer, and what to do about it.
fn why_none(want: &Desired) -> String {
    let nodes = &want.nodes;
    if nodes.is_empty() {
        return "no node is behind it: no node of the cluster is in the inventory; add a machine for each, with its name \
                or, where another program gave the node its provider id, with nodeProviderID"
            .to_owned();
    }
    if nodes.iter().all(|node| node.labels.contains_key(EXCLUDE_LABEL)) {
        return format!(
            "no node is behind it: all nodes carry the label {EXCLUDE_LABEL}, which excludes them from load balancers; \
             remove it from the nodes that should take traffic"
        );
    }
    format!(
        "no node is behind it: none of {} nodes may take traffic; each is excluded or about to go",
        nodes.len()
    )
}

fn few(all: &[String]) -> String {
    let more = all.len().saturating_sub(NAMED);
    let more = if more > 0 { format!("; and {more} more") } else { String::new() };
    let named: Vec<_> = all.iter().take(NAMED).map(String::as_str).collect();
    format!("{}{more}", named.join("; "))
}
