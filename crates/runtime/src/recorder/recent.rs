//! A map of bounded size.

use std::collections::BTreeMap;

/// A map that drops the least recently used entry when it is full.
#[derive(Debug)]
pub(super) struct Recent<K, V> {
    entries: BTreeMap<K, (u64, V)>,
    by_age: BTreeMap<u64, K>,
    uses: u64,
    limit: usize,
}

impl<K: Ord + Clone, V: Default> Recent<K, V> {
    pub(super) const fn new(limit: usize) -> Self {
        Self { entries: BTreeMap::new(), by_age: BTreeMap::new(), uses: 0, limit }
    }

    /// The value of this key, the default at first. Counts as a use.
    pub(super) fn of(&mut self, key: K) -> &mut V {
        self.uses += 1;
        if let Some((used, _)) = self.entries.get(&key) {
            self.by_age.remove(used);
        } else if self.entries.len() >= self.limit
            && let Some((_, oldest)) = self.by_age.pop_first()
        {
            self.entries.remove(&oldest);
        }
        self.by_age.insert(self.uses, key.clone());
        let (used, value) = self.entries.entry(key).or_default();
        *used = self.uses;
        value
    }

    #[cfg(test)]
    fn len(&self) -> usize {
        assert_eq!(self.entries.len(), self.by_age.len());
        self.entries.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_longest_unused_is_forgotten() {
        let mut recent = Recent::<char, u32>::new(3);
        for key in ['a', 'b', 'c', 'a', 'd', 'a'] {
            *recent.of(key) += 1;
        }
        assert_eq!((recent.len(), *recent.of('a')), (3, 3), "in use all the time");
        assert_eq!(*recent.of('b'), 0, "made room for d");
        for key in 'e'..'z' {
            recent.of(key);
        }
        assert_eq!(recent.len(), 3, "L12-23");
    }
}
