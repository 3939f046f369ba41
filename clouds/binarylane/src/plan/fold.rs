//! What there is after a mutation was answered, and what it would be answered with.

use crate::{
    action::{Action, Answer},
    observed::Observed,
    wire::{BalancerStatus, LoadBalancer, Slug},
};

/// What there is after `act` was answered by `answer`.
pub fn fold(observed: Option<Observed>, act: &Action, answer: &Answer) -> Option<Observed> {
    let mut observed = observed.unwrap_or_default();
    match (act, answer) {
        (Action::Create(_) | Action::Update { .. }, Answer::Balancer(balancer)) => {
            observed.existing = Some((**balancer).clone());
        }
        (Action::Delete { id }, _) => {
            observed.existing = observed.existing.filter(|existing| existing.id != *id);
            observed.surplus.retain(|(surplus, _)| surplus != id);
        }
        (act, answer) => {
            let gone = match answer {
                Answer::WithoutServers(gone) => gone.as_slice(),
                Answer::Balancer(_) | Answer::Done => &[],
            };
            observed.gone.extend(gone);
            if let Some(existing) = &mut observed.existing {
                change(existing, act, gone);
            }
        }
    }
    Some(observed)
}

fn change(existing: &mut LoadBalancer, act: &Action, gone: &[i64]) {
    match act {
        Action::Update { update, .. } => {
            existing.forwarding_rules.clone_from(&update.forwarding_rules);
            existing.health_check.clone_from(&update.health_check);
            existing.server_ids.clone_from(&update.server_ids);
        }
        Action::AddServers { servers, .. } => {
            existing.server_ids.extend(servers.iter().filter(|id| !gone.contains(id)));
        }
        Action::RemoveServers { servers, .. } => existing.server_ids.retain(|id| !servers.contains(id)),
        Action::Create(_) | Action::Delete { .. } => {}
    }
}

/// A plausible answer to `act`: a new load balancer is about to be built.
pub fn assume(act: &Action) -> Answer {
    match act {
        Action::Create(new) => Answer::Balancer(Box::new(LoadBalancer {
            name: new.name.clone(),
            status: BalancerStatus::New,
            forwarding_rules: new.forwarding_rules.clone(),
            health_check: new.health_check.clone(),
            region: new.region.clone().map(|slug| Slug { slug }),
            server_ids: new.server_ids.clone(),
            ..LoadBalancer::default()
        })),
        Action::Update { .. }
        | Action::AddServers { .. }
        | Action::RemoveServers { .. }
        | Action::Delete { .. } => Answer::Done,
    }
}
