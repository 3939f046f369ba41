//! Members of pools.

use serde_json::{Map, Value};

use super::{Moment, World};
use crate::{
    fields::{Fields, patch_labels},
    refusal::Refusal,
    resources::Member,
};

impl World {
    pub(super) fn create_member(
        &mut self,
        pool: &str,
        body: &Map<String, Value>,
        at: Moment,
    ) -> Result<String, Refusal> {
        let mut fields = Fields::new(body);
        let name = fields.required_text("name").to_owned();
        fields.required_text("address");
        let address = fields.address("address");
        let protocol_port = fields.required_port("protocol_port");
        let monitor_port = fields.port("monitor_port");
        let subnet = fields.required_text("subnet").to_owned();
        let enabled = fields.flag("enabled", true);
        let tags = fields.tags();
        match self.resources.subnets.get(&subnet) {
            None => fields.mistake("subnet", format!("Object with uuid={subnet} does not exist.")),
            Some(subnet) if address.is_some_and(|address| !subnet.cidr.contains(&address)) => {
                fields.mistake("address", "This is not a valid IP for the specified subnet.");
            }
            Some(_) => {}
        }
        fields.finish()?;
        let Some(address) = address else { return Err(Refusal::field("address", "This field is required.")) };
        let balancer = self.balancer_of_built_pool(pool, at)?;
        let same = |member: &Member| (member.address, member.protocol_port) == (address, protocol_port);
        if self.resources.members_of(pool).any(same) {
            let why = "The pool already has a member with this address and protocol_port.";
            return Err(Refusal::new(400, why));
        }
        if self.resources.members_of(pool).count() >= self.settings.limits.members {
            return Err(Refusal::limit("members of one pool"));
        }
        let uuid = self.draw_id();
        let member = Member {
            uuid: uuid.clone(),
            name,
            created_at: at.wall,
            pool: pool.to_owned(),
            enabled,
            address,
            protocol_port,
            monitor_port,
            subnet,
            tags,
            health: None,
        };
        self.with_members(pool, false, at, |resources| {
            resources.members.insert(member.uuid.clone(), member);
        });
        self.touched(&balancer, at);
        Ok(uuid)
    }

    pub(super) fn update_member(
        &mut self,
        id: &str,
        attribute: &str,
        value: &Value,
        at: Moment,
    ) -> Result<(), Refusal> {
        let member = self.resources.members.get_mut(id).ok_or_else(Refusal::not_found)?;
        let pool = member.pool.clone();
        if attribute == "enabled" {
            let wrong = || Refusal::field("enabled", "Must be a valid boolean.");
            let enabled = value.as_bool().ok_or_else(wrong)?;
            self.with_members(&pool, false, at, |resources| {
                if let Some(member) = resources.members.get_mut(id) {
                    member.enabled = enabled;
                }
            });
        } else {
            patch_labels(attribute, value, Some(&mut member.name), &mut member.tags)?;
        }
        self.touched_by_pool(&pool, at);
        Ok(())
    }

    pub(super) fn delete_member(&mut self, id: &str, at: Moment) {
        let Some(pool) = self.resources.members.get(id).map(|member| member.pool.clone()) else { return };
        self.with_members(&pool, false, at, |resources| {
            resources.members.remove(id);
        });
        self.touched_by_pool(&pool, at);
    }
}
