//! How the Services stand, for the metrics.

use std::sync::{Arc, Mutex};

use cloudberth_core::{
    Clock, ObjectKey,
    decide::service::census::{Address, Census},
};
use cloudberth_runtime::metrics::ServiceMetrics;

use crate::lock;

/// How the Services stand, counted for as long as the term lasts: only the leader's numbers say anything.
pub(crate) struct ServiceCensus {
    census: Mutex<Census>,
    metrics: ServiceMetrics,
    clock: Arc<dyn Clock>,
}

impl ServiceCensus {
    pub(super) fn new(metrics: &ServiceMetrics, clock: &Arc<dyn Clock>) -> Self {
        Self { census: Mutex::default(), metrics: metrics.clone(), clock: Arc::clone(clock) }
    }

    /// A version of the Service was seen, or that it is gone.
    pub(super) fn seen(&self, key: &ObjectKey, address: Address) {
        self.amend(|census| census.seen(key, address, self.clock.wall()));
    }

    /// A pass found out whether something of the Service is refused.
    pub(crate) fn judged(&self, key: &ObjectKey, refused: bool) {
        self.amend(|census| census.judged(key, refused, self.clock.wall()));
    }

    fn amend(&self, change: impl FnOnce(&mut Census)) {
        let mut census = lock(&self.census);
        change(&mut census);
        let (waiting, metrics) = (census.waiting(), &self.metrics);
        metrics.waiting.set(waiting.count(), waiting.oldest());
        metrics.refused.set(i64::try_from(census.refused()).unwrap_or(i64::MAX));
    }
}

impl Drop for ServiceCensus {
    fn drop(&mut self) {
        self.metrics.waiting.set(0, None);
        self.metrics.refused.set(0);
    }
}
