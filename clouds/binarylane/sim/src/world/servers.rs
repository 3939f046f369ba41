//! Servers: made, cancelled, gone.

use std::net::Ipv4Addr;

use cloudberth_core::Tick;
use serde_json::{Value, json};

use super::{Call, Moment, Reply, World, actions::Subject, next};
use crate::{
    fields::Fields,
    history::PoolChange,
    refusal::Refusal,
    render,
    resources::{Effect, Server},
    settings::{IMAGES, REGIONS, SIZES, is_region},
    switches::Cancellation,
};

/// A server to be made.
#[derive(Clone, Debug)]
pub struct NewServer {
    /// Its name, which need not be unique.
    pub name: String,
    /// The slug of its region.
    pub region: String,
    /// The slug of its size.
    pub size: String,
    /// The slug of its image.
    pub image: String,
    /// The host's display name; without one, it is called after the region.
    pub host: Option<String>,
    /// Whether it is in a VPC.
    pub in_vpc: bool,
    /// Which VPC, if it is not the one that is there from the beginning.
    pub vpc: Option<i64>,
    /// The address in the VPC; the next free one without it.
    pub vpc_address: Option<Ipv4Addr>,
    /// Whether it has a public IPv4 address.
    pub public: bool,
    /// Whether it has a public IPv6 address.
    pub ipv6: bool,
}

impl NewServer {
    /// A server with public addresses of both families, in the VPC that is there from the beginning.
    pub fn new(name: &str, region: &str) -> Self {
        Self {
            name: name.to_owned(),
            region: region.to_owned(),
            size: "std-2vcpu".to_owned(),
            image: "ubuntu-24.04".to_owned(),
            host: None,
            in_vpc: true,
            vpc: None,
            vpc_address: None,
            public: true,
            ipv6: true,
        }
    }
}

impl World {
    /// Makes a server that runs.
    pub(crate) fn add_server(&mut self, new: &NewServer, at: Moment) -> Server {
        let id = next(&mut self.ids.server);
        let vpc_id = new.in_vpc.then(|| new.vpc.unwrap_or(self.vpc));
        let host = || format!("{}-node-{}", new.region, id % 20 + 1);
        let server = Server {
            id,
            name: new.name.clone(),
            created_at: at.wall,
            status: "active".to_owned(),
            running: true,
            region: new.region.clone(),
            size: new.size.clone(),
            image: new.image.clone(),
            host: new.host.clone().unwrap_or_else(host),
            vpc_id,
            v4: self.addresses(new.public, vpc_id, new.vpc_address),
            v6: if new.ipv6 { vec![Self::v6_of(id)] } else { Vec::new() },
            port_blocking: true,
            source_and_destination_check: true,
            cancelled_at: None,
            archived: None,
            gone: None,
        };
        self.resources.servers.insert(id, server.clone());
        server
    }

    pub(super) fn create_server(&mut self, call: Call<'_>) -> Result<Reply, Refusal> {
        let mut fields = Fields::new(call.body)?;
        let mut new = NewServer::new("", &fields.required_text("region"));
        new.size = fields.required_text("size");
        new.image = wanted_image(&mut fields);
        new.name =
            fields.host_name("name").unwrap_or_else(|| format!("vps-{:08x}", self.random.bits() >> 32));
        new.vpc = fields.integer("vpc_id");
        new.in_vpc = new.vpc.is_some();
        new.ipv6 = fields.flag("ipv6").unwrap_or_default();
        new.vpc_address = self.wanted_vpc_address(&mut fields, new.vpc);
        let port_blocking = fields.flag("port_blocking").unwrap_or(true);
        if fields.text("user_data").is_some_and(|data| data.chars().count() > 65_536) {
            fields.mistake("user_data", "The user data may have at most 65536 characters.");
        }
        if !new.region.is_empty() && !is_region(&new.region) {
            fields.mistake("region", no_choice(&new.region, REGIONS.iter().map(|(slug, _)| *slug)));
        } else if self.settings.switches.full_regions.contains(&new.region) {
            fields.mistake("region", "No suitable host was found in this region.");
        }
        if !new.size.is_empty() && !SIZES.iter().any(|(slug, ..)| *slug == new.size) {
            fields.mistake("size", no_choice(&new.size, SIZES.iter().map(|(slug, ..)| *slug)));
        }
        if self.resources.servers.len() >= self.settings.limits.servers {
            fields.mistake("name", "The limit of servers of your account is reached.");
        }
        fields.finish()?;
        let (id, region) = (self.add_server(&new, call.at).id, Some(new.region));
        if let Some(server) = self.resources.servers.get_mut(&id) {
            "new".clone_into(&mut server.status);
            (server.running, server.port_blocking) = (false, port_blocking);
        }
        let subject = Subject { kind: "server", id, region };
        let action = self.start("create", subject, Effect::ServerOn, (self.settings.boot, false), call.at);
        let server = self.resources.servers.get(&id).map(|server| render::server(server, &self.settings));
        Ok(Reply::ok(json!({"server": server, "links": Self::action_links(call.base, "create", action)})))
    }

    fn wanted_vpc_address(&self, fields: &mut Fields, vpc: Option<i64>) -> Option<Ipv4Addr> {
        let known = vpc.and_then(|vpc| self.resources.vpcs.get(&vpc));
        if vpc.is_some() && known.is_none() {
            fields.mistake("vpc_id", "There is no such VPC.");
        }
        let text = fields.text("vpc_ipv4_address")?;
        let address = text.parse().ok();
        let fits = |address: &Ipv4Addr| known.is_some_and(|vpc| vpc.ip_range.contains(address));
        if address.filter(fits).is_none_or(|address| self.is_used(address)) {
            fields.mistake("vpc_ipv4_address", format!("{text} is no free address of the VPC."));
        }
        address
    }

    /// Cancels a server, which takes it out of all pools.
    pub(crate) fn cancel_server(
        &mut self,
        id: i64,
        reason: Option<&str>,
        at: Moment,
    ) -> Result<Reply, Refusal> {
        let cancellation = self.settings.switches.cancellation;
        let server = self.resources.servers.get_mut(&id).ok_or_else(Refusal::not_found)?;
        if reason.is_some_and(|reason| reason.chars().count() > 250) {
            return Err(Refusal::field("reason", "The reason may have at most 250 characters."));
        }
        server.cancelled_at.get_or_insert(at.wall);
        let (archived, gone) = match cancellation {
            Cancellation::Archive => (Some(at.tick), None),
            Cancellation::ArchiveAfter(wait) => (Some(at.tick + wait), None),
            Cancellation::Gone => (None, Some(at.tick)),
            Cancellation::GoneAfter(wait) => (Some(at.tick), Some(at.tick + wait)),
        };
        (server.archived, server.gone) = (archived, gone);
        self.leave_pools(id, at.tick);
        self.retire_servers(at.tick);
        Ok(Reply::done())
    }

    /// Carries out the cancellations that are due.
    pub(super) fn retire_servers(&mut self, now: Tick) {
        let servers = &mut self.resources.servers;
        servers.retain(|_, server| server.gone.is_none_or(|gone| gone > now));
        for server in servers.values_mut() {
            if server.archived.take_if(|archived| *archived <= now).is_some() {
                "archive".clone_into(&mut server.status);
                server.running = false;
            }
        }
    }

    /// Takes a server away without a trace.
    pub(crate) fn remove_server(&mut self, id: i64, now: Tick) {
        self.resources.servers.remove(&id);
        self.leave_pools(id, now);
    }

    fn leave_pools(&mut self, id: i64, now: Tick) {
        for balancer in self.resources.balancers.values_mut() {
            let before = balancer.server_ids.len();
            balancer.server_ids.retain(|member| *member != id);
            let after = balancer.server_ids.len();
            if before != after {
                let (balancer, name) = (balancer.id, balancer.name.clone());
                self.history.push(PoolChange { at: now, balancer, name, before, after, gone: true });
            }
        }
    }
}

/// The slug of an image that a body names by id or slug.
fn wanted_image(fields: &mut Fields) -> String {
    fields.require("image");
    let wanted = fields.value("image").unwrap_or_default();
    let fits = |(id, slug): &&(i64, &str)| wanted.as_i64() == Some(*id) || wanted.as_str() == Some(slug);
    let found = IMAGES.iter().find(fits);
    if found.is_none() && !wanted.is_null() {
        fields.mistake("image", format!("There is no image {wanted}."));
    }
    found.map_or_else(String::new, |(_, slug)| (*slug).to_owned())
}

/// Why a word is refused.
pub(super) fn no_choice<'a>(got: &str, known: impl IntoIterator<Item = &'a str>) -> String {
    let known: Vec<_> = known.into_iter().collect();
    format!("Value {} is not one of: {}.", Value::from(got), known.join(", "))
}
