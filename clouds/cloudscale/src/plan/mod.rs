//! What to do next about a load balancer. Pure.
//!
//! ```text
//!   no load balancer   ──► create it (refused as a whole where anything is refused)
//!   changing           ──► wait
//!   settled            ──► pools, members, ports, removals, checks, attributes, name, floating IPs
//!   to be deleted      ──► wait while it changes, then delete it with all that is below it
//! ```

mod fold;
mod limits;
mod pairs;
mod rounds;
mod updates;

pub use fold::{assume, fold};

use std::time::Duration;

use cloudberth_core::{
    Result, ServiceView,
    annotation::Value,
    decide::nodeset::Selector,
    lb::{Decision, Desired, Goal, Impact, LockKey, LockKind, Next, Publish, Step},
    view::{Ingress, IpMode},
};

use crate::{
    action::Action,
    annotations::{
        CONFIG_VERSION, CREATED, FLOATING_IPS, FORCE_HOSTNAME, IP_MODE, NODE_SELECTOR, TABLE, UUID, ZONE,
    },
    find::trail_of,
    observed::{Observed, ObservedBalancer},
    spec::Spec,
    wire::{BalancerStatus, NewBalancer, NewVip, SlugStub},
};

/// The first look after a change began: nothing is ready sooner.
const FIRST_POLL: Duration = Duration::from_millis(600);
/// The looks after that, as long as the change is young: somebody waits for the address.
const NEXT_POLL: Duration = Duration::from_millis(200);
/// Polls become rarer while a change takes longer, up to this.
const LAST_POLL: Duration = Duration::from_secs(5);

/// When to look again for what the cloud does not tell.
const UNTOLD_POLL: Duration = Duration::from_secs(60);

/// What to do next about what was observed.
pub fn decide(want: &Desired, observed: Option<&Observed>) -> Decision<Action> {
    let nothing = Observed::default();
    let observed = observed.unwrap_or(&nothing);
    match (want.goal, &observed.existing) {
        (Goal::Gone, existing) => remove(want, existing.as_ref()),
        (Goal::Present, None) => create(want, observed),
        (Goal::Present, Some(existing)) => converge(want, observed, existing),
    }
}

fn converge(want: &Desired, observed: &Observed, existing: &ObservedBalancer) -> Decision<Action> {
    let ours = limits::created_here(want, existing);
    let mut spec = Spec::read(want, observed, ours);
    if let Some(refusal) = limits::contested(want, Some(existing)) {
        spec.refused.push(refusal);
        return decision(spec, Next::Converged, None);
    }
    limits::immutable(&mut spec, want, existing);
    let mut publish = record(&spec, existing, ours);
    if existing.balancer.status == BalancerStatus::Changing {
        return decision(spec, waiting(existing), Some(publish));
    }
    let floating = limits::floating(&mut spec, want, existing);
    let rest = untold(observed).unwrap_or(Next::Converged);
    let next = rounds::next_round(&spec, existing, &floating).map_or(rest, Next::Act);
    let open = |pair: &pairs::Pair<'_>| pair.listener().is_some();
    if spec.pools.len() == pairs::pairs(&spec, existing).iter().filter(|pair| open(pair)).count() {
        publish.ingress = ingress(&spec, existing);
    }
    decision(spec, next, Some(publish))
}

/// What the status shows; `None` leaves what is there, where nobody can tell what is meant.
fn ingress(spec: &Spec<'_>, existing: &ObservedBalancer) -> Option<Vec<Ingress>> {
    let hostname = spec.annotations.settle(&FORCE_HOSTNAME, None).filter(|host| !host.is_empty());
    if hostname.is_some() {
        return Some(vec![Ingress { hostname, ..Ingress::default() }]);
    }
    let mode = match spec.annotations.get(&IP_MODE) {
        Value::Set("VIP") => IpMode::Vip,
        Value::Set(_) | Value::Unset => IpMode::Proxy,
        Value::Wrong => return None,
    };
    let entry = |vip: &crate::wire::VipAddress| Ingress {
        ip: Some(vip.address.clone()),
        ip_mode: Some(mode.clone()),
        ..Ingress::default()
    };
    Some(existing.balancer.vip_addresses.iter().map(entry).collect())
}

fn decision(spec: Spec<'_>, next: Next<Action>, publish: Option<Publish>) -> Decision<Action> {
    Decision { next, publish, refused: spec.refused, notices: spec.notices }
}

/// The wait for servers that the cloud does not describe in full, and the first of them; `None` where there are none.
fn untold(observed: &Observed) -> Option<Next<Action>> {
    let unknown = &observed.instances.unknown;
    let (node, why) = unknown.first()?;
    let others = if unknown.len() == 1 { String::new() } else { format!(" and {} more", unknown.len() - 1) };
    let on = format!("the cloud to describe the server of node {node}{others}: {why}");
    Some(Next::Wait { on: on.into(), poll: UNTOLD_POLL })
}

fn waiting(existing: &ObservedBalancer) -> Next<Action> {
    let poll = match existing.changing_for {
        Duration::ZERO => FIRST_POLL,
        so_far => (so_far / 4).clamp(NEXT_POLL, LAST_POLL),
    };
    Next::Wait { on: "the load balancer to finish changing".into(), poll }
}

/// Deletes what is this Service's own. Nothing that is wrong with the Service stands in the way.
fn remove(want: &Desired, existing: Option<&ObservedBalancer>) -> Decision<Action> {
    let Some(existing) = existing else { return Decision::new(Next::Converged) };
    if let Some(refusal) = limits::contested(want, Some(existing)) {
        return Decision { refused: vec![refusal], ..Decision::new(Next::Converged) };
    }
    if existing.balancer.status == BalancerStatus::Changing {
        return Decision::new(waiting(existing));
    }
    let balancer = existing.balancer.uuid.clone();
    let label = format!("delete load balancer {} ({balancer})", existing.balancer.name);
    Decision::new(Next::Act(vec![Step::new(Action::DeleteBalancer { balancer }, Impact::Major, label)]))
}

fn create(want: &Desired, observed: &Observed) -> Decision<Action> {
    let mut spec = Spec::read(want, observed, true);
    spec.refused.extend(limits::contested(want, None));
    // It stays where it is created for good, and nobody knows where all the servers are.
    if let Some(wait) = untold(observed).filter(|_| spec.annotations.get(&ZONE).set().is_none()) {
        return decision(spec, wait, None);
    }
    let vip = |vip: &crate::annotations::Vip| NewVip {
        address: vip.address.clone().filter(|text| !text.is_empty()),
        subnet: vip.subnet.clone().filter(|text| !text.is_empty()),
    };
    let new = NewBalancer {
        name: spec.name.clone(),
        flavor: spec.flavor.clone().unwrap_or_default(),
        zone: spec.zone.clone(),
        vip_addresses: spec.vips.iter().map(vip).collect(),
    };
    let label = format!("create load balancer {}", new.name);
    decision(spec, Next::Act(vec![Step::creating(Action::CreateBalancer(new), label)]), None)
}

/// The annotations to record. A zone that somebody asks for in vain stays as it was written.
fn record(spec: &Spec<'_>, existing: &ObservedBalancer, ours: bool) -> Publish {
    let balancer = &existing.balancer;
    let mut annotations = vec![(UUID.name(), balancer.uuid.as_str()), (CONFIG_VERSION.name(), "1")];
    let asked = |zone: &&SlugStub| spec.zone.as_ref().is_none_or(|wanted| *wanted == zone.slug);
    annotations.extend(balancer.zone.as_ref().filter(asked).map(|zone| (ZONE.name(), zone.slug.as_str())));
    if ours {
        annotations.push((CREATED.name(), &balancer.uuid));
    }
    let annotations = annotations.into_iter().map(|(key, value)| (key.to_owned(), value.to_owned()));
    Publish { annotations: annotations.collect(), ..Publish::default() }
}

/// What a Service locks: the name and the id of its load balancer, and floating IPs in canonical form.
pub fn lock_keys(service: &ServiceView) -> Vec<LockKey> {
    let floating = TABLE.parse(&service.annotations).get(&FLOATING_IPS).set().unwrap_or_default();
    let addresses = floating.iter().map(|ip| LockKey::new(LockKind::Address, ip.network.to_string()));
    // The trail of a deletion is the same, and never an error.
    let trail = trail_of(service, Goal::Gone).ok();
    let balancer = trail.into_iter().flat_map(|trail| {
        let id = trail.id.map(|uuid| LockKey::new(LockKind::Id, uuid));
        [Some(LockKey::new(LockKind::Name, trail.name)), id]
    });
    balancer.flatten().chain(addresses).collect()
}

/// Which nodes a Service wants behind its load balancer.
pub fn selector(service: &ServiceView) -> Result<Option<Selector>> {
    TABLE.parse(&service.annotations).try_get(&NODE_SELECTOR)
}
