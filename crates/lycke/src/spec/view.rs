//! A spec as JSON.

use serde::Serialize;

use super::{
    Spec,
    read::{FAMILIES, HEALTH_KINDS, POLICIES, PROXY_PROTOCOLS},
};
use crate::{inventory::AddressMode, plane::Protocol};

/// Everything of a spec, with its defaults; `spec::read` understands it.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct SpecView<'a> {
    uid: &'a str,
    requested_address: String,
    families: Vec<&'static str>,
    listeners: Vec<ListenerView>,
    backends: Vec<BackendView<'a>>,
    affinity: AffinityView,
    source_ranges: Vec<String>,
    health: HealthView<'a>,
    proxy_protocol: &'static str,
    policy: &'static str,
    idle_timeout_seconds: u32,
    #[serde(skip_serializing_if = "Option::is_none")]
    address_mode: Option<&'static str>,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct ListenerView {
    protocol: &'static str,
    port: u16,
    node_port: u16,
}

#[derive(Debug, Serialize)]
struct BackendView<'a> {
    machine: &'a str,
    address: String,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct AffinityView {
    kind: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    timeout_seconds: Option<u32>,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct HealthView<'a> {
    kind: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    port: Option<u16>,
    path: &'a str,
    interval_seconds: u32,
    timeout_seconds: u32,
    healthy_threshold: u32,
    unhealthy_threshold: u32,
}

/// The word for a transport.
pub(crate) const fn protocol(protocol: Protocol) -> &'static str {
    match protocol {
        Protocol::Tcp => "TCP",
        Protocol::Udp => "UDP",
    }
}

fn word<T: PartialEq>(words: &[(&'static str, T)], meant: &T) -> &'static str {
    words.iter().find(|(_, value)| value == meant).map_or("", |(word, _)| *word)
}

impl<'a> SpecView<'a> {
    /// With this mode; none where it is to follow the inventory later on, too.
    pub(crate) fn new(spec: &'a Spec, mode: Option<AddressMode>) -> Self {
        let health = &spec.health;
        Self {
            uid: &spec.uid,
            requested_address: spec.requested_address.map(|ip| ip.to_string()).unwrap_or_default(),
            families: spec.families.iter().map(|family| word(FAMILIES, family)).collect(),
            listeners: (spec.listeners.iter())
                .map(|one| ListenerView {
                    protocol: protocol(one.protocol),
                    port: one.port,
                    node_port: one.node_port,
                })
                .collect(),
            backends: (spec.backends.iter())
                .map(|one| BackendView { machine: &one.machine, address: one.address.to_string() })
                .collect(),
            affinity: AffinityView {
                kind: if spec.affinity.is_some() { "ClientIP" } else { "None" },
                timeout_seconds: spec.affinity,
            },
            source_ranges: spec.source_ranges.iter().map(ToString::to_string).collect(),
            health: HealthView {
                kind: word(HEALTH_KINDS, &health.kind),
                port: health.port,
                path: &health.path,
                interval_seconds: health.interval,
                timeout_seconds: health.timeout,
                healthy_threshold: health.healthy_threshold,
                unhealthy_threshold: health.unhealthy_threshold,
            },
            proxy_protocol: word(PROXY_PROTOCOLS, &spec.proxy_protocol),
            policy: word(POLICIES, &spec.policy),
            idle_timeout_seconds: spec.idle_timeout,
            address_mode: mode.map(AddressMode::as_str),
        }
    }
}
