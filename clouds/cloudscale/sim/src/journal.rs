//! The journal: every request, who sent it, and what came of it.

use std::collections::{BTreeMap, VecDeque};

use cloudberth_core::Tick;
use serde::Serialize;
use serde_json::Value;

use super::history::micros;

/// What the client heard.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum Outcome {
    /// The answer.
    Answered,
    /// Nothing, or not all of it, although the request was carried out.
    Lost,
    /// Nothing: the request never arrived.
    Dropped,
}

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
    /// Which operation: `members.create`, `load-balancers.list`, `servers.stop`, …; `unknown` for other paths.
    pub operation: String,
    /// The method.
    pub method: String,
    /// The path with the query.
    pub path: String,
    /// The body, if it was JSON.
    pub body: Option<Value>,
    /// The status of the answer, whether it arrived or not; none for a request that did not.
    pub status: Option<u16>,
    /// What the client heard.
    pub outcome: Outcome,
    /// It asked for a change.
    pub mutation: bool,
}

impl Entry {
    /// It was carried out.
    pub fn succeeded(&self) -> bool {
        self.status.is_some_and(|status| status < 300)
    }
}

/// How many requests are remembered.
const CAPACITY: usize = 200_000;

/// The newest requests, in order.
#[derive(Debug, Default)]
pub(crate) struct Journal(VecDeque<Entry>);

impl Journal {
    pub(crate) fn push(&mut self, entry: Entry) {
        if self.0.len() == CAPACITY {
            self.0.pop_front();
        }
        self.0.push_back(entry);
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &Entry> {
        self.0.iter()
    }

    pub(crate) fn clear(&mut self) {
        self.0.clear();
    }
}

/// How often something was asked.
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
    /// Counts what an observer chose to look at.
    pub fn of<'a>(entries: impl IntoIterator<Item = &'a Entry>) -> Self {
        let mut tally = Self::default();
        for entry in entries {
            tally.calls += 1;
            tally.mutations += usize::from(entry.mutation);
            *tally.operations.entry(entry.operation.clone()).or_default() += 1;
        }
        tally
    }

    /// How often one operation was asked for.
    pub fn count(&self, operation: &str) -> usize {
        self.operations.get(operation).copied().unwrap_or_default()
    }
}
