//! An entry in the log of calls: who asked for what, when, and with which outcome.

use jiff::Timestamp;
use serde::Serialize;
use sim_kit::Outcome;

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
    /// The `User-Agent` header.
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
    /// It was a dry run.
    pub dry_run: bool,
    /// What the client heard.
    pub outcome: Outcome,
}

impl Call {
    /// Whether it changed (or tried to change) anything.
    pub fn is_write(&self) -> bool {
        matches!(self.verb.as_str(), "create" | "update" | "patch" | "delete" | "deletecollection")
            && !self.dry_run
    }
}
