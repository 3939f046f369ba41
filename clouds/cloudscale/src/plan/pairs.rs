//! What is wanted beside what is there, paired by identity.
//!
//! Of several parts with the same identity the last one counts; the others are neither changed nor removed, so that a
//! cluster can go back to the program that we replace. Of several pools the one with the listener counts: only one can
//! have it.

use std::{collections::BTreeSet, net::IpAddr};

use cloudberth_core::net::parse_ip;

use crate::{
    observed::{ObservedBalancer, ObservedPool},
    spec::{Sight, Spec, WantedListener, WantedMember, WantedMonitor, WantedPool, http_version},
    wire::{HealthMonitor, Listener, Member},
};

#[derive(Clone, Copy)]
pub(super) struct Pair<'a> {
    pub(super) wanted: &'a WantedPool,
    pub(super) observed: &'a ObservedPool,
}

fn is_pool(wanted: &WantedPool, observed: &ObservedPool) -> bool {
    let pool = &observed.pool;
    (&pool.name, &pool.algorithm, &pool.protocol) == (&wanted.name, &wanted.algorithm, &wanted.protocol)
}

/// The pool that a wanted one is, if it is there.
pub(super) fn find_pool<'a>(existing: &'a ObservedBalancer, wanted: &WantedPool) -> Option<&'a ObservedPool> {
    let same = existing.pools.iter().filter(|observed| is_pool(wanted, observed));
    same.max_by_key(|observed| (!observed.listeners.is_empty(), observed.members.len()))
}

/// Pools that we created twice, because a replica died before the first creation was answered. They have no listener.
///
/// On a load balancer that we took over there are none: a pool carries no mark of its maker, the replaced program leaves
/// such duplicates too, and taking over must not change anything.
pub(super) fn doubled_pools<'a>(spec: &Spec<'_>, existing: &'a ObservedBalancer) -> Vec<&'a ObservedPool> {
    let twin = |observed: &&ObservedPool| {
        let wanted = spec.pools.iter().find(|wanted| is_pool(wanted, observed));
        let kept = wanted.and_then(|wanted| find_pool(existing, wanted));
        observed.listeners.is_empty() && kept.is_some_and(|kept| kept.pool.uuid != observed.pool.uuid)
    };
    existing.pools.iter().filter(|_| spec.ours).filter(twin).collect()
}

/// The wanted pools that are there, in the order of the ports.
pub(super) fn pairs<'a>(spec: &'a Spec<'_>, existing: &'a ObservedBalancer) -> Vec<Pair<'a>> {
    let pair = |wanted| find_pool(existing, wanted).map(|observed| Pair { wanted, observed });
    spec.pools.iter().filter_map(pair).collect()
}

/// The pools that are not wanted. Where a port is refused, only those whose name a wanted pool has: the others may be the
/// refused port's. Where addresses are not known, only the others: those would be replaced by pools that lack members.
pub(super) fn surplus_pools<'a>(spec: &Spec<'_>, existing: &'a ObservedBalancer) -> Vec<&'a ObservedPool> {
    let wanted = |observed: &ObservedPool| spec.pools.iter().any(|pool| is_pool(pool, observed));
    let replaced = |observed: &ObservedPool| spec.pools.iter().any(|pool| pool.name == observed.pool.name);
    let surplus = existing.pools.iter().filter(|observed| !wanted(observed));
    let surplus = surplus.filter(|observed| !spec.ports_refused || replaced(observed));
    surplus.filter(|observed| spec.sight == Sight::Clear || !replaced(observed)).collect()
}

/// An address that compares equal in every spelling.
type Address<'a> = (Option<IpAddr>, &'a str);
/// What the API does not let two members of a pool share.
pub(super) type Place<'a> = (Address<'a>, i64);
/// All that cannot be changed on a member: place, name, subnet, port of checks.
type MemberKey<'a> = (Place<'a>, &'a str, &'a str, i64);

fn address(text: &str) -> Address<'_> {
    parse_ip(text).map_or((None, text), |ip| (Some(ip), ""))
}

pub(super) fn place(member: &Member) -> Place<'_> {
    (address(&member.address), member.protocol_port)
}

/// A member that is switched off, or whose subnet is not known, never fits.
fn observed_key(member: &Member) -> Option<MemberKey<'_>> {
    let subnet = member.subnet.as_ref().filter(|_| member.enabled)?.uuid.as_str();
    let monitor_port = member.monitor_port.unwrap_or(member.protocol_port);
    Some((place(member), &member.name, subnet, monitor_port))
}

impl WantedMember {
    pub(super) fn place(&self) -> Place<'_> {
        (address(&self.address), self.protocol_port)
    }

    fn key(&self) -> MemberKey<'_> {
        (self.place(), &self.name, &self.subnet, self.monitor_port)
    }
}

impl WantedListener {
    /// Whether the listener is this one in all that cannot be changed.
    pub(super) fn is(&self, observed: &Listener) -> bool {
        (&observed.name, &observed.protocol, observed.protocol_port)
            == (&self.name, &self.protocol, self.port)
    }

    /// Whether the listener holds the port that this one needs.
    pub(super) fn collides(&self, observed: &Listener) -> bool {
        (&observed.protocol, observed.protocol_port) == (&self.protocol, self.port)
    }
}

impl WantedMonitor {
    /// Whether the monitor is this one in all that cannot be changed. A host cannot be taken away by a change, so one
    /// that is not wanted any more makes it another monitor.
    pub(super) fn is(&self, observed: &HealthMonitor) -> bool {
        let host = |http: Option<&crate::wire::HttpOptions>| {
            http.and_then(|http| http.host.clone()).filter(|host| !host.is_empty())
        };
        let unwanted_host = self.http.is_some() && host(self.http.as_ref()).is_none();
        observed.kind == self.kind
            && http_version(observed.http.as_ref()) == http_version(self.http.as_ref())
            && !(unwanted_host && host(observed.http.as_ref()).is_some())
    }
}

impl<'a> Pair<'a> {
    pub(super) fn pool(&self) -> &'a str {
        &self.observed.pool.uuid
    }

    pub(super) fn missing_members(&self) -> impl Iterator<Item = &'a WantedMember> + use<'a> {
        let observed: BTreeSet<_> = self.observed.members.iter().filter_map(observed_key).collect();
        self.wanted.members.iter().filter(move |wanted| !observed.contains(&wanted.key()))
    }

    pub(super) fn surplus_members(&self) -> impl Iterator<Item = &'a Member> + use<'a> {
        let wanted: BTreeSet<_> = self.wanted.members.iter().map(WantedMember::key).collect();
        self.observed
            .members
            .iter()
            .filter(move |member| !observed_key(member).is_some_and(|key| wanted.contains(&key)))
    }

    /// The listener that is wanted, if it is there.
    pub(super) fn listener(&self) -> Option<&'a Listener> {
        self.observed.listeners.iter().rev().find(|listener| self.wanted.listener.is(listener))
    }

    pub(super) fn surplus_listeners(&self) -> impl Iterator<Item = &'a Listener> {
        let wanted = &self.wanted.listener;
        self.observed.listeners.iter().filter(move |listener| !wanted.is(listener))
    }

    /// The health monitor that is wanted, if it is there.
    pub(super) fn monitor(&self) -> Option<&'a HealthMonitor> {
        self.observed.monitors.iter().rev().find(|monitor| self.wanted.monitor.is(monitor))
    }

    pub(super) fn surplus_monitors(&self) -> impl Iterator<Item = &'a HealthMonitor> {
        let wanted = &self.wanted.monitor;
        self.observed.monitors.iter().filter(move |monitor| !wanted.is(monitor))
    }
}
