//! What a Service asks for: every field and annotation is honoured or refused (law 8).
//!
//! The spec is read against what was observed. What is refused keeps its observed value: nothing changes because of it.

mod addresses;
mod backends;
mod health;
mod sources;

use std::collections::BTreeSet;

use cloudberth_core::{
    ServiceView,
    annotation::{Parsed, Value},
    lb::{Desired, Notice, Refusal},
    view::{ExternalTrafficPolicy, ServicePort, ServiceProtocol, SessionAffinity},
};

use crate::{
    annotations::{ADDRESS_MODE, IDLE_TIMEOUT, POLICY, PROXY_PROTOCOL, TABLE},
    observed::Observed,
    wire::{Affinity, BalancerSpec, Listener},
};

/// How long a client stays with its node if the Service does not say: the default of Kubernetes.
const AFFINITY: i64 = 10_800;
const LONGEST_AFFINITY: i64 = 86_400;

/// What a Service asks for, as far as it can be carried out.
#[derive(Clone, Debug)]
pub(crate) struct Spec {
    pub(crate) wire: BalancerSpec,
    /// Why the service does not give something that the Service asks for.
    pub(crate) unavailable: Option<String>,
    pub(crate) refused: Vec<Refusal>,
    pub(crate) notices: Vec<Notice>,
}

impl Spec {
    /// Reads the Service. Every field is named here, so that a new one does not compile until somebody decides.
    pub(crate) fn read(want: &Desired, observed: &Observed) -> Self {
        let ServiceView {
            // Identity and bookkeeping.
            namespace: _,
            name: _,
            resource_version: _,
            generation: _,
            deleting: _,
            finalizers: _,
            labels: _,
            service_type: _,
            class: _,
            ingress: _,
            // Honoured by kube-proxy on the node.
            cluster_ips: _,
            internal_traffic_policy: _,
            publish_not_ready_addresses: _,
            traffic_distribution: _,
            external_ips: _,
            // A port without a node port is refused, whatever the reason.
            allocate_node_ports: _,
            // Carried out or refused here.
            uid,
            annotations,
            ports,
            ip_families,
            ip_family_policy,
            session_affinity,
            external_traffic_policy,
            health_check_node_port,
            source_ranges: _,
            load_balancer_ip,
        } = &*want.service;
        let before = observed.existing.as_ref().map(|existing| &existing.spec);
        let parsed = TABLE.parse(annotations);
        let mut spec = Self {
            wire: BalancerSpec { uid: uid.clone(), ..BalancerSpec::default() },
            unavailable: None,
            refused: parsed.refused.clone(),
            notices: parsed.notices.clone(),
        };
        spec.listeners(ports, before);
        spec.affinity(session_affinity, before);
        // What can be had depends on the address mode.
        spec.settings(&parsed, before);
        spec.families(ip_families, ip_family_policy.as_ref(), observed);
        spec.address(load_balancer_ip.as_deref(), observed);
        if let ExternalTrafficPolicy::Other(text) = external_traffic_policy {
            let message = format!("{text:?} is neither Cluster nor Local");
            spec.refused.push(Refusal::unsupported("spec.externalTrafficPolicy", message));
        }
        spec.health(&parsed, external_traffic_policy, *health_check_node_port, before);
        spec.sources(&want.service, observed);
        spec.backends(want, observed);
        spec
    }

    fn listeners(&mut self, ports: &[ServicePort], before: Option<&BalancerSpec>) {
        let mut wrong = Vec::new();
        if ports.is_empty() {
            wrong.push("there are none, and a load balancer needs one".to_owned());
        }
        let mut listeners = BTreeSet::new();
        for port in ports {
            match listener(port) {
                Ok(listener) => drop(listeners.insert(listener)),
                Err(why) => wrong.push(why),
            }
        }
        if wrong.is_empty() {
            self.wire.listeners = listeners;
        } else {
            self.refused.push(Refusal::unsupported("spec.ports", wrong.join("; ")));
            self.wire.listeners = before.map(|spec| spec.listeners.clone()).unwrap_or_default();
        }
    }

    fn affinity(&mut self, affinity: &SessionAffinity, before: Option<&BalancerSpec>) {
        let kept = || before.map(|spec| spec.affinity.clone()).unwrap_or_default();
        self.wire.affinity = match affinity {
            SessionAffinity::None => Affinity::default(),
            SessionAffinity::ClientIp { timeout_seconds } => {
                let seconds = timeout_seconds.unwrap_or(AFFINITY);
                let fits = u32::try_from(seconds).ok().filter(|_| (1..=LONGEST_AFFINITY).contains(&seconds));
                if fits.is_none() {
                    let message = format!("{seconds} is not between 1 and {LONGEST_AFFINITY}");
                    let field = "spec.sessionAffinityConfig.clientIP.timeoutSeconds";
                    self.refused.push(Refusal::unsupported(field, message));
                    kept()
                } else {
                    Affinity { kind: "ClientIP".to_owned(), timeout_seconds: fits }
                }
            }
            SessionAffinity::Other(text) => {
                let message = format!("{text:?} is neither None nor ClientIP");
                self.refused.push(Refusal::unsupported("spec.sessionAffinity", message));
                kept()
            }
        };
    }

    fn settings(&mut self, parsed: &Parsed<'_>, before: Option<&BalancerSpec>) {
        let wire = &mut self.wire;
        let kept = |text: fn(&BalancerSpec) -> &String| before.map(|spec| text(spec).clone());
        let policy = parsed.get(&POLICY);
        wire.policy = own(&policy).settle("round-robin".to_owned(), kept(|spec| &spec.policy));
        let proxy = parsed.get(&PROXY_PROTOCOL);
        wire.proxy_protocol = own(&proxy).settle("none".to_owned(), kept(|spec| &spec.proxy_protocol));
        let idle = parsed.get(&IDLE_TIMEOUT);
        wire.idle_timeout_seconds = idle.settle(600, before.map(|spec| spec.idle_timeout_seconds));
        let mode = match parsed.get(&ADDRESS_MODE) {
            Value::Set(mode) => Some(mode.to_owned()),
            Value::Unset => None,
            Value::Wrong => before.and_then(|spec| spec.address_mode.clone()),
        };
        wire.address_mode = mode;
    }
}

/// A word as text of its own.
fn own(value: &Value<&'static str>) -> Value<String> {
    match value {
        Value::Set(word) => Value::Set((*word).to_owned()),
        Value::Unset => Value::Unset,
        Value::Wrong => Value::Wrong,
    }
}

fn listener(port: &ServicePort) -> Result<Listener, String> {
    let shown = format!("{}/{}", port.port, port.protocol.as_str());
    let protocol = match &port.protocol {
        ServiceProtocol::Tcp => "TCP",
        ServiceProtocol::Udp => "UDP",
        other => return Err(format!("{shown}: {} cannot be balanced; use TCP or UDP", other.as_str())),
    };
    let number = |number: i64| u16::try_from(number).ok().filter(|number| *number > 0);
    let no_node_port = || {
        format!(
            "{shown} has no node port, which load balancers forward to; leave allocateLoadBalancerNodePorts on"
        )
    };
    Ok(Listener {
        protocol: protocol.to_owned(),
        port: number(port.port).ok_or_else(|| format!("{shown} is not a port"))?,
        node_port: number(port.node_port).ok_or_else(no_node_port)?,
    })
}
