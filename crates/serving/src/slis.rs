//! `/metrics/slis`: the results of the health checks, each time they were asked for.

use jiff::Timestamp;
use prometheus_client::{
    metrics::{
        counter::Counter,
        family::Family,
        gauge::{ConstGauge, Gauge},
    },
    registry::Registry,
};

use crate::health::Report;

type GaugeLabels = [(&'static str, String); 2];
type CounterLabels = [(&'static str, String); 3];

#[derive(Debug)]
pub(crate) struct Slis {
    registry: Registry,
    state: Family<GaugeLabels, Gauge>,
    total: Family<CounterLabels, Counter>,
}

impl Slis {
    pub(crate) fn new(started: Timestamp) -> Self {
        let mut registry = Registry::default();
        let (state, total) = (Family::default(), Family::default());
        registry.register("kubernetes_healthcheck", "The newest outcome of each check", state.clone());
        registry.register("kubernetes_healthchecks", "All outcomes of each check", total.clone());
        #[expect(clippy::cast_precision_loss, reason = "seconds since 1970 fit")]
        let started = started.as_second() as f64;
        registry.register("process_start_time_seconds", "When the process began", ConstGauge::new(started));
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
