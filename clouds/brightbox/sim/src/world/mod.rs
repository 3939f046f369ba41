//! An account and the rules of the API. It is synchronous: the time comes in with every request, and randomness is used
//! only for ids.

mod balancer_body;
mod balancers;
mod certificates;
mod cloud_ips;
mod firewall;
mod groups;
mod rule_body;
mod servers;

use std::{collections::BTreeSet, sync::Arc};

use cloudberth_core::{Random, Tick};
use jiff::Timestamp;
use serde_json::{Map, Value};

use super::{
    fields,
    history::NodesChange,
    refusal::Refusal,
    render::View,
    resources::Resources,
    route::{Kind, Route, Verb},
    settings::SimSettings,
};

pub(crate) use sim_kit::Moment;

/// What the clock on the wall showed at a tick before this moment.
fn wall_at(at: Moment, tick: Tick) -> Timestamp {
    at.wall.checked_sub(at.tick.since(tick)).unwrap_or(at.wall)
}

/// The answer to a request that succeeded.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Reply {
    pub(crate) status: u16,
    pub(crate) body: Value,
}

/// An account of the cloud.
#[derive(Debug)]
pub(crate) struct World {
    pub(crate) account: String,
    pub(crate) resources: Resources,
    pub(crate) history: Vec<NodesChange>,
    pub(crate) settings: SimSettings,
    /// The ids of what does not get on: what takes time goes on for ever.
    pub(crate) stuck: BTreeSet<String>,
    random: Arc<Random>,
    /// How many addresses were given out.
    addresses: u32,
    /// How many Cloud IPs were given out.
    public_addresses: u32,
}

/// An id: three letters, a dash and five letters or digits.
pub(crate) fn draw_id(random: &Random, prefix: &str) -> String {
    let mut bits = random.bits();
    let mut next = || {
        let digit = u32::try_from(bits % 36).unwrap_or_default();
        bits /= 36;
        char::from_digit(digit, 36).unwrap_or('0')
    };
    let text: String = (0..5).map(|_| next()).collect();
    format!("{prefix}-{text}")
}

impl World {
    /// An account with its default group and policy, and the servers of its settings.
    pub(crate) fn new(account: String, settings: SimSettings, random: Arc<Random>, at: Moment) -> Self {
        let mut world = Self {
            account,
            resources: Resources::default(),
            history: Vec::new(),
            settings,
            stuck: BTreeSet::new(),
            random,
            addresses: 0,
            public_addresses: 0,
        };
        world.lay_defaults(at);
        for number in 1..=world.settings.instances {
            let zone = world.settings.default_zone.clone();
            world.add_server(&format!("node-{number}"), &zone, at);
        }
        world
    }

    /// An id that nothing has.
    fn draw_id(&self, prefix: &str) -> String {
        loop {
            let id = draw_id(&self.random, prefix);
            let resources = &self.resources;
            let taken = resources.servers.contains_key(&id)
                || resources.groups.contains_key(&id)
                || resources.policies.contains_key(&id)
                || resources.balancers.contains_key(&id)
                || resources.cloud_ips.contains_key(&id)
                || self.rule(&id).is_some();
            if !taken {
                return id;
            }
        }
    }

    /// Carries a request out.
    pub(crate) fn handle(
        &mut self,
        route: &Route,
        body: &[u8],
        base: &str,
        at: Moment,
    ) -> Result<Reply, Refusal> {
        self.advance(at);
        let Route::Api(kind, verb) = route else { return Err(Refusal::not_found("token")) };
        let reply = self.carry_out(*kind, verb, body, base, at);
        // What takes no time is done when the next request comes, and not in the answer to this one.
        self.advance(at);
        reply
    }

    fn carry_out(
        &mut self,
        kind: Kind,
        verb: &Verb,
        body: &[u8],
        base: &str,
        at: Moment,
    ) -> Result<Reply, Refusal> {
        match verb {
            Verb::List => Ok(Reply { status: 200, body: Value::Array(self.view(base).list(kind)) }),
            Verb::Get(id) => self.show(200, kind, id, base),
            Verb::Create => {
                let id = self.create(kind, &fields::object(body)?, at)?;
                let created = if matches!(kind, Kind::CloudIp | Kind::Policy) { 201 } else { 202 };
                self.show(created, kind, &id, base)
            }
            Verb::Update(id) => {
                self.show(200, kind, id, base)?;
                self.update(kind, id, &fields::object(body)?, at)?;
                self.show(if kind == Kind::CloudIp { 200 } else { 202 }, kind, id, base)
            }
            Verb::Delete(id) => {
                let before = self.show(if kind == Kind::CloudIp { 200 } else { 202 }, kind, id, base)?;
                self.delete(kind, id, at)?;
                // What is gone at once is shown as it was.
                Ok(self.show(before.status, kind, id, base).unwrap_or(before))
            }
            Verb::Action(id, word) => {
                self.show(200, kind, id, base)?;
                self.act(kind, id, word, body, at)?;
                self.show(if word.ends_with("lock_resource") { 200 } else { 202 }, kind, id, base)
            }
        }
    }

    pub(crate) fn view<'a>(&'a self, base: &'a str) -> View<'a> {
        View { account: &self.account, resources: &self.resources, settings: &self.settings, base }
    }

    /// One resource, or 404.
    fn show(&self, status: u16, kind: Kind, id: &str, base: &str) -> Result<Reply, Refusal> {
        let body = self.view(base).get(kind, id).ok_or_else(|| Refusal::not_found(id))?;
        Ok(Reply { status, body })
    }

    fn create(&mut self, kind: Kind, body: &Map<String, Value>, at: Moment) -> Result<String, Refusal> {
        match kind {
            Kind::Balancer => self.create_balancer(body, at),
            Kind::CloudIp => self.create_cloud_ip(body, at),
            Kind::Group => self.create_group(body, at),
            Kind::Policy => self.create_policy(body, at),
            Kind::Rule => self.create_rule(body, at),
            Kind::Account | Kind::Server | Kind::ServerType | Kind::Zone => {
                Err(Refusal::not_found(kind.plural()))
            }
        }
    }

    fn update(&mut self, kind: Kind, id: &str, body: &Map<String, Value>, at: Moment) -> Result<(), Refusal> {
        match kind {
            Kind::Balancer => self.update_balancer(id, body, at),
            Kind::CloudIp => self.update_cloud_ip(id, body),
            Kind::Group => self.update_group(id, body),
            Kind::Policy => self.update_policy(id, body),
            Kind::Rule => self.update_rule(id, body),
            Kind::Account | Kind::Server | Kind::ServerType | Kind::Zone => Err(Refusal::not_found(id)),
        }
    }

    fn delete(&mut self, kind: Kind, id: &str, at: Moment) -> Result<(), Refusal> {
        match kind {
            Kind::Server => self.delete_server(id, at)?,
            Kind::Balancer => self.delete_balancer(id, at)?,
            Kind::CloudIp => self.delete_cloud_ip(id)?,
            Kind::Group => self.delete_group(id)?,
            Kind::Policy => self.delete_policy(id)?,
            Kind::Rule => self.delete_rule(id),
            Kind::Account | Kind::ServerType | Kind::Zone => return Err(Refusal::not_found(id)),
        }
        Ok(())
    }

    fn act(&mut self, kind: Kind, id: &str, word: &str, body: &[u8], at: Moment) -> Result<(), Refusal> {
        match (kind, word) {
            (_, "lock_resource") => self.lock(id, true),
            (_, "unlock_resource") => self.lock(id, false),
            (Kind::Server, _) => self.power(id, word, at),
            (Kind::Group, _) => self.change_members(id, word == "add_servers", &fields::object(body)?),
            (Kind::Policy, _) => self.attach(id, word == "apply_to", &fields::object(body)?),
            (Kind::Balancer, "add_nodes" | "remove_nodes") => {
                self.change_nodes(id, word == "add_nodes", &fields::object_or_list(body, "nodes")?, at)
            }
            (Kind::Balancer, _) => {
                let body = fields::object_or_list(body, "listeners")?;
                self.change_listeners(id, word == "add_listeners", &body)
            }
            (Kind::CloudIp, "map") => self.map(id, &fields::object(body)?, at),
            (Kind::CloudIp, _) => self.unmap(id, at),
            _ => Err(Refusal::not_found(id)),
        }
    }

    fn lock(&mut self, id: &str, locked: bool) -> Result<(), Refusal> {
        let server = self.resources.servers.get_mut(id).map(|server| &mut server.locked);
        let place =
            server.or_else(|| self.resources.balancers.get_mut(id).map(|balancer| &mut balancer.locked));
        *place.ok_or_else(|| Refusal::not_found(id))? = locked;
        Ok(())
    }

    /// Completes everything that is due by now.
    pub(crate) fn advance(&mut self, at: Moment) {
        self.advance_servers(at);
        self.advance_cloud_ips(at.tick);
        self.advance_balancers(at);
        self.check_domains(at.tick);
    }

    /// Completes everything that takes time at once, except for what is stuck. Deleted things stay listed.
    pub(crate) fn settle(&mut self, at: Moment) {
        let now = at.tick;
        let hurry = |due: &mut Tick| *due = (*due).min(now);
        let Resources { servers, balancers, cloud_ips, .. } = &mut self.resources;
        servers.values_mut().filter_map(|server| server.settles.as_mut()).for_each(|(due, _)| hurry(due));
        cloud_ips.values_mut().filter_map(|ip| ip.settles.as_mut()).for_each(|(due, _)| hurry(due));
        balancers
            .values_mut()
            .filter_map(|balancer| balancer.settles.as_mut())
            .for_each(|(due, _)| hurry(due));
        let acme = std::mem::take(&mut self.settings.delays.acme);
        self.advance(at);
        self.settings.delays.acme = acme;
    }
}
