//! Servers: created, started, stopped, deleted.

use serde_json::{Map, Value};

use super::{Moment, World, interfaces::WantedInterface};
use crate::{
    fields::{Fields, patch_labels},
    refusal::Refusal,
    resources::{Server, Tags, Target},
    settings::{FLAVORS, ZONES},
};

/// A server to be created.
#[derive(Clone, Debug)]
pub(crate) struct NewServer {
    pub(crate) name: String,
    pub(crate) zone: String,
    pub(crate) flavor: String,
    pub(crate) image: String,
    /// Its interfaces; without any it gets the default ones of its zone.
    pub(crate) interfaces: Option<Vec<WantedInterface>>,
    pub(crate) tags: Tags,
}

impl NewServer {
    /// A server with public addresses and a private one.
    pub(crate) fn new(name: &str, zone: &str) -> Self {
        Self {
            name: name.to_owned(),
            zone: zone.to_owned(),
            flavor: "flex-4-2".to_owned(),
            image: "debian-13".to_owned(),
            interfaces: None,
            tags: Tags::new(),
        }
    }
}

impl World {
    /// Creates a server that runs.
    pub(crate) fn add_server(&mut self, new: &NewServer, at: Moment) -> Server {
        let uuid = self.draw_id();
        let wanted = new.interfaces.clone().unwrap_or_else(|| self.usual_interfaces(&new.zone));
        let interfaces = wanted.iter().map(|wanted| self.build_interface(wanted, &[])).collect();
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
        self.resources.servers.insert(uuid, server.clone());
        server
    }

    /// The zone that a body names, or the default one.
    pub(super) fn zone(&self, fields: &mut Fields<'_>) -> String {
        let zone = fields.text("zone").unwrap_or(&self.settings.default_zone).to_owned();
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
            match self.wanted_interfaces(interfaces, &new.zone) {
                Ok(wanted) => new.interfaces = Some(wanted),
                Err(why) => fields.mistake("interfaces", why),
            }
        }
        fields.finish()?;
        if self.resources.servers.len() >= self.settings.limits.servers {
            return Err(Refusal::limit("servers"));
        }
        let id = self.add_server(&new, at).uuid;
        self.change(&id, "running", at);
        Ok(id)
    }

    pub(super) fn update_server(&mut self, id: &str, attribute: &str, value: &Value) -> Result<(), Refusal> {
        match attribute {
            "flavor" => self.scale(id, value),
            "interfaces" => self.reconnect(id, value),
            _ => {
                let server = self.resources.servers.get_mut(id).ok_or_else(Refusal::not_found)?;
                patch_labels(attribute, value, Some(&mut server.name), &mut server.tags)
            }
        }
    }

    fn scale(&mut self, id: &str, value: &Value) -> Result<(), Refusal> {
        let server = self.resources.servers.get_mut(id).ok_or_else(Refusal::not_found)?;
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

    fn reconnect(&mut self, id: &str, value: &Value) -> Result<(), Refusal> {
        let Server { zone, interfaces: had, .. } =
            self.resources.servers.get(id).ok_or_else(Refusal::not_found)?.clone();
        let wrong = |why: String| Refusal::field("interfaces", why);
        let wanted = self.wanted_interfaces(value, &zone).map_err(wrong)?;
        let interfaces = wanted.iter().map(|wanted| self.build_interface(wanted, &had)).collect();
        if let Some(server) = self.resources.servers.get_mut(id) {
            server.interfaces = interfaces;
        }
        self.forget_used();
        Ok(())
    }

    /// `start`, `stop` or `reboot`, by way of `changing`. A server that is in that state already stays as it is.
    pub(crate) fn power(&mut self, id: &str, word: &str, at: Moment) -> Result<(), Refusal> {
        let server = self.resources.servers.get(id).ok_or_else(Refusal::not_found)?;
        let settled = if word == "stop" { "stopped" } else { "running" };
        if server.status != settled || word == "reboot" {
            self.change(id, settled, at);
        }
        Ok(())
    }

    fn change(&mut self, id: &str, settled: &str, at: Moment) {
        let when = at.tick + self.settings.boot;
        if let Some(server) = self.resources.servers.get_mut(id) {
            "changing".clone_into(&mut server.status);
            server.settles = Some((when, settled.to_owned()));
        }
        self.advance(at.tick);
    }

    /// Floating IPs lose their target; members stay where they are, and go down.
    pub(crate) fn delete_server(&mut self, id: &str) {
        if let Some(server) = self.resources.servers.remove(id) {
            self.resources.vacated.extend(server.addresses().map(|address| address.address));
            self.forget_used();
            self.unassign(&Target::Server(id.to_owned()));
        }
    }
}
