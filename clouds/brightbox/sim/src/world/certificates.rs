//! Domains of load balancers: checked once they could be, and again until they are right.

use std::net::IpAddr;

use cloudberth_core::Tick;

use super::World;
use crate::resources::{Destination, Domain};

impl World {
    /// A domain is checked so long after its balancer is active, has a Cloud IP and was given the domain. It is `valid` for
    /// good once it resolves to one of the balancer's addresses.
    pub(super) fn check_domains(&mut self, now: Tick) {
        let active = self.resources.balancers.values().filter(|balancer| {
            balancer.status == "active"
                && !self.stuck.contains(&balancer.id)
                && balancer.domains.iter().any(|domain| domain.status != "valid")
        });
        for id in active.map(|balancer| balancer.id.clone()).collect::<Vec<_>>() {
            let checked = self.checked(&id, now);
            if let (Some(domains), Some(balancer)) = (checked, self.resources.balancers.get_mut(&id)) {
                balancer.domains = domains;
            }
        }
    }

    fn checked(&self, id: &str, now: Tick) -> Option<Vec<Domain>> {
        let resources = &self.resources;
        let balancer = resources.balancers.get(id)?;
        let mapped = resources.cloud_ips_of(&Destination::Balancer(id.to_owned()));
        let since = mapped.iter().map(|ip| ip.mapped_since.unwrap_or_default()).min()?;
        let ready = since.max(balancer.active_since.unwrap_or_default());
        let own: Vec<IpAddr> = mapped.iter().flat_map(|ip| ip.addresses()).collect();
        let check = |domain: &Domain| {
            let mut domain = domain.clone();
            if domain.status != "valid" && now >= ready.max(domain.since) + self.settings.delays.acme {
                let right = resources.resolve(&domain.identifier).iter().any(|address| own.contains(address));
                let (status, message) = if right {
                    ("valid", None)
                } else {
                    ("invalid", Some(format!("{} does not resolve to the load balancer", domain.identifier)))
                };
                status.clone_into(&mut domain.status);
                domain.last_message = message;
            }
            domain
        };
        Some(balancer.domains.iter().map(check).collect())
    }
}
