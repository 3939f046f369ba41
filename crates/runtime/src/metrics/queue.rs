//! What queues and their workers measure.

#![allow(missing_docs, reason = "fields are labels and metrics, explained where they are registered")]

use std::{
    fmt,
    sync::{Arc, Mutex},
    time::Duration,
};

use cloudberth_core::{Clock, decide::queue::Counters, time::Tick};
use prometheus_client::{
    encoding::{EncodeLabelSet, EncodeMetric, MetricEncoder},
    metrics::MetricType,
};

use super::{
    Registry,
    kinds::{Counter, Family, Gauge, Histogram, publish},
    table,
};
use crate::lock;

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, EncodeLabelSet)]
pub struct QueueLabels {
    pub name: &'static str,
}

/// Which queue, for the series that are our own.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, EncodeLabelSet)]
pub struct PoolLabels {
    pub queue: &'static str,
}

/// The metrics of every queue and its workers.
#[derive(Clone, Debug)]
pub struct QueueMetrics {
    pub depth: Family<QueueLabels, Gauge>,
    pub adds: Family<QueueLabels, Counter>,
    pub waited: Family<QueueLabels, Histogram>,
    /// How long the work on a key took.
    pub worked: Family<QueueLabels, Histogram>,
    pub retries: Family<QueueLabels, Counter>,
    pub panics: Family<PoolLabels, Counter>,
    /// Additions that found no room.
    pub refused: Family<PoolLabels, Counter>,
    unfinished: Family<QueueLabels, Ages>,
    longest: Family<QueueLabels, Ages>,
}

impl Default for QueueMetrics {
    fn default() -> Self {
        let durations = || Histogram::new((0..10).map(|k| 10_f64.powi(k) / 1e8));
        Self {
            depth: Family::default(),
            adds: Family::default(),
            waited: Family::new(durations),
            worked: Family::new(durations),
            retries: Family::default(),
            panics: Family::default(),
            refused: Family::default(),
            unfinished: Family::new(|| Ages::new(Aspect::Sum)),
            longest: Family::new(|| Ages::new(Aspect::Oldest)),
        }
    }
}

impl QueueMetrics {
    /// The meter of one queue. A later one of the same name goes on with the same series.
    pub fn queue(&self, name: &'static str, clock: &Arc<dyn Clock>) -> Meter {
        let (labels, own) = (QueueLabels { name }, PoolLabels { queue: name });
        let running = Arc::new(Mutex::new(Vec::new()));
        for ages in [self.unfinished.with(&labels), self.longest.with(&labels)] {
            *lock(&ages.of) = Some((Arc::clone(clock), Arc::clone(&running)));
        }
        Meter {
            depth: self.depth.with(&labels),
            adds: self.adds.with(&labels),
            waited: self.waited.with(&labels),
            worked: self.worked.with(&labels),
            retries: self.retries.with(&labels),
            panics: self.panics.with(&own),
            refused: self.refused.with(&own),
            running,
            seen: Mutex::default(),
        }
    }

    pub fn register(&self, registry: &mut Registry) {
        publish(registry, &table::QUEUE_DEPTH, self.depth.clone());
        publish(registry, &table::QUEUE_ADDS, self.adds.clone());
        publish(registry, &table::QUEUE_WAITED, self.waited.clone());
        publish(registry, &table::QUEUE_WORKED, self.worked.clone());
        publish(registry, &table::QUEUE_UNFINISHED, self.unfinished.clone());
        publish(registry, &table::QUEUE_LONGEST, self.longest.clone());
        publish(registry, &table::QUEUE_RETRIES, self.retries.clone());
        publish(registry, &table::WORKER_PANICS, self.panics.clone());
        publish(registry, &table::QUEUE_REFUSED, self.refused.clone());
    }
}

/// The metrics of one queue. When it is dropped, nothing waits and nothing is in progress any more.
#[derive(Debug)]
pub struct Meter {
    depth: Gauge,
    adds: Counter,
    waited: Histogram,
    worked: Histogram,
    retries: Counter,
    panics: Counter,
    refused: Counter,
    running: Running,
    seen: Mutex<Counters>,
}

impl Meter {
    pub(crate) fn counted(&self, now: Counters) {
        let before = std::mem::replace(&mut *lock(&self.seen), now);
        let added = now.adds.saturating_sub(before.adds);
        self.adds.inc_by(added);
        self.depth.add(i64::try_from(added).unwrap_or(i64::MAX));
        self.retries.inc_by(now.retries.saturating_sub(before.retries));
        self.refused.inc_by(now.refused.saturating_sub(before.refused));
    }

    pub(crate) fn began(&self, waited: Duration, now: Tick) {
        self.depth.add(-1);
        self.waited.observe(waited);
        lock(&self.running).push(now);
    }

    pub(crate) fn ended(&self, took: Duration, now: Tick) {
        self.worked.observe(took);
        let mut running = lock(&self.running);
        if let Some(place) = running.iter().position(|since| now.since(*since) == took) {
            running.swap_remove(place);
        }
    }

    pub(crate) fn emptied(&self) {
        self.depth.set(0);
    }

    pub(crate) fn panicked(&self) {
        self.panics.inc();
    }
}

impl Drop for Meter {
    fn drop(&mut self) {
        self.emptied();
        lock(&self.running).clear();
    }
}

/// Since when each piece of work has been in progress.
type Running = Arc<Mutex<Vec<Tick>>>;
/// The work in progress of the queue that bears the name at present, and its clock.
type InProgress = (Arc<dyn Clock>, Running);

#[derive(Clone, Copy, Debug)]
enum Aspect {
    Sum,
    Oldest,
}

/// The ages of the work in progress, computed at each scrape.
#[derive(Clone)]
struct Ages {
    aspect: Aspect,
    of: Arc<Mutex<Option<InProgress>>>,
}

impl Ages {
    fn new(aspect: Aspect) -> Self {
        Self { aspect, of: Arc::default() }
    }

    fn now(&self) -> Duration {
        let of = lock(&self.of);
        let Some((clock, running)) = &*of else { return Duration::ZERO };
        let now = clock.now();
        let running = lock(running);
        let ages = running.iter().map(|since| now.since(*since));
        match self.aspect {
            Aspect::Sum => ages.sum(),
            Aspect::Oldest => ages.max().unwrap_or_default(),
        }
    }
}

impl fmt::Debug for Ages {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Ages").field("aspect", &self.aspect).finish_non_exhaustive()
    }
}

impl EncodeMetric for Ages {
    fn encode(&self, mut encoder: MetricEncoder<'_>) -> fmt::Result {
        encoder.encode_gauge(&self.now().as_secs_f64())
    }

    fn metric_type(&self) -> MetricType {
        MetricType::Gauge
    }
}
