//! Load balancers: built, changed, deleted.

use std::collections::BTreeSet;

use serde_json::{Map, Value};

use super::{Moment, World, servers::kept, wall_at};
use crate::{
    fields::Fields,
    history::NodesChange,
    refusal::Refusal,
    resources::{Balancer, Destination, HealthCheck},
};

impl World {
    pub(super) fn create_balancer(
        &mut self,
        body: &Map<String, Value>,
        at: Moment,
    ) -> Result<String, Refusal> {
        let mut fields = Fields::new(body);
        for required in ["listeners", "healthcheck"] {
            if fields.value(required).is_none() {
                fields.mistake(&format!("{required} can't be blank"));
            }
        }
        let mut balancer = blank(self.draw_id("lba"), at);
        self.read_balancer(&mut balancer, &mut fields, at.tick);
        fields.finish()?;
        let there = self.resources.balancers.values().filter(|balancer| balancer.status != "deleted").count();
        if there >= self.settings.limits.balancers {
            return Err(Refusal::limit("load balancers"));
        }
        balancer.settles = Some((at.tick + self.settings.delays.build, self.settings.builds_end_in.clone()));
        let id = balancer.id.clone();
        self.resources.balancers.insert(id.clone(), balancer);
        Ok(id)
    }

    /// A balancer that can still be changed.
    fn changeable(&self, id: &str) -> Result<&Balancer, Refusal> {
        let balancer = self.resources.balancers.get(id).ok_or_else(|| Refusal::not_found(id))?;
        match balancer.status.as_str() {
            "deleting" | "deleted" | "failed" => {
                Err(Refusal::conflict(&format!("The load balancer is {}", balancer.status)))
            }
            _ => Ok(balancer),
        }
    }

    /// What is given replaces what was there, lists as a whole; the rest stays.
    pub(super) fn update_balancer(
        &mut self,
        id: &str,
        body: &Map<String, Value>,
        at: Moment,
    ) -> Result<(), Refusal> {
        let mut balancer = self.changeable(id)?.clone();
        let mut fields = Fields::new(body);
        self.read_balancer(&mut balancer, &mut fields, at.tick);
        fields.finish()?;
        self.write_nodes(id, at, |nodes| nodes.clone_from(&balancer.nodes));
        self.resources.balancers.insert(id.to_owned(), balancer);
        Ok(())
    }

    pub(super) fn delete_balancer(&mut self, id: &str, at: Moment) -> Result<(), Refusal> {
        let due = at.tick + self.settings.delays.removal;
        let balancer = self.resources.balancers.get_mut(id).ok_or_else(|| Refusal::not_found(id))?;
        if balancer.locked {
            return Err(Refusal::conflict("A locked load balancer cannot be deleted"));
        }
        if matches!(balancer.status.as_str(), "deleting" | "deleted") {
            return Err(Refusal::conflict(&format!("The load balancer is {} already", balancer.status)));
        }
        balancer.settles = Some((due, "deleted".to_owned()));
        "deleting".clone_into(&mut balancer.status);
        Ok(())
    }

    /// `add_nodes` and `remove_nodes`. The last node cannot be removed.
    pub(super) fn change_nodes(
        &mut self,
        id: &str,
        add: bool,
        body: &Map<String, Value>,
        at: Moment,
    ) -> Result<(), Refusal> {
        let mut nodes = self.changeable(id)?.nodes.clone();
        let mut fields = Fields::new(body);
        if fields.value("nodes").is_none() {
            fields.mistake("nodes can't be blank");
        }
        let named = self.read_nodes(&mut fields).unwrap_or_default();
        nodes.retain(|node| !named.contains(node));
        if add {
            nodes.extend(named);
        } else if nodes.is_empty() {
            fields.mistake("the last node cannot be removed");
        }
        fields.finish()?;
        self.write_nodes(id, at, |place| *place = nodes);
        Ok(())
    }

    /// `add_listeners` and `remove_listeners`. A listener is known by the port that it listens on.
    pub(super) fn change_listeners(
        &mut self,
        id: &str,
        add: bool,
        body: &Map<String, Value>,
    ) -> Result<(), Refusal> {
        let mut balancer = self.changeable(id)?.clone();
        let mut fields = Fields::new(body);
        if fields.value("listeners").is_none() {
            fields.mistake("listeners can't be blank");
        }
        let named = Self::read_listeners(&mut fields).unwrap_or_default();
        if add {
            balancer.listeners.extend(named);
        } else {
            let gone: BTreeSet<_> = named.iter().map(|listener| listener.in_port).collect();
            balancer.listeners.retain(|listener| !gone.contains(&listener.in_port));
        }
        Self::check_balancer(&balancer, &mut fields);
        fields.finish()?;
        self.resources.balancers.insert(id.to_owned(), balancer);
        Ok(())
    }

    /// Changes the nodes of a balancer, and remembers it if others are behind it now.
    pub(super) fn write_nodes(&mut self, id: &str, at: Moment, change: impl FnOnce(&mut Vec<String>)) {
        let Some(balancer) = self.resources.balancers.get_mut(id) else { return };
        let before = balancer.nodes.clone();
        change(&mut balancer.nodes);
        let after = balancer.nodes.clone();
        if before.iter().collect::<BTreeSet<_>>() == after.iter().collect::<BTreeSet<_>>() {
            return;
        }
        let runs =
            |id: &&String| self.resources.servers.get(*id).is_some_and(|server| server.status == "active");
        let running_before = before.iter().filter(runs).count();
        let balancer = id.to_owned();
        self.history.push(NodesChange { balancer, at: at.tick, before, running_before, after });
    }

    pub(super) fn advance_balancers(&mut self, at: Moment) {
        let mut gone = Vec::new();
        for balancer in self.resources.balancers.values_mut().filter(|b| !self.stuck.contains(&b.id)) {
            let Some((due, status)) = balancer.settles.take_if(|(due, _)| *due <= at.tick) else { continue };
            match status.as_str() {
                "active" => balancer.active_since = Some(due),
                "deleted" => {
                    balancer.deleted_at = Some(wall_at(at, due));
                    gone.push(Destination::Balancer(balancer.id.clone()));
                }
                _ => {}
            }
            balancer.status = status;
        }
        for destination in gone {
            self.unmap_all(&destination);
        }
        let retention = self.settings.delays.retention;
        let shown = |balancer: &Balancer| balancer.deleted_at.is_none_or(|gone| kept(gone, at, retention));
        self.resources.balancers.retain(|_, balancer| shown(balancer));
    }
}

/// A balancer with everything as it is when nothing is said about it.
fn blank(id: String, at: Moment) -> Balancer {
    Balancer {
        id,
        name: None,
        status: "creating".to_owned(),
        locked: false,
        policy: "least-connections".to_owned(),
        buffer_size: 4_096,
        https_redirect: false,
        ssl_minimum_version: "TLSv1.2".to_owned(),
        listeners: Vec::new(),
        healthcheck: HealthCheck {
            kind: String::new(),
            port: 0,
            request: "/".to_owned(),
            interval: 5_000,
            timeout: 5_000,
            threshold_up: 3,
            threshold_down: 3,
        },
        domains: Vec::new(),
        certificate: false,
        created_at: at.wall,
        deleted_at: None,
        nodes: Vec::new(),
        active_since: None,
        settles: None,
    }
}
