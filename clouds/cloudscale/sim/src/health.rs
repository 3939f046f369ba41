//! Health: of members by their servers, of balancers by their members.

use std::{
    collections::{BTreeMap, BTreeSet},
    net::IpAddr,
};

use cloudberth_core::Tick;

use super::resources::{Balancer, Member, Resources};

/// The health of all members and balancers at one moment.
#[derive(Debug)]
pub(crate) struct Health {
    /// Addresses of servers that do not run, or are gone.
    silent: BTreeSet<IpAddr>,
    monitored: BTreeSet<String>,
    /// Members that are watched, and those of them that are down, by balancer.
    counts: BTreeMap<String, (usize, usize)>,
}

impl Health {
    pub(crate) fn of(resources: &Resources) -> Self {
        let mut silent = resources.vacated.clone();
        for server in resources.servers.values() {
            for address in server.addresses().map(|address| address.address) {
                if !server.is_running() {
                    silent.insert(address);
                } else if !silent.is_empty() {
                    silent.remove(&address);
                }
            }
        }
        let monitored = resources.monitors.values().map(|monitor| monitor.pool.clone()).collect();
        let mut health = Self { silent, monitored, counts: BTreeMap::new() };
        for member in resources.members.values().filter(|member| member.enabled) {
            let status = health.member(member);
            if let Some(pool) = resources.pools.get(&member.pool).filter(|_| status != "no_monitor") {
                let (watched, down) = health.counts.entry(pool.balancer.clone()).or_default();
                *watched += 1;
                *down += usize::from(status == "down");
            }
        }
        health
    }

    /// `monitor_status` of a member.
    pub(crate) fn member<'a>(&self, member: &'a Member) -> &'a str {
        match &member.health {
            _ if !self.monitored.contains(&member.pool) => "no_monitor",
            Some(set) => set,
            None if self.silent.contains(&member.address) => "down",
            None => "up",
        }
    }

    /// `status` of a balancer.
    pub(crate) fn balancer<'a>(&self, balancer: &'a Balancer, now: Tick) -> &'a str {
        if now < balancer.ready.max(balancer.busy) {
            return "changing";
        }
        match (&balancer.shown, self.counts.get(&balancer.uuid)) {
            (Some(shown), _) => shown,
            (None, Some((watched, down))) if *down > 0 && down == watched => "error",
            (None, Some((_, down))) if *down > 0 => "degraded",
            (None, _) => "running",
        }
    }
}
