//! What can be done to a server.

use std::net::Ipv4Addr;

use serde_json::json;

use super::{Call, Reply, World, actions::Subject, servers::no_choice};
use crate::{
    fields::Fields,
    refusal::Refusal,
    render,
    resources::{Effect, Server},
};

/// The server actions that are simulated.
const KINDS: [&str; 11] = [
    "power_on",
    "power_off",
    "power_cycle",
    "shutdown",
    "reboot",
    "is_running",
    "rename",
    "change_network",
    "change_vpc_ipv4",
    "change_source_and_destination_check",
    "uncancel",
];

impl World {
    pub(super) fn act_on_server(&mut self, id: i64, call: Call<'_>) -> Result<Reply, Refusal> {
        let server = self.resources.servers.get(&id).ok_or_else(Refusal::not_found)?.clone();
        let mut fields = Fields::new(call.body)?;
        let kind = fields.required_text("type");
        if !kind.is_empty() && !KINDS.contains(&kind.as_str()) {
            fields.mistake("type", no_choice(&kind, KINDS));
        }
        fields.finish()?;
        let (effect, fails) = self.effect(&server, &kind)?;
        let changed = self.changed(server, &kind, fields)?;
        let subject = Subject { kind: "server", id, region: Some(changed.region.clone()) };
        self.resources.servers.insert(id, changed);
        let action = self.start(&kind, subject, effect, (self.settings.boot, fails), call.at);
        if self.settings.switches.silent_actions.contains(&kind) {
            return Ok(Reply { status: 202, body: None });
        }
        let action = self.resources.actions.get(&action);
        Ok(Reply::ok(json!({"action": action.map(|action| render::action(action, &self.settings))})))
    }

    /// What the action changes when it ends, and whether it ends in an error.
    fn effect(&self, server: &Server, kind: &str) -> Result<(Effect, bool), Refusal> {
        let powers = matches!(kind, "power_on" | "power_off" | "power_cycle" | "shutdown" | "reboot");
        if powers && server.status == "archive" {
            return Err(Refusal::field("type", "The server was cancelled."));
        }
        Ok(match kind {
            "power_on" | "power_cycle" | "reboot" => (Effect::ServerOn, false),
            "power_off" | "shutdown" => (Effect::ServerOff, false),
            "is_running" => (Effect::Nothing, !server.running || self.settings.switches.probe_fails),
            _ => (Effect::Nothing, false),
        })
    }

    /// The server with what changes at once.
    fn changed(&self, mut server: Server, kind: &str, mut fields: Fields) -> Result<Server, Refusal> {
        match kind {
            "rename" => {
                fields.required_text("name");
                server.name = fields.host_name("name").unwrap_or_default();
            }
            "change_network" => {
                let vpc = fields.integer("vpc_id");
                if vpc.is_some_and(|vpc| !self.resources.vpcs.contains_key(&vpc)) {
                    fields.mistake("vpc_id", "There is no such VPC.");
                }
                server.vpc_id = vpc;
                server.v4.retain(|address| address.public);
                let private = self.addresses(false, vpc, None);
                server.v4.extend(private);
            }
            "change_vpc_ipv4" => self.change_address(&mut server, &mut fields),
            "change_source_and_destination_check" => {
                fields.require("enabled");
                if server.vpc_id.is_none() {
                    fields.mistake("type", "The server is in no VPC.");
                }
                server.source_and_destination_check = fields.flag("enabled").unwrap_or_default();
            }
            "uncancel" if server.cancelled_at.is_none() || server.status == "archive" => {
                fields.mistake("type", "The server was not cancelled, or it is too late.");
            }
            "uncancel" => (server.cancelled_at, server.archived, server.gone) = (None, None, None),
            _ => {}
        }
        fields.finish().map(|()| server)
    }

    fn change_address(&self, server: &mut Server, fields: &mut Fields) {
        let current = fields.required_text("current_ipv4_address").parse::<Ipv4Addr>().ok();
        let new = fields.required_text("new_ipv4_address").parse::<Ipv4Addr>().ok();
        let range = server.vpc_id.and_then(|vpc| self.resources.vpcs.get(&vpc)).map(|vpc| vpc.ip_range);
        let mut own = server.v4.iter_mut().filter(|address| !address.public);
        let Some(address) = own.find(|address| Some(address.address) == current) else {
            return fields.mistake("current_ipv4_address", "The server has no such private address.");
        };
        match new.filter(|new| range.is_some_and(|range| range.contains(new)) && !self.is_used(*new)) {
            None => fields.mistake("new_ipv4_address", "It is no free address of the VPC."),
            Some(new) => address.address = new,
        }
    }
}
