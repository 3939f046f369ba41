//! The line of those whose questions wait to be asked.

use std::{
    collections::BTreeMap,
    sync::{Mutex, MutexGuard, PoisonError},
};

use crate::room::Peer;

/// So many may wait; each of them holds a request, with all its headers.
const TOTAL: usize = 128;
/// So many of one peer: made-up tokens of a stranger must leave room for those who have a right to ask.
const EACH: usize = 32;

/// A bounded line with a share for each peer.
#[derive(Debug, Default)]
pub(crate) struct Line(Mutex<BTreeMap<Peer, usize>>);

impl Line {
    /// A place in the line, until it is dropped; `None` if there is none for this peer.
    pub(crate) fn enter(&self, peer: Peer) -> Option<Place<'_>> {
        let mut waiting = self.lock();
        let total: usize = waiting.values().sum();
        let of_peer = waiting.get(&peer).copied().unwrap_or_default();
        if total >= TOTAL || of_peer >= EACH {
            return None;
        }
        waiting.insert(peer, of_peer + 1);
        Some(Place { line: self, peer })
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<Peer, usize>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A place in the [`Line`].
#[derive(Debug)]
pub(crate) struct Place<'a> {
    line: &'a Line,
    peer: Peer,
}

impl Drop for Place<'_> {
    fn drop(&mut self) {
        let mut waiting = self.line.lock();
        match waiting.get_mut(&self.peer) {
            Some(several) if *several > 1 => *several -= 1,
            _ => drop(waiting.remove(&self.peer)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_peer_does_not_fill_the_line() {
        let line = Line::default();
        let peer = |last: u8| Peer::of([192, 0, 2, last].into());
        let mut of_one: Vec<_> = std::iter::from_fn(|| line.enter(peer(1))).collect();
        assert_eq!(of_one.len(), EACH, "L12-906");
        let others: Vec<_> = (2..=255).filter_map(|last| line.enter(peer(last))).collect();
        assert_eq!(others.len(), TOTAL - EACH, "L12-906");
        of_one.pop();
        assert!(line.enter(peer(1)).is_some(), "a place that was given up is free");
        drop((of_one, others));
        assert!(line.lock().is_empty());
    }
}
