//! What to do next about a load balancer. Pure.
//!
//! ```text
//!   no load balancer   ──► put it (refused as a whole where anything is refused)
//!   one that differs   ──► put it: the service disturbs only what changed
//!   a part is refused  ──► put it without that part; where there is none yet, ask again later
//!   one that does not  ──► nothing; while one of its ports is not served, look again soon
//!   to be deleted      ──► delete it
//! ```

mod compare;
mod publish;

use std::time::Duration;

use cloudberth_core::{
    ServiceView,
    lb::{Decision, Desired, Goal, Impact, LockKey, LockKind, Name, Next, Step},
};

use crate::{
    action::{Action, Answer},
    annotations::MODE_IN_FORCE,
    api::Key,
    observed::Observed,
    spec::Spec,
    wire::LoadBalancer,
};

/// When to look again at a load balancer of which a port is not served.
const PORT_POLL: Duration = Duration::from_secs(5);
/// When to ask again for what the service did not give to a new load balancer.
pub(crate) const ASK_AGAIN: Duration = Duration::from_secs(60);
/// When to look again for what the service does not tell.
const UNTOLD_POLL: Duration = Duration::from_secs(60);

impl Key {
    pub(crate) fn of(service: &ServiceView) -> Self {
        Self { namespace: service.namespace.clone(), name: service.name.clone() }
    }
}

/// The name by which a load balancer is this Service's: that of the Service.
pub fn name_for(service: &ServiceView) -> Name {
    Name { text: Key::of(service).to_string(), generated: true }
}

/// What a Service locks: nobody else asks for a load balancer of its name.
pub fn lock_keys(service: &ServiceView) -> Vec<LockKey> {
    vec![LockKey::new(LockKind::Name, Key::of(service).to_string())]
}

/// What to do next about what was observed.
pub fn decide(want: &Desired, observed: Option<&Observed>) -> Decision<Action> {
    let nothing = Observed::default();
    let observed = observed.unwrap_or(&nothing);
    let key = Key::of(&want.service);
    match (want.goal, &observed.existing) {
        (Goal::Gone, None) => Decision::new(Next::Converged),
        (Goal::Gone, Some(existing)) => {
            let label = format!("delete load balancer {key}");
            let delete = Action::Delete { key, uid: existing.uid.clone() };
            Decision::new(Next::Act(vec![Step::new(delete, Impact::Major, label)]))
        }
        (Goal::Present, None) => create(want, observed, &key),
        (Goal::Present, Some(existing)) => converge(want, observed, existing, &key),
    }
}

fn put(spec: &Spec, key: &Key, creates: bool) -> Action {
    Action::Put { key: key.clone(), spec: Box::new(spec.wire.clone()), creates }
}

fn create(want: &Desired, observed: &Observed, key: &Key) -> Decision<Action> {
    let spec = Spec::read(want, observed);
    let next = if let Some(why) = &spec.unavailable {
        // What nobody gives may be free later; until then nothing is created in its place.
        Next::Wait { on: format!("the service to give what it refuses: {why}").into(), poll: ASK_AGAIN }
    } else {
        let label = format!("create load balancer {key}");
        Next::Act(vec![Step::creating(put(&spec, key, true), label)])
    };
    Decision { next, publish: None, refused: spec.refused, notices: spec.notices }
}

fn converge(want: &Desired, observed: &Observed, existing: &LoadBalancer, key: &Key) -> Decision<Action> {
    let mut spec = Spec::read(want, observed);
    // Withdrawn, unless the service has heard of it already.
    let asked_for_mode = want.service.annotations.contains_key(MODE_IN_FORCE.name());
    let withdrawn = spec.wire.address_mode.is_none() && asked_for_mode && !observed.mode_is_sent;
    let changed = compare::changes(&spec.wire, &existing.spec, withdrawn);
    let mode = if withdrawn { existing.spec.address_mode.clone() } else { spec.wire.address_mode.clone() };
    let publish = Some(publish::publish(existing, mode.as_deref()));
    let next = match compare::Change::worst(&changed) {
        Some(impact) => {
            let label = format!("set {} of load balancer {key}", compare::in_words(&changed));
            Next::Act(vec![Step::new(put(&spec, key, false), impact, label)])
        }
        None => rest(observed, existing),
    };
    spec.notices.extend(publish::notices(existing));
    Decision { next, publish, refused: spec.refused, notices: spec.notices }
}

fn rest(observed: &Observed, existing: &LoadBalancer) -> Next<Action> {
    if let Some(listener) = existing.listeners.iter().find(|listener| listener.is_down()) {
        let error = listener.error.as_deref().unwrap_or("it is not bound");
        let on = format!("port {}/{} to be served: {error}", listener.port, listener.protocol);
        return Next::Wait { on: on.into(), poll: PORT_POLL };
    }
    if existing.addresses.is_empty() {
        return Next::Wait { on: "the load balancer to get its address".into(), poll: PORT_POLL };
    }
    match observed.machines.unknown.first() {
        None => Next::Converged,
        Some((node, why)) => {
            let on = format!("the service to describe the machine of node {node}: {why}");
            Next::Wait { on: on.into(), poll: UNTOLD_POLL }
        }
    }
}

/// What there is after `act` was answered by `answer`.
pub fn fold(observed: Option<Observed>, _act: &Action, answer: &Answer) -> Option<Observed> {
    let mut observed = observed.unwrap_or_default();
    match answer {
        Answer::Balancer(balancer) => {
            observed.existing = Some((**balancer).clone());
            observed.mode_is_sent = true;
        }
        Answer::Refused(refused) => observed.learn(refused),
        Answer::Gone => observed.existing = None,
    }
    Some(observed)
}

/// A plausible answer to `act`: every port is served. Nobody knows the address of a load balancer that is only assumed,
/// unless somebody asked for it.
pub fn assume(act: &Action) -> Answer {
    let Action::Put { key, spec, .. } = act else { return Answer::Gone };
    let addresses: Vec<_> = spec.requested_address.parse().into_iter().collect();
    Answer::Balancer(Box::new(LoadBalancer {
        cluster: String::new(),
        namespace: key.namespace.clone(),
        name: key.name.clone(),
        uid: spec.uid.clone(),
        addresses,
        listeners: Vec::new(),
        spec: (**spec).clone(),
    }))
}
