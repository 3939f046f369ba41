//! Servers: started, stopped, deleted.

use super::{Moment, World, wall_at};
use crate::{
    refusal::Refusal,
    resources::{Destination, Interface, Server},
    settings::USUAL_TYPE,
};

impl World {
    /// Makes a server that runs, in the default group.
    pub(crate) fn add_server(&mut self, name: &str, zone: &str, at: Moment) -> Server {
        let id = self.draw_id("srv");
        self.addresses += 1;
        let [_, high, middle, low] = self.addresses.to_be_bytes();
        let interface = Interface {
            id: self.draw_id("int"),
            mac_address: format!("02:24:19:{high:02x}:{middle:02x}:{low:02x}"),
            ipv4_address: Some(format!("10.{}.{middle}.{low}", 240 + high % 16)),
            ipv6_address: Some(format!(
                "2a02:1348:17c:41:24:19ff:fe{high:02x}:{:x}",
                self.addresses & 0xffff
            )),
        };
        let server = Server {
            name: name.to_owned(),
            status: "active".to_owned(),
            locked: false,
            hostname: id.clone(),
            fqdn: format!("{id}.{}", self.settings.domain()),
            created_at: at.wall,
            started_at: Some(at.wall),
            deleted_at: None,
            zone: Some(zone.to_owned()),
            server_type: Some(USUAL_TYPE.to_owned()),
            interfaces: vec![interface],
            settles: None,
            id: id.clone(),
        };
        self.resources.servers.insert(id.clone(), server.clone());
        if let Some(group) = self.resources.groups.values_mut().find(|group| group.default) {
            group.servers.push(id);
        }
        server
    }

    /// `start`, `stop` or `shutdown`.
    pub(crate) fn power(&mut self, id: &str, word: &str, at: Moment) -> Result<(), Refusal> {
        let due = at.tick + self.settings.delays.boot;
        let server = self.resources.servers.get_mut(id).ok_or_else(|| Refusal::not_found(id))?;
        let (from, to) = if word == "start" { ("inactive", "active") } else { ("active", "inactive") };
        if server.status != from {
            return Err(Refusal::conflict(&format!("A server that is {} cannot {word}", server.status)));
        }
        server.settles = Some((due, to.to_owned()));
        Ok(())
    }

    pub(crate) fn delete_server(&mut self, id: &str, at: Moment) -> Result<(), Refusal> {
        let due = at.tick + self.settings.delays.boot;
        let server = self.resources.servers.get_mut(id).ok_or_else(|| Refusal::not_found(id))?;
        if server.locked {
            return Err(Refusal::conflict("A locked server cannot be deleted"));
        }
        if matches!(server.status.as_str(), "deleting" | "deleted") {
            return Err(Refusal::conflict(&format!("The server is {} already", server.status)));
        }
        server.settles = Some((due, "deleted".to_owned()));
        "deleting".clone_into(&mut server.status);
        Ok(())
    }

    pub(super) fn advance_servers(&mut self, at: Moment) {
        let mut gone = Vec::new();
        for server in self.resources.servers.values_mut().filter(|server| !self.stuck.contains(&server.id)) {
            let Some((due, status)) = server.settles.take_if(|(due, _)| *due <= at.tick) else { continue };
            match status.as_str() {
                "active" => server.started_at = Some(wall_at(at, due)),
                "deleted" => {
                    server.deleted_at = Some(wall_at(at, due));
                    gone.push(server.id.clone());
                }
                _ => {}
            }
            server.status = status;
        }
        for id in gone {
            self.forget_server(&id, at);
        }
        let retention = self.settings.delays.retention;
        self.resources
            .servers
            .retain(|_, server| server.deleted_at.is_none_or(|gone| kept(gone, at, retention)));
    }

    /// A server that is gone is in no group and behind no balancer, and nothing is mapped to it.
    pub(crate) fn forget_server(&mut self, id: &str, at: Moment) {
        for group in self.resources.groups.values_mut() {
            group.servers.retain(|member| member != id);
        }
        let with_it =
            self.resources.balancers.values().filter(|balancer| balancer.nodes.iter().any(|node| node == id));
        for balancer in with_it.map(|balancer| balancer.id.clone()).collect::<Vec<_>>() {
            self.write_nodes(&balancer, at, |nodes| nodes.retain(|node| node != id));
        }
        self.unmap_all(&Destination::Server(id.to_owned()));
    }
}

/// Whether something that was deleted then is still shown.
pub(super) fn kept(deleted: jiff::Timestamp, at: Moment, retention: std::time::Duration) -> bool {
    at.wall.duration_since(deleted).unsigned_abs() < retention
}
