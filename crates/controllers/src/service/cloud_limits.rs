//! How many workers one cloud may keep busy: if it could take all, one that hangs would hold up the others (law 11).

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use cloudberth_core::ObjectKey;

#[derive(Debug, Default)]
struct Limit {
    running: usize,
    waiting: VecDeque<ObjectKey>,
    known: BTreeSet<ObjectKey>,
}

/// How many workers each cloud has, and who waits for one.
#[derive(Debug)]
pub(super) struct CloudLimits {
    most: usize,
    limits: BTreeMap<String, Limit>,
}

impl CloudLimits {
    /// Limits for `workers` in all. The only cloud may have them all; of several, each leaves a quarter free.
    pub(super) fn new(workers: usize, clouds: usize) -> Self {
        let most = if clouds > 1 { workers - workers / 4 } else { workers };
        Self { most: most.max(1), limits: BTreeMap::new() }
    }

    /// Whether a Service of this cloud may have a worker. If not, a later [`leave`](Self::leave) returns it.
    pub(super) fn enter(&mut self, cloud: &str, key: &ObjectKey) -> bool {
        let most = self.most;
        let limit = self.limits.entry(cloud.to_owned()).or_default();
        let free = limit.running < most;
        if free {
            limit.running += 1;
        } else if limit.known.insert(key.clone()) {
            limit.waiting.push_back(key.clone());
        }
        free
    }

    /// A worker is free again; it worked for `cloud`, if that let it in. Returns who is next: one of each cloud that has
    /// room. Each of these leaves again, so the one after it is returned even if nothing is left to be done for it.
    pub(super) fn leave(&mut self, cloud: Option<&str>) -> Vec<ObjectKey> {
        if let Some(limit) = cloud.and_then(|cloud| self.limits.get_mut(cloud)) {
            limit.running = limit.running.saturating_sub(1);
        }
        let most = self.most;
        let free = self.limits.values_mut().filter(|limit| limit.running < most);
        let next = |limit: &mut Limit| {
            let next = limit.waiting.pop_front()?;
            limit.known.remove(&next);
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
            let mut limits = CloudLimits::new(workers, clouds);
            let key = |n: usize| ObjectKey::new("default", &format!("s{n}"));
            let entered = (0..100).filter(|n| limits.enter("a", &key(*n))).count();
            assert_eq!(entered, most, "{workers} workers, {clouds} clouds");
            assert!(limits.enter("b", &key(0)), "L11-143");
            assert!(!limits.enter("a", &key(most)), "asking again keeps the place");
            assert_eq!(limits.leave(Some("b")), [], "no room is made at the other");
            assert_eq!(limits.leave(Some("a")), [key(most)], "who came first");
            assert_eq!(limits.leave(None), [key(most + 1)], "the one before is gone and needed no worker");
            assert!(limits.enter("a", &key(most + 1)));
            assert_eq!(limits.leave(None), [], "now it is full again");
        }
    }
}
