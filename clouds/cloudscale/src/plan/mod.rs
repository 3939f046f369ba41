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
    Error, Result, ServiceView,
    annotation::Value,
    decide::nodeset::Selector,
    lb::{Claim, ClaimKind, Decision, Goal, Impact, Next, Publish, Step, Want},
    view::{Ingress, IpMode},
};

use crate::{
    act::Act,
    annotations::{
        CONFIG_VERSION, CREATED, FLOATING_IPS, FORCE_HOSTNAME, IP_MODE, NODE_SELECTOR, TABLE, UUID, ZONE,
    },
    find::Trail,
    seen::{Seen, Standing},
    wire::{BalancerStatus, NewBalancer, NewVip, SlugStub},
    wish::Wish,
};

/// The first look after a change began; a small load balancer is ready after two of them.
const FIRST_POLL: Duration = Duration::from_millis(400);
/// Polls become rarer while a change takes longer, up to this.
const LAST_POLL: Duration = Duration::from_secs(5);

/// When to look again for what the cloud does not tell.
const UNTOLD_POLL: Duration = Duration::from_secs(60);

/// What to do next about what was seen.
#[must_use]
pub fn decide(want: &Want, seen: Option<&Seen>) -> Decision<Act> {
    let nothing = Seen::default();
    let seen = seen.unwrap_or(&nothing);
    match (want.goal, &seen.standing) {
        (Goal::Gone, standing) => remove(want, standing.as_ref()),
        (Goal::Present, None) => create(want, seen),
        (Goal::Present, Some(standing)) => converge(want, seen, standing),
    }
}

fn converge(want: &Want, seen: &Seen, standing: &Standing) -> Decision<Act> {
    let ours = limits::created_here(want, standing);
    let mut wish = Wish::read(want, seen, ours);
    if let Some(refusal) = limits::contested(want, Some(standing)) {
        wish.refused.push(refusal);
        return decision(wish, Next::Converged, None);
    }
    limits::immutable(&mut wish, want, standing);
    let mut publish = record(&wish, standing, ours);
    if standing.balancer.status == BalancerStatus::Changing {
        return decision(wish, waiting(standing), Some(publish));
    }
    let floating = limits::floating(&mut wish, want, standing);
    let rest = if seen.machines.unknown.is_empty() { Next::Converged } else { untold() };
    let next = rounds::next_round(&wish, standing, &floating).map_or(rest, Next::Act);
    let open = |pair: &pairs::Pair<'_>| pair.listener().is_some();
    if wish.pools.len() == pairs::pairs(&wish, standing).iter().filter(|pair| open(pair)).count() {
        publish.ingress = ingress(&wish, standing);
    }
    decision(wish, next, Some(publish))
}

/// What the status shows; `None` leaves what is there, where nobody can tell what is meant.
fn ingress(wish: &Wish<'_>, standing: &Standing) -> Option<Vec<Ingress>> {
    let hostname = wish.annotations.settle(&FORCE_HOSTNAME, None).filter(|host| !host.is_empty());
    if hostname.is_some() {
        return Some(vec![Ingress { hostname, ..Ingress::default() }]);
    }
    let mode = match wish.annotations.get(&IP_MODE) {
        Value::Set("VIP") => IpMode::Vip,
        Value::Set(_) | Value::Unset => IpMode::Proxy,
        Value::Wrong => return None,
    };
    let entry = |vip: &crate::wire::VipAddress| Ingress {
        ip: Some(vip.address.clone()),
        ip_mode: Some(mode.clone()),
        ..Ingress::default()
    };
    Some(standing.balancer.vip_addresses.iter().map(entry).collect())
}

fn decision(wish: Wish<'_>, next: Next<Act>, publish: Option<Publish>) -> Decision<Act> {
    Decision { next, publish, refused: wish.refused, notices: wish.notices }
}

fn untold() -> Next<Act> {
    Next::Wait { on: "the cloud to describe all servers", poll: UNTOLD_POLL }
}

fn waiting(standing: &Standing) -> Next<Act> {
    let poll = (standing.changing_for / 2).clamp(FIRST_POLL, LAST_POLL);
    Next::Wait { on: "the load balancer to finish changing", poll }
}

/// Deletes what is this Service's own. Nothing that is wrong with the Service stands in the way.
fn remove(want: &Want, standing: Option<&Standing>) -> Decision<Act> {
    let Some(standing) = standing else { return Decision::new(Next::Converged) };
    if let Some(refusal) = limits::contested(want, Some(standing)) {
        return Decision { refused: vec![refusal], ..Decision::new(Next::Converged) };
    }
    if standing.balancer.status == BalancerStatus::Changing {
        return Decision::new(waiting(standing));
    }
    let balancer = standing.balancer.uuid.clone();
    let label = format!("delete load balancer {} ({balancer})", standing.balancer.name);
    Decision::new(Next::Act(vec![Step::new(Act::DeleteBalancer { balancer }, Impact::Major, label)]))
}

fn create(want: &Want, seen: &Seen) -> Decision<Act> {
    let mut wish = Wish::read(want, seen, true);
    wish.refused.extend(limits::contested(want, None));
    if !seen.machines.unknown.is_empty() && wish.annotations.get(&ZONE).set().is_none() {
        // It stays where it is created for good, and nobody knows where all the servers are.
        return decision(wish, untold(), None);
    }
    let vip = |vip: &crate::annotations::Vip| NewVip {
        address: vip.address.clone().filter(|text| !text.is_empty()),
        subnet: vip.subnet.clone().filter(|text| !text.is_empty()),
    };
    let new = NewBalancer {
        name: wish.name.clone(),
        flavor: wish.flavor.clone().unwrap_or_default(),
        zone: wish.zone.clone(),
        vip_addresses: wish.vips.iter().map(vip).collect(),
    };
    let label = format!("create load balancer {}", new.name);
    decision(wish, Next::Act(vec![Step::creating(Act::CreateBalancer(new), label)]), None)
}

/// The annotations to record. A zone that somebody asks for in vain stays as it was written.
fn record(wish: &Wish<'_>, standing: &Standing, ours: bool) -> Publish {
    let balancer = &standing.balancer;
    let mut annotations = vec![(UUID.name(), balancer.uuid.as_str()), (CONFIG_VERSION.name(), "1")];
    let asked = |zone: &&SlugStub| wish.zone.as_ref().is_none_or(|wanted| *wanted == zone.slug);
    annotations.extend(balancer.zone.as_ref().filter(asked).map(|zone| (ZONE.name(), zone.slug.as_str())));
    if ours {
        annotations.push((CREATED.name(), &balancer.uuid));
    }
    let annotations = annotations.into_iter().map(|(key, value)| (key.to_owned(), value.to_owned()));
    Publish { ingress: None, annotations: annotations.collect() }
}

/// What a Service lays claim to: the name and the id of its load balancer, and floating IPs in canonical form.
#[must_use]
pub fn claims(service: &ServiceView) -> Vec<Claim> {
    let floating = TABLE.parse(&service.annotations).get(&FLOATING_IPS).set().unwrap_or_default();
    let addresses = floating.iter().map(|ip| Claim::new(ClaimKind::Address, ip.network.to_string()));
    // What has to go is found by the same trail, only never in vain.
    let trail = Trail::of(service, Goal::Gone).ok();
    let balancer = trail.into_iter().flat_map(|trail| {
        let id = trail.uuid.map(|uuid| Claim::new(ClaimKind::Id, uuid));
        [Some(Claim::new(ClaimKind::Name, trail.name)), id]
    });
    balancer.flatten().chain(addresses).collect()
}

/// Which nodes a Service wants behind its load balancer.
pub fn selector(service: &ServiceView) -> Result<Option<Selector>> {
    let parsed = TABLE.parse(&service.annotations);
    match parsed.get(&NODE_SELECTOR) {
        Value::Set(selector) => Ok(Some(selector)),
        Value::Unset => Ok(None),
        Value::Wrong => {
            let wrong = parsed.refused.iter().find(|refusal| refusal.field == NODE_SELECTOR.name());
            Err(Error::user_input(wrong.map_or_else(String::new, ToString::to_string)))
        }
    }
}
