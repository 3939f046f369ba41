//! Which Service lays claim to what, and which nodes it wants: one entry per Service that concerns a cloud of ours.

use std::{
    collections::{BTreeMap, BTreeSet},
    panic::{AssertUnwindSafe, catch_unwind},
};

use cloudberth_core::{
    ObjectKey, ServiceView,
    decide::{
        nodeset::Selector,
        service::need::{has_finalizer, wants},
    },
    lb::{LockKey, Request, Rival, rivals},
    view::ServiceType,
};

use crate::clouds::Clouds;

/// What is known about a Service before a pass.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Entry {
    /// The cloud that serves it, or still holds something for it.
    pub(super) cloud: String,
    /// It wants a load balancer there.
    pub(super) wants: bool,
    /// The nodes that it wants; all, where it does not say or cannot be read.
    pub(super) selector: Option<Selector>,
    keys: Vec<LockKey>,
}

impl Entry {
    /// Reads a Service; `None` for one that concerns none of our clouds.
    ///
    /// A Service on which the provider panics gets no entry; its own pass panics again and says so. This runs where the
    /// watch is read, which must go on for all (law 11).
    pub(super) fn read(clouds: &Clouds, cluster: &str, service: &ServiceView) -> Option<Self> {
        let assignment = clouds.assignments.of(service);
        // A Service of somebody else that carries a copied id lays no claim to it.
        let cloud = clouds.named(assignment.holder.filter(|_| !assignment.unproven)?)?;
        let balancers = cloud.load_balancers()?;
        if service.service_type != ServiceType::LoadBalancer && !has_finalizer(service) {
            return None;
        }
        let read = AssertUnwindSafe(|| balancers.read(service, cluster));
        let Request { keys, selector, .. } = catch_unwind(read).ok()?;
        let wants =
            wants(service, &assignment) && assignment.server == assignment.holder && !service.deleting;
        Some(Self { cloud: cloud.name().to_owned(), wants, selector, keys })
    }
}

/// All entries.
#[derive(Debug, Default)]
pub(super) struct ServiceIndex {
    entries: BTreeMap<ObjectKey, Entry>,
    claimants: BTreeMap<(String, LockKey), BTreeSet<ObjectKey>>,
}

impl ServiceIndex {
    /// Replaces an entry. Returns the Services that wait for something which it gave up.
    pub(super) fn set(&mut self, key: &ObjectKey, entry: Option<Entry>) -> BTreeSet<ObjectKey> {
        let places = |entry: &Option<Entry>| -> BTreeSet<(String, LockKey)> {
            let each = |entry: &Entry| {
                let cloud = entry.cloud.clone();
                entry.keys.iter().map(move |key| (cloud.clone(), key.clone())).collect::<Vec<_>>()
            };
            entry.iter().flat_map(each).collect()
        };
        let old = self.entries.remove(key);
        let (before, now) = (places(&old), places(&entry));
        let mut waiting = BTreeSet::new();
        for place in before.difference(&now) {
            if let Some(claimants) = self.claimants.get_mut(place) {
                claimants.remove(key);
                waiting.extend(claimants.iter().cloned());
                if claimants.is_empty() {
                    self.claimants.remove(place);
                }
            }
        }
        for place in now {
            self.claimants.entry(place).or_default().insert(key.clone());
        }
        self.entries.extend(entry.map(|entry| (key.clone(), entry)));
        waiting
    }

    /// The others that lay claim to something of `mine` at `cloud`.
    pub(super) fn rivals(&self, me: &ObjectKey, cloud: &str, mine: &[LockKey]) -> Vec<Rival> {
        let sharing = mine.iter().filter_map(|key| self.claimants.get(&(cloud.to_owned(), key.clone())));
        let others: BTreeMap<_, _> = sharing
            .flatten()
            .filter_map(|key| Some((key.clone(), self.entries.get(key)?.keys.clone())))
            .collect();
        rivals(me, mine, &others)
    }

    /// The Services that want a load balancer.
    pub(super) fn wanting(&self) -> impl Iterator<Item = (&ObjectKey, &Entry)> {
        self.entries.iter().filter(|(_, entry)| entry.wants)
    }

    /// The Services that concern one cloud.
    pub(super) fn keys_at(&self, cloud: &str) -> Vec<ObjectKey> {
        let here = self.entries.iter().filter(|(_, entry)| entry.cloud == cloud);
        here.map(|(key, _)| key.clone()).collect()
    }

    /// All Services that concern us.
    pub(super) fn keys(&self) -> Vec<ObjectKey> {
        self.entries.keys().cloned().collect()
    }
}
