//! What there is for one Service, from listings. Pure.

use std::{collections::BTreeMap, time::Duration};

use cloudberth_core::{
    Error, Instance, Listing, NodeView, ProviderId, Result, ServiceView,
    instance::PrivateFacts,
    lb::{Candidate, Goal, Identity, Marked, Name, Trail},
    provider_id::Reading,
};
use cloudberth_http::{Flawed, Item};

use crate::{
    annotations::{Floating, NAME, TABLE, UUID},
    observed::{BackendInstance, FlawedPart, ObservedBalancer, ObservedPool, Parts, PrivateAddress},
    spec::speaks_http,
    uuid::{SCHEME, ServerId, parse_uuid, server_id},
    wire::{LoadBalancer, Member, Named, Stub},
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

/// Those of all load balancers that have a generated name. One that cannot be read and may have such a name makes the
/// listing short.
pub(crate) fn marked(listing: Listing<Item<LoadBalancer, Named>>) -> Listing<Marked> {
    let Listing { items, mut short } = listing;
    let (whole, flawed) = Item::sort(items);
    let generated = |name: &str| name.starts_with(GENERATED);
    if let Some(one) = flawed.iter().find(|one| one.identity.name.as_deref().is_none_or(generated)) {
        short.get_or_insert(format!("load balancer {} cannot be read: {}", one.identity.uuid, one.why));
    }
    let of = |balancer: LoadBalancer| {
        let identity = identity(&balancer);
        let uid = identity.made_for?;
        let annotations = [(UUID.name().to_owned(), identity.id.clone())].into();
        let made_for = Box::new(ServiceView { uid, annotations, ..ServiceView::default() });
        Some(Marked { id: identity.id, name: identity.name, made_for, instances: Vec::new() })
    };
    Listing { items: whole.into_iter().filter_map(of).collect(), short }
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

/// Reads a node's provider id.
pub fn read_id(text: &str) -> Reading {
    match server_id(text) {
        ServerId::Known(id) => ProviderId::new(SCHEME, &id).map_or(Reading::Malformed, Reading::Mine),
        ServerId::Malformed => Reading::Malformed,
        ServerId::Foreign => Reading::Foreign,
    }
}

/// What a load balancer needs to know of a node's server.
pub fn backend_instance(node: &NodeView, instance: &Instance) -> BackendInstance {
    let addresses = instance.facts.as_ref().and_then(PrivateFacts::get::<Vec<PrivateAddress>>);
    BackendInstance {
        node: node.name.clone(),
        zone: instance.zone.as_ref().map(ToString::to_string),
        addresses: addresses.cloned().unwrap_or_default(),
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
