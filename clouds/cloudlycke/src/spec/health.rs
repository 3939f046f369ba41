//! How nodes are checked.

use cloudberth_core::{
    annotation::{Parsed, Value},
    lb::Refusal,
    reason::INVALID_ANNOTATION,
    view::ExternalTrafficPolicy,
};

use super::{Spec, own};
use crate::{
    annotations::{
        HEALTH_INTERVAL, HEALTH_PATH, HEALTH_PORT, HEALTH_PROTOCOL, HEALTH_TIMEOUT, HEALTHY_THRESHOLD,
        UNHEALTHY_THRESHOLD,
    },
    wire::{BalancerSpec, Health},
};

const PATH: &str = "/healthz";

impl Spec {
    /// The service knows no traffic policy: with `Local` it is told to ask kube-proxy on each node whether pods are there.
    pub(super) fn health(
        &mut self,
        parsed: &Parsed<'_>,
        policy: &ExternalTrafficPolicy,
        health_check_node_port: i64,
        before: Option<&BalancerSpec>,
    ) {
        let before = before.map(|spec| &spec.health);
        let node_port = u16::try_from(health_check_node_port).ok().filter(|port| *port > 0);
        let local = node_port.filter(|_| *policy == ExternalTrafficPolicy::Local);
        let mut kind = own(&parsed.get(&HEALTH_PROTOCOL))
            .settle("auto".to_owned(), before.map(|health| health.kind.clone()));
        let mut port = match parsed.get(&HEALTH_PORT) {
            Value::Set(port) => u16::try_from(port).ok(),
            Value::Unset => None,
            Value::Wrong => before.and_then(|health| health.port),
        };
        if kind == "auto" && port.is_none() && local.is_some() {
            "http".clone_into(&mut kind);
        }
        if kind == "http" && port.is_none() {
            port = local;
        }
        if kind == "http" && port.is_none() {
            let field = parsed.spelling(&HEALTH_PROTOCOL).unwrap_or(HEALTH_PROTOCOL.name());
            let text = format!("\"http\" needs a port: set {} too", HEALTH_PORT.name());
            self.refused.push(Refusal::new(INVALID_ANNOTATION, field, text));
            let kept = before.map(|health| (health.kind.clone(), health.port));
            (kind, port) = kept.unwrap_or_else(|| ("auto".to_owned(), None));
        }
        if kind == "none" {
            port = None;
        }
        let number = |value: Value<u32>, default, observed: fn(&Health) -> u32| {
            value.settle(default, before.map(observed))
        };
        let path = parsed.get(&HEALTH_PATH);
        self.wire.health = Health {
            kind,
            port,
            path: path.settle(PATH.to_owned(), before.map(|health| health.path.clone())),
            interval_seconds: number(parsed.get(&HEALTH_INTERVAL), 2, |health| health.interval_seconds),
            timeout_seconds: number(parsed.get(&HEALTH_TIMEOUT), 1, |health| health.timeout_seconds),
            healthy_threshold: number(parsed.get(&HEALTHY_THRESHOLD), 1, |health| health.healthy_threshold),
            unhealthy_threshold: number(parsed.get(&UNHEALTHY_THRESHOLD), 2, |health| {
                health.unhealthy_threshold
            }),
        };
    }
}
