//! Load balancers: created with their addresses, deleted with everything below them.

use std::net::IpAddr;

use cloudberth_core::Tick;
use serde_json::{Map, Value, json};

use super::{Moment, World};
use crate::{
    fields::{Fields, patch_labels},
    refusal::Refusal,
    resources::{Balancer, Target, Vip},
    settings::BALANCER_FLAVOR,
};

/// A VIP that a request asks for.
#[derive(Debug)]
struct WantedVip {
    subnet: String,
    address: Option<IpAddr>,
}

impl World {
    pub(super) fn create_balancer(
        &mut self,
        body: &Map<String, Value>,
        at: Moment,
    ) -> Result<String, Refusal> {
        let mut fields = Fields::new(body);
        let name = fields.required_text("name").to_owned();
        let flavor = fields.required_text("flavor").to_owned();
        if !flavor.is_empty() && flavor != BALANCER_FLAVOR {
            fields.mistake("flavor", format!("{flavor:?} is not a valid choice."));
        }
        let zone = self.zone(&mut fields);
        let wanted = match fields.value("vip_addresses").map(|vips| self.wanted_vips(vips, &zone)) {
            None => Vec::new(),
            Some(Ok(wanted)) => wanted,
            Some(Err(why)) => {
                fields.mistake("vip_addresses", why);
                Vec::new()
            }
        };
        let tags = fields.tags();
        fields.finish()?;
        if self.resources.balancers.len() >= self.settings.limits.balancers {
            return Err(Refusal::limit("load balancers"));
        }
        let wanted = if wanted.is_empty() {
            let subnets = self.subnets_of_zone(&zone, true).into_iter();
            subnets.map(|subnet| WantedVip { subnet, address: None }).collect()
        } else {
            wanted
        };
        let vips = self.vips(&wanted);
        self.forget_used();
        let vips = vips?;
        let uuid = self.draw_id();
        let ready = at.tick + self.settings.build;
        let balancer = Balancer {
            uuid: uuid.clone(),
            name,
            created_at: at.wall,
            zone,
            flavor,
            vips,
            tags,
            ready,
            busy: Tick::ZERO,
            shown: None,
        };
        self.resources.balancers.insert(uuid.clone(), balancer);
        Ok(uuid)
    }

    /// A different address for each of them.
    fn vips(&mut self, wanted: &[WantedVip]) -> Result<Vec<Vip>, Refusal> {
        let refuse = |why: &str| Err(Refusal::field("vip_addresses", why));
        let named: Vec<_> = wanted.iter().filter_map(|vip| vip.address).collect();
        if named
            .iter()
            .enumerate()
            .any(|(at, address)| named.iter().skip(at + 1).any(|other| other == address))
        {
            return refuse("The same address is given twice.");
        }
        let mut taken = named;
        let mut vips = Vec::new();
        for WantedVip { subnet, address } in wanted {
            let Some(address) = address.or_else(|| self.pick_address(subnet, &taken)) else {
                return refuse("There is no free address in the subnet.");
            };
            taken.push(address);
            vips.push(Vip { address, subnet: subnet.clone() });
        }
        Ok(vips)
    }

    /// Checks every entry and reports mistakes entry by entry.
    fn wanted_vips(&self, vips: &Value, zone: &str) -> Result<Vec<WantedVip>, Value> {
        let entries = vips.as_array().ok_or_else(|| json!("Expected a list of items."))?;
        let checked: Vec<_> = entries.iter().map(|entry| self.wanted_vip(entry, zone)).collect();
        if checked.iter().all(Result::is_ok) {
            return Ok(checked.into_iter().filter_map(Result::ok).collect());
        }
        Err(checked.into_iter().map(|entry| entry.err().unwrap_or_else(|| json!({}))).collect())
    }

    fn wanted_vip(&self, entry: &Value, zone: &str) -> Result<WantedVip, Value> {
        let wrong = |field: &str, why: String| Err(json!({field: [why]}));
        let address = match entry.get("address").and_then(Value::as_str) {
            None => None,
            Some(text) => match text.parse::<IpAddr>() {
                Ok(address) => Some(address),
                Err(_) => return wrong("address", "Enter a valid IPv4 or IPv6 address.".to_owned()),
            },
        };
        let of_zone = self.subnets_of_zone(zone, false);
        let id = match (entry.get("subnet").and_then(Value::as_str), address) {
            (Some(id), _) if !is_uuid(id) => return wrong("subnet", "Must be a valid UUID.".to_owned()),
            (Some(id), _) => id,
            (None, None) => return wrong("subnet", "This field is required.".to_owned()),
            (None, Some(address)) => {
                let holds =
                    |id: &&String| self.resources.subnets.get(*id).is_some_and(|s| s.cidr.contains(&address));
                match of_zone.iter().find(holds) {
                    Some(id) => id,
                    None => {
                        return wrong("address", format!("No subnet of yours has the address {address}."));
                    }
                }
            }
        };
        match self.resources.subnets.get(id).filter(|_| of_zone.iter().any(|known| known == id)) {
            None => wrong("subnet", format!("Object with uuid={id} does not exist.")),
            Some(subnet) if address.is_some_and(|address| !subnet.cidr.contains(&address)) => wrong(
                "address",
                format!(
                    "{} is not a valid IP for the specified subnet.",
                    entry["address"].as_str().unwrap_or("")
                ),
            ),
            Some(_)
                if address.is_some_and(|address| self.resources.addresses().any(|used| used == address)) =>
            {
                wrong("address", "The address is already in use.".to_owned())
            }
            Some(_) => Ok(WantedVip { subnet: id.to_owned(), address }),
        }
    }

    pub(super) fn update_balancer(
        &mut self,
        id: &str,
        attribute: &str,
        value: &Value,
    ) -> Result<(), Refusal> {
        let balancer = self.resources.balancers.get_mut(id).ok_or_else(Refusal::not_found)?;
        patch_labels(attribute, value, Some(&mut balancer.name), &mut balancer.tags)
    }

    pub(super) fn delete_balancer(&mut self, id: &str, at: Moment) -> Result<(), Refusal> {
        let balancer = self.resources.balancers.get(id).ok_or_else(Refusal::not_found)?;
        if self.settings.refuse_early_delete && at.tick < balancer.ready {
            return Err(Refusal::new(400, "The load balancer is still being created."));
        }
        self.remove_balancer(id, at);
        Ok(())
    }

    /// Deletes a balancer with everything below it; floating IPs stay, without a target.
    pub(crate) fn remove_balancer(&mut self, id: &str, at: Moment) {
        let pools = self.resources.pools.values().filter(|pool| pool.balancer == id);
        for pool in pools.map(|pool| pool.uuid.clone()).collect::<Vec<_>>() {
            self.remove_pool(&pool, at);
        }
        self.resources.listeners.retain(|_, listener| listener.balancer != id);
        self.resources.balancers.remove(id);
        self.forget_used();
        self.unassign(&Target::Balancer(id.to_owned()));
    }

    /// A balancer that can have children: it exists and was built.
    pub(super) fn built(&self, id: &str, field: &str, at: Moment) -> Result<(), Refusal> {
        match self.resources.balancers.get(id) {
            None => Err(Refusal::dangling(field, id)),
            Some(balancer) if at.tick < balancer.ready => {
                Err(Refusal::field(field, "The load balancer is still being created."))
            }
            Some(_) => Ok(()),
        }
    }
}

/// Whether a text has the form of a UUID.
fn is_uuid(text: &str) -> bool {
    text.len() == 36
        && text.bytes().enumerate().all(|(at, byte)| match at {
            8 | 13 | 18 | 23 => byte == b'-',
            _ => byte.is_ascii_hexdigit(),
        })
}
