//! Nodes and Services.

use cloudberth_core::reason::Reason;
use jiff::SignedDuration;

use super::{age, few};
use crate::doctor::{Check, EventFacts, Facts, NodeFacts, Owner, Report, ServiceFacts, Severity};

/// A node that waits for its cloud longer than this waits in vain.
const NODE_PATIENCE: SignedDuration = SignedDuration::from_mins(2);
/// A Service without a word about it may take this long.
const SERVICE_PATIENCE: SignedDuration = SignedDuration::from_mins(5);

pub(super) fn nodes(facts: &Facts, report: &mut Report) {
    let nodes = match &facts.nodes {
        Ok(nodes) => nodes,
        Err(why) => return report.blind(Check::Nodes, why, true),
    };
    report.seen.push(format!("{} nodes", nodes.len()));
    let named = |wanted: &dyn Fn(&NodeFacts) -> bool| {
        nodes.iter().filter(|node| wanted(node)).map(|node| node.name.as_str()).collect::<Vec<_>>()
    };
    let never = named(&|node| node.owner == Owner::Nobody && !node.uninitialised);
    if !never.is_empty() {
        let what = format!(
            "these nodes have no provider id and never waited for a cloud, so their kubelets run without \
             --cloud-provider=external: {}",
            few(&never)
        );
        let fix = "Set the flag on their kubelets and let them join anew, or set spec.providerID by hand.";
        report.add(Severity::Problem, Check::Kubelets, what, fix);
    }
    let old = |node: &NodeFacts| {
        node.created.is_none_or(|created| facts.now.duration_since(created) > NODE_PATIENCE)
    };
    for node in nodes.iter().filter(|node| node.uninitialised && old(node)) {
        let what = format!("node {} has waited {} for its cloud", node.name, age(facts.now, node.created));
        let fix = "Look at the events of the node and at the log of the controller manager; its instance must have the \
                   name of the node, or the id must be in spec.providerID.";
        report.add(Severity::Problem, Check::Nodes, what, fix);
    }
    for node in nodes {
        let id = node.provider_id.as_deref().unwrap_or_default();
        if let Owner::Malformed(cloud) = &node.owner {
            let what = format!("the provider id of node {} cannot be read by {cloud}: {id}", node.name);
            let fix = "Delete the node and let it join anew: the id cannot be changed.";
            report.add(Severity::Problem, Check::Nodes, what, fix);
        }
    }
    let foreign = named(&|node| node.owner == Owner::Foreign);
    // A cloud that could not be opened did not say which ids are its own.
    let all_were_asked = facts.clouds.iter().all(|cloud| cloud.mistakes.is_empty());
    if !foreign.is_empty() && !facts.clouds.is_empty() && all_were_asked {
        let what = format!(
            "these nodes carry the provider id of another program and are left alone: {}",
            few(&foreign)
        );
        let fix = "Nothing, if another controller manager serves them; otherwise name their cloud in --cloud-provider.";
        report.add(Severity::Notice, Check::Nodes, what, fix);
    }
}

pub(super) fn services(facts: &Facts, report: &mut Report) {
    let services = match &facts.services {
        Ok(services) => services,
        Err(why) => return report.blind(Check::Services, why, true),
    };
    if let Err(why) = &facts.events {
        report.blind(Check::Events, why, false);
    }
    report.seen.push(format!("{} Services with a load balancer", services.len()));
    for service in services.iter().filter(|service| !service.foreign_class) {
        waits(facts, service, report);
    }
}

/// A Service that has no address yet, or that cannot go, and why.
fn waits(facts: &Facts, service: &ServiceFacts, report: &mut Report) {
    let since = service.deleting.or(service.created);
    let what = match service.deleting {
        Some(_) => "to be deleted",
        None if service.has_address => return,
        None => "for an address",
    };
    let told = newest(facts, service);
    let waited = since.is_none_or(|since| facts.now.duration_since(since) > SERVICE_PATIENCE);
    let ServiceFacts { namespace, name, .. } = service;
    let waits = format!("Service {namespace}/{name} has waited {} {what}", age(facts.now, since));
    match told {
        Some(EventFacts { reason, message, .. }) => {
            let advice = facts
                .reasons
                .iter()
                .find(|known| known.name() == reason)
                .map(|known: &Reason| known.row().advice);
            let fix =
                advice.unwrap_or("The message has the cause; the log of the controller manager has more.");
            report.add(Severity::Problem, Check::Services, format!("{waits}: {reason}: {message}"), fix);
        }
        None if waited => {
            let fix = "See whether a controller manager leads, and what its log says about the Service.";
            report.add(Severity::Problem, Check::Services, format!("{waits}, and no event says why"), fix);
        }
        None => {}
    }
}

fn newest<'f>(facts: &'f Facts, service: &ServiceFacts) -> Option<&'f EventFacts> {
    let events = facts.events.as_deref().unwrap_or_default().iter();
    events
        .filter(|event| event.namespace == service.namespace && event.name == service.name)
        .max_by_key(|event| event.seen)
}
