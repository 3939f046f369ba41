//! Get and list.

use serde_json::{Value, json};

use crate::{
    render::{View, capitalised},
    resources::Tags,
    route::Kind,
    settings::{FLAVORS, ZONES},
    tags::TagFilter,
};

/// All resources of a kind that match the filter; members only of one pool.
pub(crate) fn list(view: &View<'_>, kind: Kind, pool: Option<&str>, filter: &TagFilter) -> Vec<Value> {
    fn fitting<'a, T: 'a>(
        things: impl Iterator<Item = &'a T>,
        filter: &TagFilter,
        tags: impl Fn(&T) -> &Tags,
        show: impl Fn(&T) -> Value,
    ) -> Vec<Value> {
        things.filter(|thing| filter.fits(tags(thing))).map(show).collect()
    }
    let resources = view.resources;
    match kind {
        Kind::Server => fitting(resources.servers.values(), filter, |s| &s.tags, |s| view.server(s)),
        Kind::Balancer => fitting(resources.balancers.values(), filter, |b| &b.tags, |b| view.balancer(b)),
        Kind::Pool => fitting(resources.pools.values(), filter, |p| &p.tags, |p| view.pool(p)),
        Kind::Member => {
            let of_pool =
                resources.members.values().filter(|member| pool.is_none_or(|pool| member.pool == pool));
            fitting(of_pool, filter, |m| &m.tags, |m| view.member(m))
        }
        Kind::Listener => fitting(resources.listeners.values(), filter, |l| &l.tags, |l| view.listener(l)),
        Kind::Monitor => fitting(resources.monitors.values(), filter, |m| &m.tags, |m| view.monitor(m)),
        Kind::FloatingIp => {
            fitting(resources.floating_ips.values(), filter, |f| &f.tags, |f| view.floating_ip(f))
        }
        Kind::Network => {
            let own = resources.networks.values().filter(|network| !network.public);
            fitting(own, filter, |n| &n.tags, |n| view.network(n))
        }
        Kind::Subnet => {
            let public = |id: &str| resources.networks.get(id).is_some_and(|network| network.public);
            let own = resources.subnets.values().filter(|subnet| !public(&subnet.network));
            fitting(own, filter, |s| &s.tags, |s| view.subnet(s))
        }
        Kind::Region => regions(),
        Kind::Flavor => flavors(),
    }
}

/// One resource; a member only under its own pool.
pub(super) fn get(view: &View<'_>, kind: Kind, pool: Option<&str>, id: &str) -> Option<Value> {
    let resources = view.resources;
    match kind {
        Kind::Server => resources.servers.get(id).map(|server| view.server(server)),
        Kind::Balancer => resources.balancers.get(id).map(|balancer| view.balancer(balancer)),
        Kind::Pool => resources.pools.get(id).map(|pool| view.pool(pool)),
        Kind::Member => {
            let member = resources.members.get(id).filter(|member| pool == Some(member.pool.as_str()));
            member.map(|member| view.member(member))
        }
        Kind::Listener => resources.listeners.get(id).map(|listener| view.listener(listener)),
        Kind::Monitor => resources.monitors.get(id).map(|monitor| view.monitor(monitor)),
        Kind::FloatingIp => resources.floating_ips.get(&id.parse().ok()?).map(|ip| view.floating_ip(ip)),
        Kind::Network => resources.networks.get(id).map(|network| view.network(network)),
        Kind::Subnet => resources.subnets.get(id).map(|subnet| view.subnet(subnet)),
        Kind::Region | Kind::Flavor => None,
    }
}

fn regions() -> Vec<Value> {
    ZONES.iter().map(|(zone, region)| json!({"slug": region, "zones": [{"slug": zone}]})).collect()
}

fn flavors() -> Vec<Value> {
    let zones: Vec<_> = ZONES.iter().map(|(zone, _)| json!({"slug": zone})).collect();
    let flavor = |(slug, cpus, memory): &(&str, i64, i64)| {
        let name = capitalised(slug);
        json!({"slug": slug, "name": name, "vcpu_count": cpus, "memory_gb": memory, "zones": zones})
    };
    FLAVORS.iter().map(flavor).collect()
}
