//! The kinds of series.
//!
//! They print in the plain text format, where a counter carries the name that it was registered by; the registry's own
//! counters append a suffix and could not carry every name that is expected. A family keeps its series in order, so
//! that the same run prints the same page.

#![allow(missing_docs, reason = "the methods of counters, gauges and histograms are the usual ones")]

use std::{
    collections::BTreeMap,
    fmt,
    sync::{Arc, Mutex},
    time::Duration,
};

use cloudberth_core::metric::Metric;
use prometheus_client::{
    encoding::{EncodeLabelSet, EncodeMetric, MetricEncoder, NoLabelSet},
    metrics::{MetricType, counter, gauge},
    registry::{self, Registry},
};

use crate::lock;

/// Registers the series of a metric.
pub fn publish(registry: &mut Registry, metric: &Metric, series: impl registry::Metric) {
    registry.register(metric.name, metric.help(), series);
}

/// A number that only grows.
#[derive(Clone, Debug, Default)]
pub struct Counter(counter::Counter);

impl Counter {
    pub fn inc(&self) {
        self.0.inc();
    }

    /// Adds `more`.
    pub fn inc_by(&self, more: u64) {
        self.0.inc_by(more);
    }

    pub fn get(&self) -> u64 {
        self.0.get()
    }
}

impl EncodeMetric for Counter {
    fn encode(&self, mut encoder: MetricEncoder<'_>) -> fmt::Result {
        encoder.encode_gauge(&self.get())
    }

    fn metric_type(&self) -> MetricType {
        MetricType::Counter
    }
}

/// A whole number that goes up and down.
#[derive(Clone, Debug, Default)]
pub struct Gauge(gauge::Gauge);

impl Gauge {
    pub fn set(&self, value: i64) {
        self.0.set(value);
    }

    /// Changes it by `by`, which may be negative.
    pub fn add(&self, by: i64) {
        self.0.inc_by(by);
    }

    pub fn get(&self) -> i64 {
        self.0.get()
    }
}

impl EncodeMetric for Gauge {
    fn encode(&self, encoder: MetricEncoder<'_>) -> fmt::Result {
        self.0.encode(encoder)
    }

    fn metric_type(&self) -> MetricType {
        MetricType::Gauge
    }
}

#[derive(Clone, Debug)]
pub struct Histogram(Arc<Mutex<Observed>>);

#[derive(Debug)]
struct Observed {
    sum: f64,
    count: u64,
    buckets: Vec<(f64, u64)>,
}

impl Histogram {
    /// Buckets up to each of these, and one for whatever is larger.
    pub fn new(bounds: impl IntoIterator<Item = f64>) -> Self {
        let bounds = bounds.into_iter().filter(|bound| bound.is_finite()).chain([f64::INFINITY]);
        let buckets = bounds.map(|bound| (bound, 0)).collect();
        Self(Arc::new(Mutex::new(Observed { sum: 0.0, count: 0, buckets })))
    }

    /// `length` buckets, the first up to `start`, each `factor` times as large as the one before.
    pub fn exponential(start: f64, factor: f64, length: i32) -> Self {
        Self::new((0..length).map(|k| start * factor.powi(k)))
    }

    pub fn observe(&self, took: Duration) {
        self.observe_value(took.as_secs_f64());
    }

    pub fn observe_value(&self, value: f64) {
        let mut observed = lock(&self.0);
        observed.sum += value;
        observed.count += 1;
        if let Some((_, count)) = observed.buckets.iter_mut().find(|(bound, _)| value <= *bound) {
            *count += 1;
        }
    }

    pub fn count(&self) -> u64 {
        lock(&self.0).count
    }

    pub fn sum(&self) -> f64 {
        lock(&self.0).sum
    }
}

impl EncodeMetric for Histogram {
    fn encode(&self, mut encoder: MetricEncoder<'_>) -> fmt::Result {
        let observed = lock(&self.0);
        encoder.encode_histogram::<NoLabelSet>(observed.sum, observed.count, &observed.buckets, None)
    }

    fn metric_type(&self) -> MetricType {
        MetricType::Histogram
    }
}

/// One series for each set of labels. The labels must come from a fixed set, or be forgotten when what they name is gone.
pub struct Family<L, M> {
    series: Arc<Mutex<BTreeMap<L, M>>>,
    kind: MetricType,
    make: fn() -> M,
}

impl<L: Ord + Clone, M: Clone + EncodeMetric> Family<L, M> {
    /// A family without series, of which each is made by `make`.
    pub fn new(make: fn() -> M) -> Self {
        Self { series: Arc::default(), kind: make().metric_type(), make }
    }

    /// The series of these labels; it is printed from now on.
    pub fn with(&self, labels: &L) -> M {
        let mut series = lock(&self.series);
        if let Some(known) = series.get(labels) {
            return known.clone();
        }
        let made = (self.make)();
        series.insert(labels.clone(), made.clone());
        made
    }

    /// Prints the series of these labels no more.
    pub fn forget(&self, labels: &L) {
        lock(&self.series).remove(labels);
    }
}

impl<L: Ord + Clone, M: Clone + EncodeMetric + Default> Default for Family<L, M> {
    fn default() -> Self {
        Self::new(M::default)
    }
}

impl<L, M> Clone for Family<L, M> {
    fn clone(&self) -> Self {
        Self { series: Arc::clone(&self.series), kind: self.kind, make: self.make }
    }
}

impl<L: fmt::Debug, M: fmt::Debug> fmt::Debug for Family<L, M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_map().entries(lock(&self.series).iter()).finish()
    }
}

impl<L: EncodeLabelSet, M: EncodeMetric> EncodeMetric for Family<L, M> {
    fn encode(&self, mut encoder: MetricEncoder<'_>) -> fmt::Result {
        lock(&self.series)
            .iter()
            .try_for_each(|(labels, series)| series.encode(encoder.encode_family(labels)?))
    }

    fn metric_type(&self) -> MetricType {
        self.kind
    }

    fn is_empty(&self) -> bool {
        lock(&self.series).is_empty()
    }
}
