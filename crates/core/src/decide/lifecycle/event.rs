//! What people read about a node's life. Reasons and texts that alerts may look for are kept as they are known.

use super::{cap::Cap, facts::NodeFacts, trust::Doubt};
use crate::{
    error::{Doing, Error, cut},
    reason::{self, Reason},
};

/// Kubernetes refuses longer messages.
const LONGEST: usize = 1_024;

/// An event about a node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NodeEvent {
    /// The node's name.
    pub node: String,
    /// The node's UID.
    pub uid: String,
    /// `Warning`, otherwise `Normal`.
    pub warning: bool,
    /// The reason.
    pub reason: Reason,
    /// The text.
    pub message: String,
}

fn event(facts: &NodeFacts, warning: bool, reason: Reason, message: &str) -> NodeEvent {
    let (node, uid) = (facts.name.clone(), facts.uid.clone());
    NodeEvent { node, uid, warning, reason, message: cut(message, LONGEST) }
}

/// Said just before a node is deleted.
#[must_use]
pub fn deleting_node(facts: &NodeFacts) -> NodeEvent {
    let text = format!("Deleting node {} because it does not exist in the cloud provider", facts.name);
    event(facts, false, reason::DELETING_NODE, &text)
}

/// Said when the deletion failed; nothing is said where we stopped ourselves.
#[must_use]
pub fn deleting_node_failed(facts: &NodeFacts, why: &Error) -> Option<NodeEvent> {
    let reason = Doing::DeleteNode.failed(why.category())?;
    Some(event(facts, true, reason, &format!("Failed deleting node {}: {why}", facts.name)))
}

/// Said once when the cap keeps a node whose instance is gone.
#[must_use]
pub fn deletion_held(facts: &NodeFacts, cap: Cap, allowed: usize) -> NodeEvent {
    let text = format!(
        "The instance of node {} is gone, but the node stays for now: the limit of {allowed} within {} minutes \
         (--max-node-deletions={}) is reached. If it is right that so many instances are gone, wait, or delete the node \
         yourself",
        facts.name,
        cap.window.as_secs() / 60,
        cap.share
    );
    event(facts, true, reason::NODE_DELETION_HELD, &text)
}

/// Said once when a listing that is in doubt keeps a node.
#[must_use]
pub fn listing_doubtful(facts: &NodeFacts, doubt: &Doubt, annotation: &str) -> NodeEvent {
    let text = format!(
        "Node {} is kept although its instance is not listed, because the listing is in doubt: {doubt}. Check that the \
         token is of the right project. If the instance is really gone, set the annotation {annotation}: \"true\" on \
         the node",
        facts.name
    );
    event(facts, true, reason::LISTING_DOUBTFUL, &text)
}

/// Said once when a node without a provider id has no instance of its name.
#[must_use]
pub fn instance_not_found(facts: &NodeFacts) -> NodeEvent {
    let text = format!(
        "Node {} has no provider id, and the cloud lists no instance of that name. Such a node is never deleted \
         automatically: if it is a left-over, delete it",
        facts.name
    );
    event(facts, true, reason::INSTANCE_NOT_FOUND, &text)
}
