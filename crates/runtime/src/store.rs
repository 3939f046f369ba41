//! The newest known version of every object of a kind.
//!
//! Versions come from the watch and from the answers to our own writes, and either may be faster. The watch is believed,
//! except that after a write of ours its older versions of that object are ignored until it has caught up.
//!
//! Versions are compared only after writes of ours, because they can go back: after a restore of etcd they start again
//! lower than those that are known.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use crate::{object::Watched, watch::WatchEvent};

/// A change of one object. At least one side is set.
#[derive(Clone, Debug)]
pub struct Change<V> {
    /// The version before; `None` for a new object.
    pub old: Option<Arc<V>>,
    /// The version now; `None` for a deleted object.
    pub new: Option<Arc<V>>,
}

pub(crate) struct Store<V: Watched> {
    objects: BTreeMap<V::Key, Arc<V>>,
    /// What the listing in progress has shown so far.
    shown: Option<BTreeSet<V::Key>>,
    /// Objects known from the answer to a write with which the watch has not caught up yet.
    written: BTreeSet<V::Key>,
    /// The newest version from the watch since the last listing began.
    newest: u64,
    /// The watch delivered an older version than before.
    went_back: bool,
    synced: bool,
}

impl<V: Watched> Store<V> {
    pub(crate) const fn new() -> Self {
        Self {
            objects: BTreeMap::new(),
            shown: None,
            written: BTreeSet::new(),
            newest: 0,
            went_back: false,
            synced: false,
        }
    }

    pub(crate) fn get(&self, key: &V::Key) -> Option<Arc<V>> {
        self.objects.get(key).cloned()
    }

    pub(crate) fn all(&self) -> Vec<Arc<V>> {
        self.objects.values().cloned().collect()
    }

    pub(crate) fn len(&self) -> usize {
        self.objects.len()
    }

    /// Whether one listing has been complete.
    pub(crate) const fn is_synced(&self) -> bool {
        self.synced
    }

    /// Whether a listing is in progress.
    pub(crate) const fn is_listing(&self) -> bool {
        self.shown.is_some()
    }

    /// Applies an event of the watch. Objects that a listing does not show are removed when it is complete, not before.
    pub(crate) fn apply(&mut self, event: WatchEvent<V>) -> Vec<Change<V>> {
        match event {
            WatchEvent::Init => {
                self.shown = Some(BTreeSet::new());
                // The listing contains all writes that were answered before it began.
                self.written.clear();
                (self.newest, self.went_back) = (0, false);
                Vec::new()
            }
            WatchEvent::Applied(view) => {
                let key = view.key();
                self.show(&key);
                if let Some(version) = number(&view) {
                    self.went_back |= self.shown.is_none() && version < self.newest;
                    self.newest = self.newest.max(version);
                }
                let known = self.objects.get(&key).filter(|known| known.uid() == view.uid());
                let is_same = known.is_some_and(|known| known.resource_version() == view.resource_version());
                let is_newer = known.is_none_or(|known| is_newer(&view, known));
                if !is_same && !is_newer && self.written.contains(&key) {
                    return Vec::new();
                }
                self.written.remove(&key);
                if is_same { Vec::new() } else { vec![self.replace(key, view)] }
            }
            WatchEvent::Unreadable(key, _) => {
                self.show(&key);
                Vec::new()
            }
            WatchEvent::Deleted(key) => self.remove(&key).into_iter().collect(),
            WatchEvent::InitDone => {
                self.synced = true;
                let shown = self.shown.take().unwrap_or_default();
                let gone: Vec<_> = self.objects.keys().filter(|key| !shown.contains(*key)).cloned().collect();
                gone.iter().filter_map(|key| self.remove(key)).collect()
            }
            WatchEvent::Failed(_) => Vec::new(),
        }
    }

    /// Stores the answer to a write. It cannot bring back an object that was deleted meanwhile.
    pub(crate) fn wrote(&mut self, view: V) -> Option<Change<V>> {
        let key = view.key();
        self.objects.get(&key).filter(|known| known.uid() == view.uid() && is_newer(&view, known))?;
        self.written.insert(key.clone());
        Some(self.replace(key, view))
    }

    /// Whether versions went back during the watch, as after a restore of etcd. It may have missed anything, so
    /// everything has to be listed again.
    pub(crate) const fn went_back(&self) -> bool {
        self.went_back
    }

    fn show(&mut self, key: &V::Key) {
        if let Some(shown) = &mut self.shown {
            shown.insert(key.clone());
        }
    }

    fn replace(&mut self, key: V::Key, view: V) -> Change<V> {
        let new = Arc::new(view);
        let old = self.objects.insert(key, Arc::clone(&new));
        Change { old, new: Some(new) }
    }

    fn remove(&mut self, key: &V::Key) -> Option<Change<V>> {
        self.written.remove(key);
        self.objects.remove(key).map(|old| Change { old: Some(old), new: None })
    }
}

fn number<V: Watched>(view: &V) -> Option<u64> {
    view.resource_version().parse().ok()
}

/// Versions are growing numbers. One that is not a number cannot be compared and counts as newer.
fn is_newer<V: Watched>(view: &V, known: &V) -> bool {
    match (number(view), number(known)) {
        (Some(new), Some(old)) => new > old,
        _ => view.resource_version() != known.resource_version(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use cloudberth_core::{Error, NodeView};
    use serde_json::json;

    fn node(name: &str, uid: &str, version: &str) -> NodeView {
        let metadata = json!({"name": name, "uid": uid, "resourceVersion": version});
        NodeView::from_json(&json!({"metadata": metadata})).unwrap()
    }

    /// What a store says to a listener, in short: `old>new`.
    fn publish(changes: impl IntoIterator<Item = Change<NodeView>>) -> Vec<String> {
        let short = |side: &Option<Arc<NodeView>>| {
            side.as_ref().map_or(String::new(), |n| format!("{}{}", n.name, n.resource_version))
        };
        changes.into_iter().map(|c| format!("{}>{}", short(&c.old), short(&c.new))).collect()
    }

    fn filled() -> Store<NodeView> {
        let mut store = Store::new();
        store.apply(WatchEvent::Init);
        assert_eq!(publish(store.apply(WatchEvent::Applied(node("a", "1", "5")))), [">a5"]);
        store.apply(WatchEvent::Applied(node("b", "2", "6")));
        assert!(!store.is_synced(), "a listing that is under way is not complete");
        assert!(store.apply(WatchEvent::InitDone).is_empty());
        assert!(store.is_synced());
        store
    }

    #[test]
    fn only_news_is_told() {
        let table = [
            ("a newer version", node("a", "1", "7"), vec!["a5>a7"]),
            ("the same version again", node("a", "1", "5"), vec![]),
            ("L1-600 an older version: etcd was restored", node("a", "1", "4"), vec!["a5>a4"]),
            ("numbers, not texts", node("a", "1", "10"), vec!["a5>a10"]),
            ("another object of that name", node("a", "9", "3"), vec!["a5>a3"]),
            ("a version that is no number", node("a", "1", "x"), vec!["a5>ax"]),
            ("one that was not known", node("c", "3", "1"), vec![">c1"]),
        ];
        for (case, view, want) in table {
            assert_eq!(publish(filled().apply(WatchEvent::Applied(view))), want, "{case}");
        }
    }

    #[test]
    fn a_listing_takes_nothing_away_before_it_is_complete() {
        let mut store = filled();
        store.apply(WatchEvent::Init);
        assert_eq!(store.len(), 2, "L1-20");
        store.apply(WatchEvent::Applied(node("b", "2", "8")));
        store.apply(WatchEvent::Failed("cut off".into()));
        assert_eq!(store.len(), 2, "L1-21 a listing that broke");
        store.apply(WatchEvent::Init);
        store.apply(WatchEvent::Applied(node("b", "2", "8")));
        assert_eq!(publish(store.apply(WatchEvent::InitDone)), ["a5>"]);
    }

    #[test]
    fn what_cannot_be_read_is_not_gone() {
        let mut store = filled();
        store.apply(WatchEvent::Init);
        store.apply(WatchEvent::Unreadable("a".into(), Error::permanent("bad")));
        assert_eq!(publish(store.apply(WatchEvent::InitDone)), ["b6>"], "L1-22");
        assert!(store.get(&"a".to_owned()).is_some());
    }

    #[test]
    fn after_a_restore_of_etcd_the_listing_is_believed() {
        let mut store = filled();
        assert_eq!(publish(store.wrote(node("a", "1", "9"))), ["a5>a9"]);
        store.apply(WatchEvent::Init);
        assert_eq!(
            publish(store.apply(WatchEvent::Applied(node("a", "1", "3")))),
            ["a9>a3"],
            "L1-601 versions went back"
        );
        assert_eq!(publish(store.apply(WatchEvent::Applied(node("c", "3", "2")))), [">c2"]);
        assert_eq!(publish(store.apply(WatchEvent::InitDone)), ["b6>"]);
        assert_eq!(
            publish(store.apply(WatchEvent::Applied(node("a", "1", "4")))),
            ["a3>a4"],
            "L1-602 and what follows too"
        );
        assert!(!store.went_back());
    }

    #[test]
    fn an_event_older_than_the_one_before_says_that_a_listing_is_needed() {
        let mut store = filled();
        store.apply(WatchEvent::Applied(node("a", "1", "9")));
        assert!(!store.went_back());
        store.apply(WatchEvent::Applied(node("b", "2", "8")));
        assert!(store.went_back(), "L1-603");
        store.apply(WatchEvent::Init);
        store.apply(WatchEvent::Applied(node("b", "2", "8")));
        store.apply(WatchEvent::Applied(node("a", "1", "7")));
        assert!(!store.went_back(), "a listing is in the order of names");
    }

    #[test]
    fn a_write_that_was_answered_after_a_listing_began_is_newer_than_it() {
        let mut store = filled();
        store.apply(WatchEvent::Init);
        assert_eq!(publish(store.wrote(node("a", "1", "9"))), ["a5>a9"]);
        let quiet = |store: &mut Store<NodeView>, version| {
            publish(store.apply(WatchEvent::Applied(node("a", "1", version))))
        };
        assert_eq!(quiet(&mut store, "5"), [""; 0], "L1-604 the listing is older");
        store.apply(WatchEvent::Applied(node("b", "2", "6")));
        assert_eq!(publish(store.apply(WatchEvent::InitDone)), [""; 0]);
        assert_eq!(quiet(&mut store, "8"), [""; 0], "L1-604 the watch has not caught up");
        assert_eq!(quiet(&mut store, "9"), [""; 0], "L4-701 it has now");
        assert_eq!(quiet(&mut store, "10"), ["a9>a10"]);
        assert_eq!(quiet(&mut store, "7"), ["a10>a7"], "L1-605 from here on the watch is believed again");
    }

    #[test]
    fn an_answer_is_news_unless_the_watch_was_faster() {
        let table = [
            ("faster than the watch", node("a", "1", "7"), vec!["a5>a7"]),
            ("slower", node("a", "1", "5"), vec![]),
            ("about an object that is gone", node("z", "1", "7"), vec![]),
            ("about the one before of that name", node("a", "0", "7"), vec![]),
        ];
        for (case, view, want) in table {
            assert_eq!(publish(filled().wrote(view)), want, "{case}");
        }
    }
}
