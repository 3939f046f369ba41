//! A cache of answers, each with its own expiry.

use std::{
    collections::BTreeMap,
    sync::{Mutex, PoisonError},
};

use cloudberth_core::Tick;
use ring::digest::{SHA256, digest};

/// A digest of what was asked, so that no token stays in memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Key([u8; 32]);

impl Key {
    pub(crate) fn of(question: &[u8]) -> Self {
        let mut key = [0; 32];
        for (to, from) in key.iter_mut().zip(digest(&SHA256, question).as_ref()) {
            *to = *from;
        }
        Self(key)
    }
}

/// A bounded cache of answers, each with its own expiry.
#[derive(Debug)]
pub(crate) struct Cache<V> {
    answers: Mutex<BTreeMap<Key, (Tick, V)>>,
    capacity: usize,
}

impl<V: Clone> Cache<V> {
    pub(crate) const fn new(capacity: usize) -> Self {
        Self { answers: Mutex::new(BTreeMap::new()), capacity }
    }

    /// An answer that has not expired at `now`.
    pub(crate) fn get(&self, key: Key, now: Tick) -> Option<V> {
        self.lock().get(&key).filter(|(until, _)| now < *until).map(|(_, answer)| answer.clone())
    }

    /// Keeps an answer until then. In a full cache, those that expire first are dropped.
    pub(crate) fn put(&self, key: Key, answer: V, now: Tick, until: Tick) {
        if until <= now {
            return;
        }
        let mut answers = self.lock();
        if answers.len() >= self.capacity && !answers.contains_key(&key) {
            answers.retain(|_, (until, _)| now < *until);
            while answers.len() >= self.capacity {
                let Some(first) = answers.iter().min_by_key(|(_, (until, _))| *until).map(|(key, _)| *key)
                else {
                    break;
                };
                answers.remove(&first);
            }
        }
        answers.insert(key, (until, answer));
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, BTreeMap<Key, (Tick, V)>> {
        self.answers.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_end_and_make_room() {
        let (cache, at) = (Cache::new(2), Tick::from_secs);
        let [a, b, c, d] = [b"a", b"b", b"c", b"d"].map(|q| Key::of(q));
        assert!([a, b, c, d].iter().all(|key| cache.get(*key, at(0)).is_none()));
        cache.put(a, 1, at(0), at(10));
        cache.put(b, 2, at(0), at(20));
        assert_eq!(
            (cache.get(a, at(9)), cache.get(a, at(10)), cache.get(b, at(10))),
            (Some(1), None, Some(2))
        );
        cache.put(c, 3, at(5), at(30));
        assert_eq!(
            [a, b, c].map(|key| cache.get(key, at(5))),
            [None, Some(2), Some(3)],
            "the first to end went"
        );
        cache.put(b, 4, at(5), at(25));
        assert_eq!(
            [b, c].map(|key| cache.get(key, at(5))),
            [Some(4), Some(3)],
            "a newer answer needs no room"
        );
        cache.put(d, 5, at(5), at(5));
        assert_eq!(
            [b, c, d].map(|key| cache.get(key, at(5))),
            [Some(4), Some(3), None],
            "over before it began"
        );
        cache.put(d, 5, at(26), at(27));
        assert_eq!(
            [b, c, d].map(|key| cache.get(key, at(26))),
            [None, Some(3), Some(5)],
            "what has ended goes first"
        );
    }
}
