//! An embedded Kubernetes API: what kube-apiserver does with the resources that cloudberth uses, in memory.
//!
//! [`KubeApi`] is the cluster. Clients in the same process use [`KubeApi::service`], all others need [`serve`]. The core
//! is a synchronous store; only the service in front of it is asynchronous, so that a simulation decides what happens
//! when.

mod calls;
mod canonical;
mod control;
mod decode;
mod definitions;
mod delete;
mod discovery;
mod faults;
mod field;
mod fields;
mod gotext;
mod history;
mod job;
mod json;
mod kinds;
mod labels;
mod meta;
mod names;
mod negotiate;
mod openapi;
mod patch;
mod path;
mod protobuf;
mod quantity;
mod query;
mod read;
mod render;
mod resource;
mod reviews;
mod router;
mod select;
mod serve;
mod service;
mod shape;
mod state;
mod status;
mod store;
mod strategic;
mod structural;
mod swagger;
mod syntax;
mod table;
mod time;
mod users;
mod value;
mod watch;
mod write;
mod yaml;

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use jiff::SignedDuration;
use serde_json::Value;

pub use calls::Call;
pub use faults::Fault;
pub use serve::{ServeError, Served, Tls, serve};
pub use service::{Body, KubeService};
pub use sim_kit::{Disconnected, Harm, Outcome};
pub use state::Config;
pub use store::Snapshot;
pub use users::{Action, Policy, User};

use sim_kit::Surroundings;
use state::State;

/// An embedded cluster. Clones are the same cluster.
#[derive(Clone, Debug)]
pub struct KubeApi {
    state: Arc<Mutex<State>>,
}

impl KubeApi {
    /// A fresh cluster with four namespaces and one Service, in which everyone may do everything.
    pub fn new(world: Surroundings) -> Self {
        Self::with_config(&Config::default(), world)
    }

    /// A fresh cluster with its own address ranges and length of history.
    pub fn with_config(config: &Config, world: Surroundings) -> Self {
        Self { state: Arc::new(Mutex::new(State::new(config, world))) }
    }

    pub(crate) fn lock(&self) -> MutexGuard<'_, State> {
        // A panic elsewhere cannot leave half an object behind: every write is one step.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The path below which everything is served, without a slash at its end; empty for a server of its own.
    pub fn path_prefix(&self) -> String {
        self.lock().path_prefix.clone()
    }

    /// A service for clients in the same process.
    pub fn service(&self) -> KubeService {
        sim_kit::SimService::new(self.clone())
    }

    /// Makes a token known. With the first one, requests without a token are refused.
    pub fn add_token(&self, token: &str, user: User) {
        self.lock().users.add(token, user);
    }

    /// Sets (or clears) the policy that decides on every request and every access review.
    pub fn set_policy(&self, policy: Option<Policy>) {
        self.lock().users.set_policy(policy);
    }

    /// Adds a fault, behind those that are in force.
    pub fn add_fault(&self, fault: Fault) {
        self.lock().faults.add(fault);
    }

    /// Ends all faults.
    pub fn clear_faults(&self) {
        self.lock().faults.clear();
    }

    /// Makes the server report another version, such as `v1.29.4`. Its behaviour stays the same, except that it drops
    /// `ipMode` before 1.30.
    pub fn set_version(&self, version: &str) {
        version.clone_into(&mut self.lock().version);
    }

    /// Ends all watches, as a restart does. Resource versions stay valid.
    pub fn restart(&self) {
        self.lock().watchers.cut_all();
    }

    /// Forgets the past: lists and watches from older resource versions are answered with 410. Watches that are
    /// under way go on.
    pub fn compact(&self) {
        self.lock().store.compact();
    }

    /// Everything that is stored now, like a backup of etcd.
    pub fn snapshot(&self) -> Snapshot {
        self.lock().store.snapshot()
    }

    /// Goes back to a snapshot, as etcd does when a backup is restored: later writes are lost, objects have the versions
    /// that they had then, and all watches end and have to list again. Calls, faults and users stay.
    pub fn restore(&self, snapshot: &Snapshot) {
        let mut state = self.lock();
        state.store.restore(snapshot);
        state.serve_definitions();
        state.watchers.cut_all();
    }

    /// Moves the server's clock against the one that was handed in.
    pub fn set_clock_skew(&self, skew: SignedDuration) {
        self.lock().world.set_skew(skew);
    }

    /// Back to a fresh cluster; tokens and policy stay.
    pub fn reset(&self) {
        self.lock().reset();
    }

    /// The calls so far, from a number on.
    pub fn calls(&self, since: u64) -> Vec<Call> {
        self.lock().calls_since(since)
    }

    /// The revision of the newest write.
    pub fn revision(&self) -> u64 {
        self.lock().store.revision()
    }

    /// How many watches are under way.
    pub fn watches(&self) -> usize {
        self.lock().watchers.count()
    }

    /// The stored objects of a resource (`services`, `leases.coordination.k8s.io`), in order of namespace and name.
    pub fn objects(&self, table: &str) -> Vec<Arc<Value>> {
        self.lock().store.all(table).map(|(_, object)| Arc::clone(object)).collect()
    }
}

fn base64_encode(bytes: &[u8]) -> String {
    STANDARD.encode(bytes)
}

fn base64_decode(text: &str) -> Option<Vec<u8>> {
    STANDARD.decode(text.replace(['\n', '\r'], "")).ok()
}
