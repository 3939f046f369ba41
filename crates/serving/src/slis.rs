//! `/metrics/slis`: the results of the health checks, each time they were asked for.

use jiff::Timestamp;
use prometheus_client::{
    metrics::{
        family::Family,
        gauge::{ConstGauge, Gauge},
    },
    registry::Registry,
};

use crate::{
    health::Report,
    metrics::{BareCounter, publish},
};

cloudberth_core::metrics! {
    /// Every metric of `/metrics/slis`.
    pub SLIS;

    HEALTH_CHECK = Unmarked Gauge "kubernetes_healthcheck" ["name", "type"],
        "The newest outcome of each check";
    HEALTH_CHECKS = Unmarked Counter "kubernetes_healthchecks_total" ["name", "type", "status"],
        "All outcomes of each check";
    START_TIME = Unmarked Gauge "process_start_time_seconds" [],
        "When the process began";
}

type GaugeLabels = [(&'static str, String); 2];
type CounterLabels = [(&'static str, String); 3];

#[derive(Debug)]
pub(crate) struct Slis {
    registry: Registry,
    state: Family<GaugeLabels, Gauge>,
    total: Family<CounterLabels, BareCounter>,
}

impl Slis {
    pub(crate) fn new(started: Timestamp) -> Self {
        let mut registry = Registry::default();
        let (state, total) = (Family::default(), Family::default());
        publish(&mut registry, &HEALTH_CHECK, state.clone());
        publish(&mut registry, &HEALTH_CHECKS, total.clone());
        #[expect(clippy::cast_precision_loss, reason = "seconds since 1970 fit")]
        let started = started.as_second() as f64;
        publish(&mut registry, &START_TIME, ConstGauge::new(started));
        Self { registry, state, total }
    }

    pub(crate) fn observe(&self, page: &str, report: &Report) {
        for (name, failure) in &report.outcomes {
            let labels = || [("name", name.clone()), ("type", page.to_owned())];
            let status = if failure.is_none() { "success" } else { "error" };
            self.state.get_or_create(&labels()).set(i64::from(failure.is_none()));
            let [name, page] = labels();
            self.total.get_or_create(&[name, page, ("status", status.to_owned())]).inc();
        }
    }

    pub(crate) fn reset(&self) {
        self.state.clear();
        self.total.clear();
    }

    pub(crate) fn text(&self) -> String {
        let mut text = String::new();
        // Writing to a string does not fail.
        let _ = prometheus_client::encoding::text::encode(&mut text, &self.registry);
        text
    }
}
