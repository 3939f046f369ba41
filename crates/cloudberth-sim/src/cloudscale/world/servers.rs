//! Servers: made, switched on and off, taken away.

use serde_json::{Map, Value};

use super::{Moment, World};
use crate::cloudscale::{
    fields::{Fields, patch_labels},
    manners::{FLAVORS, ZONES},
    refusal::Refusal,
    stock::{Address, Interface, Server, Tags, Target},
};

/// A server to be made.
#[derive(Clone, Debug)]
pub(crate) struct NewServer {
    pub(crate) name: String,
    pub(crate) zone: String,
    pub(crate) flavor: String,
    pub(crate) image: String,
    /// It gets public addresses of both families.
    pub(crate) public: bool,
    /// The private subnets that it gets an address of; none is the first of its zone.
    pub(crate) subnets: Option<Vec<String>>,
    pub(crate) tags: Tags,
}

impl NewServer {
    /// One with public addresses and a private one.
    pub(crate) fn new(name: &str, zone: &str) -> Self {
        Self {
            name: name.to_owned(),
            zone: zone.to_owned(),
            flavor: "flex-4-2".to_owned(),
            image: "debian-13".to_owned(),
            public: true,
            subnets: None,
            tags: Tags::new(),
        }
    }
}

impl World {
    /// Makes a server that runs already.
    pub(crate) fn add_server(&mut self, new: &NewServer, at: Moment) -> Server {
        let uuid = self.draw_id();
        let mut interfaces = Vec::new();
        if new.public {
            interfaces.extend(self.interface(&self.subnets_of_zone(&new.zone, true), true));
        }
        let own = match &new.subnets {
            Some(subnets) => subnets.clone(),
            None => self.subnets_of_zone(&new.zone, false).into_iter().take(1).collect(),
        };
        interfaces
            .extend(own.iter().filter_map(|subnet| self.interface(std::slice::from_ref(subnet), false)));
        let server = Server {
            uuid: uuid.clone(),
            name: new.name.clone(),
            created_at: at.wall,
            status: "running".to_owned(),
            settles: None,
            zone: new.zone.clone(),
            flavor: new.flavor.clone(),
            image: new.image.clone(),
            interfaces,
            tags: new.tags.clone(),
        };
        self.stock.servers.insert(uuid, server.clone());
        server
    }

    /// A way to the network of these subnets, with an address of each; none where there is no such network.
    pub(crate) fn interface(&mut self, subnets: &[String], public: bool) -> Option<Interface> {
        let network = self.stock.subnets.get(subnets.first()?)?.network.clone();
        let addresses = subnets.iter().filter_map(|subnet| {
            Some(Address { address: self.pick_address(subnet)?, subnet: Some(subnet.clone()) })
        });
        Some(Interface { public, addresses: addresses.collect(), network })
    }

    /// The zone that a body names, or the default one.
    pub(super) fn zone(&self, fields: &mut Fields<'_>) -> String {
        let zone = fields.text("zone").unwrap_or(&self.manners.default_zone).to_owned();
        if !ZONES.iter().any(|(slug, _)| *slug == zone) {
            let known: Vec<_> = ZONES.iter().map(|(slug, _)| *slug).collect();
            let why = format!("{zone:?} is not a valid choice. Choose one of: {}.", known.join(", "));
            fields.mistake("zone", why);
        }
        zone
    }

    pub(super) fn create_server(&mut self, body: &Map<String, Value>, at: Moment) -> Result<String, Refusal> {
        let mut fields = Fields::new(body);
        let mut new = NewServer::new(fields.required_text("name"), &self.zone(&mut fields));
        fields.required_text("flavor").clone_into(&mut new.flavor);
        fields.required_text("image").clone_into(&mut new.image);
        new.tags = fields.tags();
        if !new.flavor.is_empty() && !FLAVORS.iter().any(|(slug, ..)| *slug == new.flavor) {
            fields.mistake("flavor", format!("{:?} is not a valid choice.", new.flavor));
        }
        if let Some(interfaces) = fields.value("interfaces") {
            match self.wanted_networks(interfaces) {
                Ok((public, subnets)) => (new.public, new.subnets) = (public, Some(subnets)),
                Err(why) => fields.mistake("interfaces", why),
            }
        }
        fields.finish()?;
        if self.stock.servers.len() >= self.manners.limits.servers {
            return Err(Refusal::limit("servers"));
        }
        let id = self.add_server(&new, at).uuid;
        self.change(&id, "running", at);
        Ok(id)
    }

    /// Which networks a new server is on: `[{"network": "public"}, {"network": "<uuid>"}]`.
    fn wanted_networks(&self, interfaces: &Value) -> Result<(bool, Vec<String>), String> {
        let interfaces = interfaces.as_array().ok_or("Expected a list of items.")?;
        let (mut public, mut subnets) = (false, Vec::new());
        for interface in interfaces {
            match interface.get("network").and_then(Value::as_str) {
                Some("public") => public = true,
                Some(network) => {
                    let subnet = self.stock.subnets.values().find(|subnet| subnet.network == network);
                    let subnet =
                        subnet.ok_or_else(|| format!("Object with uuid={network} does not exist."))?;
                    subnets.push(subnet.uuid.clone());
                }
                None => return Err("This field is required.".to_owned()),
            }
        }
        Ok((public, subnets))
    }

    pub(super) fn update_server(&mut self, id: &str, attribute: &str, value: &Value) -> Result<(), Refusal> {
        let server = self.stock.servers.get_mut(id).ok_or_else(Refusal::not_found)?;
        if attribute != "flavor" {
            return patch_labels(attribute, value, Some(&mut server.name), &mut server.tags);
        }
        match value.as_str().filter(|want| FLAVORS.iter().any(|(slug, ..)| slug == want)) {
            None => Err(Refusal::field("flavor", format!("{value} is not a valid choice."))),
            Some(_) if server.status != "stopped" => {
                Err(Refusal::new(400, "The server must be stopped to change its flavor."))
            }
            Some(flavor) => {
                flavor.clone_into(&mut server.flavor);
                Ok(())
            }
        }
    }

    /// `start`, `stop` or `reboot`, by way of `changing`. Asking for what is so already changes nothing.
    pub(crate) fn power(&mut self, id: &str, word: &str, at: Moment) -> Result<(), Refusal> {
        let server = self.stock.servers.get(id).ok_or_else(Refusal::not_found)?;
        let settled = if word == "stop" { "stopped" } else { "running" };
        if server.status != settled || word == "reboot" {
            self.change(id, settled, at);
        }
        Ok(())
    }

    fn change(&mut self, id: &str, settled: &str, at: Moment) {
        let when = at.tick + self.manners.boot;
        if let Some(server) = self.stock.servers.get_mut(id) {
            "changing".clone_into(&mut server.status);
            server.settles = Some((when, settled.to_owned()));
        }
        self.advance(at.tick);
    }

    /// Floating IPs lose their target; members stay where they are, and go down.
    pub(crate) fn delete_server(&mut self, id: &str) {
        if let Some(server) = self.stock.servers.remove(id) {
            self.stock.vacated.extend(server.addresses().map(|address| address.address));
            self.unassign(&Target::Server(id.to_owned()));
        }
    }
}
