//! VPCs and their routes. PUT clears what it leaves out, PATCH leaves it as it is; a list of routes is written as a whole.

use std::net::Ipv4Addr;

use ipnet::Ipv4Net;
use serde_json::{Value, json};

use super::{Reply, World, addresses::VPC_RANGE, next};
use crate::{
    fields::Fields,
    refusal::Refusal,
    render,
    resources::{RouteEntry, Vpc},
};

impl World {
    pub(crate) fn add_vpc(&mut self, name: &str, ip_range: Ipv4Net) -> i64 {
        let id = next(&mut self.ids.vpc);
        let vpc = Vpc { id, name: name.to_owned(), ip_range, route_entries: Vec::new() };
        self.resources.vpcs.insert(id, vpc);
        id
    }

    fn vpc(&self, id: i64) -> Result<&Vpc, Refusal> {
        self.resources.vpcs.get(&id).ok_or_else(Refusal::not_found)
    }

    pub(super) fn show_vpc(&self, id: i64) -> Result<Reply, Refusal> {
        Ok(Reply::ok(json!({"vpc": render::vpc(self.vpc(id)?)})))
    }

    pub(super) fn create_vpc(&mut self, body: &[u8]) -> Result<Reply, Refusal> {
        let mut fields = Fields::new(body)?;
        let name = required_name(&mut fields);
        let range = fields
            .text("ip_range")
            .map(|text| text.parse::<Ipv4Net>().ok().filter(|net| net.prefix_len() <= 29));
        if range == Some(None) {
            fields.mistake("ip_range", "It must be a network such as 10.240.0.0/16.");
        }
        let range = range.flatten().map_or(VPC_RANGE, |net| net.trunc());
        let entries = entries(&mut fields, range).unwrap_or_default();
        fields.finish()?;
        let id = self.add_vpc(&name, range);
        self.store(id, None, Some(entries))
    }

    pub(super) fn replace_vpc(&mut self, id: i64, body: &[u8]) -> Result<Reply, Refusal> {
        let range = self.vpc(id)?.ip_range;
        let mut fields = Fields::new(body)?;
        let name = required_name(&mut fields);
        let entries = entries(&mut fields, range).unwrap_or_default();
        fields.finish()?;
        self.store(id, Some(name), Some(entries))
    }

    pub(super) fn patch_vpc(&mut self, id: i64, body: &[u8]) -> Result<Reply, Refusal> {
        let range = self.vpc(id)?.ip_range;
        let mut fields = Fields::new(body)?;
        let name = name(&mut fields);
        if name.as_deref() == Some("") {
            fields.mistake("name", "The name must have at least one character.");
        }
        let entries = entries(&mut fields, range);
        fields.finish()?;
        self.store(id, name, entries)
    }

    fn store(
        &mut self,
        id: i64,
        name: Option<String>,
        entries: Option<Vec<RouteEntry>>,
    ) -> Result<Reply, Refusal> {
        if let Some(vpc) = self.resources.vpcs.get_mut(&id) {
            vpc.name = name.unwrap_or_else(|| vpc.name.clone());
            vpc.route_entries = entries.unwrap_or_else(|| vpc.route_entries.clone());
        }
        self.show_vpc(id)
    }

    /// Refused while there are servers in it.
    pub(super) fn delete_vpc(&mut self, id: i64) -> Result<Reply, Refusal> {
        self.vpc(id)?;
        if self.resources.members_of(id).next().is_some() {
            return Err(Refusal::problem(403, "Forbidden"));
        }
        self.resources.vpcs.remove(&id);
        Ok(Reply::done())
    }
}

/// A name that may be left out.
fn name(fields: &mut Fields) -> Option<String> {
    let name = fields.text("name")?;
    if name.chars().count() > 250 {
        fields.mistake("name", "The name may have at most 250 characters.");
    }
    Some(name)
}

fn required_name(fields: &mut Fields) -> String {
    fields.require("name");
    name(fields).unwrap_or_default()
}

/// The routes that a body lists.
fn entries(fields: &mut Fields, range: Ipv4Net) -> Option<Vec<RouteEntry>> {
    let objects = fields.objects("route_entries")?;
    let mut entries = Vec::with_capacity(objects.len());
    for object in objects {
        let mut text = |field: &str| match object.get(field) {
            None | Some(Value::Null) => None,
            Some(Value::String(text)) => Some(text.clone()),
            Some(_) => {
                fields.mistake(field, "The value must be a string.");
                None
            }
        };
        let (router, destination, description) = (text("router"), text("destination"), text("description"));
        let router = router.unwrap_or_default();
        if !router.parse::<Ipv4Addr>().is_ok_and(|router| range.contains(&router)) {
            fields.mistake("router", format!("The router {router:?} is no address of the VPC."));
        }
        let destination = destination.unwrap_or_default();
        if destination.parse::<Ipv4Net>().is_err() && destination.parse::<Ipv4Addr>().is_err() {
            fields.mistake("destination", format!("{destination:?} is no IPv4 address and no network."));
        }
        if description.as_ref().is_some_and(|description| description.chars().count() > 250) {
            fields.mistake("description", "The description may have at most 250 characters.");
        }
        entries.push(RouteEntry { router, destination, description });
    }
    Some(entries)
}
