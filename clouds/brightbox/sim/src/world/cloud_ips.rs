//! Cloud IPs: allocated, mapped, unmapped, released.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use cloudberth_core::Tick;
use serde_json::{Map, Value};

use super::{Moment, World};
use crate::{
    fields::Fields,
    refusal::Refusal,
    resources::{CloudIp, Destination},
};

/// The network of public IPv4 addresses: the last 16 bits are given out one after the other.
const PUBLIC: u32 = 0x6d6b_0000;

impl World {
    pub(super) fn create_cloud_ip(
        &mut self,
        body: &Map<String, Value>,
        at: Moment,
    ) -> Result<String, Refusal> {
        let mut fields = Fields::new(body);
        let mut name = None;
        fields.set_text("name", &mut name);
        let mode = fields.word("mode", &["nat", "route"]).unwrap_or("nat").to_owned();
        let port_translators = fields.list("port_translators").unwrap_or_default().to_vec();
        fields.finish()?;
        if self.resources.cloud_ips.len() >= self.settings.limits.cloud_ips {
            return Err(Refusal::limit("Cloud IPs"));
        }
        let id = self.draw_id("cip");
        self.public_addresses += 1;
        let v4 = Ipv4Addr::from(PUBLIC + (self.public_addresses & 0xffff));
        let [a, b, c, d] = v4.octets();
        let (high, low) = (u16::from_be_bytes([a, b]), u16::from_be_bytes([c, d]));
        let v6 = Ipv6Addr::new(0x2a02, 0x1348, 0xffff, 0xffff, 0, 0, high, low);
        let ip = CloudIp {
            name,
            mode,
            public_ipv4: Some(v4.to_string()),
            public_ipv6: Some(v6.to_string()),
            fqdn: format!("{id}.{}", self.settings.domain()),
            reverse_dns: Some(self.usual_reverse(v4)),
            created_at: at.wall,
            destination: None,
            mapped_since: None,
            settles: None,
            port_translators,
            id: id.clone(),
        };
        self.resources.cloud_ips.insert(id.clone(), ip);
        Ok(id)
    }

    fn usual_reverse(&self, v4: Ipv4Addr) -> String {
        format!("cip-{}.{}", v4.to_string().replace('.', "-"), self.settings.domain())
    }

    pub(super) fn update_cloud_ip(&mut self, id: &str, body: &Map<String, Value>) -> Result<(), Refusal> {
        let ip = self.resources.cloud_ips.get(id).ok_or_else(|| Refusal::not_found(id))?;
        let (mut name, mut reverse) = (ip.name.clone(), ip.reverse_dns.clone());
        let mut fields = Fields::new(body);
        fields.set_text("name", &mut name);
        fields.set_text("reverse_dns", &mut reverse);
        let mode = fields.word("mode", &["nat", "route"]).map(str::to_owned);
        let port_translators = fields.list("port_translators").map(<[Value]>::to_vec);
        let own: Vec<IpAddr> = ip.addresses().collect();
        if reverse.as_deref() == Some("") {
            reverse = ip.public_ipv4.as_ref().and_then(|v4| Some(self.usual_reverse(v4.parse().ok()?)));
        } else if let Some(name) = fields.value("reverse_dns").and_then(Value::as_str)
            && !self.resources.resolve(name).iter().any(|address| own.contains(address))
        {
            fields.mistake("reverse_dns must resolve to the address of the Cloud IP");
        }
        fields.finish()?;
        if let Some(ip) = self.resources.cloud_ips.get_mut(id) {
            (ip.name, ip.reverse_dns) = (name, reverse);
            ip.mode = mode.unwrap_or_else(|| std::mem::take(&mut ip.mode));
            ip.port_translators =
                port_translators.unwrap_or_else(|| std::mem::take(&mut ip.port_translators));
        }
        Ok(())
    }

    pub(super) fn delete_cloud_ip(&mut self, id: &str) -> Result<(), Refusal> {
        let ip = self.resources.cloud_ips.get(id).ok_or_else(|| Refusal::not_found(id))?;
        if ip.destination.is_some() {
            return Err(Refusal::conflict("A Cloud IP that is mapped cannot be released"));
        }
        self.resources.cloud_ips.remove(id);
        Ok(())
    }

    pub(super) fn map(&mut self, id: &str, body: &Map<String, Value>, at: Moment) -> Result<(), Refusal> {
        let mut fields = Fields::new(body);
        let target = fields.text("destination").unwrap_or_default();
        fields.finish()?;
        let missing = || Refusal::invalid(&[format!("destination {target:?} does not exist")]);
        let destination = self.destination(target).ok_or_else(missing)??;
        let due = at.tick + self.settings.delays.map;
        let ip = self.resources.cloud_ips.get_mut(id).ok_or_else(|| Refusal::not_found(id))?;
        match (&ip.destination, &ip.settles) {
            (Some(_), _) => Err(Refusal::conflict("The Cloud IP is mapped already")),
            // Asked again while it is under way.
            (None, Some((_, under_way))) if under_way.as_ref() == Some(&destination) => Ok(()),
            (None, Some(_)) => Err(Refusal::conflict("The Cloud IP is being mapped elsewhere")),
            (None, None) => {
                ip.settles = Some((due, Some(destination)));
                Ok(())
            }
        }
    }

    /// What an id in `destination` stands for: nothing that there is, something that cannot take it now, or something
    /// that can.
    fn destination(&self, id: &str) -> Option<Result<Destination, Refusal>> {
        let resources = &self.resources;
        if let Some(balancer) = resources.balancers.get(id) {
            let refused = matches!(balancer.status.as_str(), "deleting" | "deleted" | "failed");
            let why = format!("The load balancer is {}", balancer.status);
            return Some(if refused {
                Err(Refusal::conflict(&why))
            } else {
                Ok(Destination::Balancer(id.to_owned()))
            });
        }
        if resources.groups.contains_key(id) {
            return Some(Ok(Destination::Group(id.to_owned())));
        }
        let mut servers = resources.servers.values();
        let server = servers
            .find(|server| server.id == id || server.interfaces.iter().any(|interface| interface.id == id))?;
        let refused = matches!(server.status.as_str(), "deleting" | "deleted" | "failed");
        let why = format!("The server is {}", server.status);
        Some(if refused { Err(Refusal::conflict(&why)) } else { Ok(Destination::Server(server.id.clone())) })
    }

    pub(super) fn unmap(&mut self, id: &str, at: Moment) -> Result<(), Refusal> {
        let due = at.tick + self.settings.delays.unmap;
        let ip = self.resources.cloud_ips.get_mut(id).ok_or_else(|| Refusal::not_found(id))?;
        if ip.destination.is_none() {
            return Err(Refusal::conflict("The Cloud IP is not mapped"));
        }
        ip.settles.get_or_insert((due, None));
        Ok(())
    }

    pub(super) fn advance_cloud_ips(&mut self, now: Tick) {
        let due: Vec<_> = self
            .resources
            .cloud_ips
            .values_mut()
            .filter(|ip| !self.stuck.contains(&ip.id))
            .filter_map(|ip| Some((ip.id.clone(), ip.settles.take_if(|(due, _)| *due <= now)?)))
            .collect();
        for (id, (since, destination)) in due {
            // What went away in the meantime is not mapped to any more.
            let there = destination.filter(|destination| match destination {
                Destination::Server(id) | Destination::Balancer(id) | Destination::Group(id) => {
                    matches!(self.destination(id), Some(Ok(_)))
                }
            });
            if let Some(ip) = self.resources.cloud_ips.get_mut(&id) {
                ip.mapped_since = there.as_ref().map(|_| since);
                ip.destination = there;
            }
        }
    }

    /// Unmaps all Cloud IPs of something that is gone, at once.
    pub(super) fn unmap_all(&mut self, gone: &Destination) {
        for ip in self.resources.cloud_ips.values_mut().filter(|ip| ip.destination.as_ref() == Some(gone)) {
            ip.destination = None;
            ip.settles = None;
        }
    }
}
