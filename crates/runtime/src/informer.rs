//! One watch of a kind, for everybody who wants to know.

use std::{
    fmt,
    pin::pin,
    sync::{Arc, Mutex, Weak},
    time::Duration,
};

use cloudberth_core::{Clock, Random, time::Tick};
use futures_util::StreamExt;
use kube::Client;

pub use crate::store::Change;
use crate::{
    bug::caught,
    lock,
    metrics::{Counter, QueueMetrics, queue::PoolLabels},
    object::Watched,
    store::Store,
    watch::{Health, Told, watch},
};

/// How long a watch rests before it begins anew because versions went back.
const REST: Duration = Duration::from_millis(500);

/// Somebody who is told. What it does must be quick and must not wait: it puts keys into queues.
pub trait Listener<V>: Send + Sync {
    /// Something is different now.
    fn changed(&self, change: &Change<V>);

    /// The first listing is complete: what is not known by now did not exist then.
    fn synced(&self) {}
}

/// How often somebody who waits for a current store looks.
const LOOK_AGAIN: Duration = Duration::from_millis(250);

/// The store of a kind, kept current by one watch.
pub struct Informer<V: Watched> {
    store: Mutex<Store<V>>,
    listeners: Mutex<Vec<Weak<dyn Listener<V>>>>,
    clock: Arc<dyn Clock>,
    health: Arc<Mutex<Health>>,
    panics: Mutex<Counter>,
}

impl<V: Watched> Informer<V> {
    /// An empty one, to be filled by [`run`](Self::run).
    pub fn new(clock: Arc<dyn Clock>) -> Arc<Self> {
        Arc::new(Self {
            store: Mutex::new(Store::new()),
            listeners: Mutex::new(Vec::new()),
            clock,
            health: Arc::default(),
            panics: Mutex::default(),
        })
    }

    /// Lets everybody see how often a listener met a bug.
    pub fn count_panics(&self, metrics: &QueueMetrics) {
        *lock(&self.panics) = metrics.panics.with(&PoolLabels { queue: V::WATCH });
    }

    /// How often a listener met a bug.
    pub fn panics(&self) -> u64 {
        lock(&self.panics).get()
    }

    /// Watches until it is dropped. The store is kept over that; the next run brings it up to date.
    pub async fn run(&self, client: Client, random: Arc<Random>) {
        loop {
            let (health, clock) = (Arc::clone(&self.health), Arc::clone(&self.clock));
            let answered = move || lock(&health).answered(clock.now());
            let clock = Arc::clone(&self.clock);
            let mut events = pin!(watch::<V>(client.clone(), Arc::clone(&random), clock, answered));
            while let Some(told) = events.next().await {
                self.take_in(told);
                if lock(&self.store).went_back() {
                    tracing::warn!(
                        kind = V::KIND,
                        "versions went back, as after a restore of etcd; all is listed again"
                    );
                    break;
                }
            }
            tokio::time::sleep(random.jitter(REST, 1.0)).await;
        }
    }

    /// Adds a listener, for as long as somebody else keeps it alive. It is told first about everything that is known.
    pub fn subscribe(&self, listener: &Arc<dyn Listener<V>>) {
        let (known, synced) = {
            let store = lock(&self.store);
            (store.all(), store.is_synced())
        };
        for new in known {
            self.tell_one(listener, &Change { old: None, new: Some(new) });
        }
        if synced {
            self.tell_synced(listener);
        }
        lock(&self.listeners).push(Arc::downgrade(listener));
    }

    /// Takes in the answer to a write, which may be newer than what the watch has told.
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

    /// How many there are.
    pub fn len(&self) -> usize {
        lock(&self.store).len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Whether one listing has been complete. Before that, what is missing means nothing.
    pub fn is_synced(&self) -> bool {
        lock(&self.store).is_synced()
    }

    /// Waits until the store is as new as the API server can make it. While a watch is broken nobody knows what changed.
    pub async fn current(&self) {
        while !lock(&self.health).is_current(self.clock.now()) {
            tokio::time::sleep(LOOK_AGAIN).await;
        }
    }

    /// Since when the watch has been failing; `None` while it is well.
    pub fn broken_since(&self) -> Option<Tick> {
        lock(&self.health).broken_since(self.clock.now())
    }

    fn take_in(&self, told: Told<V>) {
        match &told {
            Told::Broken(why) => {
                tracing::warn!(kind = V::KIND, why, "the watch broke; it is taken up again");
                lock(&self.health).broke(self.clock.now());
            }
            Told::Unreadable(key, why) => {
                tracing::warn!(kind = V::KIND, ?key, %why, "an object cannot be read; its last version is kept");
            }
            Told::Begin | Told::There(_) | Told::Gone(_) | Told::Complete => {}
        }
        let (changes, first_complete) = {
            let mut store = lock(&self.store);
            let before = store.is_synced();
            if matches!(told, Told::There(_) | Told::Gone(_)) && !store.is_listing() {
                lock(&self.health).told();
            }
            let changes = store.learn(told);
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
                self.tell_one(listener, &change);
            }
        }
        if first_complete {
            for listener in &listeners {
                self.tell_synced(listener);
            }
        }
    }

    /// A bug that one listener meets with one object must not end the watch, and with it the program (law 11).
    fn tell_one(&self, listener: &Arc<dyn Listener<V>>, change: &Change<V>) {
        if let Err(text) = caught(|| listener.changed(change)) {
            let key = change.new.as_ref().or(change.old.as_ref()).map(|view| view.key());
            tracing::error!(kind = V::KIND, ?key, text, "internal error: a listener panicked");
            lock(&self.panics).inc();
        }
    }

    fn tell_synced(&self, listener: &Arc<dyn Listener<V>>) {
        if let Err(text) = caught(|| listener.synced()) {
            tracing::error!(kind = V::KIND, text, "internal error: a listener panicked");
            lock(&self.panics).inc();
        }
    }
}

impl<V: Watched> fmt::Debug for Informer<V> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Informer")
            .field("kind", &V::KIND)
            .field("objects", &self.len())
            .finish_non_exhaustive()
    }
}
