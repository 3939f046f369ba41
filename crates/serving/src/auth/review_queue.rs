//! The bounded queue of reviews that wait to be sent.

use std::{
    collections::BTreeMap,
    sync::{Mutex, MutexGuard, PoisonError},
};

use crate::limiter::Peer;

/// How many may wait; each of them holds a request with all its headers.
const TOTAL: usize = 128;
/// How many of one peer may wait, so that a stranger's made-up tokens leave room for others.
const EACH: usize = 32;

/// A bounded queue with a limit for each peer.
#[derive(Debug, Default)]
pub(crate) struct ReviewQueue(Mutex<BTreeMap<Peer, usize>>);

impl ReviewQueue {
    /// Queues a review until the returned guard is dropped; `None` if the queue is full for this peer.
    pub(crate) fn enter(&self, peer: Peer) -> Option<QueuedReview<'_>> {
        let mut waiting = self.lock();
        let total: usize = waiting.values().sum();
        let of_peer = waiting.get(&peer).copied().unwrap_or_default();
        if total >= TOTAL || of_peer >= EACH {
            return None;
        }
        waiting.insert(peer, of_peer + 1);
        Some(QueuedReview { queue: self, peer })
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<Peer, usize>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A review that waits or is in flight.
#[derive(Debug)]
pub(crate) struct QueuedReview<'a> {
    queue: &'a ReviewQueue,
    peer: Peer,
}

impl Drop for QueuedReview<'_> {
    fn drop(&mut self) {
        let mut waiting = self.queue.lock();
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
    fn one_peer_cannot_fill_the_queue() {
        let queue = ReviewQueue::default();
        let peer = |last: u8| Peer::of([192, 0, 2, last].into());
        let mut of_one: Vec<_> = std::iter::from_fn(|| queue.enter(peer(1))).collect();
        assert_eq!(of_one.len(), EACH, "L12-906");
        let others: Vec<_> = (2..=255).filter_map(|last| queue.enter(peer(last))).collect();
        assert_eq!(others.len(), TOTAL - EACH, "L12-906");
        of_one.pop();
        assert!(queue.enter(peer(1)).is_some(), "a place that was given up is free");
        drop((of_one, others));
        assert!(queue.lock().is_empty());
    }
}
