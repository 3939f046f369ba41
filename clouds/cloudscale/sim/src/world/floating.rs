//! Floating IPs: they point to a server or a balancer, and can be moved but not detached.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use ipnet::IpNet;
use serde_json::{Map, Value};

use super::{Moment, World};
use crate::{
    fields::{Fields, patch_labels},
    refusal::Refusal,
    resources::{FloatingIp, Target},
    settings::{ZONES, region_of},
};

const V4: Ipv4Addr = Ipv4Addr::new(203, 0, 113, 0);
const V6: Ipv6Addr = Ipv6Addr::new(0x2001, 0xdb8, 0xf00, 0, 0, 0, 0, 0);

impl World {
    pub(super) fn create_floating_ip(
        &mut self,
        body: &Map<String, Value>,
        at: Moment,
    ) -> Result<String, Refusal> {
        let mut fields = Fields::new(body);
        let version = match fields.value("ip_version").map(Value::as_u64) {
            Some(Some(version @ (4 | 6))) => version,
            Some(_) => {
                fields.mistake("ip_version", "Expect one of: 4, 6.");
                4
            }
            None => {
                fields.mistake("ip_version", "This field is required.");
                4
            }
        };
        let kind = fields.text("type").unwrap_or("regional");
        if !matches!(kind, "regional" | "global") {
            fields.mistake("type", "Expect one of: regional, global.");
        }
        let prefix = Self::prefix(&mut fields, version);
        let region = self.region(&mut fields, kind);
        let reverse_ptr = fields.text("reverse_ptr").map(str::to_owned);
        let tags = fields.tags();
        let wanted = match (fields.text("server"), fields.text("load_balancer")) {
            (Some(_), Some(_)) => {
                fields.mistake("server", "Only one of server and load_balancer can be given.");
                None
            }
            (Some(server), None) => Some(Target::Server(server.to_owned())),
            (None, Some(balancer)) => Some(Target::Balancer(balancer.to_owned())),
            (None, None) => None,
        };
        fields.finish()?;
        if self.resources.floating_ips.len() >= self.settings.limits.floating_ips {
            return Err(Refusal::limit("floating IPs"));
        }
        let network = self.free_network(prefix).ok_or_else(|| Refusal::limit("floating IPs"))?;
        let ip = FloatingIp { network, created_at: at.wall, region, target: None, reverse_ptr, tags };
        if let Some(target) = &wanted {
            self.check_target(&ip, target)?;
        }
        self.resources.floating_ips.insert(network.addr(), FloatingIp { target: wanted, ..ip });
        Ok(network.addr().to_string())
    }

    fn prefix(fields: &mut Fields<'_>, version: u64) -> u8 {
        let whole = if version == 4 { 32 } else { 128 };
        match fields.value("prefix_length").map(Value::as_u64) {
            None => whole,
            Some(Some(length)) if length == u64::from(whole) => whole,
            Some(Some(56)) if version == 6 => 56,
            Some(_) => {
                fields.mistake("prefix_length", "Only 56 can be used, and only with ip_version 6.");
                whole
            }
        }
    }

    fn region(&self, fields: &mut Fields<'_>, kind: &str) -> Option<String> {
        let named = fields.text("region").map(str::to_owned);
        if kind == "global" {
            return None;
        }
        let region = named.or_else(|| region_of(&self.settings.default_zone).map(str::to_owned))?;
        if !ZONES.iter().any(|(_, known)| *known == region) {
            fields.mistake("region", format!("{region:?} is not a valid choice."));
        }
        Some(region)
    }

    /// The next free network.
    fn free_network(&self, prefix: u8) -> Option<IpNet> {
        let candidates = (1_u16..=254).map(|step| {
            let address = match prefix {
                32 => IpAddr::V4(Ipv4Addr::from(u32::from(V4) + u32::from(step))),
                56 => IpAddr::V6(Ipv6Addr::from(u128::from(V6) + (u128::from(step) << 72))),
                _ => IpAddr::V6(Ipv6Addr::from(u128::from(V6) + u128::from(step))),
            };
            IpNet::new(address, prefix).ok()
        });
        candidates.flatten().find(|network| !self.resources.floating_ips.contains_key(&network.addr()))
    }

    /// Whether an IP may point there.
    fn check_target(&self, ip: &FloatingIp, target: &Target) -> Result<(), Refusal> {
        let (field, zone) = match target {
            Target::Server(id) => {
                let server = self.resources.servers.get(id);
                ("server", &server.ok_or_else(|| Refusal::dangling("server", id))?.zone)
            }
            Target::Balancer(id) => {
                let field = "load_balancer";
                let balancer =
                    self.resources.balancers.get(id).ok_or_else(|| Refusal::dangling(field, id))?;
                let private = |subnet: &str| !self.is_public(subnet);
                if balancer.vips.iter().any(|vip| private(&vip.subnet)) {
                    let why =
                        "A floating IP can not be assigned to a load balancer with a private VIP address.";
                    return Err(Refusal::field(field, why));
                }
                (field, &balancer.zone)
            }
        };
        match &ip.region {
            Some(region) if region_of(zone) != Some(region) => Err(Refusal::field(
                field,
                format!("The target is not in the region {region} of the floating IP."),
            )),
            _ => Ok(()),
        }
    }

    fn is_public(&self, subnet: &str) -> bool {
        let network =
            self.resources.subnets.get(subnet).and_then(|s| self.resources.networks.get(&s.network));
        network.is_some_and(|network| network.public)
    }

    pub(super) fn update_floating_ip(
        &mut self,
        id: &str,
        attribute: &str,
        value: &Value,
    ) -> Result<(), Refusal> {
        let address: IpAddr = id.parse().map_err(|_| Refusal::not_found())?;
        let ip = self.resources.floating_ips.get(&address).ok_or_else(Refusal::not_found)?;
        let target = match attribute {
            "server" | "load_balancer" => {
                let wrong = || Refusal::field(attribute, "This field may not be null.");
                let id = value.as_str().ok_or_else(wrong)?.to_owned();
                let target = if attribute == "server" { Target::Server(id) } else { Target::Balancer(id) };
                self.check_target(ip, &target)?;
                Some(target)
            }
            _ => None,
        };
        let Some(ip) = self.resources.floating_ips.get_mut(&address) else {
            return Err(Refusal::not_found());
        };
        match attribute {
            "reverse_ptr" => ip.reverse_ptr = value.as_str().map(str::to_owned),
            _ if target.is_some() => ip.target = target,
            _ => patch_labels(attribute, value, None, &mut ip.tags)?,
        }
        Ok(())
    }

    pub(super) fn delete_floating_ip(&mut self, id: &str) {
        if let Ok(address) = id.parse() {
            self.resources.floating_ips.remove(&address);
        }
    }
}
