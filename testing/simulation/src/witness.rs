//! Sees by true time who leads, who writes, and which nodes are deleted. No replica can look here.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{Arc, Mutex},
};

use cloudberth_core::{Clock, Gate, Tick};
use cloudberth_runtime::election::Election;
use embedded_kube::KubeApi;
use http::{Method, Request};
use serde_json::Value;

use crate::{clouds::SimulatedClouds, lock};

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

/// A node that is about to be deleted.
#[derive(Clone, Debug)]
pub(crate) struct Doomed {
    name: String,
    uid: String,
    provider_id: String,
    ready: bool,
}

/// A node that a replica deleted.
#[derive(Clone, Debug)]
pub(crate) struct Deletion {
    /// When the API server carried it out.
    pub(crate) at: Tick,
    pub(crate) who: String,
    pub(crate) node: String,
    uid: String,
    /// A backup has brought the node back.
    pub(crate) undone: bool,
    /// The cloud whose id it carried.
    pub(crate) cloud: String,
}

#[derive(Default)]
struct Notes {
    /// Whom the stored Lease has named since when; empty for nobody.
    holders: Vec<(Tick, String)>,
    sent: Vec<SentWrite>,
    claimants: BTreeMap<String, Claimant>,
    deletions: Vec<Deletion>,
    /// The UIDs of nodes that are deleted. A backup may bring them back.
    buried: BTreeSet<String>,
    /// The instance on which the node of a UID runs: its provider id and its address.
    instances: BTreeMap<String, (String, String)>,
    wrong: Vec<String>,
}

/// The witness of one run.
pub(crate) struct Witness {
    api: KubeApi,
    clouds: SimulatedClouds,
    clock: Arc<dyn Clock>,
    notes: Mutex<Notes>,
}

impl Witness {
    pub(crate) fn new(api: KubeApi, clouds: SimulatedClouds, clock: Arc<dyn Clock>) -> Self {
        Self { api, clouds, clock, notes: Mutex::default() }
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

    /// The node that a request is about to delete.
    pub(crate) fn doomed<B>(&self, request: &Request<B>) -> Option<Doomed> {
        let name = request
            .uri()
            .path()
            .strip_prefix("/api/v1/nodes/")
            .filter(|_| request.method() == Method::DELETE)?;
        let node = self.node(name)?;
        let conditions = node.pointer("/status/conditions").and_then(Value::as_array);
        let is = |c: &Value, key, value| c.get(key).and_then(Value::as_str) == Some(value);
        let ready = |c: &Value| is(c, "type", "Ready") && is(c, "status", "True");
        Some(Doomed {
            name: name.to_owned(),
            uid: text(&node, "/metadata/uid").to_owned(),
            provider_id: text(&node, "/spec/providerID").to_owned(),
            ready: conditions.is_some_and(|all| all.iter().any(ready)),
        })
    }

    fn node(&self, name: &str) -> Option<Arc<Value>> {
        let named_cloud = |node: &Arc<Value>| text(node, "/metadata/name") == name;
        self.api.objects("nodes").into_iter().find(named_cloud)
    }

    /// The request was carried out, or not. An instance that is gone never comes back, so one that is there now was there
    /// when its node was deleted (laws 1 and 2).
    pub(crate) fn deleted(&self, who: &str, doomed: Doomed) {
        let Doomed { name, uid, provider_id, ready } = doomed;
        if self.node(&name).is_some_and(|node| text(&node, "/metadata/uid") == uid) {
            return;
        }
        let at = self.clock.now();
        let cloud = provider_id.split("://").next().unwrap_or_default().to_owned();
        let mut notes = lock(&self.notes);
        if !notes.buried.insert(uid.clone()) {
            // Two requests for one node, the first slow: the API server deleted it once.
            return;
        }
        if let Some(instance) = self.clouds.instance(&provider_id) {
            notes.wrong.push(format!("law 2: {name} was deleted at {:?} and {} exists", at.0, instance.id));
        }
        if ready {
            notes.wrong.push(format!("law 2: {name} was deleted at {:?} although it was Ready", at.0));
        }
        notes.deletions.push(Deletion { at, who: who.to_owned(), node: name, uid, undone: false, cloud });
    }

    /// A kubelet registered a node with this UID; this is its instance.
    pub(crate) fn registered(&self, uid: String, provider_id: String, address: String) {
        lock(&self.notes).instances.insert(uid, (provider_id, address));
    }

    /// The provider id of the instance on which the node of a UID runs.
    pub(crate) fn runs_on(&self, uid: &str) -> Option<String> {
        lock(&self.notes).instances.get(uid).map(|(id, _)| id.clone())
    }

    /// The API server came back with a backup. A node that it brings back was not lost; whoever deleted it just before and
    /// never got an answer tries again, and that is one deletion (law 2).
    pub(crate) fn restored(&self) {
        let restored = self.api.objects("nodes");
        let there: BTreeSet<&str> = restored.iter().map(|node| text(node, "/metadata/uid")).collect();
        let mut notes = lock(&self.notes);
        notes.buried.clear();
        for deletion in &mut notes.deletions {
            deletion.undone |= there.contains(deletion.uid.as_str());
        }
        drop(notes);
        self.looks();
    }

    /// A write to a node was carried out, or not. A node that runs on one instance never gets the id or the address of
    /// another: sooner or later it would be deleted because of that (law 2).
    pub(crate) fn patched(&self, who: &str, name: &str) {
        let Some(node) = self.node(name) else { return };
        let mut notes = lock(&self.notes);
        let Some((id, address)) = notes.instances.get(text(&node, "/metadata/uid")) else { return };
        let carried = text(&node, "/spec/providerID");
        let addresses = node.pointer("/status/addresses").and_then(Value::as_array);
        let internal = addresses.into_iter().flatten().filter(|a| text(a, "/type") == "InternalIP");
        let mut internal = internal.map(|a| text(a, "/address"));
        if addresses.is_some_and(|all| !all.is_empty()) && internal.clone().next().is_none() {
            let wrong = format!("law 1: {who} left {name} without an address, which the cloud did not say");
            notes.wrong.push(wrong);
            return;
        }
        let other = internal.find(|one| one != address);
        let id = Some(carried).filter(|carried| !carried.is_empty() && carried != id);
        let wrong: Vec<_> = [id, other]
            .into_iter()
            .flatten()
            .map(|what| format!("law 2: {who} gave {name} {what}, which is another instance's"))
            .collect();
        notes.wrong.extend(wrong);
    }

    /// The nodes that replicas deleted.
    pub(crate) fn deletions(&self) -> Vec<Deletion> {
        lock(&self.notes).deletions.clone()
    }

    /// A request was carried out, or not: the Lease may name another now.
    pub(crate) fn looks(&self) {
        let leases = self.api.objects("leases.coordination.k8s.io");
        let field = leases.first().and_then(|lease| lease.pointer("/spec/holderIdentity"));
        let holder = field.and_then(Value::as_str).unwrap_or_default();
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

    /// When somebody let go of the Lease, and who.
    pub(crate) fn released(&self) -> Vec<(Tick, String)> {
        let notes = lock(&self.notes);
        let pairs = notes.holders.iter().zip(notes.holders.iter().skip(1));
        let released = pairs.filter(|((_, who), (_, next))| !who.is_empty() && next.is_empty());
        released.map(|((_, who), (at, _))| (*at, who.clone())).collect()
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

fn text<'a>(object: &'a Value, path: &str) -> &'a str {
    object.pointer(path).and_then(Value::as_str).unwrap_or_default()
}

pub(crate) fn is_lease<B>(request: &Request<B>) -> bool {
    request.uri().path().contains("/leases")
}
