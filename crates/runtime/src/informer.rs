//! One watch of a scope, shared by all listeners.

use std::{
    fmt,
    panic::AssertUnwindSafe,
    pin::pin,
    sync::{Arc, Mutex, Weak},
    time::Duration,
};

use cloudberth_core::{Clock, Random, time::Tick};
use futures_util::{FutureExt, StreamExt};
use kube::Client;
use tokio::{sync::watch as watched, task::AbortHandle};

pub use crate::store::Change;
use crate::{
    bug::{caught, message},
    lock,
    metrics::{Counter, QueueMetrics, queue::PoolLabels},
    object::Watched,
    scope::WatchScope,
    store::Store,
    watch::{Health, WatchEvent, watch},
};

/// The wait before everything is listed again because versions went back, or because of a bug.
const RELIST_WAIT: Duration = Duration::from_millis(500);

/// A listener to changes. It must be quick and must not wait: it puts keys into queues.
pub trait Listener<V>: Send + Sync {
    /// An object changed.
    fn changed(&self, change: &Change<V>);
}

/// How often [`Informer::current`] checks.
const LOOK_AGAIN: Duration = Duration::from_millis(250);

/// The objects of a scope, kept current by one watch.
pub struct Informer<V: Watched> {
    scope: WatchScope,
    /// The kind, for the log.
    kind: String,
    store: Mutex<Store<V>>,
    listeners: Mutex<Vec<Weak<dyn Listener<V>>>>,
    synced: watched::Sender<bool>,
    clock: Arc<dyn Clock>,
    health: Arc<Mutex<Health>>,
    panics: Mutex<Counter>,
}

impl<V: Watched> Informer<V> {
    /// An empty informer, to be filled by [`run`](Self::run) or [`start`](Self::start).
    pub fn new(scope: WatchScope, clock: Arc<dyn Clock>) -> Arc<Self> {
        Arc::new(Self {
            kind: scope.kind(),
            scope,
            store: Mutex::new(Store::new()),
            listeners: Mutex::new(Vec::new()),
            synced: watched::Sender::default(),
            clock,
            health: Arc::default(),
            panics: Mutex::default(),
        })
    }

    /// Which objects it holds.
    pub const fn scope(&self) -> &WatchScope {
        &self.scope
    }

    /// Counts panics of listeners in the metrics.
    pub fn count_panics(&self, metrics: &QueueMetrics) {
        *lock(&self.panics) = metrics.panics.with(&PoolLabels { queue: self.scope.watch });
    }

    /// How often a listener or the watch itself panicked.
    pub fn panics(&self) -> u64 {
        lock(&self.panics).get()
    }

    /// Watches until it is dropped. The store is kept; the next run brings it up to date.
    pub async fn run(&self, client: Client, random: Arc<Random>) {
        loop {
            let (health, clock) = (Arc::clone(&self.health), Arc::clone(&self.clock));
            let answered = move || lock(&health).answered(clock.now());
            let clock = Arc::clone(&self.clock);
            let mut events = pin!(watch(client.clone(), &self.scope, Arc::clone(&random), clock, answered));
            while let Some(event) = events.next().await {
                self.apply(event);
                if lock(&self.store).went_back() {
                    tracing::warn!(
                        kind = self.kind,
                        "resource versions went back, as after a restore of etcd; listing again"
                    );
                    break;
                }
            }
            tokio::time::sleep(random.jitter(RELIST_WAIT, 1.0)).await;
        }
    }

    /// Watches in a task of its own until the handle is dropped. The store is kept. After a panic, which is a bug, the
    /// watch counts as broken and begins again.
    pub fn start(self: &Arc<Self>, client: Client, random: Arc<Random>) -> WatchHandle {
        let informer = Arc::clone(self);
        let watching = async move {
            loop {
                let run = AssertUnwindSafe(informer.run(client.clone(), Arc::clone(&random)));
                let Err(panic) = run.catch_unwind().await else { continue };
                let text = message(panic.as_ref());
                tracing::error!(
                    kind = informer.kind,
                    text,
                    "internal error: a watch panicked; restarting it"
                );
                lock(&informer.panics).inc();
                lock(&informer.health).broke(informer.clock.now());
                tokio::time::sleep(random.jitter(RELIST_WAIT, 1.0)).await;
            }
        };
        WatchHandle(tokio::spawn(watching).abort_handle())
    }

    /// Adds a listener, for as long as the caller keeps it alive. It first hears about everything that is known.
    pub fn subscribe(&self, listener: &Arc<dyn Listener<V>>) {
        for new in self.all() {
            self.notify(listener, &Change { old: None, new: Some(new) });
        }
        lock(&self.listeners).push(Arc::downgrade(listener));
    }

    /// Adds a listener, and waits until it has heard about everything in the first complete listing.
    pub async fn follow(&self, listener: Arc<dyn Listener<V>>) {
        self.subscribe(&listener);
        self.until_synced().await;
    }

    /// Waits until one listing has been complete. What is not known then did not exist.
    pub async fn until_synced(&self) {
        // It cannot fail: the sender lives as long as we do.
        let _ = self.synced.subscribe().wait_for(|synced| *synced).await;
    }

    /// Stores the answer to a write, which may be newer than what the watch has delivered.
    pub fn wrote(&self, view: V) {
        let change = lock(&self.store).wrote(view);
        self.publish(change, false);
    }

    /// The newest version that is known.
    pub fn get(&self, key: &V::Key) -> Option<Arc<V>> {
        lock(&self.store).get(key)
    }

    /// All objects, in the order of their keys.
    pub fn all(&self) -> Vec<Arc<V>> {
        lock(&self.store).all()
    }

    /// The number of objects in the store.
    pub fn len(&self) -> usize {
        lock(&self.store).len()
    }

    /// Whether the store holds no object.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Whether one listing has been complete. Before that, a missing object means nothing.
    pub fn is_synced(&self) -> bool {
        lock(&self.store).is_synced()
    }

    /// Waits until the store is as new as the API server can make it. While the watch fails, changes may be missing.
    pub async fn current(&self) {
        while !lock(&self.health).is_current(self.clock.now()) {
            tokio::time::sleep(LOOK_AGAIN).await;
        }
    }

    /// Since when the watch has been failing; `None` while it works.
    pub fn broken_since(&self) -> Option<Tick> {
        lock(&self.health).broken_since(self.clock.now())
    }

    fn apply(&self, event: WatchEvent<V>) {
        match &event {
            WatchEvent::Failed(why) => {
                tracing::warn!(kind = self.kind, why, "watch failed; restarting it");
                lock(&self.health).broke(self.clock.now());
            }
            WatchEvent::Unreadable(key, why) => {
                tracing::warn!(kind = self.kind, ?key, %why, "object cannot be decoded; keeping its last version");
            }
            WatchEvent::Init | WatchEvent::Applied(_) | WatchEvent::Deleted(_) | WatchEvent::InitDone => {}
        }
        let (changes, first_complete) = {
            let mut store = lock(&self.store);
            let before = store.is_synced();
            if matches!(event, WatchEvent::Applied(_) | WatchEvent::Deleted(_)) && !store.is_listing() {
                lock(&self.health).delivered();
            }
            let changes = store.apply(event);
            (changes, !before && store.is_synced())
        };
        self.publish(changes, first_complete);
    }

    fn publish(&self, changes: impl IntoIterator<Item = Change<V>>, first_complete: bool) {
        let listeners: Vec<_> = {
            let mut list = lock(&self.listeners);
            list.retain(|listener| listener.strong_count() > 0);
            list.iter().filter_map(Weak::upgrade).collect()
        };
        for change in changes {
            for listener in &listeners {
                self.notify(listener, &change);
            }
        }
        if first_complete {
            self.synced.send_replace(true);
        }
    }

    /// A listener that panics on one object must not end the watch, and with it the program (law 11).
    fn notify(&self, listener: &Arc<dyn Listener<V>>, change: &Change<V>) {
        if let Err(text) = caught(|| listener.changed(change)) {
            let key = change.new.as_ref().or(change.old.as_ref()).map(|view| view.key());
            tracing::error!(kind = self.kind, ?key, text, "internal error: a listener panicked");
            lock(&self.panics).inc();
        }
    }
}

/// A watch that runs by itself; dropping the handle ends it.
#[derive(Debug)]
#[must_use = "the watch ends when its handle is dropped"]
pub struct WatchHandle(AbortHandle);

impl Drop for WatchHandle {
    fn drop(&mut self) {
        self.0.abort();
    }
}

impl<V: Watched> fmt::Debug for Informer<V> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Informer")
            .field("kind", &self.kind)
            .field("objects", &self.len())
            .finish_non_exhaustive()
    }
}
