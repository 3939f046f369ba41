//! Listeners.

use ipnet::IpNet;
use serde_json::{Map, Value};

use super::{Moment, World};
use crate::{
    fields::{Fields, check_positive, patch_labels},
    refusal::Refusal,
    resources::Listener,
};

const PROTOCOLS: [&str; 2] = ["tcp", "udp"];

impl World {
    pub(super) fn create_listener(
        &mut self,
        body: &Map<String, Value>,
        at: Moment,
    ) -> Result<String, Refusal> {
        let mut fields = Fields::new(body);
        let name = fields.required_text("name").to_owned();
        let pool = fields.required_text("pool").to_owned();
        let protocol = fields.required_word("protocol", &PROTOCOLS).to_owned();
        let protocol_port = fields.required_port("protocol_port");
        let allowed_cidrs = match fields.value("allowed_cidrs").map(check_cidrs) {
            None => Vec::new(),
            Some(Ok(cidrs)) => cidrs,
            Some(Err(why)) => {
                fields.mistake("allowed_cidrs", why);
                Vec::new()
            }
        };
        let timeout_client_data_ms = fields.positive("timeout_client_data_ms", 50_000);
        let timeout_member_connect_ms = fields.positive("timeout_member_connect_ms", 5_000);
        let timeout_member_data_ms = fields.positive("timeout_member_data_ms", 50_000);
        let tags = fields.tags();
        fields.finish()?;
        let balancer = self.balancer_of_built_pool(&pool, at)?;
        let same = |other: &Listener| {
            (&other.balancer, &other.protocol, other.protocol_port) == (&balancer, &protocol, protocol_port)
        };
        if self.resources.listeners.values().any(same) {
            let why = "The load balancer already has a listener with this protocol and protocol_port.";
            return Err(Refusal::new(400, why));
        }
        let uuid = self.draw_id();
        self.touched(&balancer, at);
        let listener = Listener {
            uuid: uuid.clone(),
            name,
            created_at: at.wall,
            pool: Some(pool),
            balancer,
            protocol,
            protocol_port,
            allowed_cidrs,
            timeout_client_data_ms,
            timeout_member_connect_ms,
            timeout_member_data_ms,
            tags,
        };
        self.resources.listeners.insert(uuid.clone(), listener);
        Ok(uuid)
    }

    pub(super) fn update_listener(
        &mut self,
        id: &str,
        attribute: &str,
        value: &Value,
        at: Moment,
    ) -> Result<(), Refusal> {
        let listener = self.resources.listeners.get_mut(id).ok_or_else(Refusal::not_found)?;
        let positive = || check_positive(value).map_err(|why| Refusal::field(attribute, why));
        match attribute {
            "allowed_cidrs" => {
                let cidrs = if value.is_null() { Ok(Vec::new()) } else { check_cidrs(value) };
                listener.allowed_cidrs = cidrs.map_err(|why| Refusal::field("allowed_cidrs", why))?;
            }
            "timeout_client_data_ms" => listener.timeout_client_data_ms = positive()?,
            "timeout_member_connect_ms" => listener.timeout_member_connect_ms = positive()?,
            "timeout_member_data_ms" => listener.timeout_member_data_ms = positive()?,
            _ => patch_labels(attribute, value, Some(&mut listener.name), &mut listener.tags)?,
        }
        let balancer = listener.balancer.clone();
        self.touched(&balancer, at);
        Ok(())
    }

    pub(super) fn delete_listener(&mut self, id: &str, at: Moment) {
        if let Some(listener) = self.resources.listeners.remove(id) {
            self.touched(&listener.balancer, at);
        }
    }
}

/// Networks as they were written; an address without a length is none.
fn check_cidrs(value: &Value) -> Result<Vec<String>, &'static str> {
    let entries = value.as_array().ok_or("Expected a list of items.")?;
    let network = |entry: &Value| {
        let text = entry.as_str()?;
        text.parse::<IpNet>().ok().map(|_| text.to_owned())
    };
    entries
        .iter()
        .map(network)
        .collect::<Option<_>>()
        .ok_or("Enter a valid network address in CIDR notation.")
}
