//! What is counted, for the metrics.

use std::{
    sync::atomic::{AtomicU64, Ordering},
    time::Duration,
};

/// A number that only grows.
#[derive(Debug, Default)]
pub struct Count(AtomicU64);

impl Count {
    /// One more.
    pub(super) fn add(&self) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }

    /// How many so far.
    pub fn get(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

/// The upper bounds of the buckets of both histograms: 1 s, doubled up to 16 384 s.
pub const BUCKETS: usize = 15;

/// How long things took.
#[derive(Debug, Default)]
pub struct Spans {
    buckets: [AtomicU64; BUCKETS],
    beyond: AtomicU64,
    micros: AtomicU64,
}

impl Spans {
    pub(super) fn observe(&self, took: Duration) {
        let fits = |bucket: u32| took <= Duration::from_secs(1 << bucket);
        let slot = (0..).zip(&self.buckets).find(|(bucket, _)| fits(*bucket));
        slot.map_or(&self.beyond, |(_, count)| count).fetch_add(1, Ordering::Relaxed);
        self.micros.fetch_add(u64::try_from(took.as_micros()).unwrap_or(u64::MAX), Ordering::Relaxed);
    }

    /// How many fell into each bucket, the one without a bound last. Not added up.
    pub fn buckets(&self) -> Vec<u64> {
        self.buckets.iter().chain([&self.beyond]).map(|count| count.load(Ordering::Relaxed)).collect()
    }

    /// How many there were.
    pub fn count(&self) -> u64 {
        self.buckets().iter().sum()
    }

    /// How long all of them took together.
    pub fn total(&self) -> Duration {
        Duration::from_micros(self.micros.load(Ordering::Relaxed))
    }
}

/// What the service controller counts.
#[derive(Debug, Default)]
pub struct ServiceCounters {
    /// `service_controller_loadbalancer_sync_total`: load balancers that were looked at for the sake of their nodes.
    pub loadbalancer_sync: Count,
    /// `service_controller_nodesync_error_total`: how many of these failed.
    pub nodesync_error: Count,
    /// `service_controller_nodesync_latency_seconds`: from a change of nodes to the end of the last look that it caused.
    pub nodesync_latency: Spans,
    /// `service_controller_update_loadbalancer_host_latency_seconds`: how long each of these looks took.
    pub update_host_latency: Spans,
    /// Load balancers whose Service is gone or was let go of by somebody else.
    pub orphans: Count,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_span_falls_into_the_first_bucket_that_holds_it() {
        let spans = Spans::default();
        for (millis, bucket) in [(0, 0), (1_000, 0), (1_001, 1), (16_384_000, 14), (16_385_000, 15)] {
            let before = spans.buckets()[bucket];
            spans.observe(Duration::from_millis(millis));
            assert_eq!(spans.buckets()[bucket], before + 1, "{millis} ms");
        }
        assert_eq!((spans.count(), spans.total()), (5, Duration::from_millis(32_771_001)));
    }
}
