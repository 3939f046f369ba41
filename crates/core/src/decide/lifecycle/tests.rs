//! Life and death of a node, from the listing to the decision.

use std::time::Duration;

use super::*;
use crate::{
    error::{Category, Error},
    instance::{Instance, InstanceListing, InstanceState},
    lookup::{Listing, Lookup},
    provider_id::ProviderId,
    time::Tick,
};

mod deletion;
mod evidence;
mod listing;

fn at(secs: u64) -> Tick {
    Tick::from_secs(secs)
}

pub(crate) fn id(number: usize) -> ProviderId {
    ProviderId::new("fake", &number.to_string()).unwrap()
}

/// A node of ours that is not Ready and long known.
pub(crate) fn node(number: usize) -> NodeFacts {
    NodeFacts {
        name: format!("node{number}"),
        uid: format!("u{number}"),
        ready: false,
        uninitialised: false,
        deleting: false,
        marked_shut_down: false,
        autoscaler_removes: false,
        declared_gone: false,
        tie: Tie::Ours(id(number)),
        first_seen: at(0),
    }
}

fn ready(number: usize) -> NodeFacts {
    NodeFacts { ready: true, ..node(number) }
}

fn instance(number: usize, state: InstanceState) -> Instance {
    Instance { state, ..Instance::new(id(number), &format!("node{number}")) }
}

fn instances(numbers: impl IntoIterator<Item = usize>) -> InstanceListing {
    Listing::complete(numbers.into_iter().map(|n| instance(n, InstanceState::Running)).collect()).into()
}

/// A round that takes a second.
fn round(evidence: Evidence, begun: u64) -> Round {
    Round { evidence, begun: at(begun), ended: at(begun + 1) }
}

fn judge(facts: &NodeFacts, history: &mut NodeHistory, round: &Round) -> Verdict {
    Timing::LAW.judge(facts, history, round)
}

fn lookup_due(facts: &NodeFacts, history: &NodeHistory, listed: &Lookup<InstanceState>) -> Option<Tick> {
    Timing::LAW.lookup_due(facts, history, listed)
}

fn error() -> Error {
    Error::temporary("503")
}
