//! Load balancers with our mark and without a Service, and their deletion on purpose.
//!
//! ```text
//!   all Services, all nodes ──┐
//!   what has our mark       ──┴──► judged: pure ──► certain, or only possible ──► names typed ──► judged again ──► deleted
//! ```
//!
//! What is only possible is shown and never deleted (law 3), and what could not be listed as a whole proves nothing (law 1).

#![allow(missing_docs, reason = "plain data whose names say what it is")]

mod judge;
mod look;
mod text;

use serde::Serialize;

pub use judge::{Listed, judge, may_delete};
pub(crate) use look::{CloudWithMarks, Look};

/// The exit code when nothing is left over, or when all that was named is gone.
pub const EXIT_NONE: u8 = 0;
/// The exit code when something is left over.
pub const EXIT_ORPHANS: u8 = 1;
/// The exit code when the call itself is wrong.
pub const EXIT_USAGE: u8 = 2;
/// The exit code when it could not be told, or when something that was named was not deleted.
pub const EXIT_UNKNOWN: u8 = 3;

/// A load balancer without a Service.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Orphan {
    pub cloud: String,
    pub id: String,
    pub name: String,
    /// It is certain that it was made for this cluster: an instance of one of its nodes stands behind it.
    pub certain: bool,
    /// Why, in words.
    pub because: String,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Unknown {
    /// The cloud, or the cluster.
    pub what: String,
    pub why: String,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Orphans {
    pub orphans: Vec<Orphan>,
    pub unknown: Vec<Unknown>,
    /// What was deleted, by name.
    pub deleted: Vec<String>,
    /// What was named and not deleted, and why.
    pub refused: Vec<Unknown>,
}

impl Orphans {
    pub fn exit_code(&self) -> u8 {
        if !self.unknown.is_empty() || !self.refused.is_empty() {
            EXIT_UNKNOWN
        } else if self.deleted.is_empty() && !self.orphans.is_empty() {
            EXIT_ORPHANS
        } else {
            EXIT_NONE
        }
    }

    pub fn to_json(&self) -> String {
        serde_json::to_string_pretty(self).unwrap_or_default() + "\n"
    }
}
