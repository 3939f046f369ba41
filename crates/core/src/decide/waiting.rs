//! Who waits, and since when: the numbers that an alert looks at.
//!
//! A count alone cannot tell one that waits for an hour from sixty that wait for a minute each.

use std::collections::{BTreeMap, BTreeSet};

use jiff::Timestamp;

/// Those that wait, each since when.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Waiting<K> {
    since: BTreeMap<K, Timestamp>,
    /// The same, by time.
    order: BTreeSet<(Timestamp, K)>,
}

impl<K> Default for Waiting<K> {
    fn default() -> Self {
        Self { since: BTreeMap::new(), order: BTreeSet::new() }
    }
}

impl<K: Ord + Clone> Waiting<K> {
    /// Whether this one waits. One that waited before keeps its time; one that begins to wait has waited since `since`.
    pub fn set(&mut self, key: &K, waits: bool, since: Timestamp) {
        match (waits, self.since.get(key).copied()) {
            (true, None) => {
                self.since.insert(key.clone(), since);
                self.order.insert((since, key.clone()));
            }
            (false, Some(since)) => {
                self.since.remove(key);
                self.order.remove(&(since, key.clone()));
            }
            (true, Some(_)) | (false, None) => {}
        }
    }

    /// How many wait.
    #[must_use]
    pub fn count(&self) -> usize {
        self.since.len()
    }

    /// Since when the one that waits longest does.
    #[must_use]
    pub fn oldest(&self) -> Option<Timestamp> {
        self.order.first().map(|(since, _)| *since)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whoever_waits_longest_sets_the_time() {
        let at = |second| Timestamp::from_second(second).unwrap();
        let mut waiting = Waiting::default();
        assert_eq!((waiting.count(), waiting.oldest()), (0, None));
        // What is said about whom, and how many wait then, the longest since when.
        let table = [
            ("the first begins", "a", true, 10, 1, Some(10)),
            ("it is said again", "a", true, 20, 1, Some(10)),
            ("a second begins", "b", true, 30, 2, Some(10)),
            ("a third waited before it was seen", "c", true, 5, 3, Some(5)),
            ("which ends", "c", false, 35, 2, Some(10)),
            ("the first ends", "a", false, 40, 1, Some(30)),
            ("somebody unknown ends", "x", false, 40, 1, Some(30)),
            ("the first begins anew", "a", true, 50, 2, Some(30)),
            ("all but one have ended", "b", false, 60, 1, Some(50)),
            ("nobody waits", "a", false, 60, 0, None),
        ];
        for (case, key, waits, now, count, oldest) in table {
            waiting.set(&key, waits, at(now));
            assert_eq!((waiting.count(), waiting.oldest()), (count, oldest.map(at)), "{case}");
        }
        assert_eq!(waiting, Waiting::default(), "nothing is kept about those that have ended");
    }
}
