//! Server groups and who is in them.

use serde_json::{Map, Value};

use super::{Moment, World};
use crate::{
    fields::Fields,
    refusal::Refusal,
    resources::{Destination, FirewallPolicy, FirewallRule, Group},
};

impl World {
    /// The group and the policy that every account has.
    pub(super) fn lay_defaults(&mut self, at: Moment) {
        let group = self.add_group(Some("default".to_owned()), None, at);
        if let Some(group) = self.resources.groups.get_mut(&group) {
            group.default = true;
        }
        let rule = |destination: Option<&str>, source: Option<&str>| FirewallRule {
            id: self.draw_id("fwr"),
            created_at: at.wall,
            destination: destination.map(str::to_owned),
            source: source.map(str::to_owned),
            ..FirewallRule::default()
        };
        let policy = FirewallPolicy {
            id: self.draw_id("fwp"),
            name: Some("default".to_owned()),
            description: None,
            default: true,
            created_at: at.wall,
            rules: vec![rule(Some("any"), None), rule(None, Some(&group))],
            group: Some(group),
        };
        self.resources.policies.insert(policy.id.clone(), policy);
    }

    fn add_group(&mut self, name: Option<String>, description: Option<String>, at: Moment) -> String {
        let id = self.draw_id("grp");
        let fqdn = format!("{id}.{}", self.settings.domain());
        let (default, servers) = (false, Vec::new());
        let group = Group { id: id.clone(), name, description, default, fqdn, created_at: at.wall, servers };
        self.resources.groups.insert(id.clone(), group);
        id
    }

    pub(super) fn create_group(&mut self, body: &Map<String, Value>, at: Moment) -> Result<String, Refusal> {
        let mut fields = Fields::new(body);
        let (mut name, mut description) = (None, None);
        fields.set_text("name", &mut name);
        fields.set_text("description", &mut description);
        let members = self.members(&mut fields);
        fields.finish()?;
        let id = self.add_group(name, description, at);
        if let Some(group) = self.resources.groups.get_mut(&id) {
            group.servers = members;
        }
        Ok(id)
    }

    pub(super) fn update_group(&mut self, id: &str, body: &Map<String, Value>) -> Result<(), Refusal> {
        let group = self.resources.groups.get_mut(id).ok_or_else(|| Refusal::not_found(id))?;
        if group.default && body.contains_key("name") {
            return Err(Refusal::conflict("The default server group cannot be renamed"));
        }
        let (mut name, mut description) = (group.name.clone(), group.description.clone());
        let mut fields = Fields::new(body);
        fields.set_text("name", &mut name);
        fields.set_text("description", &mut description);
        fields.finish()?;
        (group.name, group.description) = (name, description);
        Ok(())
    }

    pub(super) fn delete_group(&mut self, id: &str) -> Result<(), Refusal> {
        let group = self.resources.groups.get(id).ok_or_else(|| Refusal::not_found(id))?;
        if group.default {
            return Err(Refusal::conflict("The default server group cannot be deleted"));
        }
        if !group.servers.is_empty() {
            return Err(Refusal::conflict("The server group still has servers"));
        }
        self.resources.groups.remove(id);
        for policy in self.resources.policies.values_mut() {
            policy.group.take_if(|group| group == id);
        }
        self.unmap_all(&Destination::Group(id.to_owned()));
        Ok(())
    }

    /// The servers in `[{"server": id}]`, each once; those that do not exist are mistakes.
    fn members(&self, fields: &mut Fields<'_>) -> Vec<String> {
        let mut members: Vec<String> = Vec::new();
        for id in fields.references("servers", "server").unwrap_or_default() {
            if !self.has_server(id) {
                fields.mistake(&format!("server {id} does not exist"));
            }
            if !members.iter().any(|member| member == id) {
                members.push(id.to_owned());
            }
        }
        members
    }

    /// Whether there is such a server. One that is being deleted is there until it is deleted.
    pub(super) fn has_server(&self, id: &str) -> bool {
        self.resources.servers.get(id).is_some_and(|server| server.status != "deleted")
    }

    /// Adding a server that is in the group already, and removing one that is not, changes nothing.
    pub(super) fn change_members(
        &mut self,
        id: &str,
        add: bool,
        body: &Map<String, Value>,
    ) -> Result<(), Refusal> {
        let mut fields = Fields::new(body);
        if fields.value("servers").is_none() {
            fields.mistake("servers can't be blank");
        }
        let members = self.members(&mut fields);
        fields.finish()?;
        let group = self.resources.groups.get_mut(id).ok_or_else(|| Refusal::not_found(id))?;
        group.servers.retain(|member| add || !members.contains(member));
        for member in members {
            if add && !group.servers.contains(&member) {
                group.servers.push(member);
            }
        }
        Ok(())
    }
}
