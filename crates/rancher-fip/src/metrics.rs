//! What is measured beside queues, election and requests.

#![allow(missing_docs, reason = "fields are labels, explained in the table")]

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use cloudberth_core::metrics;
use cloudberth_runtime::metrics::{Counter, Family, Gauge, Histogram, Registry, publish};
use prometheus_client::encoding::EncodeLabelSet;

metrics! {
    /// The metrics of the cluster manager for Rancher.
    pub TABLE;

    PHASE = Alpha Gauge "cloudberth_rancher_fip_cluster_phase" ["cluster", "phase", "error"],
        "1 for the phase that an enabled cluster is in, and the reason of its first problem";
    PASSES = Alpha Counter "cloudberth_rancher_fip_passes_total" ["controller", "result"],
        "Passes over clusters and quotas, by how they ended";
    HELM = Alpha Histogram "cloudberth_rancher_fip_helm_duration_seconds" ["action", "result"],
        "Seconds that an operation of Helm took";
    RELEASED = Alpha Counter "cloudberth_rancher_fip_released_total" [],
        "Floating IPs that were released because their cluster is gone";
}

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, EncodeLabelSet)]
struct PhaseLabels {
    cluster: String,
    phase: &'static str,
    error: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, EncodeLabelSet)]
struct PassLabels {
    controller: &'static str,
    result: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, EncodeLabelSet)]
struct HelmLabels {
    action: &'static str,
    result: &'static str,
}

/// What is measured.
#[derive(Clone, Debug)]
pub struct FipMetrics {
    phases: Family<PhaseLabels, Gauge>,
    now: Arc<Mutex<BTreeMap<String, PhaseLabels>>>,
    passes: Family<PassLabels, Counter>,
    helm: Family<HelmLabels, Histogram>,
    released: Counter,
}

impl Default for FipMetrics {
    fn default() -> Self {
        Self {
            phases: Family::default(),
            now: Arc::default(),
            passes: Family::default(),
            helm: Family::new(|| Histogram::exponential(0.5, 2.0, 11)),
            released: Counter::default(),
        }
    }
}

impl FipMetrics {
    pub fn register(&self, registry: &mut Registry) {
        publish(registry, &PHASE, self.phases.clone());
        publish(registry, &PASSES, self.passes.clone());
        publish(registry, &HELM, self.helm.clone());
        publish(registry, &RELEASED, self.released.clone());
    }

    /// The phase of a cluster; `error` is empty if there is none.
    pub fn phase(&self, cluster: &str, phase: &'static str, error: &'static str) {
        let labels = PhaseLabels { cluster: cluster.to_owned(), phase, error };
        let before = self.now().insert(cluster.to_owned(), labels.clone());
        if let Some(before) = before.filter(|before| *before != labels) {
            self.phases.forget(&before);
        }
        self.phases.with(&labels).set(1);
    }

    /// The cluster is gone, or does not take part any more.
    pub fn forget(&self, cluster: &str) {
        if let Some(labels) = self.now().remove(cluster) {
            self.phases.forget(&labels);
        }
    }

    pub fn passed(&self, controller: &'static str, result: &'static str) {
        self.passes.with(&PassLabels { controller, result }).inc();
    }

    pub fn helm(&self, action: &'static str, result: &'static str, took: Duration) {
        self.helm.with(&HelmLabels { action, result }).observe(took);
    }

    pub fn released(&self) {
        self.released.inc();
    }

    fn now(&self) -> std::sync::MutexGuard<'_, BTreeMap<String, PhaseLabels>> {
        self.now.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use cloudberth_runtime::metrics::render;

    use super::*;

    #[test]
    fn a_cluster_has_one_phase_and_takes_it_along() {
        let mut registry = Registry::default();
        let metrics = FipMetrics::default();
        metrics.register(&mut registry);
        let lines = || {
            let page = render(&registry);
            page.lines().filter(|line| line.starts_with(PHASE.name)).map(str::to_owned).collect::<Vec<_>>()
        };
        metrics.phase("c-1", "failing", "ChartFailed");
        metrics.phase("c-2", "ready", "");
        let failing =
            r#"cloudberth_rancher_fip_cluster_phase{cluster="c-1",phase="failing",error="ChartFailed"} 1"#;
        assert_eq!(lines()[0], failing, "RF-195");
        metrics.phase("c-1", "ready", "");
        assert_eq!((lines().len(), lines()[0].contains("ready")), (2, true), "RF-195");
        metrics.forget("c-1");
        assert!(lines().len() == 1 && lines()[0].contains("c-2"), "RF-195 series vanish with the cluster");
    }
}
