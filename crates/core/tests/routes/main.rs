//! The decisions of the route controller, case by case and for random clusters, against a simulated cloud.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)]

mod answers;
mod cases;
mod properties;

use cloudberth_core::{
    AddressKind, Listing, NodeAddress, NodeView, Result,
    decide::routes::{Plan, plan},
    lb::Notice,
    net::IpFamily,
    route::{ClusterCidrs, Route, RouteChange},
};

/// The families that most clouds can route.
const BOTH: [IpFamily; 2] = [IpFamily::V4, IpFamily::V6];

/// Names of a node and a network: what a route is about.
type Pair = (String, String);

fn cluster() -> ClusterCidrs {
    ClusterCidrs::parse("10.120.0.0/16,a00:100::/24").unwrap()
}

fn address(ip: &str) -> NodeAddress {
    NodeAddress::recorded(AddressKind::InternalIp, ip)
}

fn node(name: &str, cidrs: &[&str], ips: &[&str]) -> NodeView {
    NodeView {
        name: name.to_owned(),
        uid: format!("uid-{name}"),
        pod_cidrs: cidrs.iter().map(|&c| c.to_owned()).collect(),
        addresses: ips.iter().map(|ip| address(ip)).collect(),
        ..NodeView::default()
    }
}

/// A route of ours that does not track addresses.
fn route(target: &str, cidr: &str) -> Route {
    Route {
        name: format!("{target}-{cidr}"),
        target: (!target.is_empty()).then(|| target.to_owned()),
        addresses: None,
        destination: cidr.to_owned(),
        blackhole: false,
        ours: true,
    }
}

/// The same, tracking these addresses.
fn tracking(target: &str, cidr: &str, ips: &[&str]) -> Route {
    Route { addresses: Some(ips.iter().map(|ip| address(ip)).collect()), ..route(target, cidr) }
}

fn plan_for(routes: &[Route], nodes: &[NodeView]) -> Plan {
    plan(Ok(Listing::complete(routes.to_vec())), nodes, |_| false, &cluster(), &BOTH).unwrap()
}

/// What is deleted and what is created, sorted.
fn changes(plan: &Plan) -> (Vec<Pair>, Vec<Pair>) {
    let (mut deleted, mut created) = (Vec::new(), Vec::new());
    for change in plan.rounds.iter().flatten() {
        match change {
            RouteChange::Delete(old) => {
                deleted.push((old.target.clone().unwrap_or_default(), old.destination.clone()));
            }
            RouteChange::Create(new) => created.push((new.node.clone(), new.destination.clone())),
        }
    }
    deleted.sort();
    created.sort();
    (deleted, created)
}

/// A cloud that does what it is told, and tracks addresses or not.
fn apply_one(routes: &mut Vec<Route>, change: &RouteChange, tracks: bool) {
    match change {
        RouteChange::Delete(old) => routes.retain(|route| route != old),
        RouteChange::Create(new) => routes.push(Route {
            name: new.hint.clone(),
            addresses: tracks.then(|| new.addresses.clone()),
            ..route(&new.node, &new.destination)
        }),
    }
}

/// Carries out a whole plan; every change succeeds.
fn apply(routes: &mut Vec<Route>, plan: &Plan, tracks: bool) -> Vec<Vec<Result<Vec<Notice>>>> {
    plan.rounds.iter().flatten().for_each(|change| apply_one(routes, change, tracks));
    plan.rounds.iter().map(|round| round.iter().map(|_| Ok(Vec::new())).collect()).collect()
}
