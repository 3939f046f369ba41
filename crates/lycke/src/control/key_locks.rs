//! One change at a time for each load balancer.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, PoisonError},
};

use tokio::sync::OwnedMutexGuard;

use crate::plane::BalancerKey;

type Lock = Arc<tokio::sync::Mutex<()>>;

/// A lock for each key that somebody works on.
#[derive(Debug, Default)]
pub(super) struct KeyLocks(Mutex<BTreeMap<BalancerKey, Lock>>);

impl KeyLocks {
    pub(super) async fn lock(&self, key: &BalancerKey) -> OwnedMutexGuard<()> {
        let lock = {
            let mut locks = self.0.lock().unwrap_or_else(PoisonError::into_inner);
            // What only this table knows of is not held by anybody.
            locks.retain(|other, lock| other == key || Arc::strong_count(lock) > 1);
            Arc::clone(locks.entry(key.clone()).or_default())
        };
        lock.lock_owned().await
    }
}
