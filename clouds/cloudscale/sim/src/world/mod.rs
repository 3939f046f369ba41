//! A project and the rules of the API. It is synchronous: the time comes in with every request, and randomness is used
//! only for ids.

mod balancers;
mod floating;
mod interfaces;
mod listeners;
mod members;
mod monitors;
mod networks;
mod pools;
mod read;
mod servers;

use std::{
    collections::{BTreeMap, BTreeSet},
    net::IpAddr,
    sync::Arc,
};

use cloudberth_core::{Random, Tick};
use serde_json::{Map, Value};

use super::{
    fields,
    history::History,
    refusal::Refusal,
    render::View,
    resources::{Resources, Target},
    route::{Kind, Route, Verb},
    settings::SimSettings,
    tags::TagFilter,
};

pub(crate) use read::list;
pub(crate) use servers::NewServer;
pub(crate) use sim_kit::Moment;

/// The answer to a request that succeeded.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Reply {
    pub(crate) status: u16,
    /// Nothing for 204.
    pub(crate) body: Option<Value>,
}

/// A project of the cloud.
#[derive(Debug)]
pub(crate) struct World {
    pub(crate) resources: Resources,
    pub(crate) history: History,
    pub(crate) settings: SimSettings,
    random: Arc<Random>,
    /// A cache of the addresses in use.
    used: Option<BTreeSet<IpAddr>>,
    /// Until when each balancer is busy with a change.
    lanes: BTreeMap<String, Tick>,
}

impl World {
    /// A project with the cloud's own networks and the servers of its settings.
    pub(crate) fn new(settings: SimSettings, random: Arc<Random>, at: Moment) -> Self {
        let instances = settings.instances;
        let mut world = Self {
            resources: Resources::default(),
            history: History::default(),
            settings,
            random,
            used: None,
            lanes: BTreeMap::new(),
        };
        world.lay_networks(at);
        let zone = world.settings.default_zone.clone();
        for number in 1..=instances {
            world.add_server(&NewServer::new(&format!("node-{number}"), &zone), at);
        }
        world
    }

    /// Drops the cache of addresses in use, after some were added or removed.
    pub(crate) fn forget_used(&mut self) {
        self.used = None;
    }

    fn draw_id(&self) -> String {
        self.random.uuid()
    }

    /// Carries a request out.
    pub(crate) fn handle(
        &mut self,
        route: &Route,
        query: Option<&str>,
        body: &[u8],
        base: &str,
        at: Moment,
    ) -> Result<Reply, Refusal> {
        self.advance(at.tick);
        let reply = self.carry_out(route, query, body, base, at);
        if self.settings.errors_in_lists { reply.map_err(Refusal::in_lists) } else { reply }
    }

    fn carry_out(
        &mut self,
        route: &Route,
        query: Option<&str>,
        body: &[u8],
        base: &str,
        at: Moment,
    ) -> Result<Reply, Refusal> {
        let pool = route.pool.as_deref();
        if pool.is_some_and(|pool| !self.resources.pools.contains_key(pool)) {
            return Err(Refusal::not_found());
        }
        match &route.verb {
            Verb::List => {
                let view = View::new(&self.resources, base, at.tick);
                let list = list(&view, route.kind, pool, &TagFilter::parse(query));
                Ok(Reply { status: 200, body: Some(Value::Array(list)) })
            }
            Verb::Get(id) => self.show(200, route.kind, pool, id, base, at),
            Verb::Create => {
                let id = self.create(route.kind, pool, &fields::object(body)?, at)?;
                self.show(201, route.kind, pool, &id, base, at)
            }
            Verb::Update(id) => {
                let body = fields::object(body)?;
                self.show(200, route.kind, pool, id, base, at)?;
                if let Some((attribute, value)) = fields::single(&body)? {
                    self.update(route.kind, id, attribute, value, at)?;
                }
                Ok(Reply { status: 204, body: None })
            }
            Verb::Delete(id) => {
                self.show(200, route.kind, pool, id, base, at)?;
                self.delete(route.kind, id, at)?;
                Ok(Reply { status: 204, body: None })
            }
            Verb::Power(id, word) => {
                self.power(id, word, at)?;
                Ok(Reply { status: 204, body: None })
            }
        }
    }

    /// One resource, or 404.
    fn show(
        &self,
        status: u16,
        kind: Kind,
        pool: Option<&str>,
        id: &str,
        base: &str,
        at: Moment,
    ) -> Result<Reply, Refusal> {
        let view = View::new(&self.resources, base, at.tick);
        let body = read::get(&view, kind, pool, id).ok_or_else(Refusal::not_found)?;
        Ok(Reply { status, body: Some(body) })
    }

    fn create(
        &mut self,
        kind: Kind,
        pool: Option<&str>,
        body: &Map<String, Value>,
        at: Moment,
    ) -> Result<String, Refusal> {
        match (kind, pool) {
            (Kind::Server, _) => self.create_server(body, at),
            (Kind::Balancer, _) => self.create_balancer(body, at),
            (Kind::Pool, _) => self.create_pool(body, at),
            (Kind::Member, Some(pool)) => self.create_member(pool, body, at),
            (Kind::Listener, _) => self.create_listener(body, at),
            (Kind::Monitor, _) => self.create_monitor(body, at),
            (Kind::FloatingIp, _) => self.create_floating_ip(body, at),
            (Kind::Network, _) => self.create_network(body, at),
            (Kind::Subnet, _) => self.create_subnet(body),
            (Kind::Region | Kind::Flavor | Kind::Member, _) => Err(Refusal::not_found()),
        }
    }

    fn update(
        &mut self,
        kind: Kind,
        id: &str,
        attribute: &str,
        value: &Value,
        at: Moment,
    ) -> Result<(), Refusal> {
        match kind {
            Kind::Server => self.update_server(id, attribute, value),
            Kind::Balancer => self.update_balancer(id, attribute, value),
            Kind::Pool => self.update_pool(id, attribute, value, at),
            Kind::Member => self.update_member(id, attribute, value, at),
            Kind::Listener => self.update_listener(id, attribute, value, at),
            Kind::Monitor => self.update_monitor(id, attribute, value, at),
            Kind::FloatingIp => self.update_floating_ip(id, attribute, value),
            Kind::Network => self.update_network(id, attribute, value),
            Kind::Subnet => self.update_subnet(id, attribute, value),
            Kind::Region | Kind::Flavor => Err(Refusal::not_found()),
        }
    }

    fn delete(&mut self, kind: Kind, id: &str, at: Moment) -> Result<(), Refusal> {
        match kind {
            Kind::Server => self.delete_server(id),
            Kind::Balancer => self.delete_balancer(id, at)?,
            Kind::Pool => self.delete_pool(id, at),
            Kind::Member => self.delete_member(id, at),
            Kind::Listener => self.delete_listener(id, at),
            Kind::Monitor => self.delete_monitor(id, at),
            Kind::FloatingIp => self.delete_floating_ip(id),
            Kind::Network => self.delete_network(id)?,
            Kind::Subnet => self.delete_subnet(id)?,
            Kind::Region | Kind::Flavor => return Err(Refusal::not_found()),
        }
        Ok(())
    }

    /// Completes everything that is due by now.
    pub(crate) fn advance(&mut self, now: Tick) {
        for server in self.resources.servers.values_mut() {
            if let Some((_, settled)) = server.settles.take_if(|(when, _)| *when <= now) {
                server.status = settled;
            }
        }
        self.lanes.retain(|_, free| *free > now);
    }

    /// Completes everything that takes time at once.
    pub(crate) fn settle(&mut self, now: Tick) {
        for server in self.resources.servers.values_mut() {
            if let Some((_, settled)) = server.settles.take() {
                server.status = settled;
            }
        }
        for balancer in self.resources.balancers.values_mut() {
            balancer.ready = balancer.ready.min(now);
            balancer.busy = balancer.busy.min(now);
        }
    }

    /// The balancer that a request would change.
    pub(crate) fn balancer_changed_by(&self, route: &Route, body: &[u8]) -> Option<String> {
        let resources = &self.resources;
        let of_pool = |pool: &str| resources.pools.get(pool).map(|pool| pool.balancer.clone());
        match (&route.verb, route.kind) {
            (Verb::List | Verb::Get(_) | Verb::Power(..), _) => None,
            (_, Kind::Member) => of_pool(route.pool.as_deref()?),
            (Verb::Create, kind @ (Kind::Pool | Kind::Listener | Kind::Monitor)) => {
                let body = fields::object(body).ok()?;
                let parent = if kind == Kind::Pool { "load_balancer" } else { "pool" };
                let parent = body.get(parent)?.as_str()?;
                if kind == Kind::Pool { Some(parent.to_owned()) } else { of_pool(parent) }
            }
            (Verb::Update(id) | Verb::Delete(id), Kind::Balancer) => Some(id.clone()),
            (Verb::Update(id) | Verb::Delete(id), Kind::Pool) => of_pool(id),
            (Verb::Update(id) | Verb::Delete(id), Kind::Listener) => {
                resources.listeners.get(id).map(|listener| listener.balancer.clone())
            }
            (Verb::Update(id) | Verb::Delete(id), Kind::Monitor) => {
                of_pool(&resources.monitors.get(id)?.pool)
            }
            _ => None,
        }
    }

    /// Queues a change of a balancer that takes this long, and returns when it begins.
    pub(crate) fn queue(&mut self, balancer: &str, now: Tick, takes: std::time::Duration) -> Tick {
        let free = self.lanes.entry(balancer.to_owned()).or_insert(now);
        let begins = (*free).max(now);
        *free = begins + takes;
        begins
    }

    /// A balancer may show for a while that something below it was changed.
    fn touched(&mut self, balancer: &str, at: Moment) {
        let busy = at.tick + self.settings.unrest;
        if let Some(balancer) = self.resources.balancers.get_mut(balancer) {
            balancer.busy = balancer.busy.max(busy);
        }
    }

    /// Removes the target from floating IPs that pointed there.
    fn unassign(&mut self, gone: &Target) {
        for ip in self.resources.floating_ips.values_mut() {
            ip.target.take_if(|target| target == gone);
        }
    }
}
