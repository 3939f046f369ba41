//! The server group with the nodes, and the firewall policy that lets load balancers reach them.

use std::collections::BTreeSet;

use cloudberth_core::lb::{Impact, Step};

use super::Steps;
use crate::{
    action::Action,
    observed::Observed,
    spec::Spec,
    wire::{NewPolicy, Policy, Rule, RuleOptions, ServerGroup},
};

/// The private network that load balancers connect from.
pub(super) const NETWORK: &str = "10.0.0.0/8";
const PROTOCOL: &str = "tcp";
/// A rule cannot name more ports.
const PORTS_PER_RULE: usize = 15;

/// Creates the group.
pub(super) fn create_group(spec: &Spec) -> Step<Action> {
    Step::creating(
        Action::CreateGroup { name: spec.name.clone() },
        format!("create server group {}", spec.name),
    )
}

/// Lets the group have the servers of the nodes and no others. Who is missing comes in before anybody goes.
pub(super) fn members(group: &ServerGroup, observed: &Observed) -> Steps {
    let wanted: BTreeSet<&String> = observed.servers.found.iter().collect();
    let present: BTreeSet<&String> = group.servers.iter().map(|server| &server.id).collect();
    let owned = |ids: Vec<&&String>| ids.into_iter().map(|id| (*id).clone()).collect::<Vec<String>>();
    let added = owned(wanted.difference(&present).collect());
    let removed = owned(present.difference(&wanted).collect());
    let mut steps = Vec::new();
    if !added.is_empty() {
        let label = format!("add {} to server group {}", added.join(", "), group.name);
        let act = Action::AddServers { group: group.id.clone(), servers: added };
        steps.push(Step::new(act, Impact::None, label));
    }
    if !removed.is_empty() {
        steps.push(remove_members(group, removed));
    }
    steps
}

pub(super) fn remove_members(group: &ServerGroup, servers: Vec<String>) -> Step<Action> {
    let label = format!("remove {} from server group {}", servers.join(", "), group.name);
    Step::new(Action::RemoveServers { group: group.id.clone(), servers }, Impact::Minimal, label)
}

/// Creates the policy, or lets it protect the group again.
pub(super) fn policy(spec: &Spec, group: &ServerGroup, policy: Option<&Policy>) -> Option<Step<Action>> {
    let Some(policy) = policy else {
        let new = NewPolicy { name: spec.name.clone(), server_group: group.id.clone() };
        return Some(Step::creating(
            Action::CreatePolicy(new),
            format!("create firewall policy {}", spec.name),
        ));
    };
    if policy.server_group.as_ref().is_some_and(|attached| attached.id == group.id) {
        return None;
    }
    let act = Action::AttachPolicy { policy: policy.id.clone(), group: group.id.clone() };
    Some(Step::new(
        act,
        Impact::Minimal,
        format!("apply firewall policy {} to server group {}", policy.name, group.id),
    ))
}

/// The texts of the rules, in order.
pub(super) fn port_lists(ports: &[i64]) -> Vec<String> {
    let text = |ports: &[i64]| ports.iter().map(ToString::to_string).collect::<Vec<_>>().join(",");
    ports.chunks(PORTS_PER_RULE).map(text).collect()
}

/// Makes the rules that carry our description what they should be: `source` may connect, and nobody else. Rules that somebody else made are left alone.
pub(super) fn rules(spec: &Spec, policy: &Policy, source: &str) -> Steps {
    if spec.node_ports.is_empty() {
        return Vec::new();
    }
    let as_wanted = |rule: &Rule, ports: &str| {
        rule.protocol == PROTOCOL && rule.source == source && rule.destination_port == ports
    };
    let mut own: Vec<&Rule> = policy.rules.iter().filter(|rule| rule.description == spec.name).collect();
    let mut missing = port_lists(&spec.node_ports);
    missing.retain(|ports| match own.iter().position(|rule| as_wanted(rule, ports)) {
        Some(at) => {
            own.remove(at);
            false
        }
        None => true,
    });
    let mut own = own.into_iter();
    let mut steps = Vec::new();
    for ports in missing {
        let options = RuleOptions {
            firewall_policy: policy.id.clone(),
            protocol: PROTOCOL.to_owned(),
            source: source.to_owned(),
            destination_port: ports.clone(),
            description: spec.name.clone(),
        };
        steps.push(match own.next() {
            Some(rule) => {
                let label = format!("open ports {ports} in firewall rule {}", rule.id);
                Step::new(Action::UpdateRule { rule: rule.id.clone(), options }, Impact::Minimal, label)
            }
            None => Step::new(
                Action::CreateRule(options),
                Impact::None,
                format!("open ports {ports} in the firewall"),
            ),
        });
    }
    for rule in own {
        let act = Action::DeleteRule { policy: policy.id.clone(), rule: rule.id.clone() };
        let label = format!("close ports {} in the firewall", rule.destination_port);
        steps.push(Step::new(act, Impact::Minimal, label));
    }
    steps
}
