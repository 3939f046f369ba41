//! Which Service lays claim to what, and which nodes it wants: one entry per Service that concerns a cloud of ours.

use std::{
    collections::{BTreeMap, BTreeSet},
    panic::{AssertUnwindSafe, catch_unwind},
    sync::Arc,
};

use cloudberth_core::{
    ObjectKey, ServiceView,
    decide::service::{
        assignments::Assignment,
        need::{has_finalizer, wants},
    },
    lb::{Claims, LockKey, Request, Rival},
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

    /// What this very version of a Service asks of `cloud`, if that was read.
    pub(super) fn known(&self, service: &Arc<ServiceView>, cloud: &str) -> Option<Request> {
        let entry = self.entries.get(&service.key())?;
        (Arc::ptr_eq(&entry.version, service) && entry.cloud == cloud).then(|| entry.request.clone())
    }

    /// The others that lay claim to one of `keys` at `cloud`, in a fixed order.
    pub(super) fn rivals(&self, me: &ObjectKey, cloud: &str, keys: &[LockKey]) -> BTreeSet<Rival> {
        let claimed = keys.iter().flat_map(|key| {
            let all = self.claimants.get(&(cloud.to_owned(), key.clone())).into_iter().flatten();
            all.map(|service| Rival { service: service.clone(), key: key.clone() })
        });
        claimed.filter(|rival| rival.service != *me).collect()
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
        Claims::new(move |key| {
            let rivals = lock(&index).rivals(&me, &cloud, std::slice::from_ref(key));
            rivals.into_iter().map(|rival| rival.service).collect()
        })
    }

    /// Updates what is known about a Service, and enqueues those that waited for something it gave up.
    ///
    /// A Service on which the provider panics gets no entry; its own pass panics again and says so. This runs where the
    /// watch is read, which must go on for all (law 11).
    pub(super) fn update_index(
        &self,
        key: &ObjectKey,
        service: Option<(&Arc<ServiceView>, &Assignment<'_>)>,
    ) {
        let read = |(service, assignment): (&Arc<ServiceView>, &Assignment<'_>)| {
            // A Service of somebody else that carries a copied id lays no claim to it.
            let cloud = self.clouds.get(assignment.holder.filter(|_| !assignment.unproven)?)?;
            let balancers = cloud.cloud.load_balancers()?;
            if service.service_type != ServiceType::LoadBalancer && !has_finalizer(service) {
                return None;
            }
            let read = AssertUnwindSafe(|| balancers.read(service, &self.ctx.cluster_name));
            let request = catch_unwind(read).ok()?;
            let served_here = assignment.server == assignment.holder;
            let wants = wants(service, assignment) && served_here && !service.deleting;
            Some(Entry { cloud: cloud.name().to_owned(), wants, request, version: Arc::clone(service) })
        };
        let waiting = lock(&self.index).set(key, service.and_then(read));
        for other in waiting {
            self.enqueue(&other, SyncReason::Service);
        }
    }
}

#[cfg(test)]
mod tests {
    use cloudberth_core::lb::{LockKind, Name};

    use super::*;

    fn key(name: &str) -> ObjectKey {
        ObjectKey::new("default", name)
    }

    fn ids(names: &[&str]) -> Vec<LockKey> {
        names.iter().map(|name| LockKey::new(LockKind::Id, *name)).collect()
    }

    fn entry(cloud: &str, names: &[&str]) -> Entry {
        let name = Name { text: String::new(), generated: true };
        let request = Request { name, keys: ids(names), selector: None };
        Entry { cloud: cloud.to_owned(), wants: true, request, version: Arc::default() }
    }

    #[test]
    fn rivals_are_the_others_with_a_claim_in_common() {
        let mut index = ServiceIndex::default();
        let all = [
            ("z", entry("a", &["2", "1"])),
            ("me", entry("a", &["1", "2"])),
            ("x", entry("a", &["2", "3", "2"])),
            ("y", entry("a", &["3"])),
            ("elsewhere", entry("b", &["1"])),
        ];
        for (name, entry) in all {
            index.set(&key(name), Some(entry));
        }
        let rivals = |keys: &[&str]| -> Vec<_> {
            let found = index.rivals(&key("me"), "a", &ids(keys));
            found.into_iter().map(|rival| (rival.service.name, rival.key.value)).collect()
        };
        let named = |list: &[(&str, &str)]| -> Vec<(String, String)> {
            list.iter().map(|(service, key)| ((*service).to_owned(), (*key).to_owned())).collect()
        };
        assert_eq!(rivals(&["1", "2"]), named(&[("x", "2"), ("z", "1"), ("z", "2")]));
        assert_eq!(rivals(&["3"]), named(&[("x", "3"), ("y", "3")]), "what one does not claim oneself");
        assert_eq!(rivals(&["4"]), named(&[]));
    }
}
