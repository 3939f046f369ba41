//! Listed routes, nodes and the cluster's networks in; deletions and creations out.

use std::collections::{BTreeMap, BTreeSet};

use super::condition::Network;
use crate::{
    error::{Context, Error, Result},
    lb::Notice,
    lookup::Listing,
    net::{self, IpFamily},
    reason,
    route::{ClusterCidrs, NewRoute, Route, RouteChange},
    view::NodeView,
};

/// What a pass does.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Plan {
    /// One call of [`Routes::apply`](crate::provider::Routes::apply) each, deletions first; a round begins when the
    /// one before it was answered. Empty when everything is as it should be.
    pub rounds: Vec<Vec<RouteChange>>,
    /// The networks of nodes that the cloud cannot route.
    pub unroutable: BTreeSet<Unroutable>,
    /// What each node that routes concern may be told if every change succeeds.
    pub(super) networks: BTreeMap<String, Network>,
}

/// A network of a node that the cloud cannot route.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Unroutable {
    /// The node.
    pub node: String,
    /// Its UID.
    pub uid: String,
    /// The network, as the node spells it.
    pub network: String,
}

impl Unroutable {
    /// What people are told.
    #[must_use]
    pub fn notice(&self) -> Notice {
        let message = format!(
            "{} gets no route: this cloud cannot route networks of its IP family. Pods are reached by their addresses of \
             the other family, or give the cluster a network plugin that needs no routes",
            self.network
        );
        Notice::warning(reason::UNROUTABLE_NETWORK, message)
    }
}

/// Compares what the cloud lists with what the nodes need.
///
/// `nodes` are all nodes of this cloud. A route to a node that is `unclaimed`, because no cloud knows it for its own yet,
/// is left alone; a route to anybody else is of no use. Nothing is decided on a listing that failed or is short; the error
/// is then the outcome of the pass.
///
/// - A route is kept if it leads to a node that has its network, spelled the same, and its addresses, where the cloud
///   tracks them, are the node's in any order.
/// - Every other route that is ours and inside the cluster's networks is deleted, and so is a blackhole there.
/// - What a node needs and no remaining route provides is created, once, if its family is one of `families`.
pub fn plan<'a>(
    listed: Result<Listing<Route>>,
    nodes: impl IntoIterator<Item = &'a NodeView>,
    unclaimed: impl Fn(&str) -> bool,
    cluster: &ClusterCidrs,
    families: &[IpFamily],
) -> Result<Plan> {
    let listed = listed.context("listing routes")?;
    if let Some(why) = listed.short {
        return Err(Error::temporary(format!("listing routes: the listing is incomplete: {why}")));
    }
    let nodes: BTreeMap<&str, &NodeView> = nodes.into_iter().map(|node| (node.name.as_str(), node)).collect();
    let wanted: BTreeMap<(&str, &str), &NodeView> = nodes
        .values()
        .flat_map(|&node| node.pod_cidrs.iter().map(move |cidr| ((&*node.name, &**cidr), node)))
        .collect();

    let mut provided = BTreeSet::new();
    let mut deletes = Vec::new();
    for route in &listed.items {
        let key = (route.target.as_deref().unwrap_or_default(), route.destination.as_str());
        let fits = wanted.get(&key).is_some_and(|node| leads_to(route, node));
        let spared = route.target.as_deref().is_some_and(&unclaimed);
        let removable = route.ours && !spared && responsible(&route.destination, cluster);
        if removable && (route.blackhole || !fits) {
            deletes.push(RouteChange::Delete(route.clone()));
        } else if fits {
            provided.insert(key);
        }
    }
    let missing = wanted.iter().filter(|(key, _)| !provided.contains(*key));
    let (missing, beyond): (Vec<_>, Vec<_>) = missing.partition(|((_, cidr), _)| is_routable(cidr, families));
    let creates: Vec<_> =
        missing.iter().map(|((_, cidr), node)| RouteChange::Create(new_route(node, cidr))).collect();
    let unroutable = beyond.iter().map(|((_, cidr), node)| Unroutable {
        node: node.name.clone(),
        uid: node.uid.clone(),
        network: (*cidr).to_owned(),
    });

    // Where routes track addresses, an outdated one may stand in its successor's way until it is really gone.
    let barrier = listed.items.iter().any(|route| route.addresses.is_some());
    let rounds = if barrier { vec![deletes, creates] } else { vec![[deletes, creates].concat()] };
    let rounds = rounds.into_iter().filter(|round| !round.is_empty()).collect();

    let without: BTreeSet<_> = beyond.iter().map(|(key, _)| **key).collect();
    let reached = wanted.keys().filter(|key| !without.contains(*key));
    let reached = reached.map(|(node, _)| ((*node).to_owned(), Network::Created));
    // A node that has routes and no network of its own lost its network.
    let targets = listed.items.iter().filter_map(|route| nodes.get(route.target.as_deref()?));
    let lost =
        targets.filter(|node| node.pod_cidrs.is_empty()).map(|node| (node.name.clone(), Network::NotCreated));
    Ok(Plan { rounds, unroutable: unroutable.collect(), networks: reached.chain(lost).collect() })
}

/// A network that cannot be read is the cloud's to refuse.
fn is_routable(cidr: &str, families: &[IpFamily]) -> bool {
    net::parse_cidr(cidr).is_none_or(|network| families.contains(&IpFamily::of(network.addr())))
}

/// Whether a destination lies in the cluster's networks, so that a route to it is ours to judge: its first or its
/// last address does. One that cannot be read does not.
#[must_use]
pub fn responsible(destination: &str, cluster: &ClusterCidrs) -> bool {
    net::parse_cidr(destination)
        .is_some_and(|network| cluster.contains(network.network()) || cluster.contains(network.broadcast()))
}

fn leads_to(route: &Route, node: &NodeView) -> bool {
    route.addresses.as_ref().is_none_or(|tracked| {
        tracked.len() == node.addresses.len()
            && node.addresses.iter().all(|address| tracked.contains(address))
    })
}

fn new_route(node: &NodeView, cidr: &str) -> NewRoute {
    NewRoute {
        hint: node.uid.clone(),
        node: node.name.clone(),
        provider_id: node.provider_id.clone(),
        addresses: node.addresses.clone(),
        destination: cidr.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_route_is_ours_to_judge_if_either_end_lies_in_the_clusters_networks() {
        let table = [
            ("FW-265", "10.244.0.0/16", "10.244.0.0/24", true),
            ("FW-265", "10.244.0.0/16", "10.244.10.0/24", true),
            ("FW-265", "10.244.0.0/16", "10.244.255.0/24", true),
            ("FW-266", "10.244.0.0/14", "10.244.0.0/24", true),
            ("FW-266", "10.244.0.0/14", "10.247.255.0/24", true),
            ("FW-267", "a00:100::/10", "a00:100::/24", true),
            ("FW-267", "a00:100::/10", "b00:100::/24", false),
            ("FW-268", "10.244.0.0/16", "10.224.0.0/24", false),
            ("FW-268", "10.244.0.0/16", "10.0.10.0/24", false),
            ("FW-268", "10.244.0.0/16", "10.255.255.0/24", false),
            ("FW-269", "10.244.0.0/14", "10.248.0.0/24", false),
            ("FW-269", "10.244.0.0/14", "10.243.255.0/24", false),
            ("FW-270 not a network", "10.244.0.0/16", "10.244.0.0", false),
            ("FW-270 not even close", "10.244.0.0/16", "", false),
            ("only the first address", "10.244.0.0/16", "10.244.0.0/15", true),
            ("only the last address", "10.245.0.0/16", "10.244.0.0/15", true),
            ("all around it", "10.244.0.0/16", "0.0.0.0/0", false),
            ("the second network", "fd00::/48,10.244.0.0/16", "10.244.1.0/24", true),
            ("host bits and leading zeros", "10.244.0.0/16", "10.244.001.7/24", true),
        ];
        for (case, cluster, destination, want) in table {
            let cluster = ClusterCidrs::parse(cluster).unwrap();
            assert_eq!(responsible(destination, &cluster), want, "{case} {destination}");
        }
    }
}
