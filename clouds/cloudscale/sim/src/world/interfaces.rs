//! The network interfaces of servers.

use std::net::IpAddr;

use serde_json::Value;

use super::World;
use crate::resources::{Address, Interface, Subnet};

/// An interface that a server is to have.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct WantedInterface {
    network: String,
    public: bool,
    /// The subnets of its addresses, and those addresses that were named.
    addresses: Vec<(String, Option<IpAddr>)>,
}

impl World {
    /// The public network of a zone with both families, and the first private subnet.
    pub(super) fn usual_interfaces(&self, zone: &str) -> Vec<WantedInterface> {
        let public = self.on_subnets(&self.subnets_of_zone(zone, true), true);
        let private = self.subnets_of_zone(zone, false).into_iter().take(1).collect::<Vec<_>>();
        public.into_iter().chain(self.on_subnets(&private, false)).collect()
    }

    /// One interface with an address in each of these subnets of one network; none where there is none of them.
    pub(crate) fn on_subnets(&self, subnets: &[String], public: bool) -> Option<WantedInterface> {
        let network = self.resources.subnets.get(subnets.first()?)?.network.clone();
        let addresses = subnets.iter().map(|subnet| (subnet.clone(), None)).collect();
        Some(WantedInterface { network, public, addresses })
    }

    /// Reads `interfaces` of a request: `{"network": "public"}`, `{"network": "<uuid>"}` with an address of its first
    /// subnet or, with `"addresses": []`, without any, and `{"addresses": [{"subnet": "<uuid>", "address": "…"}]}`.
    pub(super) fn wanted_interfaces(
        &self,
        value: &Value,
        zone: &str,
    ) -> Result<Vec<WantedInterface>, String> {
        let entries = value.as_array().ok_or("Expected a list of items.")?;
        entries.iter().map(|entry| self.wanted_interface(entry, zone)).collect()
    }

    fn wanted_interface(&self, entry: &Value, zone: &str) -> Result<WantedInterface, String> {
        let missing = |id: &str| format!("Object with uuid={id} does not exist.");
        let addresses = entry.get("addresses").filter(|addresses| !addresses.is_null());
        match (entry.get("network").and_then(Value::as_str), addresses) {
            (Some("public"), _) => {
                self.on_subnets(&self.subnets_of_zone(zone, true), true).ok_or_else(|| missing("public"))
            }
            (Some(id), None) => {
                let network = self.resources.networks.get(id).ok_or_else(|| missing(id))?;
                let first = self.resources.subnets.values().find(|subnet| subnet.network == network.uuid);
                let addresses = first.map(|subnet| (subnet.uuid.clone(), None)).into_iter().collect();
                Ok(WantedInterface { network: id.to_owned(), public: false, addresses })
            }
            (Some(id), Some(Value::Array(none))) if none.is_empty() => {
                let network = self.resources.networks.get(id).ok_or_else(|| missing(id))?;
                Ok(WantedInterface { network: network.uuid.clone(), public: false, addresses: Vec::new() })
            }
            (_, Some(Value::Array(entries))) => self.wanted_addresses(entries),
            _ => Err("This field is required.".to_owned()),
        }
    }

    fn wanted_addresses(&self, entries: &[Value]) -> Result<WantedInterface, String> {
        let mut wanted = WantedInterface { network: String::new(), public: false, addresses: Vec::new() };
        for entry in entries {
            let id = entry.get("subnet").and_then(Value::as_str).ok_or("This field is required.")?;
            let Subnet { uuid, network, cidr, .. } = self
                .resources
                .subnets
                .get(id)
                .ok_or_else(|| format!("Object with uuid={id} does not exist."))?;
            let address = match entry.get("address").and_then(Value::as_str) {
                None => None,
                Some(text) => match text.parse().ok().filter(|address| cidr.contains(address)) {
                    None => return Err(format!("{text} is not a valid IP for the specified subnet.")),
                    address => address,
                },
            };
            wanted.network.clone_from(network);
            wanted.addresses.push((uuid.clone(), address));
        }
        if wanted.addresses.is_empty() { Err("This field is required.".to_owned()) } else { Ok(wanted) }
    }

    /// Allocates addresses. A server keeps those that it has.
    pub(crate) fn build_interface(&mut self, wanted: &WantedInterface, had: &[Interface]) -> Interface {
        if let Some(kept) = had.iter().find(|interface| wanted.is_met_by(interface)) {
            return kept.clone();
        }
        let mut addresses = Vec::new();
        for (subnet, named) in &wanted.addresses {
            if let Some(address) = named.or_else(|| self.pick_address(subnet, &[])) {
                if let Some(used) = &mut self.used {
                    used.insert(address);
                }
                addresses.push(Address { address, subnet: Some(subnet.clone()) });
            }
        }
        Interface { public: wanted.public, network: wanted.network.clone(), addresses }
    }
}

impl WantedInterface {
    fn is_met_by(&self, interface: &Interface) -> bool {
        let fits = |((subnet, named), have): (&(String, Option<IpAddr>), &Address)| {
            have.subnet.as_ref() == Some(subnet) && named.is_none_or(|named| named == have.address)
        };
        self.network == interface.network
            && self.addresses.len() == interface.addresses.len()
            && self.addresses.iter().zip(&interface.addresses).all(fits)
    }
}
