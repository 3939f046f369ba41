//! The rounds in which a load balancer becomes what it should be.
//!
//! The API works on one change of a load balancer at a time, so the steps of a round are sent one after another, in
//! their order, and the first that fails ends the round. That lets a round hold pairs that belong together.
//!
//! What takes traffic on comes before what takes it off: a pool that is replaced has its members before its port is
//! moved over, and a member goes only after the one that takes its place has come. What the API may find fault with,
//! because a person wrote it, comes late: a refused setting must not keep nodes from being added and removed.

use std::collections::BTreeMap;

use cloudberth_core::lb::{Impact, Step};

use super::{
    pairs::{Pair, Place, doubled_pools, find_pool, pairs, place, surplus_pools},
    updates::updates,
};
use crate::{
    action::Action,
    annotations::Floating,
    observed::ObservedBalancer,
    spec::{Sight, Spec, WantedMember, WantedMonitor, WantedPool},
    wire::{HealthMonitor, Listener, Member, NewHttp, NewListener, NewMember, NewMonitor, NewPool},
};

type Steps = Vec<Step<Action>>;

/// The first round with something to do.
pub(super) fn next_round(
    spec: &Spec<'_>,
    existing: &ObservedBalancer,
    floating: &[Floating],
) -> Option<Steps> {
    let rounds: [&dyn Fn() -> Steps; 8] = [
        &|| missing_pools(spec, existing),
        &|| pairs(spec, existing).iter().flat_map(members).collect(),
        &|| listeners(spec, existing),
        &|| removals(spec, existing),
        &|| pairs(spec, existing).iter().filter(|pair| pair.monitor().is_none()).map(add_monitor).collect(),
        &|| pairs(spec, existing).iter().flat_map(updates).collect(),
        &|| rename(spec, existing),
        &|| floating.iter().map(|ip| assign(ip, existing)).collect(),
    ];
    // Without any address the first four could only take members away, or lead a port to a pool that has none.
    let useless = if spec.sight == Sight::Blind { 4 } else { 0 };
    rounds.iter().skip(useless).map(|round| round()).find(|steps| !steps.is_empty())
}

fn rename(spec: &Spec<'_>, existing: &ObservedBalancer) -> Steps {
    if existing.balancer.name == spec.name {
        return Vec::new();
    }
    let label = format!("rename load balancer {} to {}", existing.balancer.name, spec.name);
    let act = Action::RenameBalancer { balancer: existing.balancer.uuid.clone(), name: spec.name.clone() };
    vec![Step::new(act, Impact::None, label)]
}

fn missing_pools(spec: &Spec<'_>, existing: &ObservedBalancer) -> Steps {
    let held = |pool: &WantedPool| {
        spec.sight != Sight::Clear && existing.pools.iter().any(|observed| observed.pool.name == pool.name)
    };
    let missing = spec.pools.iter().filter(|pool| find_pool(existing, pool).is_none() && !held(pool));
    let create = |pool: &WantedPool| {
        let act = Action::CreatePool(NewPool {
            name: pool.name.clone(),
            load_balancer: existing.balancer.uuid.clone(),
            algorithm: pool.algorithm.clone(),
            protocol: pool.protocol.clone(),
        });
        let label = format!("create pool {} ({}, {})", pool.name, pool.algorithm, pool.protocol);
        Step::new(act, Impact::None, label)
    };
    missing.map(create).collect()
}

/// Makes a pool fit to take traffic.
///
/// A monitor that is to be deleted goes before the members change: it may check a port that is no longer served. A member
/// that differs only in what the API does not let two members share is replaced by itself, one at a time.
fn members(pair: &Pair<'_>) -> Steps {
    let mut steps: Steps = pair.surplus_monitors().map(|monitor| remove_monitor(pair, monitor)).collect();
    let mut surplus: BTreeMap<Place<'_>, Vec<&Member>> = BTreeMap::new();
    for member in pair.surplus_members() {
        surplus.entry(place(member)).or_default().push(member);
    }
    let (swapped, added): (Vec<_>, Vec<_>) =
        pair.missing_members().partition(|wanted| surplus.contains_key(&wanted.place()));
    steps.extend(added.into_iter().map(|wanted| add_member(pair, wanted)));
    for wanted in swapped {
        let old = surplus.remove(&wanted.place()).unwrap_or_default();
        steps.extend(old.into_iter().map(|member| remove_member(pair, member)));
        steps.push(add_member(pair, wanted));
    }
    steps
}

fn add_member(pair: &Pair<'_>, wanted: &WantedMember) -> Step<Action> {
    let member = NewMember {
        name: wanted.name.clone(),
        protocol_port: wanted.protocol_port,
        monitor_port: wanted.monitor_port,
        address: wanted.address.clone(),
        subnet: wanted.subnet.clone(),
    };
    let label = format!("add {} to pool {}", wanted.name, pair.wanted.name);
    Step::new(Action::CreateMember { pool: pair.pool().to_owned(), member }, Impact::None, label)
}

fn remove_member(pair: &Pair<'_>, member: &Member) -> Step<Action> {
    let label = format!("remove {} from pool {}", member.name, pair.wanted.name);
    let act = Action::DeleteMember { pool: pair.pool().to_owned(), member: member.uuid.clone() };
    Step::new(act, Impact::Minimal, label)
}

fn add_monitor(pair: &Pair<'_>) -> Step<Action> {
    let WantedMonitor { kind, http, delay, timeout, up, down } = pair.wanted.monitor.clone();
    let label = format!("check pool {} by {kind}", pair.wanted.name);
    let http = http.map(|http| NewHttp {
        expected_codes: http.expected_codes,
        method: http.method,
        url_path: http.url_path,
        version: http.version,
        host: http.host,
    });
    let act = Action::CreateMonitor(NewMonitor {
        pool: pair.pool().to_owned(),
        kind,
        delay_s: delay,
        timeout_s: timeout,
        up_threshold: up,
        down_threshold: down,
        http: http.unwrap_or_default(),
    });
    Step::new(act, Impact::None, label)
}

fn remove_monitor(pair: &Pair<'_>, monitor: &HealthMonitor) -> Step<Action> {
    let label = format!("stop checking pool {} by {}", pair.wanted.name, monitor.kind);
    Step::new(Action::DeleteMonitor { monitor: monitor.uuid.clone() }, Impact::Minimal, label)
}

/// Opens ports. Every listener that holds one of them for another pool is deleted first: two ports may swap pools.
fn listeners(spec: &Spec<'_>, existing: &ObservedBalancer) -> Steps {
    let all = pairs(spec, existing);
    let missing: Vec<_> = all.iter().filter(|pair| pair.listener().is_none()).collect();
    let needed = |listener: &Listener| missing.iter().any(|pair| pair.wanted.listener.collides(listener));
    let mut steps: Steps = Vec::new();
    for pool in surplus_pools(spec, existing) {
        let held = pool.listeners.iter().filter(|listener| needed(listener));
        steps.extend(held.map(|listener| close(listener, Impact::Considerable)));
    }
    for pair in &all {
        let held = pair.surplus_listeners().filter(|listener| needed(listener));
        steps.extend(held.map(|listener| close(listener, Impact::Minimal)));
    }
    steps.extend(missing.into_iter().map(open));
    steps
}

fn open(pair: &Pair<'_>) -> Step<Action> {
    let wanted = &pair.wanted.listener;
    let act = Action::CreateListener(NewListener {
        name: wanted.name.clone(),
        pool: pair.pool().to_owned(),
        protocol: wanted.protocol.clone(),
        protocol_port: wanted.port,
        allowed_cidrs: wanted.allowed_cidrs.clone(),
        timeout_client_data_ms: wanted.timeout_client_data,
        timeout_member_connect_ms: wanted.timeout_member_connect,
        timeout_member_data_ms: wanted.timeout_member_data,
    });
    Step::new(act, Impact::None, format!("open port {} to pool {}", wanted.name, pair.wanted.name))
}

fn close(listener: &Listener, impact: Impact) -> Step<Action> {
    let act = Action::DeleteListener { listener: listener.uuid.clone() };
    Step::new(act, impact, format!("close port {}", listener.name))
}

fn removals(spec: &Spec<'_>, existing: &ObservedBalancer) -> Steps {
    let mut steps = Vec::new();
    for pair in &pairs(spec, existing) {
        steps.extend(pair.surplus_listeners().map(|listener| close(listener, Impact::Minimal)));
        if spec.sight == Sight::Clear {
            steps.extend(pair.surplus_members().map(|member| remove_member(pair, member)));
        }
    }
    for surplus in surplus_pools(spec, existing).into_iter().chain(doubled_pools(spec, existing)) {
        let act = Action::DeletePool { pool: surplus.pool.uuid.clone() };
        steps.push(Step::new(act, Impact::Minimal, format!("remove pool {}", surplus.pool.name)));
    }
    steps
}

fn assign(ip: &Floating, existing: &ObservedBalancer) -> Step<Action> {
    let act = Action::AssignFloatingIp {
        address: ip.address.to_string(),
        network: ip.network.to_string(),
        balancer: existing.balancer.uuid.clone(),
    };
    Step::new(act, Impact::Minimal, format!("assign floating IP {}", ip.network))
}
