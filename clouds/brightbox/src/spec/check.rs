//! How nodes are checked.

use cloudberth_core::{
    ServiceView,
    annotation::{Key, Parsed, Unsigned, Value},
    view::ExternalTrafficPolicy,
};

use crate::{
    annotations::{
        CHECK_DOWN, CHECK_INTERVAL, CHECK_PROTOCOL, CHECK_REQUEST, CHECK_TARGET, CHECK_TIMEOUT, CHECK_UP,
        LISTENER_PROTOCOL,
    },
    wire::{CheckOptions, HealthCheck, ListenerOptions, LoadBalancer},
};

/// The port that is checked where there is none at all.
const NO_PORT: i64 = 80;

/// The port at which kube-proxy says whether a node serves Services.
pub(super) const KUBE_PROXY: i64 = 10_256;

/// The health check. Where an annotation is wrong, what runs stays.
pub(super) fn health_check(
    service: &ServiceView,
    parsed: &Parsed<'_>,
    listeners: &[ListenerOptions],
    existing: Option<&LoadBalancer>,
) -> CheckOptions {
    let running = existing.map(|balancer| &balancer.healthcheck);
    let local = is_local(service);
    let target = parsed.get(&CHECK_TARGET);
    let kube_proxy = !local && target == Value::Set("kube-proxy");
    // Where the protocol of the listeners is refused, nobody can tell which check follows from it.
    let unclear = parsed.get(&LISTENER_PROTOCOL) == Value::Wrong;
    let kind = match (parsed.get(&CHECK_PROTOCOL), running) {
        (Value::Set(kind), _) => kind.to_owned(),
        (Value::Wrong, Some(running)) => running.kind.clone(),
        (Value::Unset, Some(running)) if unclear => running.kind.clone(),
        (Value::Unset, Some(running)) if target == Value::Wrong => running.kind.clone(),
        _ if !local && !kube_proxy && parsed.settle(&LISTENER_PROTOCOL, None) == Some("tcp") => {
            "tcp".to_owned()
        }
        _ => "http".to_owned(),
    };
    let first = listeners.first().map(|listener| listener.outside);
    let port = match (&target, running) {
        _ if local => service.health_check_node_port,
        _ if kube_proxy => KUBE_PROXY,
        (Value::Wrong, Some(running)) => running.port,
        _ => first.or(running.map(|running| running.port)).unwrap_or(NO_PORT),
    };
    let request = if kind == "tcp" {
        Some("/".to_owned())
    } else {
        let running = running.map(|running| running.request.clone());
        parsed.settle(&CHECK_REQUEST, running).filter(|path| !path.is_empty())
    };
    let number =
        |key: &Key<Unsigned>, running: fn(&HealthCheck) -> Option<i64>, check: Option<&HealthCheck>| {
            match parsed.get(key) {
                Value::Unset | Value::Set(0) => None,
                Value::Set(number) => Some(i64::from(number)),
                Value::Wrong => check.and_then(running),
            }
        };
    CheckOptions {
        kind,
        port,
        request,
        interval: number(&CHECK_INTERVAL, |check| check.interval, running),
        timeout: number(&CHECK_TIMEOUT, |check| check.timeout, running),
        threshold_up: number(&CHECK_UP, |check| check.threshold_up, running),
        threshold_down: number(&CHECK_DOWN, |check| check.threshold_down, running),
    }
}

/// Whether nodes say themselves if they have a pod.
fn is_local(service: &ServiceView) -> bool {
    service.external_traffic_policy == ExternalTrafficPolicy::Local && service.health_check_node_port != 0
}

/// Whether checks ask the workload for a path that nobody has chosen for it.
pub(super) fn asks_workload(service: &ServiceView, parsed: &Parsed<'_>, check: &CheckOptions) -> bool {
    let chosen = parsed.get(&CHECK_PROTOCOL) != Value::Unset || parsed.get(&CHECK_REQUEST) != Value::Unset;
    !chosen && check.kind == "http" && check.port != KUBE_PROXY && !is_local(service)
}
