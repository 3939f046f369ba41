//! What is remembered of a cluster between passes: to save calls, never to decide what is right.

use std::{collections::BTreeMap, sync::Mutex};

use cloudberth_core::{Reason, Tick};
use kube::Client;

use super::{lock, look::Part};
use crate::problem::Problem;

/// What is remembered of a cluster.
#[derive(Default)]
pub(super) struct Memory(Mutex<Notes>);

#[derive(Default)]
struct Notes {
    /// The inputs of the last pass after which everything was as it should be.
    settled: Option<Settled>,
    client: Option<(String, Client)>,
    /// The project of the virtual machines' namespace, by where it was read.
    harvester: Option<(String, String)>,
    told: Vec<(Reason, String)>,
    failures: u32,
    /// The revision of each release before Helm was started on it.
    began: BTreeMap<String, u32>,
    enabled: bool,
}

/// How a downstream cluster was when everything was as it should be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Settled {
    /// A hash of all inputs.
    pub(super) fingerprint: String,
    /// What each part looked like.
    pub(super) marks: Vec<(Part, String)>,
    /// Which part is looked at next.
    pub(super) turn: usize,
    /// When it was last looked at.
    pub(super) looked: Tick,
}

impl Memory {
    /// How the cluster was when it was last as it should be.
    pub(super) fn settled(&self) -> Option<Settled> {
        lock(&self.0).settled.clone()
    }

    /// Remembers, or forgets, how it is.
    pub(super) fn settle(&self, settled: Option<Settled>) {
        lock(&self.0).settled = settled;
    }

    /// The client that was made from this version of a kubeconfig.
    pub(super) fn client(&self, version: &str) -> Option<Client> {
        lock(&self.0).client.as_ref().filter(|(known, _)| known == version).map(|(_, client)| client.clone())
    }

    /// Keeps a client.
    pub(super) fn keep_client(&self, version: &str, client: &Client) {
        lock(&self.0).client = Some((version.to_owned(), client.clone()));
    }

    /// The annotation that was read there last.
    pub(super) fn harvester(&self, place: &str) -> Option<String> {
        lock(&self.0).harvester.as_ref().filter(|(known, _)| known == place).map(|(_, found)| found.clone())
    }

    /// Keeps an annotation.
    pub(super) fn keep_harvester(&self, place: &str, annotation: &str) {
        lock(&self.0).harvester = Some((place.to_owned(), annotation.to_owned()));
    }

    /// Forgets an annotation, so that it is read again.
    pub(super) fn forget_harvester(&self) {
        lock(&self.0).harvester = None;
    }

    /// Those of the problems that were not there in the last pass.
    pub(super) fn news<'a>(&self, problems: &'a [Problem]) -> Vec<&'a Problem> {
        let mut notes = lock(&self.0);
        let known = |problem: &Problem| (problem.reason, problem.message.clone());
        let news = problems.iter().filter(|problem| !notes.told.contains(&known(problem))).collect();
        notes.told = problems.iter().map(known).collect();
        news
    }

    /// Whether there was a problem in the last pass.
    pub(super) fn had_problems(&self) -> bool {
        !lock(&self.0).told.is_empty()
    }

    /// Counts passes in a row that failed, this one included.
    pub(super) fn count(&self, failed: bool) -> u32 {
        let mut notes = lock(&self.0);
        notes.failures = if failed { notes.failures.saturating_add(1) } else { 0 };
        notes.failures
    }

    /// Helm is about to be started on a release of this revision.
    pub(super) fn begins(&self, release: &str, revision: u32) {
        lock(&self.0).began.insert(release.to_owned(), revision);
    }

    /// Whether this process began the operation that made this revision. It is over: one pass at a time works on a cluster.
    pub(super) fn began(&self, release: &str, revision: u32) -> bool {
        lock(&self.0)
            .began
            .get(release)
            .is_some_and(|before| before.saturating_add(1) == revision || *before == revision)
    }

    /// Notes whether the cluster takes part; returns whether it did before.
    pub(super) fn take_part(&self, enabled: bool) -> bool {
        std::mem::replace(&mut lock(&self.0).enabled, enabled)
    }
}

impl std::fmt::Debug for Memory {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Memory").field("settled", &self.settled().is_some()).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{problem::Again, reasons::UNREACHABLE};

    #[test]
    fn a_failure_that_goes_on_is_told_once() {
        let memory = Memory::default();
        let away = [Problem::new(UNREACHABLE, Again::Unreachable, "away")];
        let told: usize = (0..50).map(|_| memory.news(&away).len()).sum();
        assert_eq!(told, 1, "RF-196");
        assert!(memory.news(&[]).is_empty() && !memory.had_problems());
        assert_eq!(memory.news(&away).len(), 1, "it is told again when it comes back");
    }

    #[test]
    fn failures_in_a_row_are_counted() {
        let memory = Memory::default();
        assert_eq!([true, true, false, true].map(|failed| memory.count(failed)), [1, 2, 0, 1]);
    }

    #[test]
    fn an_operation_of_ours_is_known_by_its_revision() {
        let memory = Memory::default();
        memory.begins("lb", 3);
        assert_eq!(
            [2, 3, 4, 5].map(|revision| memory.began("lb", revision)),
            [false, true, true, false],
            "RF-66"
        );
        assert!(!memory.began("other", 4));
    }
}
