//! What is wanted beside what is there, paired by identity.
//!
//! Of several things with one identity the last one counts; the others are neither changed nor removed, so that a
//! cluster can go back to the program that we replace.

use std::net::IpAddr;

use cloudberth_core::net::parse_ip;

use crate::{
    seen::{SeenPool, Standing},
    wire::{HealthMonitor, Listener, Member},
    wish::{WantedListener, WantedMember, WantedMonitor, WantedPool, Wish, http_version},
};

/// A wanted pool that is there.
#[derive(Clone, Copy)]
pub(super) struct Pair<'a> {
    pub(super) wanted: &'a WantedPool,
    pub(super) seen: &'a SeenPool,
}

fn is_pool(wanted: &WantedPool, seen: &SeenPool) -> bool {
    let pool = &seen.pool;
    (&pool.name, &pool.algorithm, &pool.protocol) == (&wanted.name, &wanted.algorithm, &wanted.protocol)
}

/// The pool that a wanted one is, if it is there.
pub(super) fn find_pool<'a>(standing: &'a Standing, wanted: &WantedPool) -> Option<&'a SeenPool> {
    standing.pools.iter().rev().find(|seen| is_pool(wanted, seen))
}

/// The wanted pools that are there, in the order of the ports.
pub(super) fn pairs<'a>(wish: &'a Wish<'_>, standing: &'a Standing) -> Vec<Pair<'a>> {
    let pair = |wanted| find_pool(standing, wanted).map(|seen| Pair { wanted, seen });
    wish.pools.iter().filter_map(pair).collect()
}

/// The pools that nobody wants. Where a port is refused, only those whose name a wanted pool has: the others may be the
/// refused port's.
pub(super) fn surplus_pools<'a>(wish: &Wish<'_>, standing: &'a Standing) -> Vec<&'a SeenPool> {
    let wanted = |seen: &SeenPool| wish.pools.iter().any(|pool| is_pool(pool, seen));
    let replaced = |seen: &SeenPool| wish.pools.iter().any(|pool| pool.name == seen.pool.name);
    let surplus = standing.pools.iter().filter(|seen| !wanted(seen));
    surplus.filter(|seen| !wish.ports_refused || replaced(seen)).collect()
}

impl WantedMember {
    /// Whether the member is this one in all that cannot be changed.
    pub(super) fn is(&self, seen: &Member) -> bool {
        seen.enabled
            && seen.name == self.name
            && seen.protocol_port == self.protocol_port
            && seen.monitor_port.unwrap_or(seen.protocol_port) == self.monitor_port
            && same_address(&seen.address, &self.address)
            && seen.subnet.as_ref().is_some_and(|subnet| subnet.uuid == self.subnet)
    }

    /// Whether the API would not have both in one pool.
    pub(super) fn collides(&self, seen: &Member) -> bool {
        seen.protocol_port == self.protocol_port && same_address(&seen.address, &self.address)
    }
}

fn same_address(one: &str, other: &str) -> bool {
    let ip: fn(&str) -> Option<IpAddr> = parse_ip;
    one == other || ip(one).is_some_and(|one| ip(other) == Some(one))
}

impl WantedListener {
    /// Whether the listener is this one in all that cannot be changed.
    pub(super) fn is(&self, seen: &Listener) -> bool {
        (&seen.name, &seen.protocol, seen.protocol_port) == (&self.name, &self.protocol, self.port)
    }

    /// Whether the listener holds the port that this one needs.
    pub(super) fn collides(&self, seen: &Listener) -> bool {
        (&seen.protocol, seen.protocol_port) == (&self.protocol, self.port)
    }
}

impl WantedMonitor {
    /// Whether the monitor is this one in all that cannot be changed. A host cannot be taken away by a change, so one
    /// that is not wanted any more makes it another monitor.
    pub(super) fn is(&self, seen: &HealthMonitor) -> bool {
        let host = |http: Option<&crate::wire::HttpOptions>| {
            http.and_then(|http| http.host.clone()).filter(|host| !host.is_empty())
        };
        let unwanted_host = self.http.is_some() && host(self.http.as_ref()).is_none();
        seen.kind == self.kind
            && http_version(seen.http.as_ref()) == http_version(self.http.as_ref())
            && !(unwanted_host && host(seen.http.as_ref()).is_some())
    }
}

impl<'a> Pair<'a> {
    pub(super) fn pool(&self) -> &'a str {
        &self.seen.pool.uuid
    }

    pub(super) fn missing_members(&self) -> impl Iterator<Item = &'a WantedMember> {
        let seen = self.seen;
        self.wanted.members.iter().filter(move |wanted| !seen.members.iter().any(|member| wanted.is(member)))
    }

    pub(super) fn surplus_members(&self) -> impl Iterator<Item = &'a Member> {
        let wanted = self.wanted;
        self.seen.members.iter().filter(move |member| !wanted.members.iter().any(|w| w.is(member)))
    }

    /// The listener that is wanted, if it is there.
    pub(super) fn listener(&self) -> Option<&'a Listener> {
        self.seen.listeners.iter().rev().find(|listener| self.wanted.listener.is(listener))
    }

    pub(super) fn surplus_listeners(&self) -> impl Iterator<Item = &'a Listener> {
        let wanted = &self.wanted.listener;
        self.seen.listeners.iter().filter(move |listener| !wanted.is(listener))
    }

    /// The health monitor that is wanted, if it is there.
    pub(super) fn monitor(&self) -> Option<&'a HealthMonitor> {
        self.seen.monitors.iter().rev().find(|monitor| self.wanted.monitor.is(monitor))
    }

    pub(super) fn surplus_monitors(&self) -> impl Iterator<Item = &'a HealthMonitor> {
        let wanted = &self.wanted.monitor;
        self.seen.monitors.iter().filter(move |monitor| !wanted.is(monitor))
    }
}
