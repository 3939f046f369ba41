//! The service itself: it keeps the state, writes it down and has the plane follow it.
//!
//! What changes a load balancer is written down before it is visible and before the plane hears of it: an answer that was
//! given is still true after a crash.

mod balancers;
mod key_locks;
mod machines;

use std::{
    collections::BTreeMap,
    fmt,
    path::PathBuf,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use cloudberth_core::{Clock, Tick};
use tokio::{
    sync::{Notify, watch},
    task::JoinSet,
};

pub use balancers::BalancerStatus;
use key_locks::KeyLocks;
pub(crate) use machines::read_file;

use crate::{
    addresses::Pools,
    events::EventLog,
    inventory::{Faults, Inventory},
    plane::{BalancerConfig, BalancerKey, Plane},
    state::{Balancers, State},
    store::Store,
};

/// What the service is made of.
#[derive(Debug)]
pub struct Parts {
    /// The inventory to begin with.
    pub inventory: Inventory,
    /// Its file.
    pub file: PathBuf,
    /// The load balancers to begin with.
    pub balancers: Balancers,
    /// What carries traffic.
    pub plane: Arc<dyn Plane>,
    /// Where the state is written down.
    pub store: Arc<dyn Store>,
    /// What happens is told here; the plane has the same.
    pub events: EventLog,
}

/// The service. Clones are the same one.
#[derive(Clone)]
pub struct Control(Arc<Inner>);

struct Inner {
    clock: Arc<dyn Clock>,
    plane: Arc<dyn Plane>,
    store: Arc<dyn Store>,
    events: EventLog,
    state: Mutex<State>,
    /// What the plane was told last.
    applied: Mutex<BTreeMap<BalancerKey, BalancerConfig>>,
    keys: KeyLocks,
    /// Held by whoever writes the state down.
    writer: tokio::sync::Mutex<()>,
    restored: AtomicBool,
    closing: watch::Sender<bool>,
    /// The settings of Vagrant have changed.
    vagrant_changed: Notify,
}

/// Whether the service can be relied on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Readiness {
    /// It can.
    Ready,
    /// The file that is there now has faults; the inventory before it is in force.
    InventoryInvalid(Faults),
    /// Load balancers are being restored.
    Restoring,
    /// It is about to end.
    Closing,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Control {
    /// The service. Its load balancers carry traffic once [`Control::restore`] has ended.
    pub fn new(parts: Parts, clock: Arc<dyn Clock>) -> Self {
        let Parts { inventory, file, balancers, plane, store, events } = parts;
        let pools = Pools::new(&inventory.balancers);
        let state = State::new(inventory, file, balancers, pools, clock.now());
        Self(Arc::new(Inner {
            clock,
            plane,
            store,
            events,
            state: Mutex::new(state),
            applied: Mutex::default(),
            keys: KeyLocks::default(),
            writer: tokio::sync::Mutex::default(),
            restored: AtomicBool::new(false),
            closing: watch::Sender::new(false),
            vagrant_changed: Notify::new(),
        }))
    }

    fn state(&self) -> MutexGuard<'_, State> {
        lock(&self.0.state)
    }

    pub(crate) fn now(&self) -> Tick {
        self.0.clock.now()
    }

    /// What has happened.
    pub fn events(&self) -> &EventLog {
        &self.0.events
    }

    pub(crate) fn plane(&self) -> &dyn Plane {
        self.0.plane.as_ref()
    }

    /// Reads something of the state.
    pub(crate) fn with_state<T>(&self, read: impl FnOnce(&State, Tick) -> T) -> T {
        let now = self.now();
        read(&self.state(), now)
    }

    /// Has the plane serve every load balancer that was written down; then the service is ready.
    pub async fn restore(&self) {
        self.follow_all().await;
        self.0.restored.store(true, Ordering::Relaxed);
    }

    /// Whether the service can be relied on.
    pub fn readiness(&self) -> Readiness {
        if *self.0.closing.borrow() {
            return Readiness::Closing;
        }
        if !self.0.restored.load(Ordering::Relaxed) {
            return Readiness::Restoring;
        }
        self.state().faults.clone().map_or(Readiness::Ready, Readiness::InventoryInvalid)
    }

    /// Closes all listeners and waits until no connection is left, or the drain is over. Nothing is changed any more.
    pub async fn close(&self) {
        self.0.closing.send_replace(true);
        self.0.plane.close().await;
    }

    /// Ends when the service is about to end.
    pub(crate) async fn closing(&self) {
        let mut closing = self.0.closing.subscribe();
        let _ = closing.wait_for(|closing| *closing).await;
    }

    pub(crate) fn is_closing(&self) -> bool {
        *self.0.closing.borrow()
    }

    /// Open TCP connections of the process, as the inventory has them now; 0 means as many as its files allow.
    fn connections_total(&self) -> usize {
        self.with_state(|state, _| state.inventory.balancers.connections_total)
    }

    /// How long ago Vagrant has answered.
    pub(crate) fn vagrant_age(&self) -> Option<Duration> {
        self.with_state(|state, now| state.vagrant.age(now))
    }

    /// Has the plane follow the state at all load balancers that are not what they should be.
    async fn follow_all(&self) {
        let keys: Vec<_> = self.state().balancers.iter().map(|(key, _)| key.clone()).collect();
        let mut tasks = JoinSet::new();
        for key in keys {
            let control = self.clone();
            tasks.spawn(async move {
                let _guard = control.0.keys.lock(&key).await;
                control.follow(&key, false).await;
            });
        }
        while tasks.join_next().await.is_some() {}
    }

    /// Has the plane follow the state. The caller holds the lock of the key.
    async fn follow(&self, key: &BalancerKey, always: bool) {
        if self.is_closing() {
            return;
        }
        let config = self.state().config(key);
        let Some(config) = config else {
            lock(&self.0.applied).remove(key);
            return self.0.plane.remove(key).await;
        };
        if always || lock(&self.0.applied).get(key) != Some(&config) {
            self.0.plane.apply(key, config.clone()).await;
            lock(&self.0.applied).insert(key.clone(), config);
        }
    }
}

impl fmt::Debug for Control {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Control").field("plane", &self.0.plane).finish_non_exhaustive()
    }
}
