//! The load balancer that should be there, and what of the one that is there differs.

use std::collections::BTreeSet;

use cloudberth_core::lb::{Desired, INTENT_ANNOTATION, Notice};

use super::domains::{Domains, canonical};
use crate::{
    annotations::APPLIED,
    observed::Observed,
    reasons::SETTINGS_NOT_WRITTEN,
    spec::{Spec, UNKNOWN},
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
    note(is_edited(want, spec, live, observed), "settings");
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

/// What is recorded of the settings that are not compared, if it is recorded.
fn recorded(want: &Desired) -> Option<&String> {
    want.service.annotations.get(APPLIED.name())
}

/// Whether we may have created the load balancer and nothing is recorded of it yet, because the answer was lost or the
/// program died.
fn is_our_creation(want: &Desired) -> bool {
    recorded(want).is_none() && want.service.annotations.contains_key(INTENT_ANNOTATION)
}

/// Whether settings that are not compared were changed since they were written, or since this Service was first seen.
fn is_edited(want: &Desired, spec: &Spec, live: &LoadBalancer, observed: &Observed) -> bool {
    let Some(digest) = spec.digest.as_ref().filter(|_| !observed.written) else { return false };
    let known = recorded(want).or(observed.first_digest.as_ref());
    known.is_some_and(|known| known != digest) || (is_our_creation(want) && !unlike(spec, live).is_empty())
}

/// What is to be recorded of a load balancer.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Applied {
    /// We have created it or written to it.
    pub(super) is_ours: bool,
    /// The digest of the settings that it has.
    pub(super) digest: Option<String>,
}

/// What is to be recorded now. An edit of what was taken over is on record before it is written: whoever goes on with it
/// would not know that there was one.
pub(super) fn applied(want: &Desired, spec: &Spec, live: &LoadBalancer, observed: &Observed) -> Applied {
    let is_ours = observed.written || is_our_creation(want);
    let edited = is_edited(want, spec, live, observed);
    let digest = match (&observed.first_digest, &spec.digest) {
        _ if edited && recorded(want).is_some() => None,
        (_, Some(_)) if edited && is_our_creation(want) => Some(UNKNOWN.to_owned()),
        (Some(first), Some(_)) if edited => Some(first.clone()),
        (_, digest) if is_ours => digest.clone(),
        _ => None,
    };
    Applied { is_ours, digest }
}

/// Which of the settings that are not compared a load balancer has otherwise than the Service says.
fn unlike(spec: &Spec, live: &LoadBalancer) -> Vec<&'static str> {
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
    table.iter().filter(|(_, differs)| *differs).map(|(name, _)| *name).collect()
}

/// Says which settings differ on a load balancer that we never wrote to.
pub(super) fn unwritten(
    want: &Desired,
    spec: &Spec,
    live: &LoadBalancer,
    observed: &Observed,
) -> Option<Notice> {
    let names = unlike(spec, live);
    if names.is_empty() || observed.written || recorded(want).is_some() || is_our_creation(want) {
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
