//! The newest version that is known of every object of a kind.
//!
//! Versions arrive by two ways, the watch and the answers to our own writes, and either may be faster. A version that
//! is older than the one that is known is not news, whichever way it comes.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use crate::{object::Watched, watch::Told};

/// A difference between two moments of the store. At least one side is there.
#[derive(Clone, Debug)]
pub struct Change<V> {
    /// As it was; `None` for one that was not known.
    pub old: Option<Arc<V>>,
    /// As it is; `None` for one that is gone.
    pub new: Option<Arc<V>>,
}

pub(crate) struct Store<V: Watched> {
    objects: BTreeMap<V::Key, Arc<V>>,
    /// What a listing that is under way has shown so far.
    shown: Option<BTreeSet<V::Key>>,
    synced: bool,
}

impl<V: Watched> Store<V> {
    pub(crate) const fn new() -> Self {
        Self { objects: BTreeMap::new(), shown: None, synced: false }
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

    /// Takes in what the watch said. A listing that begins takes nothing away; when it is complete, what it did not
    /// show is gone.
    pub(crate) fn learn(&mut self, told: Told<V>) -> Vec<Change<V>> {
        match told {
            Told::Begin => {
                self.shown = Some(BTreeSet::new());
                Vec::new()
            }
            Told::There(view) => {
                let key = view.key();
                self.show(&key);
                self.replace(key, view).into_iter().collect()
            }
            Told::Unreadable(key, _) => {
                self.show(&key);
                Vec::new()
            }
            Told::Gone(key) => self.remove(&key).into_iter().collect(),
            Told::Complete => {
                self.synced = true;
                let shown = self.shown.take().unwrap_or_default();
                let gone: Vec<_> = self.objects.keys().filter(|key| !shown.contains(*key)).cloned().collect();
                gone.iter().filter_map(|key| self.remove(key)).collect()
            }
            Told::Broken(_) => Vec::new(),
        }
    }

    /// Takes in the answer to a write. It cannot bring back an object that is gone by now.
    pub(crate) fn wrote(&mut self, view: V) -> Option<Change<V>> {
        let key = view.key();
        self.objects.get(&key).filter(|known| known.uid() == view.uid())?;
        self.replace(key, view)
    }

    fn show(&mut self, key: &V::Key) {
        if let Some(shown) = &mut self.shown {
            shown.insert(key.clone());
        }
    }

    fn replace(&mut self, key: V::Key, view: V) -> Option<Change<V>> {
        let old = self.objects.get(&key).cloned();
        if old.as_ref().is_some_and(|old| old.uid() == view.uid() && !is_newer(&view, old)) {
            return None;
        }
        let new = Arc::new(view);
        self.objects.insert(key, Arc::clone(&new));
        Some(Change { old, new: Some(new) })
    }

    fn remove(&mut self, key: &V::Key) -> Option<Change<V>> {
        self.objects.remove(key).map(|old| Change { old: Some(old), new: None })
    }
}

/// Versions are numbers that grow. One that is not a number cannot be compared, and is believed.
fn is_newer<V: Watched>(view: &V, known: &V) -> bool {
    let number = |view: &V| view.resource_version().parse::<u64>().ok();
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
    fn tell(changes: impl IntoIterator<Item = Change<NodeView>>) -> Vec<String> {
        let short = |side: &Option<Arc<NodeView>>| {
            side.as_ref().map_or(String::new(), |n| format!("{}{}", n.name, n.resource_version))
        };
        changes.into_iter().map(|c| format!("{}>{}", short(&c.old), short(&c.new))).collect()
    }

    fn filled() -> Store<NodeView> {
        let mut store = Store::new();
        store.learn(Told::Begin);
        assert_eq!(tell(store.learn(Told::There(node("a", "1", "5")))), [">a5"]);
        store.learn(Told::There(node("b", "2", "6")));
        assert!(!store.is_synced(), "a listing that is under way is not complete");
        assert!(store.learn(Told::Complete).is_empty());
        assert!(store.is_synced());
        store
    }

    #[test]
    fn only_news_is_told() {
        let table = [
            ("a newer version", node("a", "1", "7"), vec!["a5>a7"]),
            ("the same version again", node("a", "1", "5"), vec![]),
            ("an older version", node("a", "1", "4"), vec![]),
            ("numbers, not texts", node("a", "1", "10"), vec!["a5>a10"]),
            ("another object of that name", node("a", "9", "3"), vec!["a5>a3"]),
            ("a version that is no number", node("a", "1", "x"), vec!["a5>ax"]),
            ("one that was not known", node("c", "3", "1"), vec![">c1"]),
        ];
        for (case, view, want) in table {
            assert_eq!(tell(filled().learn(Told::There(view))), want, "{case}");
        }
    }

    #[test]
    fn a_listing_takes_nothing_away_before_it_is_complete() {
        let mut store = filled();
        store.learn(Told::Begin);
        assert_eq!(store.len(), 2, "L1-20");
        store.learn(Told::There(node("b", "2", "8")));
        store.learn(Told::Broken("cut off".into()));
        assert_eq!(store.len(), 2, "L1-21 a listing that broke");
        store.learn(Told::Begin);
        store.learn(Told::There(node("b", "2", "8")));
        assert_eq!(tell(store.learn(Told::Complete)), ["a5>"]);
    }

    #[test]
    fn what_cannot_be_read_is_not_gone() {
        let mut store = filled();
        store.learn(Told::Begin);
        store.learn(Told::Unreadable("a".into(), Error::permanent("bad")));
        assert_eq!(tell(store.learn(Told::Complete)), ["b6>"], "L1-22");
        assert!(store.get(&"a".to_owned()).is_some());
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
            assert_eq!(tell(filled().wrote(view)), want, "{case}");
        }
    }
}
