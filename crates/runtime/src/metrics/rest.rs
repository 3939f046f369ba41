//! What calls to the Kubernetes API cost.

#![allow(missing_docs, reason = "fields are labels and metrics, explained where they are registered")]

use std::time::Duration;

use prometheus_client::encoding::EncodeLabelSet;

use super::{
    Registry,
    kinds::{Counter, Family, Histogram, publish},
    table,
};

const SECONDS: [f64; 12] = [0.005, 0.025, 0.1, 0.25, 0.5, 1.0, 2.0, 4.0, 8.0, 15.0, 30.0, 60.0];
const BYTES: [f64; 11] =
    [64.0, 256.0, 512.0, 1024.0, 4096.0, 16384.0, 65536.0, 262_144.0, 1_048_576.0, 4_194_304.0, 16_777_216.0];

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, EncodeLabelSet)]
pub struct EndLabels {
    /// The status, `<error>` if there was no answer.
    pub code: String,
    /// `GET` and the like.
    pub method: String,
    pub host: String,
}

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, EncodeLabelSet)]
pub struct VerbLabels {
    /// `GET` and the like.
    pub verb: String,
    pub host: String,
}

/// The metrics of the calls to the Kubernetes API.
#[derive(Clone, Debug)]
pub struct RestMetrics {
    pub requests: Family<EndLabels, Counter>,
    /// How long they took; watches are left out, their length says nothing.
    pub durations: Family<VerbLabels, Histogram>,
    pub sizes: Family<VerbLabels, Histogram>,
}

impl Default for RestMetrics {
    fn default() -> Self {
        Self {
            requests: Family::default(),
            durations: Family::new(|| Histogram::new(SECONDS)),
            sizes: Family::new(|| Histogram::new(BYTES)),
        }
    }
}

impl RestMetrics {
    /// A request is over, or its answer has begun. `took` is left out for a watch.
    pub(crate) fn ended(
        &self,
        labels: VerbLabels,
        status: Option<u16>,
        took: Option<Duration>,
        bytes: Option<u64>,
    ) {
        if let Some(took) = took {
            self.durations.with(&labels).observe(took);
        }
        if let Some(bytes) = bytes {
            let small = u32::try_from(bytes).unwrap_or(u32::MAX);
            self.sizes.with(&labels).observe_value(small.into());
        }
        let code = status.map_or_else(|| "<error>".to_owned(), |status| status.to_string());
        self.requests.with(&EndLabels { code, method: labels.verb, host: labels.host }).inc();
    }

    pub fn register(&self, registry: &mut Registry) {
        publish(registry, &table::KUBE_REQUESTS, self.requests.clone());
        publish(registry, &table::KUBE_DURATIONS, self.durations.clone());
        publish(registry, &table::KUBE_REQUEST_SIZES, self.sizes.clone());
    }
}
