//! What there is for one Service, from listings. Pure.

use std::{collections::BTreeMap, time::Duration};

use cloudberth_core::{
    Category, Error, Result, ServiceView,
    lb::{Candidate, Desired, Goal, Identity, Name, Trail},
};
use cloudberth_http::Flawed;

use crate::{
    annotations::{Floating, NAME, TABLE, UUID},
    observed::{
        BackendInstance, BackendInstances, FlawedPart, ObservedBalancer, ObservedPool, Parts, PrivateAddress,
    },
    spec::speaks_http,
    uuid::{ServerId, parse_uuid, server_id},
    wire::{LoadBalancer, Member, Named, Server, Stub},
};

const GENERATED: &str = "k8s-service-";

/// The name of a Service's load balancer: the one that the annotation gives, else one that carries the UID. An empty
/// annotation counts as none.
pub fn balancer_name(service: &ServiceView) -> String {
    given_name(service).unwrap_or_else(|| default_name(service))
}

fn given_name(service: &ServiceView) -> Option<String> {
    TABLE.parse(&service.annotations).get(&NAME).set().filter(|name| !name.is_empty())
}

/// The generated name, which carries the UID and so says whose load balancer it is.
pub fn default_name(service: &ServiceView) -> String {
    format!("{GENERATED}{}", service.uid)
}

/// The name of a new load balancer, and whether it is the generated one.
pub fn name_for(service: &ServiceView) -> Name {
    let text = balancer_name(service);
    Name { generated: text == default_name(service), text }
}

/// A load balancer as far as it matters for the question whose it is.
pub fn identity(balancer: &LoadBalancer) -> Identity {
    let LoadBalancer { uuid, name, vip_addresses, .. } = balancer;
    Identity {
        id: parse_uuid(uuid).unwrap_or_else(|| uuid.clone()),
        name: name.clone(),
        made_for: name.strip_prefix(GENERATED).map(str::to_owned),
        addresses: vip_addresses.iter().map(|vip| vip.address.clone()).collect(),
    }
}

/// The trail of a Service. An empty name is a mistake where no id is recorded either; what is to be deleted is looked for
/// by its generated name then.
pub fn trail_of(service: &ServiceView, goal: Goal) -> Result<Trail> {
    let parsed = TABLE.parse(&service.annotations);
    let text = parsed.get(&UUID).set().filter(|text| !text.is_empty());
    if goal == Goal::Present && text.is_none() && parsed.get(&NAME).set().as_deref() == Some("") {
        let message = format!("{}: the name is empty; give one, or remove the annotation", NAME.name());
        return Err(Error::user_input(message));
    }
    let id = text.as_deref().and_then(parse_uuid);
    Ok(Trail::new(service, id, balancer_name(service), [UUID.name(), NAME.name()]))
}

/// The load balancer that the trail leads to. `asked` is what the source itself showed under the recorded id; the listing
/// may lack it.
pub fn follow<'a>(
    trail: &Trail,
    listed: &'a [LoadBalancer],
    asked: Option<&'a LoadBalancer>,
) -> Result<Option<&'a LoadBalancer>> {
    trail.follow(listed.iter().chain(asked), |balancer| Candidate {
        id: &balancer.uuid,
        name: &balancer.name,
        generated: balancer.name.starts_with(GENERATED),
    })
}

/// An error if a listed load balancer that cannot be read may be the one that the trail leads to. The one with the
/// recorded id is not: the source itself was asked about it.
pub fn all_told(trail: &Trail, flawed: &[Flawed<Named>]) -> Result<()> {
    let may_be = |Named { uuid, name }: &Named| {
        let named = name.as_ref().is_none_or(|name| *name == trail.name);
        named && trail.id.as_ref() != Some(uuid)
    };
    match flawed.iter().find(|flawed| may_be(&flawed.identity)) {
        None => Ok(()),
        Some(Flawed { identity, why }) => {
            let text = format!("load balancer {} cannot be read: {why}", identity.uuid);
            Err(Error::temporary(text))
        }
    }
}

enum Found<'a> {
    Whole(&'a Server),
    /// It exists, and this is why it cannot be read.
    Flawed(&'a str),
}

impl BackendInstances {
    /// The servers of the nodes that `want` names, from a complete listing of servers that can all be read.
    pub fn of<'a>(want: &Desired, servers: impl IntoIterator<Item = &'a Server>) -> Result<Self> {
        Self::among(want, servers, &[])
    }

    /// The servers of the nodes that `want` names, from a complete listing.
    ///
    /// A node without a server is left out with the reason. If none of the nodes has a server, the listing is probably
    /// that of another project: that is an error, and no pool is emptied.
    pub fn among<'a>(
        want: &Desired,
        servers: impl IntoIterator<Item = &'a Server>,
        flawed: &'a [Flawed<Named>],
    ) -> Result<Self> {
        let servers: Vec<&Server> = servers.into_iter().collect();
        let id = |uuid: &str| parse_uuid(uuid).unwrap_or_else(|| uuid.to_owned());
        let mut by_id: BTreeMap<String, Found<'_>> =
            flawed.iter().map(|f| (id(&f.identity.uuid), Found::Flawed(&f.why))).collect();
        by_id.extend(servers.iter().map(|s| (id(&s.uuid), Found::Whole(s))));
        let mut instances = Self::default();
        for node in want.backends.iter().map(|backend| &backend.node) {
            let server = match node.provider_id.as_deref().map(server_id) {
                Some(ServerId::Known(id)) => by_id.get(&id).ok_or_else(|| format!("there is no server {id}")),
                Some(ServerId::Malformed) => Err("its provider id cannot be read".to_owned()),
                Some(ServerId::Foreign) => Err("its provider id is not one of cloudscale.ch".to_owned()),
                None => by_name(&servers, flawed, &node.name)
                    .and_then(|id| by_id.get(&id).ok_or_else(String::new)),
            };
            match server {
                Ok(Found::Whole(server)) => instances.found.push(instance(&node.name, server)),
                Ok(Found::Flawed(why)) => instances.unknown.push((node.name.clone(), (*why).to_owned())),
                Err(why) => instances.missing.push((node.name.clone(), why)),
            }
        }
        if let ([], Some((node, why))) = (instances.found.as_slice(), instances.unknown.first()) {
            let text = format!("the servers of the nodes cannot be read; the first: {node}: {why}");
            return Err(Error::temporary(text));
        }
        if instances.found.is_empty() && !instances.missing.is_empty() {
            let message = format!(
                "none of {} nodes has a server that can be seen; is the token one of another project? The first: {}",
                instances.missing.len(),
                instances.missing.first().map_or(String::new(), |(node, why)| format!("{node}: {why}")),
            );
            return Err(Error::new(Category::NotFound, message));
        }
        Ok(instances)
    }
}

/// The id of the only server with this name. A server whose name cannot be read counts as one of them.
fn by_name(servers: &[&Server], flawed: &[Flawed<Named>], name: &str) -> Result<String, String> {
    let may_be = |flawed: &&Flawed<Named>| flawed.identity.name.as_ref().is_none_or(|own| own == name);
    let whole = servers.iter().filter(|server| server.name == name).map(|server| &server.uuid);
    let mut named = whole.chain(flawed.iter().filter(may_be).map(|flawed| &flawed.identity.uuid));
    match (named.next(), named.next()) {
        (Some(uuid), None) => Ok(parse_uuid(uuid).unwrap_or_else(|| uuid.clone())),
        (None, _) => Err(format!("there is no server called {name}")),
        (Some(_), Some(_)) => Err(format!("there are several servers called {name}")),
    }
}

fn instance(node: &str, server: &Server) -> BackendInstance {
    let private = server.interfaces.iter().filter(|interface| interface.kind != "public");
    let addresses = private.flat_map(|interface| &interface.addresses).filter_map(|address| {
        let subnet = address.subnet.as_ref()?.uuid.clone();
        (!subnet.is_empty()).then(|| PrivateAddress { address: address.address.clone(), subnet })
    });
    BackendInstance {
        node: node.to_owned(),
        zone: server.zone.as_ref().map(|zone| zone.slug.clone()),
        addresses: addresses.collect(),
    }
}

impl Parts {
    /// The ids of the pools of a load balancer, whose members have to be read.
    pub fn pools_of<'a>(&'a self, balancer: &'a str) -> impl Iterator<Item = &'a str> {
        let own = self.pools.iter().filter(move |pool| pool.load_balancer.uuid == balancer);
        own.map(|pool| pool.uuid.as_str())
    }

    /// An error if a part of this load balancer cannot be read: what there is of it is not known then. Parts of others
    /// do not matter.
    pub fn all_readable(&self, balancer: &str) -> Result<()> {
        let ours = |pool: &Stub| self.pools_of(balancer).any(|own| own == pool.uuid);
        let belongs = |FlawedPart { part, .. }: &&FlawedPart| match &part.identity.load_balancer {
            Some(of) => of.uuid == balancer,
            None => part.identity.pool.as_ref().is_some_and(ours),
        };
        let unreadable = |kind: &str, uuid: &str, why: &str| {
            let text = format!("{kind} {uuid} of load balancer {balancer} cannot be read: {why}");
            Err(Error::temporary(text))
        };
        if let Some(FlawedPart { kind, part }) = self.flawed.iter().find(belongs) {
            return unreadable(kind, &part.identity.uuid, &part.why);
        }
        let silent = |monitor: &&crate::wire::HealthMonitor| {
            speaks_http(&monitor.kind) && monitor.http.is_none() && monitor.pool.as_ref().is_some_and(ours)
        };
        match self.monitors.iter().find(silent) {
            None => Ok(()),
            Some(monitor) => unreadable("health monitor", &monitor.uuid, "http is null"),
        }
    }

    /// An error if one of these floating IPs exists and cannot be read: where it is assigned is not known.
    pub fn all_told(&self, wanted: &[Floating]) -> Result<()> {
        let named = |network: &str| {
            Floating::parse(network).is_none_or(|ip| wanted.iter().any(|wanted| wanted.network == ip.network))
        };
        match self.flawed_ips.iter().find(|ip| named(&ip.identity.network)) {
            None => Ok(()),
            Some(Flawed { identity, why }) => {
                let text = format!("floating IP {} cannot be read: {why}", identity.network);
                Err(Error::temporary(text))
            }
        }
    }
}

impl ObservedBalancer {
    /// A load balancer without its parts: one that is changing, or that is to be deleted.
    pub fn bare(balancer: LoadBalancer, changing_for: Duration) -> Self {
        Self { balancer, changing_for, ..Self::default() }
    }

    /// A load balancer with its parts. `members` holds those of every pool that [`Parts::pools_of`] names.
    pub fn assemble(
        balancer: LoadBalancer,
        parts: &Parts,
        mut members: BTreeMap<String, Vec<Member>>,
    ) -> Result<Self> {
        parts.all_readable(&balancer.uuid)?;
        let mut pools = Vec::new();
        for pool in parts.pools.iter().filter(|pool| pool.load_balancer.uuid == balancer.uuid) {
            let Some(members) = members.remove(&pool.uuid) else {
                let message = format!("internal error: the members of pool {} were not read", pool.uuid);
                return Err(Error::permanent(message));
            };
            let below = |stub: &Option<Stub>| stub.as_ref().is_some_and(|s| s.uuid == pool.uuid);
            pools.push(ObservedPool {
                pool: pool.clone(),
                members,
                listeners: parts.listeners.iter().filter(|l| below(&l.pool)).cloned().collect(),
                monitors: parts.monitors.iter().filter(|m| below(&m.pool)).cloned().collect(),
            });
        }
        let floating_ips = parts.floating_ips.clone();
        Ok(Self { balancer, pools, floating_ips, ..Self::default() })
    }
}
