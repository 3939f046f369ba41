//! What is refused, in one fixed order and all at once.

use cloudberth_core::{
    ServiceView,
    annotation::{Parsed, Value},
    lb::Refusal,
    net::parse_ip,
    reason::INVALID_ANNOTATION,
    view::{ExternalTrafficPolicy, ServicePort, ServiceProtocol, SessionAffinity},
};

use super::listeners::HTTPS_PORT;
use crate::annotations::{CLOUD_IP, LISTENER_PROTOCOL, SSL_DOMAINS, SSL_PORTS};

/// Everything that is wrong with a Service. Every field is named here, so that a new one does not compile until somebody
/// decides.
pub(super) fn refusals(service: &ServiceView, parsed: &Parsed<'_>) -> Vec<Refusal> {
    let ServiceView {
        // Identity and bookkeeping.
        namespace: _,
        name: _,
        uid: _,
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
        // Without node ports each port is refused by itself.
        allocate_node_ports: _,
        // A Cloud IP has an address of either family.
        ip_families: _,
        ip_family_policy: _,
        // Read where the health check and the sources are.
        health_check_node_port: _,
        source_ranges: _,
        annotations: _,
        // Carried out or refused here.
        external_traffic_policy,
        load_balancer_ip,
        ports,
        session_affinity,
    } = service;
    let mut refused = Vec::new();
    affinity(session_affinity, &mut refused);
    if ports.is_empty() {
        refused
            .push(Refusal::unsupported("spec.ports", "a load balancer without ports was requested; add one"));
    }
    refused.extend(ports.iter().filter_map(|port| port_refusal(port).err()));
    secure_port(ports, parsed, &mut refused);
    address(load_balancer_ip.as_deref(), parsed, &mut refused);
    if let ExternalTrafficPolicy::Other(text) = external_traffic_policy {
        let message = format!("{text:?} is neither Cluster nor Local");
        refused.push(Refusal::unsupported("spec.externalTrafficPolicy", message));
    }
    refused.extend(parsed.refused.iter().cloned());
    secure_settings(parsed, &mut refused);
    refused
}

fn affinity(affinity: &SessionAffinity, refused: &mut Vec<Refusal>) {
    let text = match affinity {
        SessionAffinity::None => return,
        SessionAffinity::ClientIp { .. } => "ClientIP",
        SessionAffinity::Other(text) => text,
    };
    let message = format!(
        "{text} is not supported; use None, and to keep a client with a node set \
         service.beta.kubernetes.io/brightbox-load-balancer-policy to source-address"
    );
    refused.push(Refusal::unsupported("spec.sessionAffinity", message));
}

/// Whether a port can be served.
pub(super) fn port_refusal(port: &ServicePort) -> Result<(), Refusal> {
    let ServicePort { protocol, port, node_port, .. } = port;
    if *protocol != ServiceProtocol::Tcp {
        let text = format!("{} on port {port}: only TCP node ports are supported", protocol.as_str());
        return Err(Refusal::unsupported("spec.ports[].protocol", text));
    }
    if *node_port == 0 {
        let text = format!("port {port} has none; leave allocateLoadBalancerNodePorts on");
        return Err(Refusal::unsupported("spec.ports[].nodePort", text));
    }
    Ok(())
}

fn invalid(key: &str, message: impl Into<String>) -> Refusal {
    Refusal::new(INVALID_ANNOTATION, key, message)
}

fn is_set<T>(value: &Value<T>) -> bool {
    !matches!(value, Value::Unset)
}

/// The annotations about SSL need a port 443, unless all ports speak https anyway. A protocol that cannot be read counts
/// as the default.
fn secure_port(ports: &[ServicePort], parsed: &Parsed<'_>, refused: &mut Vec<Refusal>) {
    let plain = !matches!(parsed.get(&LISTENER_PROTOCOL), Value::Set("tcp" | "https"));
    if !plain || ports.iter().any(|port| port.port == HTTPS_PORT) {
        return;
    }
    let keys = [
        (SSL_PORTS.name(), is_set(&parsed.get(&SSL_PORTS))),
        (SSL_DOMAINS.name(), is_set(&parsed.get(&SSL_DOMAINS))),
    ];
    if let Some((key, _)) = keys.into_iter().find(|(_, set)| *set) {
        refused.push(invalid(key, "SSL needs a port 443; add one, or remove the annotation"));
    }
}

fn address(text: Option<&str>, parsed: &Parsed<'_>, refused: &mut Vec<Refusal>) {
    const FIELD: &str = "spec.loadBalancerIP";
    let Some(text) = text.filter(|text| !text.is_empty()) else { return };
    if is_set(&parsed.get(&CLOUD_IP)) {
        let message = format!(
            "remove the obsolete loadBalancerIP field: {} says which Cloud IP to use",
            CLOUD_IP.name()
        );
        refused.push(Refusal::unsupported(FIELD, message));
    } else if parse_ip(text).is_none() {
        refused.push(Refusal::unsupported(
            FIELD,
            format!("{text:?} is not an IP address; use {}", CLOUD_IP.name()),
        ));
    }
}

/// What the annotations about SSL need of each other.
fn secure_settings(parsed: &Parsed<'_>, refused: &mut Vec<Refusal>) {
    let (ports, domains) = (is_set(&parsed.get(&SSL_PORTS)), is_set(&parsed.get(&SSL_DOMAINS)));
    if parsed.get(&LISTENER_PROTOCOL) == Value::Set("tcp") {
        if ports {
            refused.push(invalid(SSL_PORTS.name(), "SSL ports cannot be used with tcp listeners"));
        }
        if domains {
            refused.push(invalid(SSL_DOMAINS.name(), "SSL domains cannot be used with tcp listeners"));
        }
    }
    if ports && !domains {
        refused.push(invalid(SSL_PORTS.name(), format!("it needs {} too", SSL_DOMAINS.name())));
    }
}
