//! The objects: tables by resource, one revision for all, and a history each.
//!
//! It is synchronous and knows nothing of HTTP. Every write gets the next revision; a write that changes
//! nothing gets none and leaves no event.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::Value;

use super::history::{Change, Event, Forgotten, History};
use super::value;

/// The state of one table at one revision.
pub(crate) type Objects = BTreeMap<String, Arc<Value>>;

#[derive(Debug)]
struct Table {
    objects: Objects,
    history: History,
}

/// All tables.
#[derive(Debug)]
pub(crate) struct Store {
    revision: u64,
    /// No table remembers anything before this revision.
    oldest: u64,
    capacity: usize,
    tables: BTreeMap<String, Table>,
}

/// Everything that was stored at one moment.
#[derive(Clone, Debug)]
pub struct Snapshot(BTreeMap<String, Objects>);

/// The place of an object in its table. The order is that of the keys in etcd.
pub(crate) fn key(namespace: Option<&str>, name: &str) -> String {
    match namespace {
        Some(namespace) if !namespace.is_empty() => format!("{namespace}/{name}"),
        _ => name.to_owned(),
    }
}

impl Store {
    /// `capacity` events are remembered for each table.
    pub(crate) fn new(capacity: usize) -> Self {
        Self { revision: 1, oldest: 0, capacity, tables: BTreeMap::new() }
    }

    /// The revision of the newest write.
    pub(crate) fn revision(&self) -> u64 {
        self.revision
    }

    pub(crate) fn get(&self, table: &str, key: &str) -> Option<&Arc<Value>> {
        self.tables.get(table)?.objects.get(key)
    }

    /// All objects of a table, in order of key.
    pub(crate) fn all(&self, table: &str) -> impl Iterator<Item = (&String, &Arc<Value>)> {
        self.tables.get(table).into_iter().flat_map(|table| &table.objects)
    }

    /// The objects of a table whose key has this prefix.
    pub(crate) fn within<'a>(
        &'a self,
        table: &str,
        prefix: &'a str,
    ) -> impl Iterator<Item = (&'a String, &'a Arc<Value>)> {
        let objects = self.tables.get(table).map(|table| &table.objects);
        objects
            .into_iter()
            .flat_map(move |objects| objects.range(prefix.to_owned()..))
            .take_while(move |(key, _)| key.starts_with(prefix))
    }

    /// Tables that hold anything.
    pub(crate) fn tables(&self) -> impl Iterator<Item = &str> {
        self.tables.iter().filter(|(_, table)| !table.objects.is_empty()).map(|(name, _)| name.as_str())
    }

    /// A table as it was at a past revision.
    pub(crate) fn past(&self, table: &str, revision: u64) -> Result<Objects, Forgotten> {
        match self.tables.get(table) {
            Some(table) => table.history.rewind(&table.objects, revision),
            None => Ok(Objects::new()),
        }
    }

    /// Whether a watch may start from a revision.
    pub(crate) fn admits(&self, table: &str, revision: u64) -> Result<(), Forgotten> {
        match self.tables.get(table) {
            Some(table) => table.history.admits(revision),
            None if revision < self.oldest => Err(Forgotten { oldest: self.oldest }),
            None => Ok(()),
        }
    }

    /// Events of a table after a revision.
    pub(crate) fn events(&self, table: &str, after: u64, limit: usize) -> Result<Vec<Arc<Event>>, Forgotten> {
        match self.tables.get(table) {
            Some(table) => table.history.after(after, limit),
            None => Ok(Vec::new()),
        }
    }

    /// Writes an object and gives back what is stored, with its new revision.
    pub(crate) fn put(&mut self, table: &str, key: &str, mut object: Value) -> Arc<Value> {
        let (capacity, oldest) = (self.capacity, self.oldest);
        let slot = self
            .tables
            .entry(table.to_owned())
            .or_insert_with(|| Table { objects: Objects::new(), history: History::new(capacity, oldest) });
        let before = slot.objects.get(key).cloned();
        if let Some(before) = &before {
            value::set(&mut object, "metadata.resourceVersion", value::revision(before));
            if object == **before {
                return Arc::clone(before);
            }
        }
        self.revision += 1;
        value::set(&mut object, "metadata.resourceVersion", self.revision.to_string());
        let object = Arc::new(object);
        slot.objects.insert(key.to_owned(), Arc::clone(&object));
        slot.history.push(Event {
            revision: self.revision,
            change: if before.is_some() { Change::Modified } else { Change::Added },
            key: key.to_owned(),
            object: Arc::clone(&object),
            before,
        });
        object
    }

    /// Removes an object and gives back its last state, with the revision of the removal.
    pub(crate) fn remove(&mut self, table: &str, key: &str) -> Option<Arc<Value>> {
        let slot = self.tables.get_mut(table)?;
        let before = slot.objects.remove(key)?;
        self.revision += 1;
        let mut last = (*before).clone();
        value::set(&mut last, "metadata.resourceVersion", self.revision.to_string());
        let object = Arc::new(last);
        slot.history.push(Event {
            revision: self.revision,
            change: Change::Deleted,
            key: key.to_owned(),
            object: Arc::clone(&object),
            before: Some(before),
        });
        Some(object)
    }

    /// Everything that is stored now.
    pub(crate) fn snapshot(&self) -> Snapshot {
        Snapshot(self.tables.iter().map(|(name, table)| (name.clone(), table.objects.clone())).collect())
    }

    /// Goes back to a snapshot: objects have the versions that they had then. The next write gets a revision that
    /// nobody has seen yet, and everything before is forgotten, as after `etcdutl snapshot restore --bump-revision
    /// --mark-compacted`. Otherwise one revision could mean two states.
    pub(crate) fn restore(&mut self, snapshot: &Snapshot) {
        self.revision += 1;
        self.oldest = self.revision;
        let (capacity, oldest) = (self.capacity, self.oldest);
        let table =
            |objects: &Objects| Table { objects: objects.clone(), history: History::new(capacity, oldest) };
        self.tables = snapshot.0.iter().map(|(name, objects)| (name.clone(), table(objects))).collect();
    }

    /// Forgets all history: reading from an older revision is refused.
    pub(crate) fn compact(&mut self) {
        self.oldest = self.revision;
        for table in self.tables.values_mut() {
            table.history.forget(self.revision);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use serde_json::json;

    #[test]
    fn keys_sort_as_in_etcd() {
        assert!(key(Some("a-b"), "x") < key(Some("a"), "x"), "a minus comes before a slash");
    }

    #[test]
    fn a_write_that_changes_nothing_leaves_no_trace() {
        let mut store = Store::new(10);
        let first = store.put("t", "a", json!({"x": 1}));
        let again = store.put("t", "a", json!({"x": 1, "metadata": {"resourceVersion": "77"}}));
        assert_eq!(value::revision(&first), value::revision(&again));
        assert_eq!(store.events("t", 0, 10).unwrap().len(), 1);
    }

    #[test]
    fn the_past_is_gone_once_it_is_compacted() {
        let mut store = Store::new(2);
        for n in 0..5 {
            store.put("t", "a", json!({"n": n}));
        }
        assert_eq!(store.events("t", 3, 10).unwrap_err(), Forgotten { oldest: 4 });
        assert_eq!(store.events("t", 4, 10).unwrap().len(), 2);
        store.compact();
        assert!(store.past("t", 5).is_err());
        assert!(store.admits("t", 5).is_err() && store.admits("t", 6).is_ok());
        assert_eq!(store.events("t", 5, 10).unwrap().len(), 1, "a watch that is under way loses nothing");
    }

    #[test]
    fn a_restored_store_has_the_old_versions_and_writes_new_ones() {
        let mut store = Store::new(10);
        let old = store.put("t", "a", json!({"x": 1}));
        let snapshot = store.snapshot();
        let newer = store.put("t", "a", json!({"x": 2}));
        store.put("t", "b", json!({}));
        store.put("u", "c", json!({}));
        store.restore(&snapshot);
        assert_eq!(store.get("t", "a"), Some(&old));
        assert!(store.get("t", "b").is_none() && store.get("u", "c").is_none());
        assert!(store.admits("t", store.revision() - 1).is_err(), "watches must list again");
        assert!(store.admits("u", store.revision() - 1).is_err());
        let next = store.put("t", "a", json!({"x": 3}));
        assert!(value::revision(&next).parse::<u64>().unwrap() > value::revision(&newer).parse().unwrap());
    }

    proptest! {
        /// The state of every remembered revision can be rebuilt, whatever was written.
        #[test]
        fn every_past_state_can_be_rebuilt(writes in prop::collection::vec((0u8..4, prop::option::of(0u8..3)), 1..60)) {
            let mut store = Store::new(100);
            let mut seen = vec![(store.revision(), Objects::new())];
            for (key, value) in writes {
                let key = format!("k{key}");
                match value {
                    Some(value) => { store.put("t", &key, json!({"v": value})); }
                    None => { store.remove("t", &key); }
                }
                let now: Objects = store.all("t").map(|(k, v)| (k.clone(), Arc::clone(v))).collect();
                seen.push((store.revision(), now));
            }
            for (revision, want) in seen {
                prop_assert_eq!(store.past("t", revision).unwrap(), want);
            }
        }
    }
}
