//! What the metrics show of it.

use std::{
    collections::BTreeMap,
    sync::{
        Mutex,
        atomic::{AtomicU64, Ordering},
    },
};

use cloudberth_core::decide::routes::{Outcome, Trigger};

use crate::lock;

/// What was done. It outlives a term of leadership.
#[derive(Debug, Default)]
pub struct RouteCounters {
    passes: Mutex<BTreeMap<(&'static str, &'static str), u64>>,
    panics: AtomicU64,
}

impl RouteCounters {
    /// `route_controller_route_sync_total`, by `outcome` and `trigger`.
    pub fn passes(&self) -> BTreeMap<(&'static str, &'static str), u64> {
        lock(&self.passes).clone()
    }

    /// How often a bug was met and caught.
    pub fn panics(&self) -> u64 {
        self.panics.load(Ordering::Relaxed)
    }

    pub(super) fn passed(&self, outcome: Outcome, trigger: Trigger) {
        *lock(&self.passes).entry((outcome.label(), trigger.as_str())).or_default() += 1;
    }

    pub(super) fn panicked(&self) {
        self.panics.fetch_add(1, Ordering::Relaxed);
    }
}
