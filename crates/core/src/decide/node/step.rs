//! What comes next for a node: one write, or the end of its sync.

use super::{
    events, initialise::initialise, labels::LabelNotice, ownership::NodeOwner, patch::NodePatch,
    reconcile::reconcile,
};
use crate::{
    error::Error,
    lookup::Lookup,
    reason::{self, Reason},
    view::NodeView,
};

/// What a person should know about a node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    /// The reason of the warning event; `None` where it is not worth one.
    pub reason: Option<Reason>,
    /// In words.
    pub message: String,
}

/// What comes next.
#[derive(Clone, Debug, PartialEq)]
pub enum Step {
    /// Send the patch, and decide again on the node that the answer shows.
    Write {
        /// One write.
        patch: NodePatch,
        /// With it the node goes into service.
        joins: bool,
        /// Labels that are not written, and why; for the log.
        notices: Vec<LabelNotice>,
    },
    /// The node has what it should have, as far as these problems allow.
    Current(Vec<Problem>),
    /// The node cannot be initialised yet. Come back as the error's category says.
    NotYet {
        /// Why.
        why: Error,
        /// The instance is there, and only has to become ready.
        has_instance: bool,
    },
    /// Nobody knows what the instance of a node in service looks like now. The next pass asks again.
    Unknown(Error),
    /// The node is not ours to change. The text is for the log.
    Leave(String),
}

/// Decides on a node, in the light of to whom it belongs.
#[must_use]
pub fn next(node: &NodeView, owner: &NodeOwner<'_>) -> Step {
    initialise(node, owner).unwrap_or_else(|| match owner {
        NodeOwner::Ours { instance: Lookup::Present(_), .. } => keep_current(node, owner),
        NodeOwner::Ours { instance: Lookup::Unknown(why), .. } | NodeOwner::Undecided(why) => {
            Step::Unknown(why.clone())
        }
        NodeOwner::Ours { instance: Lookup::Absent, .. } => {
            Step::Leave("the lifecycle controller decides about a node without an instance".to_owned())
        }
        NodeOwner::Foreign(why) => Step::Leave(why.clone()),
        NodeOwner::Nowhere(_) => Step::Leave("no cloud has an instance of its name".to_owned()),
    })
}

fn keep_current(node: &NodeView, owner: &NodeOwner<'_>) -> Step {
    let upkeep = reconcile(node, owner);
    if let Some(patch) = upkeep.writes.into_iter().next() {
        return Step::Write { patch, joins: false, notices: upkeep.notices };
    }
    let held = upkeep
        .addresses_held
        .map(|why| Problem { reason: why.category().event_reason(), message: why.message().to_owned() });
    let unbound = upkeep.unbound.then(|| Problem {
        reason: Some(reason::NO_PROVIDER_ID),
        message: events::UNBOUND_MESSAGE.to_owned(),
    });
    Step::Current(held.into_iter().chain(unbound).collect())
}
