//! The entries of a VPC: whose they are, and what they become. Pure.

use std::collections::BTreeMap;

use cloudberth_core::{
    Category, Error, Result,
    decide::routes::responsible,
    lb::Notice,
    net::parse_ip,
    route::{ClusterCidrs, NewRoute, Route, RouteChange},
};
use serde_json::{json, value::to_raw_value};

use crate::{
    id::parse_number,
    reasons::NO_ROUTE_CHECK,
    wire::{RouteEntry, Vpc},
};

/// The longest description that the API takes.
const DESCRIPTION: usize = 250;
/// How the replaced program describes its entries.
const REPLACED: &str = "Kubernetes route for node ";

/// Where packets to the pods of a node go.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Gateway {
    /// The VPC; `None` if the server is in none that is looked after.
    pub vpc: Option<i64>,
    /// The server's addresses in it; the first is the router.
    pub addresses: Vec<String>,
    /// The server drops what is not addressed to itself.
    pub checks_destination: bool,
}

/// The gateways of nodes, by name.
pub type Gateways = BTreeMap<String, Gateway>;

/// What tells our entries from those of others.
#[derive(Clone, Debug)]
pub(super) struct Marks {
    prefix: String,
    networks: ClusterCidrs,
}

/// The entries of a VPC after some changes.
pub(super) struct Merged {
    pub(super) entries: Vec<RouteEntry>,
    /// What came of each change.
    pub(super) answers: Vec<Result<()>>,
    /// Whether anything has to be written.
    pub(super) changed: bool,
}

fn same(a: &str, b: &str) -> bool {
    a == b || parse_ip(a).is_some_and(|ip| parse_ip(b) == Some(ip))
}

impl Marks {
    pub(super) fn new(cluster: &str, networks: ClusterCidrs) -> Self {
        Self { prefix: format!("cloudberth/{cluster}/"), networks }
    }

    /// Whether an entry is ours: it carries our mark, or that of the replaced program inside the cluster's networks.
    fn owns(&self, entry: &RouteEntry) -> bool {
        let description = entry.description.as_deref().unwrap_or_default();
        description.starts_with(&cut(&self.prefix))
            || (description.starts_with(REPLACED) && responsible(&entry.destination, &self.networks))
    }

    /// The entries of a VPC as routes. The name of one says where it stands.
    pub(super) fn routes(&self, vpc: &Vpc, gateways: &Gateways) -> Vec<Route> {
        let target = |router: &str| {
            let leads = |gateway: &Gateway| {
                gateway.vpc == Some(vpc.id) && gateway.addresses.iter().any(|own| same(own, router))
            };
            gateways.iter().find(|(_, gateway)| leads(gateway)).map(|(node, _)| node.clone())
        };
        let route = |entry: &RouteEntry| Route {
            name: format!("{}/{}", vpc.id, entry.router),
            target: target(&entry.router),
            addresses: None,
            destination: entry.destination.clone(),
            blackhole: false,
            ours: self.owns(entry),
        };
        vpc.route_entries.iter().map(route).collect()
    }

    /// The VPC that a change is about.
    pub(super) fn vpc_of(&self, change: &RouteChange, gateways: &Gateways) -> Result<Option<i64>> {
        match change {
            RouteChange::Delete(route) => Ok(place(route).map(|(vpc, _)| vpc)),
            RouteChange::Create(new) => {
                if !responsible(&new.destination, &self.networks) {
                    let text = format!("{} is outside the networks of the cluster", new.destination);
                    return Err(Error::user_input(text));
                }
                gateway(new, gateways).map(|(vpc, _)| Some(vpc))
            }
        }
    }

    /// The entries after the changes. Those of others stay as they are, byte for byte and in their order.
    pub(super) fn merge(&self, vpc: &Vpc, changes: &[(usize, &RouteChange)], gateways: &Gateways) -> Merged {
        let mut merged = Merged {
            entries: vpc.route_entries.clone(),
            answers: Vec::with_capacity(changes.len()),
            changed: false,
        };
        for (_, change) in changes {
            let answer = match change {
                RouteChange::Delete(route) => {
                    merged.remove(|entry| {
                        let router = place(route).is_some_and(|(_, router)| same(router, &entry.router));
                        self.owns(entry) && router && entry.destination == route.destination
                    });
                    Ok(())
                }
                RouteChange::Create(new) => self.add(&mut merged, new, gateways),
            };
            merged.answers.push(answer);
        }
        merged
    }

    fn add(&self, merged: &mut Merged, new: &NewRoute, gateways: &Gateways) -> Result<()> {
        let (_, routers) = gateway(new, gateways)?;
        let leads = |entry: &RouteEntry| routers.iter().any(|router| same(router, &entry.router));
        let there: Vec<_> =
            merged.entries.iter().filter(|entry| entry.destination == new.destination).collect();
        if there.iter().any(|entry| leads(entry)) {
            return Ok(());
        }
        if let Some(other) = there.iter().find(|entry| !self.owns(entry)) {
            let whose =
                other.description.as_deref().filter(|text| !text.is_empty()).unwrap_or("no description");
            let text = format!("somebody else's entry routes {other} ({whose}), and it is not touched");
            return Err(Error::new(Category::Conflict, text));
        }
        merged.remove(|entry| entry.destination == new.destination);
        let router = routers.first().cloned().unwrap_or_default();
        merged.entries.push(self.entry(new, router)?);
        merged.changed = true;
        Ok(())
    }

    fn entry(&self, new: &NewRoute, router: String) -> Result<RouteEntry> {
        let description = cut(&format!("{}{}", self.prefix, new.node));
        let destination = new.destination.clone();
        let body = json!({"router": router, "destination": destination, "description": description});
        let raw = to_raw_value(&body).map_err(|why| Error::permanent(format!("internal error: {why}")))?;
        Ok(RouteEntry { router, destination, description: Some(description), raw })
    }
}

impl Merged {
    fn remove(&mut self, unwanted: impl Fn(&RouteEntry) -> bool) {
        let before = self.entries.len();
        self.entries.retain(|entry| !unwanted(entry));
        self.changed |= self.entries.len() != before;
    }
}

/// As much of a text as the API takes, in whole characters.
fn cut(text: &str) -> String {
    text.chars().take(DESCRIPTION).collect()
}

/// Where a listed route stands: its VPC and its router.
fn place(route: &Route) -> Option<(i64, &str)> {
    let (vpc, router) = route.name.split_once('/')?;
    Some((parse_number(vpc)?, router))
}

/// The VPC and the addresses through which the pods of a new route's node are reached.
fn gateway<'a>(new: &NewRoute, gateways: &'a Gateways) -> Result<(i64, &'a [String])> {
    let node = &new.node;
    let lacks = |what: &str| {
        Error::new(Category::NotFound, format!("{what}, so packets to its pods cannot be routed"))
    };
    let gateway = gateways.get(node).ok_or_else(|| lacks(&format!("node {node} has no server")))?;
    let vpc = gateway
        .vpc
        .ok_or_else(|| lacks(&format!("the server of node {node} is in no VPC that is looked after")))?;
    if gateway.addresses.is_empty() {
        return Err(lacks(&format!("the server of node {node} has no address in VPC {vpc}")));
    }
    Ok((vpc, &gateway.addresses))
}

/// What people should hear about the node of a new route.
pub(super) fn notices(change: &RouteChange, gateways: &Gateways) -> Vec<Notice> {
    let RouteChange::Create(new) = change else { return Vec::new() };
    let checks = gateways.get(&new.node).is_some_and(|gateway| gateway.checks_destination);
    let text = format!(
        "the source and destination check of the server of node {} is on, so traffic that is routed to its pods is dropped",
        new.node
    );
    checks.then(|| Notice::warning(NO_ROUTE_CHECK, text)).into_iter().collect()
}

/// What comes of changes of a VPC that is gone: nothing is left to remove, and nothing can be added.
pub(super) fn without_vpc(id: i64, changes: &[(usize, &RouteChange)]) -> Vec<Result<()>> {
    let answer = |change: &RouteChange| match change {
        RouteChange::Delete(_) => Ok(()),
        RouteChange::Create(_) => Err(Error::new(Category::NotFound, format!("there is no VPC {id}"))),
    };
    changes.iter().map(|(_, change)| answer(change)).collect()
}

#[cfg(test)]
mod tests;
