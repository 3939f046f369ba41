//! What a Service asks for: every field is honoured or refused (law 8).

use std::collections::BTreeSet;

use cloudberth_core::{
    ServiceView,
    annotation::{By, Key, OneOf, Parsed, Table, Text},
    decide::nodeset::Selector,
    lb::{Desired, Impact, Refusal, Trail},
    net::IpFamily,
    view::{ServicePort, ServiceProtocol, SessionAffinity},
};

use crate::cloud::{Listener, Protocol};

/// The id of the load balancer, written by us.
pub static BALANCER_ID: Key<Text> = Key::new("fake.cloudberth.dev/balancer-id", Text)
    .recorded()
    .about("The id of the load balancer. Written by cloudberth.");

/// The name that a load balancer should have.
pub static BALANCER_NAME: Key<Text> = Key::new("fake.cloudberth.dev/balancer-name", Text).about(
    "The name of the load balancer. By default it is made from the cluster's name and the Service's UID.",
);

/// How a load balancer chooses.
pub static ALGORITHM: Key<OneOf<&'static str>> = Key::new(
    "fake.cloudberth.dev/algorithm",
    OneOf::exact(&[("round-robin", "round-robin"), ("least-connections", "least-connections")]),
)
.default("round-robin")
.impact(Impact::Minimal)
.about("Which node takes the next connection.");

/// A floating address that should lead to the load balancer.
pub static FLOATING_ADDRESS: Key<Text> = Key::new("fake.cloudberth.dev/floating-address", Text)
    .impact(Impact::Minimal)
    .about("A floating address of the cloud that should lead to the load balancer.");

/// Which nodes stand behind the load balancer.
pub static NODE_SELECTOR: Key<By<Selector>> = Key::new("fake.cloudberth.dev/node-selector", Selector::KIND)
    .impact(Impact::Minimal)
    .about("Only nodes whose labels match stand behind the load balancer.");

/// All of them.
pub static TABLE: Table =
    Table::new(&[&BALANCER_ID, &BALANCER_NAME, &ALGORITHM, &FLOATING_ADDRESS, &NODE_SELECTOR])
        .watching(&["fake.cloudberth.dev/"]);

/// The name of a Service's load balancer. Unless the Service asks for another, it carries the UID: a Service of the same
/// name that comes later, or one of another cluster, has another.
pub(super) fn name(service: &ServiceView, cluster: &str) -> String {
    let given = TABLE.parse(&service.annotations).get(&BALANCER_NAME).set();
    given.unwrap_or_else(|| format!("{cluster}-{}", service.uid))
}

/// The UID at the end of a name that was generated for some Service of some cluster.
pub(super) fn made_for(name: &str) -> Option<&str> {
    const UID: usize = "00000000-0000-0000-0000-000000000000".len();
    let (cluster, uid) = name.split_at_checked(name.len().checked_sub(UID)?)?;
    cluster.ends_with('-').then_some(uid)
}

/// What a Service's load balancer is found by.
pub(super) fn trail(service: &ServiceView, cluster: &str) -> Trail {
    let id = TABLE.parse(&service.annotations).get(&BALANCER_ID).set();
    Trail::new(service, id, name(service, cluster), [BALANCER_ID.name(), BALANCER_NAME.name()])
}

/// What a Service asks for, as far as it can be carried out.
pub(super) struct Spec<'a> {
    pub(super) listeners: BTreeSet<Listener>,
    pub(super) instances: BTreeSet<String>,
    pub(super) annotations: Parsed<'a>,
    pub(super) refused: Vec<Refusal>,
}

fn listener(port: &ServicePort) -> Result<Listener, Refusal> {
    let protocol = match &port.protocol {
        ServiceProtocol::Tcp => Protocol::Tcp,
        ServiceProtocol::Udp => Protocol::Udp,
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
    Ok(Listener { protocol, port: port.port, node_port: port.node_port })
}

impl<'a> Spec<'a> {
    /// Reads the Service. Every field is named here, so that a new one does not compile until somebody decides.
    pub(super) fn read(scheme: &str, want: &'a Desired) -> Self {
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
            external_traffic_policy: _,
            health_check_node_port: _,
            cluster_ips: _,
            internal_traffic_policy: _,
            publish_not_ready_addresses: _,
            traffic_distribution: _,
            external_ips: _,
            ip_family_policy: _,
            allocate_node_ports: _,
            // Carried out or refused here.
            annotations,
            ports,
            source_ranges,
            load_balancer_ip,
            session_affinity,
            ip_families,
        } = &*want.service;
        let parsed = TABLE.parse(annotations);
        let mut refused = parsed.refused.clone();
        let mut listeners = BTreeSet::new();
        for port in ports {
            match listener(port) {
                Ok(listener) => drop(listeners.insert(listener)),
                Err(refusal) => refused.push(refusal),
            }
        }
        if source_ranges.as_ref().is_some_and(|ranges| !ranges.is_empty()) {
            refused.push(Refusal::unsupported(
                "spec.loadBalancerSourceRanges",
                "this cloud cannot filter sources",
            ));
        }
        if load_balancer_ip.is_some() {
            let text = format!("use the annotation {} instead", FLOATING_ADDRESS.name());
            refused.push(Refusal::unsupported("spec.loadBalancerIP", text));
        }
        if *session_affinity != SessionAffinity::None {
            refused.push(Refusal::unsupported(
                "spec.sessionAffinity",
                "this cloud has no sticky sessions; use None",
            ));
        }
        if !ip_families.is_empty() && !ip_families.contains(&IpFamily::V4) {
            refused.push(Refusal::unsupported(
                "spec.ipFamilies",
                "this cloud has IPv4 addresses only; add IPv4",
            ));
        }
        let prefix = format!("{scheme}://");
        // Traffic that stays on its node is lost on one without a pod.
        let useful = want.backends.iter().filter(|b| b.local_endpoint != Some(false));
        let ids = useful.filter_map(|b| b.node.provider_id.as_deref()?.strip_prefix(&prefix));
        Self { listeners, instances: ids.map(str::to_owned).collect(), annotations: parsed, refused }
    }
}
