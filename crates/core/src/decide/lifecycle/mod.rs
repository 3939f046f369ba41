//! Which node is marked as shut down, which may be deleted, and when the cloud is asked.
//!
//! ```text
//!   a node turns NotReady ──► Probing: when to list
//!   listing ──► ListingTrust: may it be believed (law 1)
//!   listing + lookup by id ──► Evidence ──► judge ──► Verdict (law 2)
//!   Verdict::Delete ──► Deletions: not faster than the cap (law 2)
//! ```
//!
//! A node that has no provider id is never deleted here: there is no id by which the source itself could be asked.
//! When a complete listing shows no instance of its name twice, one event says so, and a person decides.

mod cap;
mod count;
mod event;
mod facts;
mod probing;
mod trust;
mod verdict;

pub use cap::{Answer, Cap, DeletionDecision, Deletions, Share};
pub use count::questions;
pub use event::{
    NodeEvent, deleting_node, deleting_node_failed, deletion_held, instance_not_found, listing_doubtful,
};
pub use facts::{MACHINE_IS_GONE, NodeFacts, Tie};
pub use probing::{IDLE, Probing, alarming};
pub use trust::{Doubt, ListingTrust, has_witnesses, shows_none, trust};
pub use verdict::{Evidence, NodeHistory, Round, Timing, Verdict, Warning, at_once, gather};

#[cfg(test)]
pub(crate) mod tests;
