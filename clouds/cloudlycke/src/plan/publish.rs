//! What the Service shows of its load balancer.

use std::net::IpAddr;

use cloudberth_core::{
    lb::{Notice, Publish},
    view::{Ingress, IngressPort, IpMode, ServiceProtocol},
};

use crate::{
    annotations::{ID, MODE_IN_FORCE, SHIFTED_PORTS},
    reasons::{PORT_NOT_SERVED, PORT_SHIFTED},
    wire::{ListenerStatus, LoadBalancer},
};

/// What errors of ports begin with in the status of a Service, where Kubernetes wants a prefix.
const DOMAIN: &str = "cloudlycke.io/";
/// The error of a listener that is bound, but elsewhere.
const SHIFTED: &str = "Shifted";

impl ListenerStatus {
    fn is_shifted(&self) -> bool {
        self.error.as_deref() == Some(SHIFTED) && self.bound.is_some()
    }

    /// It takes no traffic.
    pub(super) fn is_down(&self) -> bool {
        self.bound.is_none() || (self.error.is_some() && !self.is_shifted())
    }

    fn is_of(&self, address: &IpAddr) -> bool {
        self.address.is_none_or(|own| own == *address)
    }
}

/// The addresses with their ports, and what is recorded. Nothing is recorded of a load balancer that is only assumed.
pub(super) fn publish(existing: &LoadBalancer, mode: Option<&str>) -> Publish {
    let LoadBalancer { cluster, namespace, name, .. } = existing;
    let mut publish = Publish { ingress: Some(ingress(existing)), ..Publish::default() };
    if !cluster.is_empty() {
        publish.annotations.insert(ID.name().to_owned(), format!("{cluster}/{namespace}/{name}"));
    }
    let records = [(&SHIFTED_PORTS, shifted(existing)), (&MODE_IN_FORCE, mode.map(str::to_owned))];
    for (key, value) in records {
        match value {
            Some(value) => drop(publish.annotations.insert(key.name().to_owned(), value)),
            None => drop(publish.removed.insert(key.name())),
        }
    }
    publish
}

/// Connections arrive at nodes from the service, so their destination is the node.
fn ingress(existing: &LoadBalancer) -> Vec<Ingress> {
    let entry = |address: &IpAddr| Ingress {
        ip: Some(address.to_string()),
        ip_mode: Some(IpMode::Proxy),
        ports: existing.listeners.iter().filter(|one| one.is_of(address)).map(port).collect(),
        ..Ingress::default()
    };
    existing.addresses.iter().map(entry).collect()
}

fn port(listener: &ListenerStatus) -> IngressPort {
    let protocol = match listener.protocol.as_str() {
        "TCP" => ServiceProtocol::Tcp,
        "UDP" => ServiceProtocol::Udp,
        other => ServiceProtocol::Other(other.to_owned()),
    };
    let error = listener.error.as_ref().map(|error| format!("{DOMAIN}{error}"));
    IngressPort { port: i64::from(listener.port), protocol, error }
}

/// The shifted ports: `80=10080,443=10443`.
fn shifted(existing: &LoadBalancer) -> Option<String> {
    let shifted = existing.listeners.iter().filter(|one| one.is_shifted());
    let mut pairs: Vec<_> = shifted.filter_map(|one| Some((one.port, one.bound?.port()))).collect();
    pairs.sort_unstable();
    pairs.dedup();
    let pairs: Vec<_> = pairs.into_iter().map(|(port, bound)| format!("{port}={bound}")).collect();
    (!pairs.is_empty()).then(|| pairs.join(","))
}

/// What people should hear about ports.
pub(super) fn notices(existing: &LoadBalancer) -> Vec<Notice> {
    let told = existing.listeners.iter().filter_map(|listener| {
        let ListenerStatus { protocol, port, bound, error, message, .. } = listener;
        let words = message.as_deref().unwrap_or_default();
        match (error, bound) {
            (Some(_), Some(bound)) if listener.is_shifted() => {
                let text = format!("port {port}/{protocol} is served at {bound}: {words}");
                Some(Notice::warning(PORT_SHIFTED, text))
            }
            (Some(error), _) => {
                let text = format!("port {port}/{protocol} is not served: {error}: {words}");
                Some(Notice::warning(PORT_NOT_SERVED, text))
            }
            (None, _) => None,
        }
    });
    told.collect()
}
