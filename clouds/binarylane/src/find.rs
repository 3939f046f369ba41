//! Which load balancer is a Service's. Pure.
//!
//! ```text
//!   the recorded id ──► is it another Service's? ──► if not, this one
//!   the names       ──► of these, what another Service claims, or another cluster, does not count
//!                       ──► the one whose address is published, else the oldest
//! ```
//!
//! Load balancers have no tags, and names are not unique. What nothing shows to be this Service's is not touched.

use std::collections::BTreeSet;

use cloudberth_core::{
    Error, Instance, Listing, NodeView, Result, ServiceView,
    annotation::Value,
    lb::{Desired, INTENT_ANNOTATION, LockKey, LockKind, Notice},
    net::parse_ip,
    provider_id::Reading,
};
use cloudberth_http::Flawed;

use crate::{
    annotations::{ID, TABLE},
    id::{parse_number, read_id},
    names::Names,
    reasons::{DUPLICATE_LOAD_BALANCER, LOAD_BALANCER_CLAIMED, LOAD_BALANCER_NAME_TAKEN},
    wire::{LoadBalancer, Named},
};

/// All load balancers of the account, as far as they were listed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ListedBalancers {
    /// Those that could be read.
    pub whole: Vec<LoadBalancer>,
    /// Those that are only known to be there.
    pub flawed: Vec<Flawed<Named>>,
    /// Why some may be missing.
    pub short: Option<String>,
}

/// The servers of the account and which of them this cluster runs on.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct KnownServers {
    /// All of them.
    pub all: BTreeSet<i64>,
    /// Those of this cluster's nodes.
    pub own: BTreeSet<i64>,
}

impl KnownServers {
    /// From a listing of instances, which has to be complete.
    pub fn new(listing: &Listing<Instance>, nodes: &[std::sync::Arc<NodeView>]) -> Result<Self> {
        if let Some(why) = &listing.short {
            return Err(Error::temporary(format!("the listing of servers is incomplete: {why}")));
        }
        let number = |instance: &Instance| parse_number(instance.id.id());
        let own = nodes.iter().filter_map(|node| match node.provider_id.as_deref().map(read_id) {
            Some(Reading::Mine(id)) => parse_number(id.id()),
            Some(Reading::Foreign) => None,
            Some(Reading::Malformed) | None => {
                listing.items.iter().find(|one| one.name.eq_ignore_ascii_case(&node.name)).and_then(number)
            }
        });
        Ok(Self { own: own.collect(), all: listing.items.iter().filter_map(number).collect() })
    }
}

/// What was found by names.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Found {
    /// This Service's load balancer.
    pub balancer: Option<LoadBalancer>,
    /// What is surely left over.
    pub surplus: Vec<(i64, String)>,
    /// What people should hear.
    pub notices: Vec<Notice>,
}

/// The recorded id of a Service's load balancer.
pub(crate) fn recorded_id(service: &ServiceView) -> Option<i64> {
    match TABLE.parse(&service.annotations).get(&ID) {
        Value::Set(id) => Some(id),
        Value::Unset | Value::Wrong => None,
    }
}

/// One search for the load balancer of a Service.
#[derive(Clone, Debug)]
pub(crate) struct Search<'a> {
    pub(crate) want: &'a Desired,
    pub(crate) names: Names,
}

impl<'a> Search<'a> {
    pub(crate) fn new(want: &'a Desired, prefix: &str) -> Self {
        Self { want, names: Names::of(&want.service, &want.cluster, prefix) }
    }

    /// Whether another Service would call its load balancer the same.
    pub(crate) fn collides(&self) -> bool {
        let base = LockKey::new(LockKind::Name, self.names.base.as_str());
        self.want.rivals.iter().any(|rival| rival.key == base)
    }

    fn others(&self, kind: LockKind, value: impl Into<String>) -> Vec<String> {
        let services = self.want.claims.on(&LockKey::new(kind, value));
        services.iter().map(ToString::to_string).collect()
    }

    /// Whether this Service's status shows the load balancer's address.
    fn publishes(&self, balancer: &LoadBalancer) -> bool {
        let ip = parse_ip(&balancer.ip);
        let shown =
            self.want.service.ingress.iter().map(|entry| parse_ip(entry.ip.as_deref().unwrap_or_default()));
        ip.is_some() && shown.into_iter().any(|shown| shown == ip)
    }

    fn others_publish(&self, balancer: &LoadBalancer) -> bool {
        parse_ip(&balancer.ip).is_some_and(|ip| !self.others(LockKind::Published, ip.to_string()).is_empty())
    }

    fn others_record(&self, balancer: &LoadBalancer) -> Vec<String> {
        self.others(LockKind::Id, balancer.id.to_string())
    }

    /// Whether another Service records its id too, so that it is not ours to delete.
    pub(crate) fn recorded_by_another(&self, balancer: &LoadBalancer) -> bool {
        !self.others_record(balancer).is_empty()
    }

    /// Whose the load balancer with the recorded id is, if it is another Service's: one that records the id too, or
    /// that has its name.
    pub(crate) fn anothers(&self, balancer: &LoadBalancer) -> Option<Notice> {
        let named = self.names.fit(&balancer.name) && !self.collides();
        let proven = named
            || self.names.is_unique(&balancer.name)
            || (self.publishes(balancer) && !self.others_publish(balancer));
        let mut others = self.others_record(balancer);
        if !self.names.fit(&balancer.name) {
            others.extend(self.others(LockKind::Name, balancer.name.to_ascii_lowercase()));
        }
        let other = others.first().filter(|_| !proven)?;
        let text = format!(
            "{}: load balancer {} ({}) is that of Service {other}; it is not touched",
            ID.name(),
            balancer.id,
            balancer.name
        );
        Some(Notice::warning(LOAD_BALANCER_CLAIMED, text))
    }

    /// The load balancers with a name of this Service's that no other Service has. `denied` is an id that the source
    /// itself says is not there.
    pub(crate) fn namesakes<'l>(
        &self,
        listed: &'l ListedBalancers,
        denied: Option<i64>,
    ) -> Result<Vec<&'l LoadBalancer>> {
        if let Some(why) = &listed.short {
            return Err(Error::temporary(format!("the listing of load balancers is incomplete: {why}")));
        }
        let may_be =
            |one: &&Flawed<Named>| one.identity.name.as_ref().is_none_or(|name| self.names.fit(name));
        if let Some(Flawed { identity, why }) = listed.flawed.iter().find(may_be) {
            return Err(Error::temporary(format!("load balancer {} cannot be read: {why}", identity.id)));
        }
        let fits =
            |one: &&LoadBalancer| self.names.fit(&one.name) && Some(one.id) != denied && self.may_have(one);
        Ok(listed.whole.iter().filter(fits).collect())
    }

    /// Whether a load balancer with a name of this Service's can be its own. Where another Service has that name too,
    /// only a published address tells, or a creation of our own that nobody else can have been.
    fn may_have(&self, one: &LoadBalancer) -> bool {
        if !self.others_record(one).is_empty() {
            return false;
        }
        let shared = self.collides() && !self.names.is_unique(&one.name);
        let intended = self.want.service.annotations.contains_key(INTENT_ANNOTATION);
        !shared || self.publishes(one) || (intended && !self.others_publish(one))
    }

    /// Whether it can only be told with the servers whose these are: one is to be adopted whose address is not
    /// published, or may be left over.
    pub(crate) fn needs_servers(&self, others: &[&LoadBalancer], known: Option<&LoadBalancer>) -> bool {
        let free = usize::from(known.is_none());
        others.iter().any(|one| !one.server_ids.is_empty() && !self.publishes(one)) || others.len() > free
    }

    /// This Service's load balancer: the one that is `known` by its id, else one of the others with its names.
    pub(crate) fn choose(
        &self,
        others: &[&LoadBalancer],
        known: Option<&LoadBalancer>,
        servers: &KnownServers,
    ) -> Found {
        let foreign = |one: &LoadBalancer| {
            let mut there = one.server_ids.iter().filter(|id| servers.all.contains(id)).peekable();
            !self.publishes(one) && there.peek().is_some() && there.all(|id| !servers.own.contains(id))
        };
        let (taken, mut ours): (Vec<_>, Vec<_>) = others.iter().copied().partition(|one| foreign(one));
        let mut found = Found { balancer: known.cloned(), ..Found::default() };
        if found.balancer.is_none() {
            ours.sort_by_key(|one| (!self.publishes(one), one.created_at.clone(), one.id));
            if !ours.is_empty() {
                found.balancer = Some(ours.remove(0).clone());
            }
            // Who has a load balancer of its own need not hear of the other cluster.
            found.notices.extend(taken.first().map(|one| taken_by_another(one)));
        }
        if !ours.is_empty() {
            let ids: Vec<_> = ours.iter().map(|one| one.id.to_string()).collect();
            let text = format!("there are more load balancers of this Service's name: {}", ids.join(", "));
            found.notices.push(Notice::warning(DUPLICATE_LOAD_BALANCER, text));
        }
        let left_over = |one: &&&LoadBalancer| {
            self.names.generated(&one.name)
                && (!self.collides() || self.names.is_unique(&one.name))
                && !self.publishes(one)
                && !self.others_publish(one)
                // An empty one may be that of another cluster whose nodes are still to come.
                && one.server_ids.iter().any(|id| servers.own.contains(id))
        };
        found.surplus = ours.iter().filter(left_over).map(|one| (one.id, one.name.clone())).collect();
        found
    }
}

fn taken_by_another(one: &LoadBalancer) -> Notice {
    let text = format!(
        "load balancer {} ({}) has the name of this Service's and holds servers of another cluster only; it is not touched",
        one.id, one.name
    );
    Notice::warning(LOAD_BALANCER_NAME_TAKEN, text)
}

#[cfg(test)]
mod tests;
