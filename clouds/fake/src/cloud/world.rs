//! The cloud's resources and the rules by which they change: plain state, without waiting or randomness.
//!
//! Listings lag: a new resource shows only after a while, and a deleted one goes on showing. A look-up by id is
//! always up to date.

#![allow(missing_docs, reason = "plain data whose names say what it is")]

use std::{
    collections::{BTreeMap, BTreeSet},
    time::Duration,
};

use cloudberth_core::{Category, Error, Result, Tick};

use super::handle::SimSettings;

/// Whether an instance is powered on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PowerState {
    Running,
    Stopped,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FakeInstance {
    pub id: String,
    pub name: String,
    /// Whether it is powered on.
    pub state: PowerState,
    pub flavor: String,
    pub zone: String,
    pub private_ip: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Protocol {
    Tcp,
    Udp,
}

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Listener {
    /// `tcp` or `udp`.
    pub protocol: Protocol,
    pub port: i64,
    pub node_port: i64,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Balancer {
    pub id: String,
    /// Its name, which need not be unique.
    pub name: String,
    /// Its address, known from the start.
    pub address: String,
    /// Built, and ready for changes.
    pub ready: bool,
    /// How it picks a member for a connection.
    pub algorithm: String,
    pub listeners: BTreeMap<String, Listener>,
    /// The instances behind it, by member id.
    pub members: BTreeMap<String, String>,
    pub floating: BTreeSet<String>,
}

/// A route to the pods of an instance.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RouteRecord {
    pub name: String,
    pub instance: String,
    pub destination: String,
}

/// A resource with the times between which listings show it.
#[derive(Clone, Debug)]
struct Kept<T> {
    thing: T,
    shows_from: Tick,
    ready_from: Tick,
    gone_from: Option<Tick>,
}

#[derive(Debug)]
pub(crate) struct World {
    pub(crate) pace: SimSettings,
    instances: BTreeMap<String, Kept<FakeInstance>>,
    balancers: BTreeMap<String, Kept<Balancer>>,
    floating: BTreeSet<String>,
    routes: BTreeMap<String, RouteRecord>,
    /// The load balancers that each instance is a member of.
    serving: BTreeMap<String, BTreeSet<String>>,
    ids: u64,
    net: &'static str,
}

fn refuse<T>(category: Category, message: impl Into<String>) -> Result<T> {
    Err(Error::new(category, message))
}

impl World {
    pub(crate) fn new(pace: SimSettings) -> Self {
        Self {
            pace,
            instances: BTreeMap::new(),
            balancers: BTreeMap::new(),
            floating: BTreeSet::new(),
            routes: BTreeMap::new(),
            serving: BTreeMap::new(),
            ids: 0,
            net: "203.0.113",
        }
    }

    /// Another account of the same cloud: it shares no id and no address with ours, and its quota allows no load
    /// balancers.
    pub(crate) fn elsewhere(pace: SimSettings) -> Self {
        Self { ids: 500_000, net: "198.51.100", ..Self::new(SimSettings { quota: 0, ..pace }) }
    }

    fn id(&mut self, kind: &str) -> String {
        self.ids += 1;
        format!("{kind}-{:04}", self.ids)
    }

    fn keep<T>(&self, thing: T, now: Tick, build: Duration) -> Kept<T> {
        Kept { thing, shows_from: now + self.pace.lag, ready_from: now + build, gone_from: None }
    }

    /// What a listing shows at `now`.
    fn shown<T: Clone>(&self, all: &BTreeMap<String, Kept<T>>, now: Tick) -> Vec<T> {
        let shows = |kept: &&Kept<T>| {
            kept.shows_from <= now && kept.gone_from.is_none_or(|gone| now < gone + self.pace.lag)
        };
        all.values().filter(shows).map(|kept| kept.thing.clone()).collect()
    }

    pub(crate) fn add_instance(&mut self, name: &str, zone: &str, now: Tick) -> FakeInstance {
        let id = self.id("m");
        let number = self.ids;
        let instance = FakeInstance {
            id: id.clone(),
            name: name.to_owned(),
            state: PowerState::Running,
            flavor: "small".to_owned(),
            zone: zone.to_owned(),
            private_ip: format!("10.{}.{}.{}", number / 65_536 % 256, number / 256 % 256, number % 256),
        };
        let kept = self.keep(instance.clone(), now, Duration::ZERO);
        self.instances.insert(id, kept);
        instance
    }

    pub(crate) fn change_instance(&mut self, id: &str, change: impl FnOnce(&mut FakeInstance)) {
        if let Some(kept) = self.instances.get_mut(id).filter(|kept| kept.gone_from.is_none()) {
            change(&mut kept.thing);
        }
    }

    pub(crate) fn delete_instance(&mut self, id: &str, now: Tick) {
        if let Some(kept) = self.instances.get_mut(id) {
            kept.gone_from.get_or_insert(now);
        }
        self.serving.remove(id);
        for kept in self.balancers.values_mut() {
            kept.thing.members.retain(|_, instance| instance != id);
        }
    }

    /// Destroys an instance and builds another one of the same name. No listing shows the first one any more.
    pub(crate) fn replace_instance(&mut self, id: &str, now: Tick) -> Option<FakeInstance> {
        let old = self.instance(id)?;
        self.delete_instance(id, now);
        if let Some(kept) = self.instances.get_mut(id) {
            kept.shows_from = Tick(Duration::MAX);
        }
        Some(self.add_instance(&old.name, &old.zone, now))
    }

    pub(crate) fn instance(&self, id: &str) -> Option<FakeInstance> {
        self.instances.get(id).filter(|kept| kept.gone_from.is_none()).map(|kept| kept.thing.clone())
    }

    pub(crate) fn list_instances(&self, now: Tick) -> Vec<FakeInstance> {
        self.shown(&self.instances, now)
    }

    /// Every instance that really exists, whatever listings show.
    pub(crate) fn true_instances(&self) -> Vec<FakeInstance> {
        self.instances
            .values()
            .filter(|kept| kept.gone_from.is_none())
            .map(|kept| kept.thing.clone())
            .collect()
    }

    pub(crate) fn list_balancers(&self, now: Tick) -> Vec<Balancer> {
        let mut all = self.shown(&self.balancers, now);
        for balancer in &mut all {
            balancer.ready = self.is_ready(&balancer.id, now);
        }
        all
    }

    /// Every load balancer that really exists, whatever listings show.
    pub(crate) fn true_balancers(&self, now: Tick) -> Vec<Balancer> {
        self.balancers.keys().filter_map(|id| self.balancer(id, now)).collect()
    }

    pub(crate) fn balancer(&self, id: &str, now: Tick) -> Option<Balancer> {
        let kept = self.balancers.get(id).filter(|kept| kept.gone_from.is_none())?;
        Some(Balancer { ready: self.is_ready(id, now), ..kept.thing.clone() })
    }

    pub(crate) fn name_of_balancer(&self, id: &str) -> Option<String> {
        self.balancers.get(id).map(|kept| kept.thing.name.clone())
    }

    fn is_ready(&self, id: &str, now: Tick) -> bool {
        self.balancers.get(id).is_some_and(|kept| kept.ready_from <= now)
    }

    pub(crate) fn create_balancer(&mut self, name: &str, algorithm: &str, now: Tick) -> Result<Balancer> {
        if self.true_balancers(now).len() >= self.pace.quota {
            return refuse(
                Category::Permanent,
                format!("the quota of {} load balancers is used up", self.pace.quota),
            );
        }
        let id = self.id("lb");
        let balancer = Balancer {
            id: id.clone(),
            name: name.to_owned(),
            address: format!("{}.{}", self.net, self.ids % 254 + 1),
            ready: self.pace.build.is_zero(),
            algorithm: algorithm.to_owned(),
            listeners: BTreeMap::new(),
            members: BTreeMap::new(),
            floating: BTreeSet::new(),
        };
        let kept = self.keep(balancer.clone(), now, self.pace.build);
        self.balancers.insert(id, kept);
        Ok(balancer)
    }

    /// An old load balancer: it is ready, and every listing shows it.
    pub(crate) fn inherit_balancer(&mut self, name: &str, now: Tick) -> Result<Balancer> {
        let mut balancer = self.create_balancer(name, "", now)?;
        if let Some(kept) = self.balancers.get_mut(&balancer.id) {
            (kept.shows_from, kept.ready_from) = (Tick::default(), Tick::default());
        }
        balancer.ready = true;
        Ok(balancer)
    }

    /// A load balancer that may be changed now.
    fn open(&mut self, id: &str, now: Tick) -> Result<&mut Balancer> {
        match self.balancers.get_mut(id).filter(|kept| kept.gone_from.is_none()) {
            None => refuse(Category::NotFound, format!("there is no load balancer {id}")),
            Some(kept) if kept.ready_from > now => {
                refuse(Category::Conflict, format!("load balancer {id} is still being built"))
            }
            Some(kept) => Ok(&mut kept.thing),
        }
    }

    pub(crate) fn set_algorithm(&mut self, id: &str, algorithm: &str, now: Tick) -> Result<()> {
        algorithm.clone_into(&mut self.open(id, now)?.algorithm);
        Ok(())
    }

    pub(crate) fn add_listener(&mut self, id: &str, listener: &Listener, now: Tick) -> Result<String> {
        let new = self.id("ln");
        let balancer = self.open(id, now)?;
        let taken = |l: &Listener| (l.protocol, l.port) == (listener.protocol, listener.port);
        if balancer.listeners.values().any(taken) {
            return refuse(Category::Conflict, format!("port {} is taken", listener.port));
        }
        balancer.listeners.insert(new.clone(), listener.clone());
        Ok(new)
    }

    pub(crate) fn remove_listener(&mut self, id: &str, listener: &str, now: Tick) -> Result<()> {
        self.open(id, now)?.listeners.remove(listener);
        Ok(())
    }

    pub(crate) fn add_member(&mut self, id: &str, instance: &str, now: Tick) -> Result<String> {
        if self.instance(instance).is_none() {
            return refuse(Category::NotFound, format!("there is no instance {instance}"));
        }
        let new = self.id("mb");
        self.open(id, now)?;
        if !self.serving.entry(instance.to_owned()).or_default().insert(id.to_owned()) {
            return refuse(Category::Conflict, format!("instance {instance} is a member already"));
        }
        self.open(id, now)?.members.insert(new.clone(), instance.to_owned());
        Ok(new)
    }

    pub(crate) fn remove_member(&mut self, id: &str, member: &str, now: Tick) -> Result<()> {
        let removed = self.open(id, now)?.members.remove(member);
        if let Some(balancers) = removed.and_then(|instance| self.serving.get_mut(&instance)) {
            balancers.remove(id);
        }
        Ok(())
    }

    pub(crate) fn add_floating(&mut self, address: &str) {
        self.floating.insert(address.to_owned());
    }

    pub(crate) fn attach(&mut self, id: &str, address: &str, now: Tick) -> Result<()> {
        if !self.floating.contains(address) {
            return refuse(Category::UserInput, format!("floating address {address} does not exist"));
        }
        self.open(id, now)?;
        for kept in self.balancers.values_mut() {
            kept.thing.floating.remove(address);
        }
        self.open(id, now)?.floating.insert(address.to_owned());
        Ok(())
    }

    /// Deletes a load balancer in any state, with its parts; floating addresses stay.
    pub(crate) fn delete_balancer(&mut self, id: &str, now: Tick) -> Result<()> {
        match self.balancers.get_mut(id).filter(|kept| kept.gone_from.is_none()) {
            None => refuse(Category::NotFound, format!("there is no load balancer {id}")),
            Some(kept) => {
                kept.gone_from = Some(now);
                Ok(())
            }
        }
    }

    pub(crate) fn list_routes(&self) -> Vec<RouteRecord> {
        self.routes.values().cloned().collect()
    }

    pub(crate) fn create_route(&mut self, route: RouteRecord) -> Result<()> {
        if self.routes.values().any(|r| r.destination == route.destination) {
            return refuse(Category::Conflict, format!("a route to {} exists", route.destination));
        }
        self.routes.insert(route.name.clone(), route);
        Ok(())
    }

    pub(crate) fn delete_route(&mut self, name: &str) {
        self.routes.remove(name);
    }
}
