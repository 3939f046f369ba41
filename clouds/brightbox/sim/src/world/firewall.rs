//! Firewall policies and their rules.

use serde_json::{Map, Value};

use super::{Moment, World};
use crate::{
    fields::Fields,
    refusal::Refusal,
    resources::{FirewallPolicy, FirewallRule},
};

impl World {
    pub(super) fn create_policy(&mut self, body: &Map<String, Value>, at: Moment) -> Result<String, Refusal> {
        let mut fields = Fields::new(body);
        let (mut name, mut description) = (None, None);
        fields.set_text("name", &mut name);
        fields.set_text("description", &mut description);
        let group = self.named_group(&mut fields);
        fields.finish()?;
        self.check_free(group.as_deref())?;
        let id = self.draw_id("fwp");
        let (default, rules) = (false, Vec::new());
        let policy =
            FirewallPolicy { id: id.clone(), name, description, default, created_at: at.wall, group, rules };
        self.resources.policies.insert(id.clone(), policy);
        Ok(id)
    }

    /// The group that a body names; one that does not exist is a mistake.
    fn named_group(&self, fields: &mut Fields<'_>) -> Option<String> {
        let group = fields.text("server_group")?;
        if !self.resources.groups.contains_key(group) {
            fields.mistake(&format!("server_group {group} does not exist"));
        }
        Some(group.to_owned())
    }

    /// A group has one policy at most.
    fn check_free(&self, group: Option<&str>) -> Result<(), Refusal> {
        match group.and_then(|group| self.resources.policy_of(group)) {
            None => Ok(()),
            Some(_) => Err(Refusal::conflict("The server group has a firewall policy already")),
        }
    }

    pub(super) fn update_policy(&mut self, id: &str, body: &Map<String, Value>) -> Result<(), Refusal> {
        let policy = self.resources.policies.get_mut(id).ok_or_else(|| Refusal::not_found(id))?;
        if policy.default && body.contains_key("name") {
            return Err(Refusal::conflict("The default firewall policy cannot be renamed"));
        }
        let (mut name, mut description) = (policy.name.clone(), policy.description.clone());
        let mut fields = Fields::new(body);
        fields.set_text("name", &mut name);
        fields.set_text("description", &mut description);
        fields.finish()?;
        (policy.name, policy.description) = (name, description);
        Ok(())
    }

    pub(super) fn delete_policy(&mut self, id: &str) -> Result<(), Refusal> {
        let policy = self.resources.policies.get(id).ok_or_else(|| Refusal::not_found(id))?;
        if policy.default {
            return Err(Refusal::conflict("The default firewall policy cannot be deleted"));
        }
        self.resources.policies.remove(id);
        Ok(())
    }

    /// `apply_to` and `remove`.
    pub(super) fn attach(
        &mut self,
        id: &str,
        attach: bool,
        body: &Map<String, Value>,
    ) -> Result<(), Refusal> {
        let mut fields = Fields::new(body);
        if fields.value("server_group").is_none() {
            fields.mistake("server_group can't be blank");
        }
        let group = self.named_group(&mut fields);
        fields.finish()?;
        let has = self.resources.policies.get(id).and_then(|policy| policy.group.clone());
        if attach {
            if has.is_some() {
                return Err(Refusal::conflict("The firewall policy is applied to a server group already"));
            }
            self.check_free(group.as_deref())?;
        } else if has != group {
            return Err(Refusal::conflict("The firewall policy is not applied to this server group"));
        }
        let policy = self.resources.policies.get_mut(id).ok_or_else(|| Refusal::not_found(id))?;
        policy.group = if attach { group } else { None };
        Ok(())
    }

    /// A rule, and the policy that it is in.
    pub(crate) fn rule(&self, id: &str) -> Option<(&FirewallPolicy, &FirewallRule)> {
        let mut policies = self.resources.policies.values();
        policies.find_map(|policy| Some((policy, policy.rules.iter().find(|rule| rule.id == id)?)))
    }

    pub(super) fn create_rule(&mut self, body: &Map<String, Value>, at: Moment) -> Result<String, Refusal> {
        let mut fields = Fields::new(body);
        let policy = fields.text("firewall_policy").unwrap_or_default();
        if !self.resources.policies.contains_key(policy) {
            fields.mistake(&format!("firewall_policy {policy:?} does not exist"));
        }
        let mut rule =
            FirewallRule { id: self.draw_id("fwr"), created_at: at.wall, ..FirewallRule::default() };
        self.read_rule(&mut rule, &mut fields);
        fields.finish()?;
        let id = rule.id.clone();
        if let Some(policy) = self.resources.policies.get_mut(policy) {
            policy.rules.push(rule);
        }
        Ok(id)
    }

    /// What is given replaces what was there; `null` removes it.
    pub(super) fn update_rule(&mut self, id: &str, body: &Map<String, Value>) -> Result<(), Refusal> {
        let (policy, rule) = self.rule(id).ok_or_else(|| Refusal::not_found(id))?;
        let (policy, mut rule) = (policy.id.clone(), rule.clone());
        let mut fields = Fields::new(body);
        if fields.text("firewall_policy").is_some_and(|other| other != policy) {
            fields.mistake("firewall_policy cannot be changed");
        }
        self.read_rule(&mut rule, &mut fields);
        fields.finish()?;
        let policy = self.resources.policies.get_mut(&policy);
        if let Some(place) = policy.and_then(|policy| policy.rules.iter_mut().find(|rule| rule.id == id)) {
            *place = rule;
        }
        Ok(())
    }

    pub(super) fn delete_rule(&mut self, id: &str) {
        for policy in self.resources.policies.values_mut() {
            policy.rules.retain(|rule| rule.id != id);
        }
    }
}
