//! No cloud may keep all workers: one that hangs would hold up the Services of the others (law 11).

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use cloudberth_core::ObjectKey;

#[derive(Debug, Default)]
struct Lane {
    running: usize,
    waiting: VecDeque<ObjectKey>,
    known: BTreeSet<ObjectKey>,
}

/// How many workers each cloud has, and who waits for one.
#[derive(Debug)]
pub(super) struct Lanes {
    most: usize,
    lanes: BTreeMap<String, Lane>,
}

impl Lanes {
    /// Lanes for `workers` in all. A cloud that is alone may have them all; of several, each leaves a quarter free.
    pub(super) fn new(workers: usize, clouds: usize) -> Self {
        let most = if clouds > 1 { workers - workers / 4 } else { workers };
        Self { most: most.max(1), lanes: BTreeMap::new() }
    }

    /// Whether there is a worker for a Service of this cloud. If not, it is named by a later
    /// [`leave`](Self::leave).
    pub(super) fn enter(&mut self, cloud: &str, key: &ObjectKey) -> bool {
        let most = self.most;
        let lane = self.lanes.entry(cloud.to_owned()).or_default();
        let free = lane.running < most;
        if free {
            lane.running += 1;
        } else if lane.known.insert(key.clone()) {
            lane.waiting.push_back(key.clone());
        }
        free
    }

    /// A worker is free again; of `cloud`, if it had one of that lane. Returns those whose turn it is: one of each cloud
    /// that has room. Whoever is named comes back here, so the next one is named even if there is nothing left to be
    /// done for this one.
    pub(super) fn leave(&mut self, cloud: Option<&str>) -> Vec<ObjectKey> {
        if let Some(lane) = cloud.and_then(|cloud| self.lanes.get_mut(cloud)) {
            lane.running = lane.running.saturating_sub(1);
        }
        let most = self.most;
        let free = self.lanes.values_mut().filter(|lane| lane.running < most);
        let next = |lane: &mut Lane| {
            let next = lane.waiting.pop_front()?;
            lane.known.remove(&next);
            Some(next)
        };
        free.filter_map(next).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_cloud_of_several_leaves_workers_for_the_others() {
        for (workers, clouds, most) in [(16, 1, 16), (16, 2, 12), (4, 2, 3), (2, 2, 2), (1, 3, 1), (0, 2, 1)]
        {
            let mut lanes = Lanes::new(workers, clouds);
            let key = |n: usize| ObjectKey::new("default", &format!("s{n}"));
            let entered = (0..100).filter(|n| lanes.enter("a", &key(*n))).count();
            assert_eq!(entered, most, "{workers} workers, {clouds} clouds");
            assert!(lanes.enter("b", &key(0)), "L11-143");
            assert!(!lanes.enter("a", &key(most)), "asking again keeps the place");
            assert_eq!(lanes.leave(Some("b")), [], "no room is made at the other");
            assert_eq!(lanes.leave(Some("a")), [key(most)], "who came first");
            assert_eq!(lanes.leave(None), [key(most + 1)], "the one before is gone and needed no worker");
            assert!(lanes.enter("a", &key(most + 1)));
            assert_eq!(lanes.leave(None), [], "now it is full again");
        }
    }
}
