//! One watch of a kind, for everybody who wants to know.

use std::{
    fmt,
    pin::pin,
    sync::{Arc, Mutex, Weak},
};

use cloudberth_core::{Clock, Dice, time::Tick};
use futures_util::StreamExt;
use kube::Client;

pub use crate::store::Change;
use crate::{
    lock,
    object::Watched,
    store::Store,
    watch::{Told, watch},
};

/// Somebody who is told. What it does must be quick and must not wait: it puts keys into queues.
pub trait Listener<V>: Send + Sync {
    /// Something is different now.
    fn changed(&self, change: &Change<V>);

    /// The first listing is complete: what is not known by now did not exist then.
    fn synced(&self) {}
}

/// The store of a kind, kept current by one watch.
pub struct Informer<V: Watched> {
    store: Mutex<Store<V>>,
    listeners: Mutex<Vec<Weak<dyn Listener<V>>>>,
    clock: Arc<dyn Clock>,
    broken_since: Arc<Mutex<Option<Tick>>>,
}

impl<V: Watched> Informer<V> {
    /// An empty one, to be filled by [`run`](Self::run).
    pub fn new(clock: Arc<dyn Clock>) -> Arc<Self> {
        Arc::new(Self {
            store: Mutex::new(Store::new()),
            listeners: Mutex::new(Vec::new()),
            clock,
            broken_since: Arc::default(),
        })
    }

    /// Watches until it is dropped. The store is kept over that; the next run brings it up to date.
    pub async fn run(&self, client: Client, dice: Arc<Dice>) {
        let broken_since = Arc::clone(&self.broken_since);
        let answered = move || *lock(&broken_since) = None;
        let mut events = pin!(watch::<V>(client, dice, answered));
        while let Some(told) = events.next().await {
            self.take_in(told);
        }
    }

    /// Adds a listener, for as long as somebody else keeps it alive. It is told first about everything that is known.
    pub fn subscribe(&self, listener: &Arc<dyn Listener<V>>) {
        let (known, synced) = {
            let store = lock(&self.store);
            (store.all(), store.is_synced())
        };
        for new in known {
            listener.changed(&Change { old: None, new: Some(new) });
        }
        if synced {
            listener.synced();
        }
        lock(&self.listeners).push(Arc::downgrade(listener));
    }

    /// Takes in the answer to a write, which may be newer than what the watch has told.
    pub fn wrote(&self, view: V) {
        let change = lock(&self.store).wrote(view);
        self.tell(change, false);
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

    /// Since when the watch has been failing; `None` while it is well.
    pub fn broken_since(&self) -> Option<Tick> {
        *lock(&self.broken_since)
    }

    fn take_in(&self, told: Told<V>) {
        match &told {
            Told::Broken(why) => {
                tracing::warn!(kind = V::KIND, why, "the watch broke; it is taken up again");
                lock(&self.broken_since).get_or_insert(self.clock.now());
            }
            Told::Unreadable(key, why) => {
                tracing::warn!(kind = V::KIND, ?key, %why, "an object cannot be read; its last version is kept");
            }
            Told::Begin | Told::There(_) | Told::Gone(_) | Told::Complete => {}
        }
        let (changes, first_complete) = {
            let mut store = lock(&self.store);
            let before = store.is_synced();
            let changes = store.learn(told);
            (changes, !before && store.is_synced())
        };
        self.tell(changes, first_complete);
    }

    fn tell(&self, changes: impl IntoIterator<Item = Change<V>>, first_complete: bool) {
        let listeners: Vec<_> = {
            let mut list = lock(&self.listeners);
            list.retain(|listener| listener.strong_count() > 0);
            list.iter().filter_map(Weak::upgrade).collect()
        };
        for change in changes {
            for listener in &listeners {
                listener.changed(&change);
            }
        }
        if first_complete {
            for listener in &listeners {
                listener.synced();
            }
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
