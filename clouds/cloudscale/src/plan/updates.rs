//! What can be changed in place: one step for each attribute that differs, because the API takes no more than one at a
//! time. An attribute that the API does not show is left alone.

use cloudberth_core::lb::{Impact, Step};

use super::pairs::Pair;
use crate::{
    act::Act,
    wire::{HttpChange, HttpOptions, ListenerChange, MonitorChange},
    wish::canonical,
};

pub(super) fn updates(pair: &Pair<'_>) -> Vec<Step<Act>> {
    let mut steps = listener(pair);
    steps.extend(monitor(pair));
    steps
}

fn listener(pair: &Pair<'_>) -> Vec<Step<Act>> {
    let wanted = &pair.wanted.listener;
    let Some(seen) = pair.listener() else { return Vec::new() };
    let mut steps = Vec::new();
    let mut set = |change, impact, what: &str| {
        let act = Act::UpdateListener { listener: seen.uuid.clone(), change };
        steps.push(Step::new(act, impact, format!("set {what} on port {}", seen.name)));
    };
    if canonical(&seen.allowed_cidrs) != canonical(&wanted.allowed_cidrs) {
        // The text goes as it was written: the program that we replace compares it.
        let change = ListenerChange::AllowedCidrs(wanted.allowed_cidrs.clone());
        set(change, Impact::Minimal, "who may connect");
    }
    if differs(seen.timeout_client_data_ms, wanted.timeout_client_data) {
        let change = ListenerChange::TimeoutClientData(wanted.timeout_client_data);
        set(change, Impact::None, "the time-out of clients");
    }
    if differs(seen.timeout_member_connect_ms, wanted.timeout_member_connect) {
        let change = ListenerChange::TimeoutMemberConnect(wanted.timeout_member_connect);
        set(change, Impact::None, "the time-out to connect to nodes");
    }
    if differs(seen.timeout_member_data_ms, wanted.timeout_member_data) {
        let change = ListenerChange::TimeoutMemberData(wanted.timeout_member_data);
        set(change, Impact::None, "the time-out of nodes");
    }
    steps
}

fn differs(seen: Option<i64>, wanted: i64) -> bool {
    seen.is_some_and(|seen| seen != wanted)
}

fn monitor(pair: &Pair<'_>) -> Vec<Step<Act>> {
    let wanted = &pair.wanted.monitor;
    let Some(seen) = pair.monitor() else { return Vec::new() };
    let mut changes = match (&wanted.http, &seen.http) {
        (Some(wanted), Some(seen)) => http(wanted, seen),
        _ => Vec::new(),
    };
    let numbers = [
        (seen.delay_s, wanted.delay, MonitorChange::Delay(wanted.delay), "delay"),
        (seen.timeout_s, wanted.timeout, MonitorChange::Timeout(wanted.timeout), "time-out"),
        (seen.up_threshold, wanted.up, MonitorChange::UpThreshold(wanted.up), "up threshold"),
        (seen.down_threshold, wanted.down, MonitorChange::DownThreshold(wanted.down), "down threshold"),
    ];
    let other = numbers.into_iter().filter(|(seen, wanted, ..)| differs(*seen, *wanted));
    changes.extend(other.map(|(_, _, change, what)| (change, what)));
    let step = |(change, what)| {
        let act = Act::UpdateMonitor { monitor: seen.uuid.clone(), change };
        let label = format!("set the {what} of the check of pool {}", pair.wanted.name);
        Step::new(act, Impact::Minimal, label)
    };
    changes.into_iter().map(step).collect()
}

/// A host that is not wanted any more makes it another monitor, so only one that is wanted is set here.
fn http(wanted: &HttpOptions, seen: &HttpOptions) -> Vec<(MonitorChange, &'static str)> {
    let mut changes = Vec::new();
    if let Some(host) = wanted.host.as_ref().filter(|host| seen.host.as_ref() != Some(*host)) {
        changes.push((HttpChange::Host(host.clone()), "host"));
    }
    if wanted.url_path != seen.url_path {
        changes.push((HttpChange::UrlPath(wanted.url_path.clone()), "path"));
    }
    if wanted.method != seen.method {
        changes.push((HttpChange::Method(wanted.method.clone()), "method"));
    }
    if wanted.expected_codes != seen.expected_codes {
        changes.push((HttpChange::ExpectedCodes(wanted.expected_codes.clone()), "expected codes"));
    }
    changes.into_iter().map(|(change, what)| (MonitorChange::Http(change), what)).collect()
}
