//! What a Service asks for: every field and annotation is honoured or refused (law 8).
//!
//! The spec is read against what was observed. Where an annotation is wrong, the observed value stays: it is refused, and
//! nothing changes because of it.

mod check;
mod listeners;
mod sources;
mod validate;

use std::net::IpAddr;

use cloudberth_core::{
    ServiceView,
    annotation::{Parsed, Value},
    lb::{Notice, Refusal},
    net::parse_ip,
};

use crate::{
    annotations::{
        CHECK_DOWN, CHECK_INTERVAL, CHECK_TIMEOUT, CHECK_UP, CLOUD_IP, IDLE_TIMEOUT, POLICY, SSL_DOMAINS,
        TABLE,
    },
    digest::digest,
    settings::Switches,
    wire::{CheckOptions, ListenerOptions, LoadBalancer},
};

/// In place of a digest: what was written is not known, or could not be read.
pub(crate) const UNKNOWN: &str = "unknown";

/// Which Cloud IP a Service asks for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum CloudIpRequest {
    /// One of its own.
    Own,
    /// The one with this id.
    Id(String),
    /// The one with this address.
    Address(IpAddr),
    /// Nobody can tell which: the one that is in use stays.
    Unclear,
}

/// What a Service asks for, as far as it can be carried out.
#[derive(Clone, Debug)]
pub(crate) struct Spec {
    /// The name of everything that is made for it.
    pub(crate) name: String,
    pub(crate) cloud_ip: CloudIpRequest,
    /// In the order of the ports; `None` where no port can be served, so that those in use stay.
    pub(crate) listeners: Option<Vec<ListenerOptions>>,
    pub(crate) check: CheckOptions,
    /// Checks ask the workload for a path that nobody has chosen.
    pub(crate) asks_workload: bool,
    pub(crate) policy: Option<String>,
    /// The domains that it asks a certificate for, beside the names of the Cloud IP.
    pub(crate) domains: Vec<String>,
    /// What the firewall lets through, in the order of the ports; empty where the rules in use stay.
    pub(crate) node_ports: Vec<i64>,
    /// The digest of the settings that are not compared; `None` where one of them is refused.
    pub(crate) digest: Option<String>,
    /// The idle time-out stands under the name that the replaced program reads. Under the other one it is no reason to
    /// write, because that program never wrote it.
    pub(crate) idle_is_compared: bool,
    pub(crate) refused: Vec<Refusal>,
    pub(crate) notices: Vec<Notice>,
}

impl Spec {
    /// Reads a Service, beside the load balancer that it has.
    pub(crate) fn read(
        service: &ServiceView,
        cluster: &str,
        existing: Option<&LoadBalancer>,
        switches: Switches,
    ) -> Self {
        let lenient = switches.lenient_ssl_ports;
        let parsed = TABLE.parse(&service.annotations);
        let mut refused = validate::refusals(service, &parsed);
        let mut notices = parsed.notices.clone();
        sources::check(service, existing.is_some(), &mut refused, &mut notices);
        listeners::warn_about_ssl_ports(&parsed, lenient, &mut notices);
        let listeners = listeners::listeners(service, &parsed, &refused, existing, lenient);
        let check = check::health_check(service, &parsed, &listeners, existing);
        let policy = parsed.get(&POLICY).set().map(str::to_owned);
        Self {
            name: balancer_name(service, cluster),
            cloud_ip: cloud_ip(service, &parsed),
            node_ports: listeners::node_ports(service, &listeners, check.port),
            asks_workload: check::asks_workload(service, &parsed, &check),
            listeners: Some(listeners).filter(|listeners| !listeners.is_empty()),
            check,
            policy,
            domains: domains(&parsed),
            digest: settings_digest(&parsed),
            idle_is_compared: parsed.spelling(&IDLE_TIMEOUT) == Some(IDLE_TIMEOUT.name()),
            refused,
            notices,
        }
    }

    /// Whether a port speaks https, so that a certificate is needed.
    pub(crate) fn is_https(&self) -> bool {
        self.listeners.iter().flatten().any(|listener| listener.protocol == "https")
    }
}

/// The name of everything that is made for a Service.
pub fn balancer_name(service: &ServiceView, cluster: &str) -> String {
    let namespace = if service.namespace.is_empty() { "default" } else { &service.namespace };
    if service.name.is_empty() {
        let mut uid: String = format!("a{}", service.uid.replace('-', ""));
        uid.truncate(uid.char_indices().nth(32).map_or(uid.len(), |(at, _)| at));
        return format!("{uid}.{namespace}.{cluster}");
    }
    format!("{}.{namespace}.{cluster}", service.name)
}

/// Which Cloud IP a Service asks for, whatever else is wrong with it.
pub(crate) fn requested_cloud_ip(service: &ServiceView) -> CloudIpRequest {
    cloud_ip(service, &TABLE.parse(&service.annotations))
}

fn cloud_ip(service: &ServiceView, parsed: &Parsed<'_>) -> CloudIpRequest {
    let address = service.load_balancer_ip.as_deref().filter(|text| !text.is_empty());
    match (parsed.get(&CLOUD_IP), address) {
        (Value::Unset, None) => CloudIpRequest::Own,
        (Value::Set(id), None) => CloudIpRequest::Id(id),
        (Value::Unset, Some(text)) => parse_ip(text).map_or(CloudIpRequest::Unclear, CloudIpRequest::Address),
        _ => CloudIpRequest::Unclear,
    }
}

/// The domains of the annotation, without blanks, empty ones and repetitions.
fn domains(parsed: &Parsed<'_>) -> Vec<String> {
    let text = parsed.get(&SSL_DOMAINS).set().unwrap_or_default();
    let mut domains: Vec<String> = Vec::new();
    for domain in text.split(',').map(str::trim).filter(|domain| !domain.is_empty()) {
        if !domains.iter().any(|known| known.eq_ignore_ascii_case(domain)) {
            domains.push(domain.to_owned());
        }
    }
    domains
}

/// The settings that the replaced program never compares. On a load balancer that it left behind they may differ from what
/// the Service says, so a difference alone is no reason to write.
fn settings_digest(parsed: &Parsed<'_>) -> Option<String> {
    let text = |value: Value<u32>| match value {
        Value::Unset | Value::Set(0) => Some(String::new()),
        Value::Set(number) => Some(number.to_string()),
        Value::Wrong => None,
    };
    let policy = match parsed.get(&POLICY) {
        Value::Unset => "",
        Value::Set(policy) => policy,
        Value::Wrong => return None,
    };
    let numbers = [
        parsed.get(&IDLE_TIMEOUT),
        parsed.get(&CHECK_INTERVAL),
        parsed.get(&CHECK_TIMEOUT),
        parsed.get(&CHECK_UP),
        parsed.get(&CHECK_DOWN),
    ];
    let numbers = numbers.into_iter().map(text).collect::<Option<Vec<_>>>()?;
    Some(digest(&format!("{policy} {}", numbers.join(" "))))
}

/// The digest of a Service's settings; see [`Spec::digest`].
pub(crate) fn digest_of(service: &ServiceView) -> Option<String> {
    settings_digest(&TABLE.parse(&service.annotations))
}
