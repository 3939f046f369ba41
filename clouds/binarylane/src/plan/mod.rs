//! What to do next about a load balancer. Pure.
//!
//! ```text
//!   no load balancer   ──► create it (refused as a whole where anything is refused)
//!   new                ──► wait
//!   errored            ──► tell people, and wait long
//!   active             ──► one update of everything that differs; or servers in, then servers out; then left-overs
//!   to be deleted      ──► delete it, and what is left over
//! ```

mod fold;

pub use fold::{assume, fold};

use std::{collections::BTreeSet, time::Duration};

use cloudberth_core::{
    Listing, ServiceView,
    lb::{Decision, Desired, Goal, Impact, LockKey, LockKind, Marked, Name, Next, Notice, Publish, Step},
    net::parse_ip,
    view::{Ingress, IpMode},
};
use cloudberth_http::Item;

use crate::{
    action::Action,
    annotations::ID,
    find::{Search, recorded_id},
    id::provider_id,
    names::{Names, beginnings},
    observed::{Build, Observed},
    reasons::{LOAD_BALANCER_BLOCKED, LOAD_BALANCER_ERRORED},
    settings::Settings,
    spec::Spec,
    wire::{BalancerStatus, BalancerUpdate, LoadBalancer, Named, NewBalancer, Progress, Rule},
};

/// The first look after a creation, and the later ones.
const FIRST_POLL: Duration = Duration::from_millis(2_500);
const POLL: Duration = Duration::from_secs(5);
/// When to look again for what a person has to mend.
const SLOW_POLL: Duration = Duration::from_secs(300);
/// When to look again for what the cloud does not tell.
const UNTOLD_POLL: Duration = Duration::from_secs(60);

/// The settings that decisions depend on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Planner {
    /// Where new load balancers go if the Service does not say.
    pub region: Option<String>,
    /// Only servers in this VPC stand behind load balancers.
    pub vpc: Option<i64>,
    /// What generated names begin with.
    pub prefix: String,
    /// Where health checks go if the Service does not say.
    pub health_check_path: String,
}

impl Planner {
    /// The part of the settings that it needs.
    pub fn new(settings: &Settings) -> Self {
        Self {
            region: settings.region.clone(),
            vpc: settings.vpc,
            prefix: settings.name_prefix.clone(),
            health_check_path: settings.health_check_path.clone(),
        }
    }

    pub(crate) fn names(&self, service: &ServiceView, cluster: &str) -> Names {
        Names::of(service, cluster, &self.prefix)
    }

    /// The name by which a load balancer proves to be this Service's.
    pub fn name_for(&self, service: &ServiceView, cluster: &str) -> Name {
        Name { text: self.names(service, cluster).base, generated: true }
    }

    /// Those of all load balancers whose names begin as this cluster's do. One that cannot be read and may be such a one makes
    /// the listing short.
    pub(crate) fn marked(
        &self,
        listing: Listing<Item<LoadBalancer, Named>>,
        cluster: &str,
    ) -> Listing<Marked> {
        let Listing { items, mut short } = listing;
        let beginnings = beginnings(cluster, &self.prefix);
        let rest = |name: &str| {
            let name = name.to_ascii_lowercase();
            beginnings.iter().find_map(|begins| name.strip_prefix(begins.as_str()).map(str::to_owned))
        };
        let (whole, flawed) = Item::sort(items);
        let may_be = |one: &Named| one.name.as_deref().is_none_or(|name| rest(name).is_some());
        if let Some(one) = flawed.iter().find(|one| may_be(&one.identity)) {
            short.get_or_insert(format!("load balancer {} cannot be read: {}", one.identity.id, one.why));
        }
        let of = |one: LoadBalancer| {
            let rest = rest(&one.name)?;
            // Where the namespace ends is not known, and makes no difference to the name.
            let (namespace, name) = rest.split_once('-').unwrap_or(("", &rest));
            let made_for = Box::new(ServiceView {
                namespace: namespace.to_owned(),
                name: name.to_owned(),
                annotations: [(ID.name().to_owned(), one.id.to_string())].into(),
                ..ServiceView::default()
            });
            let instances = one.server_ids.iter().filter_map(|id| provider_id(*id).ok()).collect();
            Some(Marked { id: one.id.to_string(), name: one.name, made_for, instances })
        };
        Listing { items: whole.into_iter().filter_map(of).collect(), short }
    }

    /// What a Service locks: both its names, and the recorded id.
    pub fn lock_keys(&self, service: &ServiceView, cluster: &str) -> Vec<LockKey> {
        let Names { base, hashed, .. } = self.names(service, cluster);
        let names = BTreeSet::from([base, hashed]).into_iter().map(|name| LockKey::new(LockKind::Name, name));
        let id = recorded_id(service).map(|id| LockKey::new(LockKind::Id, id.to_string()));
        names.chain(id).collect()
    }

    /// What to do next about what was observed.
    pub fn decide(&self, want: &Desired, observed: Option<&Observed>) -> Decision<Action> {
        let nothing = Observed::default();
        let observed = observed.unwrap_or(&nothing);
        match (want.goal, &observed.existing) {
            (Goal::Gone, existing) => remove(existing.as_ref(), observed),
            (Goal::Present, None) => self.create(want, observed),
            (Goal::Present, Some(existing)) => self.converge(want, observed, existing),
        }
    }

    fn create(&self, want: &Desired, observed: &Observed) -> Decision<Action> {
        let spec = Spec::read(self, want, observed);
        let search = Search::new(want, &self.prefix);
        let name = if search.collides() { search.names.hashed } else { search.names.base };
        let new = NewBalancer {
            name,
            forwarding_rules: spec.rules.iter().cloned().collect(),
            health_check: spec.check.clone(),
            server_ids: spec.servers.iter().copied().collect(),
            region: spec.region.clone(),
        };
        let label = format!("create load balancer {}", new.name);
        decision(spec, Next::Act(vec![Step::creating(Action::Create(new), label)]), None)
    }

    fn converge(&self, want: &Desired, observed: &Observed, existing: &LoadBalancer) -> Decision<Action> {
        let mut spec = Spec::read(self, want, observed);
        let mut publish = record(existing);
        let next = match &existing.status {
            BalancerStatus::New => building(existing, observed.build.as_ref(), &mut spec.notices),
            BalancerStatus::Errored => errored(existing, observed.build.as_ref(), &mut spec.notices),
            BalancerStatus::Active | BalancerStatus::Other(_) => {
                publish.ingress = ingress(want, existing);
                next_step(&spec, existing, observed)
            }
        };
        decision(spec, next, Some(publish))
    }
}

fn decision(spec: Spec, next: Next<Action>, publish: Option<Publish>) -> Decision<Action> {
    Decision { next, publish, refused: spec.refused, notices: spec.notices }
}

/// The annotation to record. Nothing is known by the number of a load balancer that is only assumed.
fn record(existing: &LoadBalancer) -> Publish {
    let id = (existing.id > 0).then(|| (ID.name().to_owned(), existing.id.to_string()));
    Publish { annotations: id.into_iter().collect(), ..Publish::default() }
}

/// What the status shows; `None` leaves what is there. Packets arrive with the load balancer's address as their
/// destination, which is also what a status without a mode means.
fn ingress(want: &Desired, existing: &LoadBalancer) -> Option<Vec<Ingress>> {
    if ip_is_missing(existing) {
        return None;
    }
    let entry = |ip_mode| Ingress { ip: Some(existing.ip.clone()), ip_mode, ..Ingress::default() };
    let plain = [entry(None)];
    let shown = want.service.ingress.as_slice();
    Some(if shown == plain { plain.to_vec() } else { vec![entry(Some(IpMode::Vip))] })
}

fn building(existing: &LoadBalancer, build: Option<&Build>, notices: &mut Vec<Notice>) -> Next<Action> {
    let mut poll = match build {
        Some(build) if build.age < FIRST_POLL => FIRST_POLL,
        _ => POLL,
    };
    match build.and_then(|build| build.progress.as_ref()) {
        Some(Progress::Blocked(why)) => {
            let text =
                format!("load balancer {} is not built further until somebody acts: {why}", existing.id);
            notices.push(Notice::warning(LOAD_BALANCER_BLOCKED, text));
            poll = SLOW_POLL;
        }
        Some(Progress::Errored(why)) => {
            notices.push(broken(existing, why.as_deref()));
            poll = SLOW_POLL;
        }
        Some(Progress::UnderWay | Progress::Completed) | None => {}
    }
    Next::Wait { on: "the load balancer to be built".into(), poll }
}

fn errored(existing: &LoadBalancer, build: Option<&Build>, notices: &mut Vec<Notice>) -> Next<Action> {
    let why = build.and_then(|build| match build.progress.as_ref()? {
        Progress::Errored(why) => why.as_deref(),
        _ => None,
    });
    notices.push(broken(existing, why));
    Next::Wait { on: "the load balancer to be mended".into(), poll: SLOW_POLL }
}

fn broken(existing: &LoadBalancer, why: Option<&str>) -> Notice {
    let why = why.unwrap_or("BinaryLane does not say why");
    let text =
        format!("load balancer {} could not be built: {why}; it is kept, and looked at again", existing.id);
    Notice::warning(LOAD_BALANCER_ERRORED, text)
}

fn next_step(spec: &Spec, existing: &LoadBalancer, observed: &Observed) -> Next<Action> {
    let id = existing.id;
    let rules: BTreeSet<Rule> = existing.forwarding_rules.iter().cloned().collect();
    let members: BTreeSet<i64> = existing.server_ids.iter().copied().collect();
    let step = |act, impact, label| Next::Act(vec![Step::new(act, impact, label)]);
    let rules_differ = rules != spec.rules;
    if rules_differ || existing.health_check != spec.check {
        let update = BalancerUpdate {
            // A load balancer keeps its name, whatever a new one would be called.
            name: existing.name.clone(),
            forwarding_rules: spec.rules.iter().cloned().collect(),
            health_check: spec.check.clone(),
            server_ids: spec.servers.iter().copied().collect(),
        };
        let what = if rules_differ { "what is forwarded" } else { "the health check" };
        let impact = if rules_differ { Impact::Considerable } else { Impact::Minimal };
        return step(Action::Update { id, update }, impact, format!("set {what} on load balancer {id}"));
    }
    let missing: Vec<i64> = spec.servers.difference(&members).copied().collect();
    if !missing.is_empty() {
        let label = format!("add {} to load balancer {id}", counted(&missing));
        return step(Action::AddServers { id, servers: missing }, Impact::None, label);
    }
    let surplus: Vec<i64> = members.difference(&spec.servers).copied().collect();
    if !surplus.is_empty() {
        let label = format!("remove {} from load balancer {id}", counted(&surplus));
        return step(Action::RemoveServers { id, servers: surplus }, Impact::Minimal, label);
    }
    if !observed.surplus.is_empty() {
        return Next::Act(observed.surplus.iter().map(|(id, name)| delete(*id, name)).collect());
    }
    if ip_is_missing(existing) {
        return Next::Wait { on: "the load balancer to get its address".into(), poll: POLL };
    }
    match observed.servers.unknown.first() {
        None => Next::Converged,
        Some((node, why)) => {
            let on = format!("the cloud to describe the server of node {node}: {why}");
            Next::Wait { on: on.into(), poll: UNTOLD_POLL }
        }
    }
}

fn ip_is_missing(existing: &LoadBalancer) -> bool {
    !parse_ip(&existing.ip).is_some_and(|ip| ip.is_ipv4())
}

fn counted(servers: &[i64]) -> String {
    match servers {
        [one] => format!("server {one}"),
        many => format!("{} servers", many.len()),
    }
}

fn delete(id: i64, name: &str) -> Step<Action> {
    Step::new(Action::Delete { id }, Impact::Major, format!("delete load balancer {name} ({id})"))
}

/// Deletes what is this Service's own. Nothing that is wrong with the Service stands in the way.
fn remove(existing: Option<&LoadBalancer>, observed: &Observed) -> Decision<Action> {
    let own = existing.map(|existing| delete(existing.id, &existing.name));
    let left_over = observed.surplus.iter().map(|(id, name)| delete(*id, name));
    let steps: Vec<_> = own.into_iter().chain(left_over).collect();
    let next = if steps.is_empty() { Next::Converged } else { Next::Act(steps) };
    Decision { notices: observed.notices.clone(), ..Decision::new(next) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_is_recorded_of_what_is_only_assumed() {
        let recorded = |id| {
            let existing = LoadBalancer { id, ..LoadBalancer::default() };
            record(&existing).annotations.into_iter().collect::<Vec<_>>()
        };
        assert_eq!(recorded(0), [], "a dry run has no id");
        assert_eq!(recorded(7), [(ID.name().to_owned(), "7".to_owned())]);
    }

    #[test]
    fn one_server_is_named_and_several_are_counted() {
        assert_eq!((counted(&[7]), counted(&[7, 8])), ("server 7".to_owned(), "2 servers".to_owned()));
    }
}
