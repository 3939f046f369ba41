//! One pool with its members, listener and health monitor for each port of the Service.

use cloudberth_core::{
    annotation::Value,
    lb::{Desired, Notice, Refusal},
    net::Port,
    view::{ExternalTrafficPolicy, ServicePort, ServiceProtocol},
};

use super::Spec;
use crate::{
    annotations::{
        Http, LISTENER_PROTOCOL, MONITOR_DELAY, MONITOR_DOWN, MONITOR_HTTP, MONITOR_TIMEOUT, MONITOR_TYPE,
        MONITOR_UP, POOL_ALGORITHM, POOL_PROTOCOL, TIMEOUT_CLIENT_DATA, TIMEOUT_MEMBER_CONNECT,
        TIMEOUT_MEMBER_DATA,
    },
    observed::{Observed, ObservedPool, PrivateAddress},
    reasons::HEALTH_CHECK_DETAILS,
    wire::{HealthMonitor, HttpOptions, Listener},
};

/// A pool that should be there. Name, algorithm and protocol are its identity.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct WantedPool {
    pub(crate) name: String,
    pub(crate) algorithm: String,
    pub(crate) protocol: String,
    pub(crate) members: Vec<WantedMember>,
    pub(crate) listener: WantedListener,
    pub(crate) monitor: WantedMonitor,
}

/// A member that should be there. All of it is its identity.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct WantedMember {
    pub(crate) name: String,
    pub(crate) address: String,
    pub(crate) subnet: String,
    pub(crate) protocol_port: i64,
    pub(crate) monitor_port: i64,
}

/// A listener that should be there. Name, protocol and port are its identity.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct WantedListener {
    pub(crate) name: String,
    pub(crate) protocol: String,
    pub(crate) port: i64,
    pub(crate) allowed_cidrs: Vec<String>,
    pub(crate) timeout_client_data: i64,
    pub(crate) timeout_member_connect: i64,
    pub(crate) timeout_member_data: i64,
}

/// A health monitor that should be there. Type and HTTP version are its identity.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct WantedMonitor {
    pub(crate) kind: String,
    /// `None` keeps the observed value.
    pub(crate) http: Option<HttpOptions>,
    pub(crate) delay: i64,
    pub(crate) timeout: i64,
    pub(crate) up: i64,
    pub(crate) down: i64,
}

/// The HTTP version that counts; none is 1.1.
pub(crate) fn http_version(http: Option<&HttpOptions>) -> &str {
    http.map(|http| http.version.as_str()).filter(|version| !version.is_empty()).unwrap_or("1.1")
}

pub(crate) fn speaks_http(kind: &str) -> bool {
    matches!(kind, "http" | "https")
}

struct Forward {
    pool: String,
    udp: bool,
    port: i64,
    node_port: i64,
}

/// What runs now for a port: where an annotation is wrong, that stays.
#[derive(Clone, Copy, Default)]
struct Running<'a> {
    pool: Option<&'a ObservedPool>,
    listener: Option<&'a Listener>,
    monitor: Option<&'a HealthMonitor>,
}

impl<'a> Running<'a> {
    /// By the name of the pool; settings that its own parts do not have yet come from any other part, so that a new
    /// port is not more open than the old ones.
    fn of(observed: &'a Observed, pool: &str, udp: bool) -> Self {
        let pools = observed.existing.as_ref().map_or(&[][..], |existing| &existing.pools);
        let own = pools.iter().rev().find(|observed| observed.pool.name == pool);
        let alike = pools.iter().filter(|observed| (observed.pool.protocol == "udp") == udp);
        let others = || own.into_iter().chain(alike.clone()).chain(pools);
        Self {
            pool: own.or_else(|| alike.clone().next()),
            listener: others().find_map(|observed| observed.listeners.last()),
            monitor: others().find_map(|observed| observed.monitors.last()),
        }
    }
}

fn forward(port: &ServicePort) -> Result<Forward, Refusal> {
    let protocol = match &port.protocol {
        ServiceProtocol::Tcp => "tcp",
        ServiceProtocol::Udp => "udp",
        other => {
            let text =
                format!("{} on port {} cannot be forwarded; use TCP or UDP", other.as_str(), port.port);
            return Err(Refusal::unsupported("spec.ports[].protocol", text));
        }
    };
    if port.node_port == 0 {
        let text = format!("port {} has none; leave allocateLoadBalancerNodePorts on", port.port);
        return Err(Refusal::unsupported("spec.ports[].nodePort", text));
    }
    for (number, field) in [(port.port, "spec.ports[].port"), (port.node_port, "spec.ports[].nodePort")] {
        Port::new(number, field)
            .map_err(|_| Refusal::unsupported(field, format!("{number} is not a port (1 to 65535)")))?;
    }
    let pool = if port.name.is_empty() { protocol.to_owned() } else { format!("{protocol}/{}", port.name) };
    Ok(Forward { pool, udp: protocol == "udp", port: port.port, node_port: port.node_port })
}

impl Spec<'_> {
    pub(super) fn ports(
        &mut self,
        want: &Desired,
        observed: &Observed,
        addresses: &[PrivateAddress],
        ours: bool,
    ) {
        let service = &*want.service;
        let local = service.external_traffic_policy == ExternalTrafficPolicy::Local;
        let check_port = Some(service.health_check_node_port).filter(|port| local && *port > 0);
        let sources = self.sources(service, observed, ours);
        self.monitor_notices(local);
        for port in &service.ports {
            let port = match forward(port) {
                Ok(port) => port,
                Err(refusal) => {
                    self.refused.push(refusal);
                    self.ports_refused = true;
                    continue;
                }
            };
            if self.pools.iter().any(|pool| pool.name == port.pool) {
                let message = format!("two ports are called {}; give each a name of its own", port.pool);
                self.refused.push(Refusal::unsupported("spec.ports[].name", message));
                self.ports_refused = true;
                continue;
            }
            let running = Running::of(observed, &port.pool, port.udp);
            if matches!(sources, Sources::Running) && running.listener.is_none() {
                // Who may connect is not known, and no open port shows it: a new port would let everybody in.
                self.ports_refused = true;
                continue;
            }
            let member = |a: &PrivateAddress| member(a, port.node_port, check_port.unwrap_or(port.node_port));
            let mut members: Vec<_> = addresses.iter().map(member).collect();
            let mut known = std::collections::BTreeSet::new();
            members.retain(|member| known.insert(member.clone()));
            let pool = WantedPool {
                algorithm: self
                    .annotations
                    .get(&POOL_ALGORITHM)
                    .map_or_running("round_robin", running.pool.map(|observed| &observed.pool.algorithm)),
                protocol: if port.udp {
                    "udp".to_owned()
                } else {
                    let running = running.pool.map(|observed| &observed.pool.protocol);
                    self.annotations.get(&POOL_PROTOCOL).map_or_running("tcp", running)
                },
                listener: self.listener(&port, running.listener, &sources),
                monitor: self.monitor(local, running.monitor),
                members,
                name: port.pool,
            };
            self.pools.push(pool);
        }
    }

    fn listener(&self, port: &Forward, running: Option<&Listener>, sources: &Sources) -> WantedListener {
        let tcp = || {
            let running = running.map(|listener| &listener.protocol).filter(|protocol| *protocol != "udp");
            self.annotations.get(&LISTENER_PROTOCOL).map_or_running("tcp", running)
        };
        let protocol = if port.udp { "udp".to_owned() } else { tcp() };
        let number = |key, default, running: Option<i64>| self.annotations.get(key).settle(default, running);
        WantedListener {
            name: format!("{protocol}/{}", port.port).to_lowercase(),
            protocol,
            port: port.port,
            allowed_cidrs: match sources {
                Sources::These(list) => list.clone(),
                Sources::Running => {
                    running.map(|listener| listener.allowed_cidrs.clone()).unwrap_or_default()
                }
            },
            timeout_client_data: number(
                &TIMEOUT_CLIENT_DATA,
                50_000,
                running.and_then(|l| l.timeout_client_data_ms),
            ),
            timeout_member_connect: number(
                &TIMEOUT_MEMBER_CONNECT,
                5_000,
                running.and_then(|l| l.timeout_member_connect_ms),
            ),
            timeout_member_data: number(
                &TIMEOUT_MEMBER_DATA,
                50_000,
                running.and_then(|l| l.timeout_member_data_ms),
            ),
        }
    }

    fn monitor(&self, local: bool, running: Option<&HealthMonitor>) -> WantedMonitor {
        let kind = if local {
            "http".to_owned()
        } else {
            self.annotations.get(&MONITOR_TYPE).map_or_running("tcp", running.map(|monitor| &monitor.kind))
        };
        let same = running.filter(|monitor| monitor.kind == kind);
        let http = match self.annotations.get(&MONITOR_HTTP) {
            Value::Wrong if same.is_some() => same.and_then(|monitor| monitor.http.clone()),
            Value::Set(Some(http)) => Some(options(http)),
            _ if local => Some(livez()),
            _ => None,
        };
        let number = |key, default, running: Option<i64>| self.annotations.get(key).settle(default, running);
        WantedMonitor {
            http: http.filter(|_| speaks_http(&kind)),
            kind,
            delay: number(&MONITOR_DELAY, 2, running.and_then(|m| m.delay_s)),
            timeout: number(&MONITOR_TIMEOUT, 1, running.and_then(|m| m.timeout_s)),
            up: number(&MONITOR_UP, 2, running.and_then(|m| m.up_threshold)),
            down: number(&MONITOR_DOWN, 3, running.and_then(|m| m.down_threshold)),
        }
    }

    /// Warns, once for all ports, about health-check annotations that are not carried out.
    fn monitor_notices(&mut self, local: bool) {
        let kind = self.annotations.get(&MONITOR_TYPE).set();
        let http = matches!(self.annotations.get(&MONITOR_HTTP), Value::Set(Some(_)));
        if local && kind.is_some_and(|kind| kind != "http") {
            self.without_effect(
                MONITOR_TYPE.name(),
                "with externalTrafficPolicy Local checks are of type http",
            );
        }
        if local && http {
            let text = "with externalTrafficPolicy Local the check asks kube-proxy; your details are kept, and may \
                        not fit";
            let message = format!("{}: {text}", MONITOR_HTTP.name());
            self.notices.push(Notice::warning(HEALTH_CHECK_DETAILS, message));
        }
        if !local && http && !speaks_http(kind.unwrap_or("tcp")) {
            self.without_effect(MONITOR_HTTP.name(), "checks are not of type http or https");
        }
    }
}

pub(super) enum Sources {
    /// These; none is everybody.
    These(Vec<String>),
    /// Those who may now, because the setting cannot be read.
    Running,
}

fn member(at: &PrivateAddress, protocol_port: i64, monitor_port: i64) -> WantedMember {
    let PrivateAddress { address, subnet } = at.clone();
    let name = if address.contains(':') {
        format!("[{address}]:{protocol_port}")
    } else {
        format!("{address}:{protocol_port}")
    };
    WantedMember { name, address, subnet, protocol_port, monitor_port }
}

fn options(http: Http) -> HttpOptions {
    let Http { expected_codes, method, url_path, version, host } = http;
    HttpOptions { expected_codes, method, url_path, version, host }
}

/// What kube-proxy answers on the health-check port.
fn livez() -> HttpOptions {
    HttpOptions {
        expected_codes: vec!["200".to_owned()],
        method: "GET".to_owned(),
        url_path: "/livez".to_owned(),
        version: "1.0".to_owned(),
        host: None,
    }
}

/// A word that goes: the one that is set, the default, or the running one where a wrong one is set.
trait Word {
    fn map_or_running(self, default: &'static str, running: Option<&String>) -> String;
}

impl Word for Value<&'static str> {
    fn map_or_running(self, default: &'static str, running: Option<&String>) -> String {
        match (self, running) {
            (Self::Wrong, Some(running)) => running.clone(),
            (Self::Set(word), _) => word.to_owned(),
            (Self::Unset | Self::Wrong, _) => default.to_owned(),
        }
    }
}
