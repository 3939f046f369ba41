//! What calls to the clouds cost.

#![allow(missing_docs, reason = "fields are labels and metrics, explained where they are registered")]

use std::time::Duration;

use cloudberth_core::metric::Metric;
use prometheus_client::encoding::EncodeLabelSet;

use super::{
    Registry,
    kinds::{Counter, Family, Histogram, publish},
    table,
};

const BOUNDS: [f64; 11] = [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0];

/// The operation, by the name that cloud dashboards know.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, EncodeLabelSet)]
pub struct RequestLabels {
    pub request: &'static str,
}

/// One attempt of an operation, and how it ended.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, EncodeLabelSet)]
pub struct AttemptLabels {
    pub provider: String,
    pub operation: &'static str,
    /// What came of it, from a fixed set.
    pub outcome: &'static str,
    /// The status of the answer, `none` if there was none.
    pub code: String,
}

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, EncodeLabelSet)]
pub struct ProviderLabels {
    pub provider: String,
}

/// The metrics of the calls to all clouds.
#[derive(Clone, Debug)]
pub struct CloudMetrics {
    pub attempts: Family<AttemptLabels, Counter>,
    /// Answers that told us to slow down.
    pub throttles: Family<ProviderLabels, Counter>,
    /// How long operations waited for our own budget.
    pub waits: Family<ProviderLabels, Histogram>,
}

impl Default for CloudMetrics {
    fn default() -> Self {
        Self {
            attempts: Family::default(),
            throttles: Family::default(),
            waits: Family::new(|| Histogram::new(BOUNDS)),
        }
    }
}

impl CloudMetrics {
    pub fn register(&self, registry: &mut Registry) {
        publish(registry, &table::CLOUD_REQUESTS, self.attempts.clone());
        publish(registry, &table::CLOUD_THROTTLES, self.throttles.clone());
        publish(registry, &table::CLOUD_BUDGET_WAITS, self.waits.clone());
    }

    /// The meter of one cloud, with the two series that are named after it. Once per cloud.
    pub fn cloud(&self, registry: &mut Registry, provider: &str) -> CloudMeter {
        let durations = Family::new(|| Histogram::new(BOUNDS));
        let errors = Family::default();
        let part: String = provider
            .chars()
            .map(|c| if c.is_ascii_alphanumeric() { c.to_ascii_lowercase() } else { '_' })
            .collect();
        let named = |metric: &Metric| metric.name.replace("{cloud}", &part);
        let (seconds, failed) = (&table::CLOUD_DURATIONS, &table::CLOUD_ERRORS);
        registry.register(named(seconds), seconds.help(), durations.clone());
        registry.register(named(failed), failed.help(), errors.clone());
        let labels = ProviderLabels { provider: provider.to_owned() };
        let (throttles, waits) = (self.throttles.with(&labels), self.waits.with(&labels));
        CloudMeter { labels, attempts: self.attempts.clone(), throttles, waits, durations, errors }
    }
}

/// The metrics of the calls to one cloud. What observes its client forwards to this.
#[derive(Clone, Debug)]
pub struct CloudMeter {
    labels: ProviderLabels,
    attempts: Family<AttemptLabels, Counter>,
    throttles: Counter,
    waits: Histogram,
    durations: Family<RequestLabels, Histogram>,
    errors: Family<RequestLabels, Counter>,
}

impl CloudMeter {
    /// One attempt is over. `operation` and `outcome` are from fixed sets.
    pub fn attempted(
        &self,
        operation: &'static str,
        status: Option<u16>,
        outcome: &'static str,
        took: Duration,
    ) {
        let request = RequestLabels { request: operation };
        self.durations.with(&request).observe(took);
        if status.is_none_or(|status| status >= 400) {
            self.errors.with(&request).inc();
        }
        if status == Some(429) {
            self.throttles.inc();
        }
        let code = status.map_or_else(|| "none".to_owned(), |status| status.to_string());
        let provider = self.labels.provider.clone();
        self.attempts.with(&AttemptLabels { provider, operation, outcome, code }).inc();
    }

    /// An operation had to wait for the budget of its credential.
    pub fn waited(&self, wait: Duration) {
        self.waits.observe(wait);
    }
}
