//! The load balancer that should be there, and what of the one that is there differs.

use std::collections::BTreeSet;

use cloudberth_core::lb::{Desired, Notice};

use super::domains::{Domains, canonical};
use crate::{
    annotations::APPLIED,
    observed::Observed,
    reasons::SETTINGS_NOT_WRITTEN,
    spec::Spec,
    wire::{BalancerOptions, CheckOptions, Listener, ListenerOptions, LoadBalancer, NodeRef},
};

/// The whole load balancer, as it is written over `live` or created where there is none.
pub(super) fn options(spec: &Spec, domains: &Domains, observed: &Observed) -> BalancerOptions {
    let live = observed.live();
    let nodes: Vec<_> = observed.servers.found.iter().map(|id| NodeRef { node: id.clone() }).collect();
    let some_run = live.is_some_and(|live| !live.nodes.is_empty());
    let domains = match live {
        _ if spec.is_https() => Some(domains.wanted.clone()),
        // The domains of a certificate that nobody needs any more go with the last port that speaks https.
        Some(live) if was_https(live) => Some(Vec::new()),
        _ => None,
    };
    BalancerOptions {
        name: spec.name.clone(),
        nodes: Some(nodes).filter(|nodes| some_run || !nodes.is_empty()),
        listeners: spec.listeners.clone(),
        healthcheck: spec.check.clone(),
        policy: spec.policy.clone(),
        domains,
        https_redirect: spec.is_https(),
    }
}

fn was_https(live: &LoadBalancer) -> bool {
    live.listeners.iter().any(|listener| listener.protocol == "https")
        || live.acme.as_ref().is_some_and(|acme| !acme.domains.is_empty())
}

/// What differs, in words; empty where nothing has to be written.
pub(super) fn differences(
    want: &Desired,
    spec: &Spec,
    wanted: &BalancerOptions,
    live: &LoadBalancer,
    observed: &Observed,
) -> Vec<&'static str> {
    let mut found = Vec::new();
    let mut note = |differs: bool, what| {
        if differs {
            found.push(what);
        }
    };
    note(wanted.name != live.name, "name");
    note(!same_check(&wanted.healthcheck, live), "health check");
    note(!same_nodes(observed, live), "nodes");
    note(
        wanted
            .listeners
            .as_deref()
            .is_some_and(|wanted| !same_listeners(wanted, &live.listeners, spec.idle_is_compared)),
        "ports",
    );
    note(spec.is_https() && !same_domains(wanted, live), "domains");
    note(is_edited(want, spec, observed), "settings");
    found
}

fn same_check(wanted: &CheckOptions, live: &LoadBalancer) -> bool {
    let live = &live.healthcheck;
    wanted.kind == live.kind
        && wanted.port == live.port
        && wanted.request.as_ref().is_none_or(|request| *request == live.request)
}

/// The order does not matter.
fn same_nodes(observed: &Observed, live: &LoadBalancer) -> bool {
    let wanted: BTreeSet<&str> = observed.servers.found.iter().map(String::as_str).collect();
    wanted == live.nodes.iter().map(|node| node.id.as_str()).collect()
}

/// In order. A time-out counts only where both sides have one: the cloud fills in its own.
fn same_listeners(wanted: &[ListenerOptions], live: &[Listener], idle: bool) -> bool {
    let same = |(wanted, live): (&ListenerOptions, &Listener)| {
        let timeout = wanted.timeout.zip(live.timeout.filter(|ms| idle && *ms != 0));
        wanted.protocol == live.protocol
            && wanted.inside == live.inside
            && Some(wanted.outside) == live.outside
            && wanted.proxy_protocol == live.proxy_protocol
            && timeout.is_none_or(|(wanted, live)| wanted == live)
    };
    wanted.len() == live.len() && wanted.iter().zip(live).all(same)
}

/// In any order, but each as often.
fn same_domains(wanted: &BalancerOptions, live: &LoadBalancer) -> bool {
    let sorted = |names: &mut dyn Iterator<Item = &String>| {
        let mut names: Vec<_> = names.map(|name| canonical(name)).collect();
        names.sort();
        names
    };
    let wanted = sorted(&mut wanted.domains.iter().flatten());
    match &live.acme {
        None => wanted.is_empty(),
        Some(acme) => wanted == sorted(&mut acme.domains.iter().map(|domain| &domain.identifier)),
    }
}

/// Whether settings that are not compared were changed since they were written, or since this Service was first seen.
fn is_edited(want: &Desired, spec: &Spec, observed: &Observed) -> bool {
    let known = want.service.annotations.get(APPLIED.name()).or(observed.first_digest.as_ref());
    match (known, &spec.digest) {
        (Some(known), Some(digest)) => !observed.written && known != digest,
        _ => false,
    }
}

/// Says which settings differ on a load balancer that we never wrote to.
pub(super) fn unwritten(
    want: &Desired,
    spec: &Spec,
    live: &LoadBalancer,
    observed: &Observed,
) -> Option<Notice> {
    if observed.written || want.service.annotations.contains_key(APPLIED.name()) {
        return None;
    }
    let (check, running) = (&spec.check, &live.healthcheck);
    let idle = spec
        .listeners
        .iter()
        .flatten()
        .zip(&live.listeners)
        .any(|(wanted, live)| differs(wanted.timeout, live.timeout));
    let table = [
        ("policy", spec.policy.is_some() && spec.policy != live.policy),
        ("listener-idle-timeout", idle),
        ("healthcheck-interval", differs(check.interval, running.interval)),
        ("healthcheck-timeout", differs(check.timeout, running.timeout)),
        ("healthcheck-healthy-threshold", differs(check.threshold_up, running.threshold_up)),
        ("healthcheck-unhealthy-threshold", differs(check.threshold_down, running.threshold_down)),
    ];
    let names: Vec<_> = table.iter().filter(|(_, differs)| *differs).map(|(name, _)| *name).collect();
    if names.is_empty() {
        return None;
    }
    let text = format!(
        "load balancer {} differs from the Service in {} and is left so, because it was there before cloudberth; edit \
         the Service to have them written",
        live.id,
        names.join(", ")
    );
    Some(Notice::warning(SETTINGS_NOT_WRITTEN, text))
}

fn differs(wanted: Option<i64>, running: Option<i64>) -> bool {
    wanted.is_some() && wanted != running
}
