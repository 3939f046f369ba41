//! What to do next about a load balancer. Pure.

use std::{collections::BTreeSet, time::Duration};

use cloudberth_core::{
    lb::{ClaimKind, Decision, Goal, Impact, Next, Publish, Refusal, Step, Want},
    view::{Ingress, IpMode},
};

use super::{
    ALGORITHM, Act, Answer, BALANCER_ID, FLOATING_ADDRESS, NODE_SELECTOR, Seen,
    wish::{self, Wish},
};
use crate::cloud::{Balancer, Listener};

const POLL: Duration = Duration::from_secs(2);

pub(super) fn decide(scheme: &str, want: &Want, seen: Option<&Seen>) -> Decision<Act> {
    match (want.goal, seen) {
        (Goal::Gone, None) => Decision::new(Next::Converged),
        (Goal::Gone, Some(Seen { there, .. })) => {
            let act = Act::Delete { balancer: there.id.clone() };
            let step = Step::new(act, Impact::Major, format!("delete load balancer {}", there.id));
            Decision::new(Next::Act(vec![step]))
        }
        (Goal::Present, None) => create(scheme, want),
        (Goal::Present, Some(seen)) => converge(scheme, want, seen),
    }
}

fn create(scheme: &str, want: &Want) -> Decision<Act> {
    let wish = Wish::read(scheme, want);
    let name = wish::name(&want.service, &want.cluster);
    let algorithm = wish.annotations.settle(&ALGORITHM, None).unwrap_or_default().to_owned();
    let label = format!("create load balancer {name}");
    let step = Step::creating(Act::Create { name, algorithm }, label);
    Decision {
        refused: wish.refused,
        notices: wish.annotations.notices,
        ..Decision::new(Next::Act(vec![step]))
    }
}

fn converge(scheme: &str, want: &Want, seen: &Seen) -> Decision<Act> {
    let there = &seen.there;
    let mut wish = Wish::read(scheme, want);
    wish.machines.retain(|machine| !seen.missing.contains(machine));
    if is_refused(&wish, NODE_SELECTOR.name()) {
        // Nobody knows which nodes are meant: no others come in, and those that are gone go.
        wish.machines.retain(|machine| there.members.values().any(|member| member == machine));
    }
    contested(want, &mut wish.refused);
    let next = if there.ready {
        // What takes traffic on comes before what takes it off.
        let rounds = [additions(&wish, there), removals(&wish, there)];
        rounds.into_iter().find(|steps| !steps.is_empty()).map_or(Next::Converged, Next::Act)
    } else {
        Next::Wait { on: "the load balancer to be built", poll: POLL }
    };
    let address =
        Ingress { ip: Some(there.address.clone()), ip_mode: Some(IpMode::Proxy), ..Ingress::default() };
    let publish = Publish {
        ingress: there.ready.then(|| vec![address]),
        annotations: [(BALANCER_ID.name().to_owned(), there.id.clone())].into(),
    };
    Decision { next, publish: Some(publish), refused: wish.refused, notices: wish.annotations.notices }
}

/// Refuses a floating address that another Service claims too: the two would take it from each other for ever.
fn contested(want: &Want, refused: &mut Vec<Refusal>) {
    let rivals = want.rivals.iter().filter(|rival| rival.claim.kind == ClaimKind::Address);
    refused.extend(rivals.map(|rival| Refusal {
        reason: "AddressTaken",
        field: FLOATING_ADDRESS.name().to_owned(),
        message: format!("{} is assigned to another service: {}", rival.claim.value, rival.service),
    }));
}

fn is_refused(wish: &Wish<'_>, field: &str) -> bool {
    wish.refused.iter().any(|refusal| refusal.field == field)
}

fn additions(wish: &Wish<'_>, there: &Balancer) -> Vec<Step<Act>> {
    let balancer = || there.id.clone();
    let mut steps = Vec::new();
    for listener in wish.listeners.iter().filter(|l| !taken(there, l)) {
        let label = format!("open port {}", listener.port);
        let act = Act::AddListener { balancer: balancer(), listener: listener.clone() };
        steps.push(Step::new(act, Impact::None, label));
    }
    let members: BTreeSet<&String> = there.members.values().collect();
    for machine in wish.machines.iter().filter(|machine| !members.contains(machine)) {
        let act = Act::AddMember { balancer: balancer(), machine: machine.clone() };
        steps.push(Step::new(act, Impact::None, format!("add machine {machine}")));
    }
    let changed = |algorithm: &&str| !is_refused(wish, ALGORITHM.name()) && there.algorithm != *algorithm;
    if let Some(algorithm) = wish.annotations.settle(&ALGORITHM, None).filter(changed) {
        let act = Act::SetAlgorithm { balancer: balancer(), algorithm: algorithm.to_owned() };
        steps.push(Step::new(act, Impact::Minimal, format!("set the algorithm to {algorithm}")));
    }
    let floating = wish.annotations.get(&FLOATING_ADDRESS).set();
    let free = |ip: &String| !is_refused(wish, FLOATING_ADDRESS.name()) && !there.floating.contains(ip);
    if let Some(address) = floating.filter(free) {
        let label = format!("attach {address}");
        steps.push(Step::new(Act::Attach { balancer: balancer(), address }, Impact::Minimal, label));
    }
    steps
}

/// A port that is open with other settings is closed first.
fn taken(there: &Balancer, wanted: &Listener) -> bool {
    there.listeners.values().any(|open| (open.protocol, open.port) == (wanted.protocol, wanted.port))
}

/// Ports are closed only where all ports of the Service could be read: a refused one keeps what is there.
fn removals(wish: &Wish<'_>, there: &Balancer) -> Vec<Step<Act>> {
    let balancer = || there.id.clone();
    let ports_refused = wish.refused.iter().any(|refusal| refusal.field.starts_with("spec.ports"));
    let mut steps = Vec::new();
    for (id, listener) in
        there.listeners.iter().filter(|(_, l)| !ports_refused && !wish.listeners.contains(l))
    {
        let act = Act::RemoveListener { balancer: balancer(), listener: id.clone() };
        steps.push(Step::new(act, Impact::Minimal, format!("close port {}", listener.port)));
    }
    for (id, machine) in there.members.iter().filter(|(_, machine)| !wish.machines.contains(*machine)) {
        let act = Act::RemoveMember { balancer: balancer(), member: id.clone() };
        steps.push(Step::new(act, Impact::Minimal, format!("remove machine {machine}")));
    }
    steps
}

/// What there is after an act was answered.
pub(super) fn fold(seen: Option<Seen>, act: &Act, answer: &Answer) -> Option<Seen> {
    if let (Act::Create { .. }, Answer::Built(built)) = (act, answer) {
        return Some(Seen::from((**built).clone()));
    }
    let Seen { mut there, mut missing } = seen?;
    match (act, answer) {
        (Act::Delete { .. }, _) => return None,
        (Act::AddListener { listener, .. }, Answer::Part(id)) => {
            there.listeners.insert(id.clone(), listener.clone());
        }
        (Act::AddMember { machine, .. }, Answer::Part(id)) => {
            there.members.insert(id.clone(), machine.clone());
        }
        (Act::AddMember { machine, .. }, Answer::NoMachine) => {
            missing.insert(machine.clone());
        }
        (Act::RemoveListener { listener, .. }, _) => {
            there.listeners.remove(listener);
        }
        (Act::RemoveMember { member, .. }, _) => {
            there.members.remove(member);
        }
        (Act::SetAlgorithm { algorithm, .. }, _) => algorithm.clone_into(&mut there.algorithm),
        (Act::Attach { address, .. }, _) => {
            there.floating.insert(address.clone());
        }
        (Act::Create { .. } | Act::AddListener { .. } | Act::AddMember { .. }, _) => {}
    }
    Some(Seen { there, missing })
}

/// A plausible answer. New things are ready at once: a dry run shows where the way leads.
pub(super) fn assume(act: &Act) -> Answer {
    match act {
        Act::Create { name, algorithm } => Answer::Built(Box::new(Balancer {
            id: "(new)".to_owned(),
            name: name.clone(),
            address: "(new)".to_owned(),
            ready: true,
            algorithm: algorithm.clone(),
            listeners: std::collections::BTreeMap::new(),
            members: std::collections::BTreeMap::new(),
            floating: BTreeSet::new(),
        })),
        Act::AddListener { listener, .. } => {
            Answer::Part(format!("(new) {:?} {}", listener.protocol, listener.port))
        }
        Act::AddMember { machine, .. } => Answer::Part(format!("(new) {machine}")),
        _ => Answer::Done,
    }
}
