//! What the answers to a plan mean: for the metric, for each node, and for what happens next.

use std::{collections::BTreeMap, time::Duration};

use super::{condition::Network, plan::Plan};
use crate::{
    error::{Category, Doing, Error, Result, Retry},
    lb::Notice,
    route::{NewRoute, RouteChange},
};

/// How a pass ended, as the metric counts it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// At least one route was created or deleted.
    Changed,
    /// None was, although some may have been tried.
    Noop,
    /// Nothing could be decided.
    Error,
}

impl Outcome {
    /// The outcome of a pass, or of what kept it from happening.
    #[must_use]
    pub fn of(pass: Result<&Pass, &Error>) -> Self {
        pass.map_or(Self::Error, |pass| pass.outcome)
    }

    /// The label value in metrics.
    #[must_use]
    pub const fn label(self) -> &'static str {
        match self {
            Self::Changed => "changed",
            Self::Noop => "noop",
            Self::Error => "error",
        }
    }
}

/// An event about a node: its route could not be created, or the cloud has something to say about it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RouteNotice {
    /// The node.
    pub node: String,
    /// Its UID, for the event's reference.
    pub uid: String,
    /// What is said.
    pub notice: Notice,
}

/// The account of one pass.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pass {
    /// For the metric.
    pub outcome: Outcome,
    /// What the condition of each node should say; nodes that are not here keep theirs.
    pub networks: BTreeMap<String, Network>,
    /// Events about single nodes.
    pub notices: Vec<RouteNotice>,
    /// Deletions that failed, for the log.
    pub leftovers: Vec<String>,
    /// When to come back because of what failed; `None` where nothing did or where only a change can help.
    pub retry: Option<Retry>,
}

/// Draws the conclusion from the answers, one list for each round and in the order of its changes, `elapsed` after the
/// first was sent.
///
/// A creation that we broke off ourselves, or whose answer is missing, says nothing about its node: the condition
/// stays as it is and the pass comes back (law 1).
#[must_use]
pub fn conclude(plan: &Plan, answers: &[Vec<Result<Vec<Notice>>>], elapsed: Duration) -> Pass {
    let mut pass = Pass {
        outcome: Outcome::Noop,
        networks: plan.networks.clone(),
        notices: Vec::new(),
        leftovers: Vec::new(),
        retry: None,
    };
    let mut unclear = Vec::new();
    let mut retries = Vec::new();
    for (round, changes) in plan.rounds.iter().enumerate() {
        for (index, change) in changes.iter().enumerate() {
            match (answers.get(round).and_then(|answers| answers.get(index)), change) {
                (Some(Ok(notices)), change) => {
                    pass.outcome = Outcome::Changed;
                    if let RouteChange::Create(new) = change {
                        pass.notices.extend(notices.iter().map(|notice| about(new, notice.clone())));
                    }
                }
                (Some(Err(error)), change) if error.category() != Category::Cancelled => {
                    retries.push(error.category().retry());
                    match change {
                        RouteChange::Delete(route) => pass.leftovers.push(format!(
                            "could not delete route {} to {}: {error}",
                            route.name, route.destination
                        )),
                        RouteChange::Create(new) => pass.fail(new, error, elapsed),
                    }
                }
                (_, change) => {
                    retries.push(Retry::Backoff);
                    if let RouteChange::Create(new) = change {
                        unclear.push(&new.node);
                    }
                }
            }
        }
    }
    for node in unclear {
        if pass.networks.get(node) == Some(&Network::Created) {
            pass.networks.remove(node);
        }
    }
    pass.retry = next_try(&retries);
    pass
}

impl Pass {
    fn fail(&mut self, new: &NewRoute, error: &Error, elapsed: Duration) {
        let NewRoute { hint, node, destination, .. } = new;
        self.networks.insert(node.clone(), Network::NotCreated);
        if let Some(reason) = Doing::CreateRoute.failed(error.category()) {
            let message = format!(
                "Could not create route {hint} {destination} for node {node} after {elapsed:?}: {error}"
            );
            self.notices.push(about(new, Notice::warning(reason, message)));
        }
    }
}

fn about(new: &NewRoute, notice: Notice) -> RouteNotice {
    RouteNotice { node: new.node.clone(), uid: new.hint.clone(), notice }
}

/// One wait for all: a cloud that asked us to stay away is obeyed, to the longest wait it named; otherwise the most
/// hopeful failure decides.
fn next_try(retries: &[Retry]) -> Option<Retry> {
    let asked = retries.iter().filter_map(|retry| match retry {
        Retry::After(wait) => Some(*wait),
        _ => None,
    });
    asked
        .max()
        .map(Retry::After)
        .or_else(|| [Retry::Backoff, Retry::Slowly].into_iter().find(|retry| retries.contains(retry)))
}
