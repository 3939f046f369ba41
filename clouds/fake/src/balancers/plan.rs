//! What to do next about a load balancer. Pure.

use std::{collections::BTreeSet, time::Duration};

use cloudberth_core::{
    lb::{Decision, Desired, Goal, Impact, LockKind, Next, Publish, Refusal, Step},
    reason::ADDRESS_TAKEN,
    view::{Ingress, IpMode},
};

use super::{
    ALGORITHM, Action, Answer, BALANCER_ID, FLOATING_ADDRESS, NODE_SELECTOR, Observed,
    spec::{self, Spec},
};
use crate::cloud::{Balancer, Listener};

const POLL: Duration = Duration::from_secs(2);

pub(super) fn decide(scheme: &str, want: &Desired, observed: Option<&Observed>) -> Decision<Action> {
    match (want.goal, observed) {
        (Goal::Gone, None) => Decision::new(Next::Converged),
        (Goal::Gone, Some(Observed { there, .. })) => {
            let act = Action::Delete { balancer: there.id.clone() };
            let step = Step::new(act, Impact::Major, format!("delete load balancer {}", there.id));
            Decision::new(Next::Act(vec![step]))
        }
        (Goal::Present, None) => create(scheme, want),
        (Goal::Present, Some(observed)) => converge(scheme, want, observed),
    }
}

fn create(scheme: &str, want: &Desired) -> Decision<Action> {
    let spec = Spec::read(scheme, want);
    let name = spec::name(&want.service, &want.cluster);
    let algorithm = spec.annotations.settle(&ALGORITHM, None).unwrap_or_default().to_owned();
    let label = format!("create load balancer {name}");
    let step = Step::creating(Action::Create { name, algorithm }, label);
    Decision {
        refused: spec.refused,
        notices: spec.annotations.notices,
        ..Decision::new(Next::Act(vec![step]))
    }
}

fn converge(scheme: &str, want: &Desired, observed: &Observed) -> Decision<Action> {
    let there = &observed.there;
    let mut spec = Spec::read(scheme, want);
    spec.instances.retain(|instance| !observed.missing.contains(instance));
    if is_refused(&spec, NODE_SELECTOR.name()) {
        // Which nodes are meant is not known: no node is added, and those that are gone are removed.
        spec.instances.retain(|instance| there.members.values().any(|member| member == instance));
    }
    contested(want, &mut spec.refused);
    let next = if there.ready {
        // What takes traffic on comes before what takes it off.
        let rounds = [additions(&spec, there), removals(&spec, there)];
        rounds.into_iter().find(|steps| !steps.is_empty()).map_or(Next::Converged, Next::Act)
    } else {
        Next::Wait { on: "the load balancer to be built".into(), poll: POLL }
    };
    let address =
        Ingress { ip: Some(there.address.clone()), ip_mode: Some(IpMode::Proxy), ..Ingress::default() };
    let publish = Publish {
        ingress: there.ready.then(|| vec![address]),
        annotations: [(BALANCER_ID.name().to_owned(), there.id.clone())].into(),
        ..Publish::default()
    };
    Decision { next, publish: Some(publish), refused: spec.refused, notices: spec.annotations.notices }
}

/// Refuses a floating address that another Service claims too: they would take it from each other for ever.
fn contested(want: &Desired, refused: &mut Vec<Refusal>) {
    let rivals = want.rivals.iter().filter(|rival| rival.key.kind == LockKind::Address);
    refused.extend(rivals.map(|rival| {
        let message = format!("{} is assigned to another service: {}", rival.key.value, rival.service);
        Refusal::new(ADDRESS_TAKEN, FLOATING_ADDRESS.name(), message)
    }));
}

fn is_refused(spec: &Spec<'_>, field: &str) -> bool {
    spec.refused.iter().any(|refusal| refusal.field == field)
}

fn additions(spec: &Spec<'_>, there: &Balancer) -> Vec<Step<Action>> {
    let balancer = || there.id.clone();
    let mut steps = Vec::new();
    for listener in spec.listeners.iter().filter(|l| !taken(there, l)) {
        let label = format!("open port {}", listener.port);
        let act = Action::AddListener { balancer: balancer(), listener: listener.clone() };
        steps.push(Step::new(act, Impact::None, label));
    }
    let members: BTreeSet<&String> = there.members.values().collect();
    for instance in spec.instances.iter().filter(|instance| !members.contains(instance)) {
        let act = Action::AddMember { balancer: balancer(), instance: instance.clone() };
        steps.push(Step::new(act, Impact::None, format!("add instance {instance}")));
    }
    let changed = |algorithm: &&str| !is_refused(spec, ALGORITHM.name()) && there.algorithm != *algorithm;
    if let Some(algorithm) = spec.annotations.settle(&ALGORITHM, None).filter(changed) {
        let act = Action::SetAlgorithm { balancer: balancer(), algorithm: algorithm.to_owned() };
        steps.push(Step::new(act, Impact::Minimal, format!("set the algorithm to {algorithm}")));
    }
    let floating = spec.annotations.get(&FLOATING_ADDRESS).set();
    let free = |ip: &String| !is_refused(spec, FLOATING_ADDRESS.name()) && !there.floating.contains(ip);
    if let Some(address) = floating.filter(free) {
        let label = format!("attach {address}");
        steps.push(Step::new(Action::Attach { balancer: balancer(), address }, Impact::Minimal, label));
    }
    steps
}

/// A port that is open with other settings is closed first.
fn taken(there: &Balancer, wanted: &Listener) -> bool {
    there.listeners.values().any(|open| (open.protocol, open.port) == (wanted.protocol, wanted.port))
}

/// Ports are closed only where all ports of the Service could be read: a refused one keeps what is there.
fn removals(spec: &Spec<'_>, there: &Balancer) -> Vec<Step<Action>> {
    let balancer = || there.id.clone();
    let ports_refused = spec.refused.iter().any(|refusal| refusal.field.starts_with("spec.ports"));
    let mut steps = Vec::new();
    for (id, listener) in
        there.listeners.iter().filter(|(_, l)| !ports_refused && !spec.listeners.contains(l))
    {
        let act = Action::RemoveListener { balancer: balancer(), listener: id.clone() };
        steps.push(Step::new(act, Impact::Minimal, format!("close port {}", listener.port)));
    }
    for (id, instance) in there.members.iter().filter(|(_, instance)| !spec.instances.contains(*instance)) {
        let act = Action::RemoveMember { balancer: balancer(), member: id.clone() };
        steps.push(Step::new(act, Impact::Minimal, format!("remove instance {instance}")));
    }
    steps
}

/// What there is after an act was answered.
pub(super) fn fold(observed: Option<Observed>, act: &Action, answer: &Answer) -> Option<Observed> {
    if let (Action::Create { .. }, Answer::Built(built)) = (act, answer) {
        return Some(Observed::from((**built).clone()));
    }
    let Observed { mut there, mut missing } = observed?;
    match (act, answer) {
        (Action::Delete { .. }, _) => return None,
        (Action::AddListener { listener, .. }, Answer::Part(id)) => {
            there.listeners.insert(id.clone(), listener.clone());
        }
        (Action::AddMember { instance, .. }, Answer::Part(id)) => {
            there.members.insert(id.clone(), instance.clone());
        }
        (Action::AddMember { instance, .. }, Answer::NoInstance) => {
            missing.insert(instance.clone());
        }
        (Action::RemoveListener { listener, .. }, _) => {
            there.listeners.remove(listener);
        }
        (Action::RemoveMember { member, .. }, _) => {
            there.members.remove(member);
        }
        (Action::SetAlgorithm { algorithm, .. }, _) => algorithm.clone_into(&mut there.algorithm),
        (Action::Attach { address, .. }, _) => {
            there.floating.insert(address.clone());
        }
        (Action::Create { .. } | Action::AddListener { .. } | Action::AddMember { .. }, _) => {}
    }
    Some(Observed { there, missing })
}

/// A plausible answer. A new load balancer is ready at once, so that a dry run shows all the steps.
pub(super) fn assume(act: &Action) -> Answer {
    match act {
        Action::Create { name, algorithm } => Answer::Built(Box::new(Balancer {
            id: "(new)".to_owned(),
            name: name.clone(),
            address: "(new)".to_owned(),
            ready: true,
            algorithm: algorithm.clone(),
            listeners: std::collections::BTreeMap::new(),
            members: std::collections::BTreeMap::new(),
            floating: BTreeSet::new(),
        })),
        Action::AddListener { listener, .. } => {
            Answer::Part(format!("(new) {:?} {}", listener.protocol, listener.port))
        }
        Action::AddMember { instance, .. } => Answer::Part(format!("(new) {instance}")),
        _ => Answer::Done,
    }
}
