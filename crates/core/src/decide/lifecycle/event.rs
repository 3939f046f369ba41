//! What people read about a node's life. Reasons and texts that alerts may look for are kept as they are known.

use super::{cap::Cap, credible::Doubt, suspect::Suspect};
use crate::error::{Doing, Error, cut};

/// Kubernetes refuses longer messages.
const LONGEST: usize = 1_024;

/// The object that an event is about. Nodes have no namespace.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NodeRef {
    /// Always `v1`.
    pub api_version: &'static str,
    /// Always `Node`.
    pub kind: &'static str,
    /// The node's name.
    pub name: String,
    /// The node's UID.
    pub uid: String,
}

/// An event about a node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NodeEvent {
    /// The node.
    pub about: NodeRef,
    /// `Warning`, otherwise `Normal`.
    pub warning: bool,
    /// The reason.
    pub reason: &'static str,
    /// The text.
    pub message: String,
}

fn event(suspect: &Suspect, warning: bool, reason: &'static str, message: &str) -> NodeEvent {
    let about =
        NodeRef { api_version: "v1", kind: "Node", name: suspect.name.clone(), uid: suspect.uid.clone() };
    NodeEvent { about, warning, reason, message: cut(message, LONGEST) }
}

/// Said just before a node is deleted.
#[must_use]
pub fn deleting_node(suspect: &Suspect) -> NodeEvent {
    let text = format!("Deleting node {} because it does not exist in the cloud provider", suspect.name);
    event(suspect, false, "DeletingNode", &text)
}

/// Said when the deletion failed; nothing is said where we stopped ourselves.
#[must_use]
pub fn deleting_node_failed(suspect: &Suspect, why: &Error) -> Option<NodeEvent> {
    let reason = Doing::DeleteNode.failed(why.category())?;
    Some(event(suspect, true, reason, &format!("Failed deleting node {}: {why}", suspect.name)))
}

/// Said once when the cap keeps a node whose machine is gone.
#[must_use]
pub fn deletion_held(suspect: &Suspect, cap: Cap, allowed: usize) -> NodeEvent {
    let text = format!(
        "The machine of node {} is gone, but the node stays for now: the limit of {allowed} within {} minutes \
         (--max-node-deletions={}) is reached. If it is right that so many machines are gone, wait, or delete the node \
         yourself",
        suspect.name,
        cap.window.as_secs() / 60,
        cap.share
    );
    event(suspect, true, "NodeDeletionHeld", &text)
}

/// Said once when a listing that is in doubt keeps a node.
#[must_use]
pub fn listing_doubtful(suspect: &Suspect, doubt: &Doubt, annotation: &str) -> NodeEvent {
    let text = format!(
        "Node {} is kept although its machine is not listed, because the listing is in doubt: {doubt}. Check that the \
         token is of the right project. If the machine is really gone, set the annotation {annotation}: \"true\" on \
         the node",
        suspect.name
    );
    event(suspect, true, "MachineListingDoubtful", &text)
}

/// Said once when a node without a provider id has no machine of its name.
#[must_use]
pub fn machine_not_found(suspect: &Suspect) -> NodeEvent {
    let text = format!(
        "Node {} has no provider id, and the cloud lists no machine of that name. Such a node is never deleted \
         automatically: if it is a left-over, delete it",
        suspect.name
    );
    event(suspect, true, "MachineNotFound", &text)
}
