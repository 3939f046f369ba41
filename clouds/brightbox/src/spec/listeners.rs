//! One listener for each port of the Service, and what the firewall lets through for them.

use cloudberth_core::{
    ServiceView,
    annotation::{Parsed, Value},
    lb::{Notice, Refusal},
    reason::ANNOTATION_WITHOUT_EFFECT,
    view::ServicePort,
};

use super::{check::KUBE_PROXY, validate::port_refusal};
use crate::{
    annotations::{IDLE_TIMEOUT, LISTENER_PROTOCOL, PROXY_PROTOCOL, SSL_DOMAINS, SSL_PORTS},
    wire::{Listener, ListenerOptions, LoadBalancer},
};

/// The port that speaks https without being asked to.
pub(super) const HTTPS_PORT: i64 = 443;

/// The listeners, in the order of the ports. A port that is refused keeps the listener that it has; where a setting of
/// listeners is refused, those that are there keep theirs.
pub(super) fn listeners(
    service: &ServiceView,
    parsed: &Parsed<'_>,
    refused: &[Refusal],
    existing: Option<&LoadBalancer>,
    lenient: bool,
) -> Vec<ListenerOptions> {
    let settings = [
        LISTENER_PROTOCOL.name(),
        IDLE_TIMEOUT.name(),
        PROXY_PROTOCOL.name(),
        SSL_PORTS.name(),
        SSL_DOMAINS.name(),
    ];
    let kept = refused.iter().any(|refusal| settings.contains(&refusal.field.as_str()));
    let mut listeners = Vec::new();
    for port in &service.ports {
        let running =
            existing.iter().flat_map(|balancer| &balancer.listeners).find(|one| one.inside == port.port);
        let served = port_refusal(port).is_ok();
        listeners.extend(match running {
            Some(running) if !served => Some(as_it_is(running, running.outside.unwrap_or_default())),
            Some(running) if kept => Some(as_it_is(running, port.node_port)),
            _ if served => Some(wanted(port, parsed, lenient)),
            _ => None,
        });
    }
    listeners
}

fn as_it_is(running: &Listener, node_port: i64) -> ListenerOptions {
    ListenerOptions {
        protocol: running.protocol.clone(),
        inside: running.inside,
        outside: node_port,
        timeout: running.timeout,
        proxy_protocol: running.proxy_protocol.clone(),
    }
}

fn wanted(port: &ServicePort, parsed: &Parsed<'_>, lenient: bool) -> ListenerOptions {
    let protocol = parsed.settle(&LISTENER_PROTOCOL, None).unwrap_or("http");
    let ports = parsed.get(&SSL_PORTS).set().unwrap_or_default();
    let secure = protocol != "tcp" && (port.port == HTTPS_PORT || is_listed(port, &ports, lenient));
    ListenerOptions {
        protocol: if secure { "https" } else { protocol }.to_owned(),
        inside: port.port,
        outside: port.node_port,
        timeout: parsed.get(&IDLE_TIMEOUT).set().filter(|ms| *ms != 0).map(i64::from),
        proxy_protocol: parsed.get(&PROXY_PROTOCOL).set().map(str::to_owned),
    }
}

/// Whether ssl-ports has a port, by number or by name. Unless somebody asks for more, blanks count and a star is nothing,
/// as they always did: anything else would turn the listeners of Services that run now into others.
fn is_listed(port: &ServicePort, ports: &str, lenient: bool) -> bool {
    ports.split(',').map(|item| if lenient { item.trim() } else { item }).any(|item| {
        match item.parse::<i64>() {
            Ok(number) => number == port.port,
            Err(_) => (lenient && item == "*") || (!item.is_empty() && item == port.name),
        }
    })
}

/// Says what of ssl-ports does nothing although it looks as if it did.
pub(super) fn warn_about_ssl_ports(parsed: &Parsed<'_>, lenient: bool, notices: &mut Vec<Notice>) {
    let Value::Set(ports) = parsed.get(&SSL_PORTS) else { return };
    let why = if lenient {
        return;
    } else if ports.split(',').any(|item| item != item.trim()) {
        "blanks around a port count, so it names none; remove them"
    } else if ports.split(',').any(|item| item == "*") {
        "* names no port; name each port"
    } else {
        return;
    };
    let text = format!("{}: {why}, or set BRIGHTBOX_LENIENT_SSL_PORTS", SSL_PORTS.name());
    notices.push(Notice::warning(ANNOTATION_WITHOUT_EFFECT, text));
}

/// What the firewall lets through: the node ports in the order of the ports, then the port of the health check of nodes,
/// and that of kube-proxy if it is asked, each once.
pub(super) fn node_ports(service: &ServiceView, listeners: &[ListenerOptions], checked: i64) -> Vec<i64> {
    let mut ports: Vec<i64> = Vec::new();
    if listeners.is_empty() {
        return ports;
    }
    let kube_proxy = Some(checked).filter(|port| *port == KUBE_PROXY);
    let checks = [service.health_check_node_port].into_iter().chain(kube_proxy);
    for port in listeners.iter().map(|listener| listener.outside).chain(checks) {
        if port != 0 && !ports.contains(&port) {
            ports.push(port);
        }
    }
    ports
}
