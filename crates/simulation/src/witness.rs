//! Sees by true time who leads and who writes, for law 9. No replica can look here.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex},
};

use cloudberth_core::{Clock, Gate, Tick};
use cloudberth_runtime::election::Election;
use cloudberth_sim::kube::KubeApi;
use http::{Method, Request};

use crate::program::lock;

/// A write to Kubernetes that left a replica. Renewals of the Lease are none.
#[derive(Clone, Debug)]
pub(crate) struct SentWrite {
    pub(crate) at: Tick,
    pub(crate) who: String,
    pub(crate) what: String,
}

/// Who holds a claim, as far as it says so itself.
struct Claimant {
    election: Arc<Election>,
    clock: Arc<dyn Clock>,
}

#[derive(Default)]
struct Notes {
    /// Whom the stored Lease has named since when; empty for nobody.
    holders: Vec<(Tick, String)>,
    sent: Vec<SentWrite>,
    claimants: BTreeMap<String, Claimant>,
    wrong: Vec<String>,
}

/// The witness of one run.
pub(crate) struct Witness {
    api: KubeApi,
    clock: Arc<dyn Clock>,
    notes: Mutex<Notes>,
}

impl Witness {
    pub(crate) fn new(api: KubeApi, clock: Arc<dyn Clock>) -> Self {
        Self { api, clock, notes: Mutex::default() }
    }

    /// A replica stands for election.
    pub(crate) fn meet(&self, identity: &str, election: &Arc<Election>, clock: &Arc<dyn Clock>) {
        let claimant = Claimant { election: Arc::clone(election), clock: Arc::clone(clock) };
        lock(&self.notes).claimants.insert(identity.to_owned(), claimant);
    }

    /// A replica is no more.
    pub(crate) fn bury(&self, identity: &str) {
        lock(&self.notes).claimants.remove(identity);
    }

    /// A request leaves a replica.
    pub(crate) fn sends<B>(&self, who: &str, request: &Request<B>) {
        if matches!(*request.method(), Method::GET) || is_lease(request) {
            return;
        }
        let what = format!("{} {}", request.method(), request.uri().path());
        lock(&self.notes).sent.push(SentWrite { at: self.clock.now(), who: who.to_owned(), what });
    }

    /// A request was carried out, or not: the Lease may name another now.
    pub(crate) fn looks(&self) {
        let leases = self.api.objects("leases.coordination.k8s.io");
        let field = leases.first().and_then(|lease| lease.pointer("/spec/holderIdentity"));
        let holder = field.and_then(serde_json::Value::as_str).unwrap_or_default();
        let mut notes = lock(&self.notes);
        if notes.holders.last().map(|(_, last)| last.as_str()) == Some(holder) {
            return;
        }
        let now = self.clock.now();
        let others = notes.claimants.iter().filter(|(name, _)| name.as_str() != holder);
        let mut wrong: Vec<_> = others
            .filter(|(_, other)| other.election.claim_until().is_some_and(|until| other.clock.now() < until))
            .map(|(name, _)| {
                format!("law 9: {name} may write while {holder:?} is given the lease, at {:?}", now.0)
            })
            .collect();
        notes.wrong.append(&mut wrong);
        notes.holders.push((now, holder.to_owned()));
    }

    /// Whom the stored Lease named at that time.
    pub(crate) fn holder_at(&self, at: Tick) -> String {
        let notes = lock(&self.notes);
        notes
            .holders
            .iter()
            .rev()
            .find(|(since, _)| *since <= at)
            .map(|(_, who)| who.clone())
            .unwrap_or_default()
    }

    /// The replica that leads by true time, if any does.
    pub(crate) fn leader(&self) -> String {
        self.holder_at(self.clock.now())
    }

    /// How often the Lease was given to somebody.
    pub(crate) fn terms(&self) -> usize {
        lock(&self.notes).holders.iter().filter(|(_, holder)| !holder.is_empty()).count()
    }

    /// Every write to Kubernetes that left a replica.
    pub(crate) fn sent(&self) -> Vec<SentWrite> {
        lock(&self.notes).sent.clone()
    }

    /// What was seen that may not be.
    pub(crate) fn wrong(&self) -> Vec<String> {
        lock(&self.notes).wrong.clone()
    }
}

pub(crate) fn is_lease<B>(request: &Request<B>) -> bool {
    request.uri().path().contains("/leases")
}
