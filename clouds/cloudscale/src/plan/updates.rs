//! What can be changed in place: one step for each attribute that differs, because the API takes no more than one at a
//! time. An attribute that the API does not show is left alone.

use cloudberth_core::lb::{Impact, Step};

use super::pairs::Pair;
use crate::{
    action::Action,
    spec::canonical,
    wire::{HttpChange, HttpOptions, ListenerChange, MonitorChange},
};

pub(super) fn updates(pair: &Pair<'_>) -> Vec<Step<Action>> {
    let mut steps = listener(pair);
    steps.extend(monitor(pair));
    steps
}

fn listener(pair: &Pair<'_>) -> Vec<Step<Action>> {
    let wanted = &pair.wanted.listener;
    let Some(observed) = pair.listener() else { return Vec::new() };
    let mut steps = Vec::new();
    let mut set = |change, impact, what: &str| {
        let act = Action::UpdateListener { listener: observed.uuid.clone(), change };
        steps.push(Step::new(act, impact, format!("set {what} on port {}", observed.name)));
    };
    if canonical(&observed.allowed_cidrs) != canonical(&wanted.allowed_cidrs) {
        // The text goes as it was written: the program that we replace compares it.
        let change = ListenerChange::AllowedCidrs(wanted.allowed_cidrs.clone());
        set(change, Impact::Minimal, "who may connect");
    }
    if differs(observed.timeout_client_data_ms, wanted.timeout_client_data) {
        let change = ListenerChange::TimeoutClientData(wanted.timeout_client_data);
        set(change, Impact::None, "the time-out of clients");
    }
    if differs(observed.timeout_member_connect_ms, wanted.timeout_member_connect) {
        let change = ListenerChange::TimeoutMemberConnect(wanted.timeout_member_connect);
        set(change, Impact::None, "the time-out to connect to nodes");
    }
    if differs(observed.timeout_member_data_ms, wanted.timeout_member_data) {
        let change = ListenerChange::TimeoutMemberData(wanted.timeout_member_data);
        set(change, Impact::None, "the time-out of nodes");
    }
    steps
}

fn differs(observed: Option<i64>, wanted: i64) -> bool {
    observed.is_some_and(|observed| observed != wanted)
}

fn monitor(pair: &Pair<'_>) -> Vec<Step<Action>> {
    let wanted = &pair.wanted.monitor;
    let Some(observed) = pair.monitor() else { return Vec::new() };
    let mut changes = match (&wanted.http, &observed.http) {
        (Some(wanted), Some(observed)) => http(wanted, observed),
        _ => Vec::new(),
    };
    let numbers = [
        (observed.delay_s, wanted.delay, MonitorChange::Delay(wanted.delay), "delay"),
        (observed.timeout_s, wanted.timeout, MonitorChange::Timeout(wanted.timeout), "time-out"),
        (observed.up_threshold, wanted.up, MonitorChange::UpThreshold(wanted.up), "up threshold"),
        (observed.down_threshold, wanted.down, MonitorChange::DownThreshold(wanted.down), "down threshold"),
    ];
    let other = numbers.into_iter().filter(|(observed, wanted, ..)| differs(*observed, *wanted));
    changes.extend(other.map(|(_, _, change, what)| (change, what)));
    let step = |(change, what)| {
        let act = Action::UpdateMonitor { monitor: observed.uuid.clone(), change };
        let label = format!("set the {what} of the check of pool {}", pair.wanted.name);
        Step::new(act, Impact::Minimal, label)
    };
    changes.into_iter().map(step).collect()
}

/// A host that is not wanted any more makes it another monitor, so only one that is wanted is set here.
fn http(wanted: &HttpOptions, observed: &HttpOptions) -> Vec<(MonitorChange, &'static str)> {
    let mut changes = Vec::new();
    if let Some(host) = wanted.host.as_ref().filter(|host| observed.host.as_ref() != Some(*host)) {
        changes.push((HttpChange::Host(host.clone()), "host"));
    }
    if wanted.url_path != observed.url_path {
        changes.push((HttpChange::UrlPath(wanted.url_path.clone()), "path"));
    }
    if wanted.method != observed.method {
        changes.push((HttpChange::Method(wanted.method.clone()), "method"));
    }
    if wanted.expected_codes != observed.expected_codes {
        changes.push((HttpChange::ExpectedCodes(wanted.expected_codes.clone()), "expected codes"));
    }
    changes.into_iter().map(|(change, what)| (MonitorChange::Http(change), what)).collect()
}
