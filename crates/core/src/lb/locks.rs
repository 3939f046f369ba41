//! Who works on what, and how old a look at it may be.

use std::collections::{BTreeMap, BTreeSet};

use crate::{lb::LockKey, view::ObjectKey};

/// One writer per claimed thing: two Services can name one load balancer or one floating address, so the lock is on
/// the thing and not on the Service.
#[derive(Clone, Debug, Default)]
pub struct LockTable {
    holders: BTreeMap<LockKey, ObjectKey>,
    waiting: Vec<(ObjectKey, BTreeSet<LockKey>)>,
}

impl LockTable {
    /// Takes all of `keys` for `who`, or none. None, when somebody holds one of them, or waits for one and came
    /// first; then `who` is remembered and named by the [`release`](Self::release) that makes way.
    ///
    /// Taking all at once cannot deadlock; the order of arrival keeps one busy Service from starving another. Who holds
    /// something goes on to hold it, whoever has come to wait: two that gave way to each other would never get done.
    pub fn acquire(&mut self, who: &ObjectKey, keys: &[LockKey]) -> bool {
        let wanted: BTreeSet<LockKey> = keys.iter().cloned().collect();
        let place = self.waiting.iter().position(|(key, _)| key == who).unwrap_or(self.waiting.len());
        let held = wanted.iter().any(|key| self.holders.get(key).is_some_and(|holder| holder != who));
        let new = |key: &LockKey| wanted.contains(key) && !self.holders.contains_key(key);
        let behind = self.waiting.iter().take(place).any(|(_, ahead)| ahead.iter().any(new));
        if held || behind {
            match self.waiting.get_mut(place) {
                Some(entry) => entry.1 = wanted,
                None => self.waiting.push((who.clone(), wanted)),
            }
            return false;
        }
        self.waiting.retain(|(key, _)| key != who);
        self.holders.extend(wanted.into_iter().map(|key| (key, who.clone())));
        true
    }

    /// Gives back whatever `who` holds or waits for. Returns those whose turn it may be now, first come first.
    pub fn release(&mut self, who: &ObjectKey) -> Vec<ObjectKey> {
        self.waiting.retain(|(key, _)| key != who);
        self.holders.retain(|_, holder| holder != who);
        let free = |keys: &BTreeSet<LockKey>| keys.iter().all(|key| !self.holders.contains_key(key));
        self.waiting.iter().filter(|(_, keys)| free(keys)).map(|(key, _)| key.clone()).collect()
    }
}

/// When a survey was begun, counted in mutations.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Stamp(u64);

/// Keeps old looks from being taken for new ones: a survey begun before the last mutation of a thing may not show
/// that mutation, so it may not serve that thing.
#[derive(Clone, Debug, Default)]
pub struct Freshness {
    mutations: u64,
    last: BTreeMap<LockKey, u64>,
}

impl Freshness {
    /// Marks the beginning of a survey. Take it before the first request is sent.
    #[must_use]
    pub const fn begin(&self) -> Stamp {
        Stamp(self.mutations)
    }

    /// Notes that a mutation of the claimed things was answered, or given up.
    pub fn mutated(&mut self, keys: &[LockKey]) {
        self.mutations += 1;
        self.last.extend(keys.iter().map(|key| (key.clone(), self.mutations)));
    }

    /// Whether a survey begun at `stamp` shows every mutation of the claimed things.
    #[must_use]
    pub fn may_serve(&self, stamp: Stamp, keys: &[LockKey]) -> bool {
        keys.iter().all(|key| self.last.get(key).is_none_or(|mutation| *mutation <= stamp.0))
    }

    /// Drops what no survey in use can be too old for: everything that happened before `oldest` was begun.
    pub fn forget_before(&mut self, oldest: Stamp) {
        self.last.retain(|_, mutation| *mutation > oldest.0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lb::LockKind;

    fn key(name: &str) -> ObjectKey {
        ObjectKey::new("default", name)
    }

    fn ids(names: &[&str]) -> Vec<LockKey> {
        names.iter().map(|name| LockKey::new(LockKind::Id, *name)).collect()
    }

    #[test]
    fn one_writer_at_a_time_and_in_the_order_of_arrival() {
        let mut book = LockTable::default();
        assert!(book.acquire(&key("a"), &ids(&["1", "2"])));
        assert!(book.acquire(&key("a"), &ids(&["1", "2"])), "a holder may ask again");
        assert!(book.acquire(&key("d"), &ids(&["9"])), "others are not held up");
        assert!(!book.acquire(&key("b"), &ids(&["2", "3"])));
        assert!(book.acquire(&key("a"), &ids(&["1", "2"])), "a holder goes on to hold, whoever waits");
        assert!(!book.acquire(&key("c"), &ids(&["3"])), "free, but b came first");
        assert!(!book.acquire(&key("b"), &ids(&["2", "3"])), "asking again keeps the place");
        assert_eq!(book.release(&key("a")), [key("b"), key("c")]);
        assert!(!book.acquire(&key("c"), &ids(&["3"])), "b is still first");
        assert!(book.acquire(&key("b"), &ids(&["2", "3"])));
        assert_eq!(book.release(&key("d")), [], "c still waits for b");
        assert_eq!(book.release(&key("b")), [key("c")]);
        assert!(book.acquire(&key("c"), &ids(&["3"])));
        assert_eq!(book.release(&key("c")), []);
    }

    #[test]
    fn a_holder_takes_nothing_more_that_somebody_waits_for() {
        let mut book = LockTable::default();
        assert!(book.acquire(&key("a"), &ids(&["1"])));
        assert!(!book.acquire(&key("b"), &ids(&["1", "2"])));
        assert!(!book.acquire(&key("a"), &ids(&["1", "2"])), "b came first for 2");
        assert_eq!(book.release(&key("a")), [key("b")]);
        assert!(book.acquire(&key("b"), &ids(&["1", "2"])));
    }

    #[test]
    fn who_gives_up_waiting_stands_in_nobodys_way() {
        let mut book = LockTable::default();
        assert!(book.acquire(&key("a"), &ids(&["1"])));
        assert!(!book.acquire(&key("b"), &ids(&["1", "2"])));
        assert_eq!(book.release(&key("b")), [], "b is deleted");
        assert!(book.acquire(&key("c"), &ids(&["2"])));
        assert!(!book.acquire(&key("b"), &ids(&["1"])));
        assert!(!book.acquire(&key("b"), &ids(&["2"])), "a change of mind replaces the old wish");
        assert_eq!(book.release(&key("c")), [key("b")]);
    }

    #[test]
    fn a_look_from_before_a_mutation_may_not_serve_what_was_mutated() {
        let mut freshness = Freshness::default();
        let before = freshness.begin();
        freshness.mutated(&ids(&["1"]));
        let after = freshness.begin();
        assert!(!freshness.may_serve(before, &ids(&["1"])));
        assert!(!freshness.may_serve(before, &ids(&["2", "1"])));
        assert!(freshness.may_serve(before, &ids(&["2"])), "others are not affected");
        assert!(freshness.may_serve(after, &ids(&["1"])));
        freshness.mutated(&ids(&["2"]));
        assert!(freshness.may_serve(after, &ids(&["1"])));
        assert!(!freshness.may_serve(after, &ids(&["2"])));
        freshness.forget_before(after);
        assert!(!freshness.may_serve(after, &ids(&["2"])), "what is still too new is not forgotten");
        assert_eq!(freshness.last.len(), 1);
    }
}
