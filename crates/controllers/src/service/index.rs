//! Which Service lays claim to what, and which nodes it wants: one entry per Service that concerns a cloud of ours.

use std::{
    collections::{BTreeMap, BTreeSet},
    panic::{AssertUnwindSafe, catch_unwind},
    sync::Arc,
};

use cloudberth_core::{
    ObjectKey, ServiceView,
    decide::service::need::{has_finalizer, wants},
    lb::{Claims, LockKey, Request, Rival, rivals},
    view::ServiceType,
};

use super::{ServiceController, state::SyncReason};
use crate::lock;

/// What is known about a Service before a pass.
#[derive(Clone, Debug)]
pub(super) struct Entry {
    /// The cloud that serves it, or still holds something for it.
    pub(super) cloud: String,
    /// It wants a load balancer there.
    pub(super) wants: bool,
    /// What it asks for there.
    pub(super) request: Request,
    /// The version that all this was read from.
    pub(super) version: Arc<ServiceView>,
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
                entry.request.keys.iter().map(move |key| (cloud.clone(), key.clone())).collect::<Vec<_>>()
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

    /// What was read from this very version of a Service.
    pub(super) fn known(&self, service: &Arc<ServiceView>) -> Option<Entry> {
        self.entries.get(&service.key()).filter(|entry| Arc::ptr_eq(&entry.version, service)).cloned()
    }

    /// The others that lay claim to something of `mine` at `cloud`.
    pub(super) fn rivals(&self, me: &ObjectKey, cloud: &str, mine: &[LockKey]) -> Vec<Rival> {
        let sharing = mine.iter().filter_map(|key| self.claimants.get(&(cloud.to_owned(), key.clone())));
        let others: BTreeMap<_, _> = sharing
            .flatten()
            .filter_map(|key| Some((key.clone(), self.entries.get(key)?.request.keys.clone())))
            .collect();
        rivals(me, mine, &others)
    }

    /// The others that lay claim to this one thing at `cloud`.
    fn claimants(&self, me: &ObjectKey, cloud: &str, key: &LockKey) -> Vec<ObjectKey> {
        let all = self.claimants.get(&(cloud.to_owned(), key.clone())).into_iter().flatten();
        all.filter(|other| *other != me).cloned().collect()
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

impl ServiceController {
    /// What the others lay claim to at `cloud`.
    pub(super) fn claims(&self, me: &ObjectKey, cloud: &str) -> Claims {
        let (index, me, cloud) = (Arc::clone(&self.index), me.clone(), cloud.to_owned());
        Claims::new(move |key| lock(&index).claimants(&me, &cloud, key))
    }

    /// Updates what is known about a Service, and enqueues those that waited for something it gave up.
    ///
    /// A Service on which the provider panics gets no entry; its own pass panics again and says so. This runs where the
    /// watch is read, which must go on for all (law 11).
    pub(super) fn update_index(&self, key: &ObjectKey, service: Option<&Arc<ServiceView>>) {
        let read = |service: &Arc<ServiceView>| {
            let assignment = self.ctx.clouds.assignments.of(service);
            // A Service of somebody else that carries a copied id lays no claim to it.
            let cloud = self.clouds.get(assignment.holder.filter(|_| !assignment.unproven)?)?;
            let balancers = cloud.cloud.load_balancers()?;
            if service.service_type != ServiceType::LoadBalancer && !has_finalizer(service) {
                return None;
            }
            let read = AssertUnwindSafe(|| balancers.read(service, &self.ctx.cluster_name));
            let request = catch_unwind(read).ok()?;
            let served_here = assignment.server == assignment.holder;
            let wants = wants(service, &assignment) && served_here && !service.deleting;
            Some(Entry { cloud: cloud.name().to_owned(), wants, request, version: Arc::clone(service) })
        };
        let waiting = lock(&self.index).set(key, service.and_then(read));
        for other in waiting {
            self.enqueue(&other, SyncReason::Service);
        }
    }
}
