//! A spec from JSON.

use std::collections::BTreeSet;

use cloudberth_core::net::{IpFamily, parse_cidr, parse_ip};
use serde_json::Value;

use super::{
    Spec, SpecBackend, SpecHealth, SpecHealthKind,
    json::{Faults, Fields, Place},
};
use crate::{
    inventory::AddressMode,
    plane::{Listener, Policy, Protocol, ProxyProtocol},
};

const DAY: u32 = 86_400;
const DEFAULT_AFFINITY: u32 = 10_800;
const DEFAULT_IDLE: u32 = 600;

pub(super) const PROXY_PROTOCOLS: &[(&str, ProxyProtocol)] =
    &[("none", ProxyProtocol::None), ("v1", ProxyProtocol::V1), ("v2", ProxyProtocol::V2)];
pub(super) const POLICIES: &[(&str, Policy)] = &[
    ("round-robin", Policy::RoundRobin),
    ("least-connections", Policy::LeastConnections),
    ("source-hash", Policy::SourceHash),
];
pub(super) const FAMILIES: &[(&str, IpFamily)] = &[("IPv4", IpFamily::V4), ("IPv6", IpFamily::V6)];
pub(super) const HEALTH_KINDS: &[(&str, SpecHealthKind)] = &[
    ("auto", SpecHealthKind::Auto),
    ("tcp", SpecHealthKind::Tcp),
    ("http", SpecHealthKind::Http),
    ("none", SpecHealthKind::None),
];

/// Reads a spec, in which every default is then filled in. `mode` is that of the inventory. The error names all faults;
/// whether there are addresses of its families is seen when one is chosen.
pub fn read(body: &Value, mode: AddressMode) -> Result<Spec, String> {
    let faults = Faults::default();
    let spec = Place::root(body, &faults).fields(|fields| read_fields(fields, mode));
    faults.into_result()?;
    spec.flatten().ok_or_else(|| "the spec is not complete".to_owned())
}

fn read_fields(fields: &mut Fields<'_>, mode: AddressMode) -> Option<Spec> {
    let uid = fields.required("uid").parse(|uid| match uid {
        "" => Err("\"\" must not be empty".to_owned()),
        uid => Ok(uid.to_owned()),
    });
    let requested_address = fields.optional("requestedAddress").parse(|text| match text {
        "" => Ok(None),
        text => parse_ip(text).map(Some).ok_or_else(|| format!("{text:?} is not an IP address")),
    });
    let families_given = fields.optional("families");
    let listeners = read_listeners(&fields.required("listeners"));
    let backends = read_backends(&fields.optional("backends"));
    let affinity = fields.optional("affinity").fields(read_affinity).flatten();
    let source_ranges = fields.optional("sourceRanges").items(|range| {
        range.parse(|text| {
            parse_cidr(text).ok_or_else(|| format!("{text:?} is not a CIDR such as 10.0.0.0/8"))
        })
    });
    let health = fields.optional("health").fields(read_health).unwrap_or_default();
    let proxy_protocol = fields.optional("proxyProtocol").word(PROXY_PROTOCOLS).unwrap_or_default();
    let policy = fields.optional("policy").word(POLICIES).unwrap_or_default();
    let idle_timeout = fields.optional("idleTimeoutSeconds").integer(0..=DAY).unwrap_or(DEFAULT_IDLE);
    let address_mode = fields.optional("addressMode").parse(AddressMode::parse);
    let families = read_families(&families_given, address_mode.unwrap_or(mode));
    Some(Spec {
        uid: uid?,
        requested_address: requested_address.flatten(),
        families,
        listeners,
        backends,
        affinity,
        source_ranges: source_ranges
            .unwrap_or_default()
            .into_iter()
            .collect::<BTreeSet<_>>()
            .into_iter()
            .collect(),
        health,
        proxy_protocol,
        policy,
        idle_timeout,
        address_mode,
    })
}

fn read_families(given: &Place<'_>, mode: AddressMode) -> Vec<IpFamily> {
    let Some(families) = given.is_given().then(|| given.items(|family| family.word(FAMILIES))).flatten()
    else {
        return vec![IpFamily::V4];
    };
    if families.is_empty() {
        given.wrong("[] must name at least one family");
    }
    let unique: BTreeSet<_> = families.iter().collect();
    if unique.len() < families.len() {
        given.wrong("each family may be named once only");
    }
    if mode == AddressMode::Loopback && families.contains(&IpFamily::V6) {
        given.wrong_beside("IPv6 has one loopback address only, so it needs addressMode shared or pool");
    }
    families
}

fn read_listeners(given: &Place<'_>) -> Vec<Listener> {
    let mut listeners: Vec<Listener> = Vec::new();
    let items = given.items(|place| {
        let listener = place.fields(|fields| {
            let protocol = fields.required("protocol").parse(|text| match text {
                "TCP" => Ok(Protocol::Tcp),
                "UDP" => Ok(Protocol::Udp),
                "SCTP" => Err("\"SCTP\" is not supported; there are TCP and UDP".to_owned()),
                _ => Err(format!("{text:?} must be TCP or UDP")),
            });
            let (port, node_port) = (fields.required("port").port(), fields.required("nodePort").port());
            Some(Listener { protocol: protocol?, port: port?, node_port: node_port? })
        });
        if let Some(listener) = listener.flatten() {
            let same = |other: &&Listener| (other.protocol, other.port) == (listener.protocol, listener.port);
            if listeners.iter().find(same).is_some() {
                let protocol = if listener.protocol == Protocol::Tcp { "TCP" } else { "UDP" };
                place.wrong(&format!("{protocol} {} is there twice", listener.port));
            }
            listeners.push(listener);
        }
        Some(())
    });
    if items.is_some_and(|items| items.is_empty()) {
        given.wrong("[] must have at least one");
    }
    listeners.sort_unstable();
    listeners
}

fn read_backends(given: &Place<'_>) -> Vec<SpecBackend> {
    let mut machines = BTreeSet::new();
    let backends = given.items(|place| {
        place.fields(|fields| {
            let place = fields.required("machine");
            let machine = place.parse(|id| match id {
                "" => Err("\"\" must not be empty".to_owned()),
                id => Ok(id.to_owned()),
            });
            if let Some(machine) = &machine
                && !machines.insert(machine.clone())
            {
                place.wrong(&format!("{machine:?} is there twice"));
            }
            let address = fields
                .required("address")
                .parse(|text| parse_ip(text).ok_or_else(|| format!("{text:?} is not an IP address")));
            Some(SpecBackend { machine: machine?, address: address? })
        })?
    });
    let mut backends = backends.unwrap_or_default();
    backends.sort_unstable();
    backends
}

fn read_affinity(fields: &mut Fields<'_>) -> Option<u32> {
    let client_ip = fields.required("kind").word(&[("None", false), ("ClientIP", true)]);
    let timeout = fields.optional("timeoutSeconds");
    let seconds = if timeout.is_given() { timeout.integer(1..=DAY) } else { Some(DEFAULT_AFFINITY) };
    client_ip.filter(|sticky| *sticky).and(seconds)
}

fn read_health(fields: &mut Fields<'_>) -> SpecHealth {
    let default = SpecHealth::default();
    let kind = fields.required("kind").word(HEALTH_KINDS).unwrap_or(default.kind);
    let port_given = fields.optional("port");
    let path = fields.optional("path").parse(|path| {
        let plain = path.starts_with('/') && path.bytes().all(|b| b.is_ascii_graphic());
        if plain { Ok(path.to_owned()) } else { Err(format!("{path:?} is not a path such as /healthz")) }
    });
    let mut number = |name, most| fields.optional(name).integer(1..=most);
    let health = SpecHealth {
        kind,
        port: port_given.port(),
        path: path.unwrap_or(default.path),
        interval: number("intervalSeconds", DAY).unwrap_or(default.interval),
        timeout: number("timeoutSeconds", DAY).unwrap_or(default.timeout),
        healthy_threshold: number("healthyThreshold", 1_000).unwrap_or(default.healthy_threshold),
        unhealthy_threshold: number("unhealthyThreshold", 1_000).unwrap_or(default.unhealthy_threshold),
    };
    if kind == SpecHealthKind::Http && !port_given.is_given() {
        port_given.wrong("it is missing: kind http needs a port");
    }
    health
}
