//! The log of calls: who asked for what, when, and what came of it.

use std::collections::VecDeque;

use jiff::Timestamp;
use serde::Serialize;

/// How many calls are remembered.
const CAPACITY: usize = 200_000;

/// What came of a call.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum Outcome {
    /// An answer with this status code was sent.
    Answered(u16),
    /// The call was carried out (it would have had this status), but the answer was lost on the way.
    Lost(u16),
    /// The call never arrived.
    Dropped,
}

/// One call.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Call {
    /// A running number; gaps never occur.
    pub number: u64,
    /// When it was carried out, on the server's clock.
    pub at: Timestamp,
    /// The user that the token stands for.
    pub user: String,
    /// What the client calls itself.
    pub user_agent: String,
    /// `get`, `list`, `watch`, `create`, `update`, `patch`, `delete`, `deletecollection`; the method for other paths.
    pub verb: String,
    /// API group; empty for the core group.
    pub group: String,
    /// Resource in the plural; the path when it is no resource.
    pub resource: String,
    /// `status` and the like, or empty.
    pub subresource: String,
    /// Namespace, or empty.
    pub namespace: String,
    /// Name, or empty.
    pub name: String,
    /// Nothing was to be written.
    pub dry_run: bool,
    /// What came of it.
    pub outcome: Outcome,
}

impl Call {
    /// Whether it changed (or tried to change) anything.
    pub fn is_write(&self) -> bool {
        matches!(self.verb.as_str(), "create" | "update" | "patch" | "delete" | "deletecollection")
            && !self.dry_run
    }
}

/// The newest calls, in order.
#[derive(Debug, Default)]
pub(crate) struct Log {
    calls: VecDeque<Call>,
    count: u64,
}

impl Log {
    pub(crate) fn push(&mut self, mut call: Call) {
        call.number = self.count;
        self.count += 1;
        if self.calls.len() == CAPACITY {
            self.calls.pop_front();
        }
        self.calls.push_back(call);
    }

    /// All remembered calls from a number on.
    pub(crate) fn since(&self, number: u64) -> Vec<Call> {
        self.calls.iter().filter(|call| call.number >= number).cloned().collect()
    }
}
