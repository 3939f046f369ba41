//! The journal: every request, who sent it, and its outcome.

use std::collections::BTreeMap;

use cloudberth_core::Tick;
use serde::{Serialize, Serializer, ser::SerializeMap as _};
use serde_json::Value;
use sim_kit::Outcome;

use super::history::micros;

/// One request, in the order in which they took effect.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Entry {
    /// The number of the request, in the order in which they were sent.
    pub number: u64,
    /// When it was sent, by the cloud's clock (in JSON, microseconds).
    #[serde(serialize_with = "micros")]
    pub sent: Tick,
    /// When it took effect.
    #[serde(serialize_with = "micros")]
    pub applied: Tick,
    /// Who sent it: the name of the service, the header `X-Sim-Client`, or else `User-Agent`.
    pub who: String,
    /// Which operation: `load_balancers.create`, `cloud_ips.map`, `token`, …; `unknown` for other paths.
    pub operation: String,
    /// The HTTP method.
    pub method: String,
    /// The path with the query.
    pub path: String,
    /// The body, if it was JSON; of a request for a token its fields, without the secrets.
    pub body: Option<Value>,
    /// What the client heard (in JSON, `status` and `outcome`).
    #[serde(flatten, serialize_with = "status_and_outcome")]
    pub outcome: Outcome,
    /// It would change something.
    pub mutation: bool,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde hands out references")]
fn status_and_outcome<S: Serializer>(outcome: &Outcome, serializer: S) -> Result<S::Ok, S::Error> {
    let word = match outcome {
        Outcome::Answered(_) => "answered",
        Outcome::Lost(_) => "lost",
        Outcome::Dropped => "dropped",
    };
    let mut map = serializer.serialize_map(Some(2))?;
    map.serialize_entry("status", &outcome.status())?;
    map.serialize_entry("outcome", word)?;
    map.end()
}

/// How many requests there were.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Tally {
    /// All requests.
    pub calls: usize,
    /// Those that asked for a change.
    pub mutations: usize,
    /// All requests by operation.
    pub operations: BTreeMap<String, usize>,
}

impl Tally {
    /// Counts these entries.
    pub fn of<'a>(entries: impl IntoIterator<Item = &'a Entry>) -> Self {
        let mut tally = Self::default();
        for entry in entries {
            tally.calls += 1;
            tally.mutations += usize::from(entry.mutation);
            *tally.operations.entry(entry.operation.clone()).or_default() += 1;
        }
        tally
    }

    /// How many requests there were for one operation.
    pub fn count(&self, operation: &str) -> usize {
        self.operations.get(operation).copied().unwrap_or_default()
    }
}
