//! What the body of a load balancer may say.

use std::collections::BTreeSet;

use cloudberth_core::Tick;
use serde_json::Value;

use super::World;
use crate::{
    fields::Fields,
    resources::{Balancer, Domain, HealthCheck, Listener},
};

const POLICIES: [&str; 3] = ["least-connections", "round-robin", "source-address"];
const PROTOCOLS: [&str; 3] = ["tcp", "http", "https"];
const PROXY_PROTOCOLS: [&str; 4] = ["v1", "v2", "v2-ssl", "v2-ssl-cn"];
const SSL_VERSIONS: [&str; 4] = ["TLSv1.0", "TLSv1.1", "TLSv1.2", "TLSv1.3"];
/// The bounds of the timeout of a listener, and what it is when nothing is said.
const TIMEOUT: (i64, i64, i64) = (5_000, 86_400_000, 50_000);

impl World {
    /// Puts what is given into a balancer, and checks the whole of it.
    pub(super) fn read_balancer(&self, balancer: &mut Balancer, fields: &mut Fields<'_>, now: Tick) {
        fields.set_text("name", &mut balancer.name);
        set(&mut balancer.policy, fields.word("policy", &POLICIES));
        set(&mut balancer.ssl_minimum_version, fields.word("ssl_minimum_version", &SSL_VERSIONS));
        balancer.https_redirect = fields.flag("https_redirect").unwrap_or(balancer.https_redirect);
        balancer.buffer_size = fields.number("buffer_size", 2_048, 16_384).unwrap_or(balancer.buffer_size);
        if let Some(nodes) = self.read_nodes(fields) {
            balancer.nodes = nodes;
        }
        if let Some(listeners) = Self::read_listeners(fields) {
            balancer.listeners = listeners;
        }
        read_check(&mut balancer.healthcheck, fields);
        read_domains(&mut balancer.domains, fields, now);
        let pem = fields.text("certificate_pem").map(|text| !text.is_empty());
        let key = fields.text("certificate_private_key").map(|text| !text.is_empty());
        if pem != key {
            fields.mistake("certificate_pem and certificate_private_key go together");
        }
        balancer.certificate = pem.unwrap_or(balancer.certificate);
        Self::check_balancer(balancer, fields);
    }

    /// What must be so in any balancer.
    pub(super) fn check_balancer(balancer: &Balancer, fields: &mut Fields<'_>) {
        if balancer.listeners.is_empty() {
            fields.mistake("listeners can't be empty");
        }
        let mut ports = BTreeSet::new();
        for listener in &balancer.listeners {
            if !ports.insert(listener.in_port) {
                fields.mistake(&format!("listeners use port {} twice", listener.in_port));
            }
        }
        let https = balancer.listeners.iter().any(|listener| listener.protocol == "https");
        if https && balancer.domains.is_empty() && !balancer.certificate {
            fields.mistake("https listeners need domains or a certificate");
        }
    }

    /// The nodes in `[{"node": id}]`, each once; those that do not exist are mistakes.
    pub(super) fn read_nodes(&self, fields: &mut Fields<'_>) -> Option<Vec<String>> {
        let mut nodes: Vec<String> = Vec::new();
        for id in fields.references("nodes", "node")? {
            if !self.has_server(id) {
                fields.mistake(&format!("node {id} does not exist"));
            }
            if !nodes.iter().any(|node| node == id) {
                nodes.push(id.to_owned());
            }
        }
        Some(nodes)
    }

    pub(super) fn read_listeners(fields: &mut Fields<'_>) -> Option<Vec<Listener>> {
        let list = fields.list("listeners")?;
        Some(list.iter().zip(1..).filter_map(|(item, number)| read_listener(item, number, fields)).collect())
    }
}

fn set(place: &mut String, text: Option<&str>) {
    if let Some(text) = text {
        text.clone_into(place);
    }
}

fn read_listener(item: &Value, number: usize, fields: &mut Fields<'_>) -> Option<Listener> {
    let Some(item) = item.as_object() else {
        fields.mistake(&format!("listener {number} must be an object"));
        return None;
    };
    let (least, most, usual) = TIMEOUT;
    let mut part = Fields::within(&format!("listener {number}"), item);
    let listener = Listener {
        protocol: part.required_word("protocol", &PROTOCOLS).to_owned(),
        in_port: part.required_port("in"),
        out_port: part.required_port("out"),
        timeout: part.number("timeout", least, most).unwrap_or(usual),
        proxy_protocol: part.word("proxy_protocol", &PROXY_PROTOCOLS).map(str::to_owned),
    };
    fields.absorb(part);
    Some(listener)
}

/// A check is given as a whole, except for what has a usual value.
fn read_check(check: &mut HealthCheck, fields: &mut Fields<'_>) {
    let Some(value) = fields.value("healthcheck") else { return };
    let Some(body) = value.as_object() else { return fields.mistake("healthcheck must be an object") };
    let mut part = Fields::within("healthcheck", body);
    part.required_word("type", &["tcp", "http"]).clone_into(&mut check.kind);
    check.port = part.required_port("port");
    set(&mut check.request, part.text("request"));
    for (field, place) in [
        ("interval", &mut check.interval),
        ("timeout", &mut check.timeout),
        ("threshold_up", &mut check.threshold_up),
        ("threshold_down", &mut check.threshold_down),
    ] {
        *place = part.number(field, 1, i64::from(u32::MAX)).unwrap_or(*place);
    }
    fields.absorb(part);
}

/// New domains are `pending`; those that were there keep their status.
fn read_domains(domains: &mut Vec<Domain>, fields: &mut Fields<'_>, now: Tick) {
    let Some(list) = fields.list("domains") else { return };
    let mut wanted: Vec<Domain> = Vec::new();
    for item in list {
        let Some(name) = item.as_str().filter(|name| !name.is_empty()) else {
            fields.mistake("domains must be a list of names");
            continue;
        };
        if wanted.iter().any(|domain| domain.identifier == name) {
            continue;
        }
        let known = domains.iter().find(|domain| domain.identifier == name).cloned();
        wanted.push(known.unwrap_or_else(|| Domain {
            identifier: name.to_owned(),
            status: "pending".to_owned(),
            last_message: None,
            since: now,
        }));
    }
    *domains = wanted;
}
