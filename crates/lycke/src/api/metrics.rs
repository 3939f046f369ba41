//! Numbers for Prometheus, in its text format.

use std::{collections::BTreeMap, fmt::Write as _};

use http::StatusCode;

use super::{ApiResponse, answer};
use crate::{control::Control, plane::ListenerFault};

pub(super) fn answer(control: &Control) -> ApiResponse {
    answer::with_type(StatusCode::OK, "text/plain; version=0.0.4; charset=utf-8", text(control))
}

fn text(control: &Control) -> String {
    let balancers = control.balancers(None);
    let mut listeners = BTreeMap::from([("bound", 0_u64), ("failed", 0), ("shifted", 0)]);
    let mut backends = BTreeMap::from([("false", 0_u64), ("true", 0), ("unknown", 0)]);
    for report in balancers.iter().filter_map(|status| status.report.as_ref()) {
        for listener in &report.listeners {
            let state = match (&listener.bound, &listener.fault) {
                (None, _) => "failed",
                (Some(_), Some(ListenerFault::Shifted)) => "shifted",
                (Some(_), _) => "bound",
            };
            *listeners.entry(state).or_default() += 1;
        }
        for backend in &report.backends {
            let healthy = match backend.healthy {
                None => "unknown",
                Some(true) => "true",
                Some(false) => "false",
            };
            *backends.entry(healthy).or_default() += 1;
        }
    }
    let totals = control.plane().totals();
    let connections = totals.connections;
    let (valid, age) = control.with_state(|state, now| (state.faults.is_none(), now.since(state.loaded)));
    let vagrant = control.vagrant_age().map_or("NaN".to_owned(), |age| age.as_secs_f64().to_string());
    let mut page = Page::default();
    page.metric("balancers", "gauge", "Load balancers", &[("", balancers.len().to_string())]);
    page.metric("listeners", "gauge", "Listeners, by state", &labelled("state", &listeners));
    let results = [
        ("accepted", connections.accepted),
        ("rejected", connections.refused_source + connections.refused_limit),
        ("failed", connections.failed + connections.no_backend),
    ];
    let results = labelled("result", &BTreeMap::from(results));
    page.metric("connections_total", "counter", "TCP clients, by what became of them", &results);
    page.metric(
        "connections_open",
        "gauge",
        "TCP clients that are connected",
        &[("", connections.open.to_string())],
    );
    let bytes = BTreeMap::from([("in", totals.bytes_in), ("out", totals.bytes_out)]);
    page.metric("bytes_total", "counter", "Bytes from and to clients", &labelled("direction", &bytes));
    page.metric("backends", "gauge", "Backends, by health", &labelled("healthy", &backends));
    page.metric("udp_flows", "gauge", "UDP flows that are remembered", &[("", totals.udp_flows.to_string())]);
    let valid = u8::from(valid).to_string();
    page.metric("inventory_valid", "gauge", "Whether the inventory file has no faults", &[("", valid)]);
    let age = age.as_secs_f64().to_string();
    page.metric("inventory_age_seconds", "gauge", "Since the inventory was loaded", &[("", age)]);
    page.metric("vagrant_age_seconds", "gauge", "Since Vagrant answered", &[("", vagrant)]);
    page.0
}

fn labelled(label: &str, values: &BTreeMap<&str, u64>) -> Vec<(String, String)> {
    values.iter().map(|(value, count)| (format!("{{{label}=\"{value}\"}}"), count.to_string())).collect()
}

#[derive(Default)]
struct Page(String);

impl Page {
    fn metric<L: AsRef<str>>(&mut self, name: &str, kind: &str, help: &str, samples: &[(L, String)]) {
        let _ = writeln!(self.0, "# HELP cloudlycke_{name} {help}\n# TYPE cloudlycke_{name} {kind}");
        for (labels, value) in samples {
            let _ = writeln!(self.0, "cloudlycke_{name}{} {value}", labels.as_ref());
        }
    }
}
