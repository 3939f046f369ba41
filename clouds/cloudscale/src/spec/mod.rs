//! What a Service asks for: every field and annotation is honoured or refused (law 8).
//!
//! The spec is read against what was observed. Where an annotation is wrong, the observed value stays: it is refused, and
//! nothing changes because of it.

mod ports;
mod sources;

pub(crate) use ports::{WantedListener, WantedMember, WantedMonitor, WantedPool, http_version, speaks_http};
pub(crate) use sources::canonical;

use std::collections::BTreeSet;

use cloudberth_core::{
    ServiceView,
    annotation::{Parsed, Value},
    lb::{Desired, Notice, Refusal},
    net::parse_ip,
    reason::{ANNOTATION_WITHOUT_EFFECT, INVALID_ANNOTATION},
    view::{ExternalTrafficPolicy, SessionAffinity},
};

use crate::{
    annotations::{
        ALLOWED_SUBNETS, FLAVOR, FLOATING_IPS, FORCE_HOSTNAME, Floating, IP_MODE, NODE_SELECTOR,
        POOL_ALGORITHM, TABLE, VIP_ADDRESSES, Vip, ZONE,
    },
    find::balancer_name,
    observed::{BackendInstances, Observed, ObservedBalancer, PrivateAddress},
    reasons::{NO_VALID_NODES, NODE_ADDRESS_UNKNOWN, NODE_WITHOUT_SERVER},
};

/// How many of many are named in one message.
const NAMED: usize = 5;

/// How much of the nodes' addresses is known. Members are not removed because something is unknown (law 5).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Sight {
    Clear,
    /// The servers of some nodes cannot be read, so any member may be one of theirs.
    Dim,
    /// There are servers and none shows an address, although a pool has members.
    Blind,
}

/// What a Service asks for, as far as it can be carried out.
#[derive(Clone, Debug)]
pub(crate) struct Spec<'a> {
    pub(crate) name: String,
    /// `None` where it cannot be read.
    pub(crate) flavor: Option<String>,
    /// Where a new load balancer goes; `None` is the cloud's own choice.
    pub(crate) zone: Option<String>,
    pub(crate) vips: Vec<Vip>,
    pub(crate) pools: Vec<WantedPool>,
    /// We created the load balancer, or are about to.
    pub(crate) ours: bool,
    /// A port is refused: which pool or listener it owns is not known, so none is surplus.
    pub(crate) ports_refused: bool,
    pub(crate) sight: Sight,
    pub(crate) floating_ips: Vec<Floating>,
    pub(crate) annotations: Parsed<'a>,
    pub(crate) refused: Vec<Refusal>,
    pub(crate) notices: Vec<Notice>,
}

impl<'a> Spec<'a> {
    /// Reads the Service. Every field is named here, so that a new one does not compile until somebody decides.
    pub(crate) fn read(want: &'a Desired, observed: &Observed, ours: bool) -> Self {
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
            // A public load balancer has an address of either family, a private one has those that it was given.
            ip_families: _,
            ip_family_policy: _,
            // Read where the ports and the sources are.
            ports: _,
            health_check_node_port: _,
            source_ranges: _,
            // Carried out or refused here.
            annotations,
            external_traffic_policy,
            load_balancer_ip,
            session_affinity,
        } = &*want.service;
        let parsed = TABLE.parse(annotations);
        let mut spec = Spec {
            name: balancer_name(&want.service),
            flavor: parsed.settle(&FLAVOR, None).filter(|_| parsed.get(&FLAVOR) != Value::Wrong),
            zone: None,
            vips: parsed.get(&VIP_ADDRESSES).set().unwrap_or_default(),
            pools: Vec::new(),
            ours,
            ports_refused: false,
            sight: if observed.instances.unknown.is_empty() { Sight::Clear } else { Sight::Dim },
            floating_ips: parsed.get(&FLOATING_IPS).set().unwrap_or_default(),
            refused: parsed.refused.clone(),
            notices: parsed.notices.clone(),
            annotations: parsed,
        };
        if spec.annotations.settle(&FORCE_HOSTNAME, None).is_some_and(|host| !host.is_empty()) {
            // A host name is published without a mode.
            spec.refused.retain(|refusal| refusal.field != IP_MODE.name());
        }
        if let ExternalTrafficPolicy::Other(text) = external_traffic_policy {
            let message = format!("{text:?} is neither Cluster nor Local");
            spec.refused.push(Refusal::unsupported("spec.externalTrafficPolicy", message));
        }
        spec.affinity(session_affinity);
        spec.address(load_balancer_ip.as_deref(), observed.existing.as_ref());
        spec.zone(observed);
        spec.nodes(want, observed);
        let addresses = spec.addresses(observed);
        spec.ports(want, observed, &addresses, ours);
        spec
    }

    fn affinity(&mut self, affinity: &SessionAffinity) {
        let sticky = self.annotations.get(&POOL_ALGORITHM) == Value::Set("source_ip");
        if *affinity != SessionAffinity::None && !sticky {
            let message = format!(
                "set {} to source_ip, which keeps a client with a node, or use None",
                POOL_ALGORITHM.name()
            );
            self.refused.push(Refusal::unsupported("spec.sessionAffinity", message));
        }
    }

    fn address(&mut self, wanted: Option<&str>, existing: Option<&ObservedBalancer>) {
        let Some(wanted) = wanted.filter(|text| !text.is_empty()) else { return };
        let ip = parse_ip(wanted);
        let vips = existing.into_iter().flat_map(|existing| &existing.balancer.vip_addresses);
        let has =
            vips.map(|vip| parse_ip(&vip.address)).chain(self.floating_ips.iter().map(|f| Some(f.address)));
        if ip.is_none() || !has.into_iter().any(|address| address == ip) {
            let message = format!(
                "an address cannot be asked for here; use {} or {}",
                FLOATING_IPS.name(),
                VIP_ADDRESSES.name()
            );
            self.refused.push(Refusal::unsupported("spec.loadBalancerIP", message));
        }
    }

    /// The zone of a new load balancer: the annotation's, else the one that all servers are in.
    fn zone(&mut self, observed: &Observed) {
        self.zone = self.annotations.get(&ZONE).set().filter(|zone| !zone.is_empty());
        if self.zone.is_some() || observed.existing.is_some() {
            return;
        }
        let zones: BTreeSet<&String> =
            observed.instances.found.iter().filter_map(|m| m.zone.as_ref()).collect();
        if zones.len() > 1 {
            let zones: Vec<_> = zones.into_iter().map(String::as_str).collect();
            let message =
                format!("nodes are in several zones ({}); say in which it should be", zones.join(", "));
            self.refused.push(Refusal::new(INVALID_ANNOTATION, ZONE.name(), message));
        } else {
            self.zone = zones.into_iter().next().cloned();
        }
    }

    /// Warns about nodes that take no traffic although one might expect it.
    fn nodes(&mut self, want: &Desired, observed: &Observed) {
        let few = |nodes: &[(String, String)]| {
            let each = nodes.iter().take(NAMED).map(|(node, why)| format!("{node}: {why}"));
            let more = nodes.len().saturating_sub(NAMED);
            let more = if more > 0 { format!("; and {more} more") } else { String::new() };
            format!("{}{more}", each.collect::<Vec<_>>().join("; "))
        };
        let BackendInstances { missing, unknown, .. } = &observed.instances;
        if !missing.is_empty() {
            let message = format!("nodes take no traffic: {}", few(missing));
            self.notices.push(Notice::warning(NODE_WITHOUT_SERVER, message));
        }
        if !unknown.is_empty() {
            let message =
                format!("servers of nodes cannot be read, so no member is removed: {}", few(unknown));
            self.notices.push(Notice::warning(NODE_ADDRESS_UNKNOWN, message));
        }
        if want.backends.is_empty() {
            let value = want.service.annotations.get(NODE_SELECTOR.name());
            let message = match value {
                Some(value) => format!("no node matches {}: {value}", NODE_SELECTOR.name()),
                None => format!("no node can take traffic; {} is not set", NODE_SELECTOR.name()),
            };
            self.notices.push(Notice::warning(NO_VALID_NODES, message));
        }
    }

    /// The addresses of members, in the order of the nodes.
    fn addresses(&mut self, observed: &Observed) -> Vec<PrivateAddress> {
        let present = || {
            let pools = observed.existing.iter().flat_map(|existing| &existing.pools);
            pools.flat_map(|pool| &pool.members)
        };
        let all = observed.instances.found.iter().flat_map(|instance| &instance.addresses);
        let mut chosen: Vec<_> = all.cloned().collect();
        let had_any = !chosen.is_empty();
        match self.annotations.get(&ALLOWED_SUBNETS) {
            Value::Set(subnets) if !subnets.is_empty() => chosen.retain(|a| subnets.contains(&a.subnet)),
            Value::Set(_) | Value::Unset => {}
            Value::Wrong => {
                // Which subnets are meant is not known, so those in use stay.
                let used: BTreeSet<_> = present().filter_map(|m| Some(&m.subnet.as_ref()?.uuid)).collect();
                chosen.retain(|a| used.is_empty() || used.contains(&a.subnet));
            }
        }
        if had_any && chosen.is_empty() {
            let message = format!("{}: no node has an address in these subnets", ALLOWED_SUBNETS.name());
            self.notices.push(Notice::warning(NO_VALID_NODES, message));
        } else if !observed.instances.found.is_empty() && !had_any {
            let mut message = "no node has a private address, so none takes traffic";
            if present().next().is_some() {
                // A whole cluster does not lose its addresses; the answer is more likely incomplete.
                self.sight = Sight::Blind;
                message = "no node shows a private address; the members that are there stay";
            }
            self.notices.push(Notice::warning(NO_VALID_NODES, message));
        }
        if self.annotations.get(&NODE_SELECTOR) == Value::Wrong {
            // Which nodes are meant is not known: no node is added, and those that are gone are removed.
            let used: BTreeSet<&String> = present().map(|member| &member.address).collect();
            chosen.retain(|a| used.contains(&a.address));
        }
        chosen
    }

    /// Warns that an annotation has no effect.
    fn without_effect(&mut self, key: &str, why: &str) {
        self.notices
            .push(Notice::warning(ANNOTATION_WITHOUT_EFFECT, format!("{key}: it has no effect: {why}")));
    }
}
