//! Networks and subnets, from which addresses are allocated.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use cloudberth_core::net::parse_cidr;
use ipnet::IpNet;
use serde_json::{Map, Value, json};

use super::{Moment, World};
use crate::{
    fields::{Fields, check_positive, patch_labels},
    refusal::Refusal,
    resources::{Network, Server, Subnet, Tags},
    settings::ZONES,
};

/// A network to be created.
#[derive(Clone, Debug)]
pub(crate) struct NewNetwork {
    pub(crate) name: String,
    pub(crate) zone: String,
    pub(crate) public: bool,
    pub(crate) mtu: i64,
    pub(crate) tags: Tags,
}

/// The bases of the cloud's own networks, one step per zone.
const PRIVATE: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 0);
const PUBLIC_V4: Ipv4Addr = Ipv4Addr::new(198, 18, 0, 0);
const PUBLIC_V6: Ipv6Addr = Ipv6Addr::new(0x2001, 0xdb8, 1, 0, 0, 0, 0, 0);

/// The default DNS servers.
const DNS_SERVERS: [IpAddr; 2] =
    [IpAddr::V4(Ipv4Addr::new(198, 51, 100, 2)), IpAddr::V4(Ipv4Addr::new(198, 51, 100, 3))];

/// A list of addresses; `null` means the default ones.
fn name_servers(value: &Value) -> Result<Vec<IpAddr>, &'static str> {
    if value.is_null() {
        return Ok(DNS_SERVERS.to_vec());
    }
    let entries = value.as_array().ok_or("Expected a list of items.")?;
    let address = |entry: &Value| entry.as_str()?.parse().ok().filter(|ip: &IpAddr| !ip.is_unspecified());
    entries.iter().map(address).collect::<Option<_>>().ok_or("Enter a valid IPv4 or IPv6 address.")
}

impl World {
    /// In each zone a public network with both families, and a private one.
    pub(super) fn lay_networks(&mut self, at: Moment) {
        for (step, (zone, _)) in (0_u32..).zip(ZONES) {
            let new = |name: &str, public| NewNetwork {
                name: name.to_owned(),
                zone: zone.to_owned(),
                public,
                mtu: if public { 1500 } else { 9000 },
                tags: Tags::new(),
            };
            let v4 = |base: Ipv4Addr| Ipv4Addr::from(u32::from(base) + (step << 16));
            let v6 = Ipv6Addr::from(u128::from(PUBLIC_V6) + (u128::from(step) << 80));
            let public = self.add_network(new("public", true), at);
            let gateway = u32::from(v4(PUBLIC_V4)) + 1;
            self.add_subnet(
                &public,
                IpNet::new_assert(v4(PUBLIC_V4).into(), 16),
                Some(Ipv4Addr::from(gateway).into()),
            );
            let link_local = Ipv6Addr::new(0xfe80, 0, 0, 0, 0, 0, 0, 1);
            self.add_subnet(&public, IpNet::new_assert(v6.into(), 64), Some(link_local.into()));
            let private = self.add_network(new(&format!("private-{zone}"), false), at);
            self.add_subnet(&private, IpNet::new_assert(v4(PRIVATE).into(), 16), None);
        }
    }

    pub(crate) fn add_network(&mut self, new: NewNetwork, at: Moment) -> String {
        let NewNetwork { name, zone, public, mtu, tags } = new;
        let uuid = self.draw_id();
        let network = Network { uuid: uuid.clone(), name, created_at: at.wall, zone, public, mtu, tags };
        self.resources.networks.insert(uuid.clone(), network);
        uuid
    }

    pub(crate) fn add_subnet(&mut self, network: &str, cidr: IpNet, gateway: Option<IpAddr>) -> String {
        let uuid = self.draw_id();
        let subnet = Subnet {
            uuid: uuid.clone(),
            cidr,
            network: network.to_owned(),
            gateway,
            dns_servers: DNS_SERVERS.to_vec(),
            tags: Tags::new(),
            handed_out: 0,
        };
        self.resources.subnets.insert(uuid.clone(), subnet);
        uuid
    }

    /// A private network with one subnet, and the subnet's id.
    pub(crate) fn add_private_network(&mut self, name: &str, zone: &str, cidr: IpNet, at: Moment) -> String {
        let new = NewNetwork {
            name: name.to_owned(),
            zone: zone.to_owned(),
            public: false,
            mtu: 9000,
            tags: Tags::new(),
        };
        let network = self.add_network(new, at);
        self.add_subnet(&network, cidr, None)
    }

    /// The subnets of a zone's public networks, or of its private ones: IPv4 first.
    pub(super) fn subnets_of_zone(&self, zone: &str, public: bool) -> Vec<String> {
        let of_zone = |subnet: &&Subnet| {
            self.resources.networks.get(&subnet.network).is_some_and(|n| n.zone == zone && n.public == public)
        };
        let mut subnets: Vec<_> = self.resources.subnets.values().filter(of_zone).collect();
        subnets.sort_by_key(|subnet| (subnet.cidr.addr(), subnet.uuid.clone()));
        subnets.into_iter().map(|subnet| subnet.uuid.clone()).collect()
    }

    /// An address of a subnet that nobody has and that is none of these; none if it is full.
    pub(super) fn pick_address(&mut self, subnet: &str, taken: &[IpAddr]) -> Option<IpAddr> {
        let Subnet { cidr, handed_out, .. } = self.resources.subnets.get(subnet)?;
        let bits = cidr.max_prefix_len() - cidr.prefix_len();
        let size = 1_u32 << bits.min(20);
        // The first addresses are for gateways and the like, the last is for broadcasts.
        let first = if size > 16 { 10 } else { 1 };
        let usable = size.saturating_sub(first + 1);
        let (base, from) = (cidr.network(), *handed_out);
        let used = self.used.get_or_insert_with(|| self.resources.addresses().collect());
        for step in 0..usable {
            let offset = first + (from + step) % usable;
            let address = match base {
                IpAddr::V4(base) => IpAddr::V4(Ipv4Addr::from(u32::from(base) + offset)),
                IpAddr::V6(base) => IpAddr::V6(Ipv6Addr::from(u128::from(base) + u128::from(offset))),
            };
            if !taken.contains(&address) && !used.contains(&address) {
                self.resources.subnets.get_mut(subnet)?.handed_out = (from + step + 1) % usable;
                return Some(address);
            }
        }
        None
    }

    pub(super) fn create_network(
        &mut self,
        body: &Map<String, Value>,
        at: Moment,
    ) -> Result<String, Refusal> {
        let mut fields = Fields::new(body);
        let name = fields.required_text("name").to_owned();
        let zone = self.zone(&mut fields);
        let mtu = fields.positive("mtu", 9000);
        let subnet = fields.flag("auto_create_ipv4_subnet", true);
        let tags = fields.tags();
        fields.finish()?;
        let network = self.add_network(NewNetwork { name, zone, public: false, mtu, tags }, at);
        if subnet {
            let taken = |cidr: &IpNet| self.resources.subnets.values().any(|subnet| subnet.cidr == *cidr);
            let candidates =
                (0..=255).map(|third| IpNet::new_assert(Ipv4Addr::new(172, 16, third, 0).into(), 24));
            let free = candidates.into_iter().find(|cidr| !taken(cidr));
            free.map(|cidr| self.add_subnet(&network, cidr, None));
        }
        Ok(network)
    }

    pub(super) fn create_subnet(&mut self, body: &Map<String, Value>) -> Result<String, Refusal> {
        let mut fields = Fields::new(body);
        let cidr = parse_cidr(fields.required_text("cidr"));
        let network = fields.required_text("network");
        let gateway = fields.address("gateway_address");
        let tags = fields.tags();
        let dns_servers =
            name_servers(fields.value("dns_servers").unwrap_or(&Value::Null)).unwrap_or_else(|why| {
                fields.mistake("dns_servers", why);
                Vec::new()
            });
        if cidr.is_none() {
            fields.mistake("cidr", "Enter a valid network address in CIDR notation.");
        }
        if self.resources.networks.get(network).is_none_or(|network| network.public) {
            fields.mistake("network", format!("Object with uuid={network} does not exist."));
        }
        fields.finish()?;
        let id = self.add_subnet(network, cidr.unwrap_or_default(), gateway);
        if let Some(subnet) = self.resources.subnets.get_mut(&id) {
            (subnet.tags, subnet.dns_servers) = (tags, dns_servers);
        }
        Ok(id)
    }

    pub(super) fn update_network(&mut self, id: &str, attribute: &str, value: &Value) -> Result<(), Refusal> {
        let network = self.resources.networks.get_mut(id).ok_or_else(Refusal::not_found)?;
        if attribute == "mtu" {
            network.mtu = check_positive(value).map_err(|why| Refusal::field("mtu", why))?;
            return Ok(());
        }
        patch_labels(attribute, value, Some(&mut network.name), &mut network.tags)
    }

    pub(super) fn update_subnet(&mut self, id: &str, attribute: &str, value: &Value) -> Result<(), Refusal> {
        let subnet = self.resources.subnets.get_mut(id).ok_or_else(Refusal::not_found)?;
        match attribute {
            "gateway_address" => match value.as_str().map(str::parse) {
                Some(Ok(gateway)) => subnet.gateway = Some(gateway),
                Some(Err(_)) => return Err(Refusal::field(attribute, "Enter a valid IPv4 or IPv6 address.")),
                None => subnet.gateway = None,
            },
            "dns_servers" => {
                subnet.dns_servers = name_servers(value).map_err(|why| Refusal::field(attribute, why))?;
            }
            _ => patch_labels(attribute, value, None, &mut subnet.tags)?,
        }
        Ok(())
    }

    pub(super) fn delete_network(&mut self, id: &str) -> Result<(), Refusal> {
        let subnets = self.resources.subnets.values().filter(|subnet| subnet.network == id);
        for subnet in subnets.map(|subnet| subnet.uuid.clone()).collect::<Vec<_>>() {
            self.delete_subnet(&subnet)?;
        }
        self.resources.networks.remove(id);
        Ok(())
    }

    pub(super) fn delete_subnet(&mut self, id: &str) -> Result<(), Refusal> {
        let servers = self.resources.servers.values().flat_map(Server::addresses);
        let used = servers.filter_map(|address| address.subnet.as_deref()).any(|subnet| subnet == id)
            || self.resources.balancers.values().flat_map(|b| &b.vips).any(|vip| vip.subnet == id)
            || self.resources.members.values().any(|member| member.subnet == id);
        if used {
            return Err(Refusal { status: 400, body: json!({"detail": "The subnet is still in use."}) });
        }
        self.resources.subnets.remove(id);
        Ok(())
    }
}
