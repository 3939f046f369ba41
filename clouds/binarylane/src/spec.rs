//! What a Service asks for: every field and annotation is honoured or refused (law 8).
//!
//! The spec is read against what was observed. What is refused keeps its observed value: nothing changes because of it.

use std::collections::BTreeSet;

use cloudberth_core::{
    ServiceView,
    annotation::{Parsed, Value},
    lb::{Desired, Notice, Refusal, Severity},
    net::{IpFamily, parse_ip},
    reason::INVALID_ANNOTATION,
    view::{ExternalTrafficPolicy, IpFamilyPolicy, ServicePort, ServiceProtocol, SessionAffinity},
};

use crate::{
    annotations::{self, HEALTH_CHECK_PATH, HEALTH_CHECK_PROTOCOL, PROTOCOL, Protocols, REGION, TABLE},
    observed::{BackendServer, Observed},
    plan::Planner,
    reasons::{
        NODE_NOT_RESOLVED, NODE_OUTSIDE_VPC, NODE_REGION_MISMATCH, ONE_IP_FAMILY, PORT_NOT_FORWARDED,
        REGION_IMMUTABLE, UNSUPPORTED_IP_FAMILY, UNSUPPORTED_LOAD_BALANCER_IP, UNSUPPORTED_SERVICE_PORT,
        UNSUPPORTED_SESSION_AFFINITY,
    },
    wire::{HealthCheck, LoadBalancer, Rule},
};

/// How many of many are named in one message.
const NAMED: usize = 5;
const POSSIBLE: &str =
    "BinaryLane load balancers forward only HTTP (TCP 80) and HTTPS (TCP 443), without port mapping";

/// What a Service asks for, as far as it can be carried out.
#[derive(Clone, Debug)]
pub(crate) struct Spec {
    pub(crate) rules: BTreeSet<Rule>,
    pub(crate) check: HealthCheck,
    /// Where a new one goes.
    pub(crate) region: Option<String>,
    /// The pool.
    pub(crate) servers: BTreeSet<i64>,
    pub(crate) refused: Vec<Refusal>,
    pub(crate) notices: Vec<Notice>,
}

impl Spec {
    /// Reads the Service. Every field is named here, so that a new one does not compile until somebody decides.
    pub(crate) fn read(planner: &Planner, want: &Desired, observed: &Observed) -> Self {
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
            // Honoured by kube-proxy on the node, which sees the client's address.
            cluster_ips: _,
            internal_traffic_policy: _,
            publish_not_ready_addresses: _,
            traffic_distribution: _,
            external_ips: _,
            source_ranges: _,
            // Packets arrive with the load balancer's address and port, so node ports play no part. The health check has
            // no port either; with `Local` the pool holds the nodes with ready pods instead.
            allocate_node_ports: _,
            health_check_node_port: _,
            // Carried out or refused here.
            annotations,
            ports,
            ip_families,
            ip_family_policy,
            session_affinity,
            external_traffic_policy,
            load_balancer_ip,
        } = &*want.service;
        let existing = observed.existing.as_ref();
        let parsed = TABLE.parse(annotations);
        let mut spec = Self {
            rules: BTreeSet::new(),
            check: HealthCheck::default(),
            region: planner.region.clone(),
            servers: BTreeSet::new(),
            refused: Vec::new(),
            notices: observed.notices.clone(),
        };
        let forwarded = spec.ports(ports, &parsed);
        spec.families(ip_families, ip_family_policy.as_ref());
        spec.affinity(session_affinity);
        if let ExternalTrafficPolicy::Other(text) = external_traffic_policy {
            let message = format!("{text:?} is neither Cluster nor Local");
            spec.refused.push(Refusal::unsupported("spec.externalTrafficPolicy", message));
        }
        spec.address(load_balancer_ip.as_deref(), existing);
        spec.refused.extend(parsed.refused.iter().cloned());
        spec.notices.extend(parsed.notices.iter().cloned());
        spec.rules = match (forwarded, existing) {
            (Some(forwarded), _) => rules(forwarded),
            (None, Some(existing)) => existing.forwarding_rules.iter().cloned().collect(),
            (None, None) => BTreeSet::new(),
        };
        spec.check(planner, &parsed, existing);
        spec.region(&parsed, existing);
        spec.servers(planner, want, observed);
        spec
    }

    /// What is to be forwarded; `None` where that is refused.
    fn ports(&mut self, ports: &[ServicePort], parsed: &Parsed<'_>) -> Option<Protocols> {
        let known =
            |port: &ServicePort| port.protocol == ServiceProtocol::Tcp && matches!(port.port, 80 | 443);
        let odd: Vec<_> = ports.iter().filter(|port| !known(port)).collect();
        if ports.is_empty() {
            let text = format!("there are none, and at least one of 80 and 443 is needed; {POSSIBLE}");
            self.refused.push(Refusal::new(UNSUPPORTED_SERVICE_PORT, "spec.ports", text));
        } else if !odd.is_empty() {
            let odd: Vec<_> =
                odd.iter().map(|port| format!("{}/{}", port.port, port.protocol.as_str())).collect();
            let text = format!("{} cannot be forwarded: {POSSIBLE}", odd.join(", "));
            self.refused.push(Refusal::new(UNSUPPORTED_SERVICE_PORT, "spec.ports", text));
        }
        let has = |number: i64| ports.iter().any(|port| known(port) && port.port == number);
        let there = Protocols { http: has(80), https: has(443) };
        let wanted = match parsed.get(&PROTOCOL) {
            Value::Unset => there,
            Value::Wrong => return None,
            Value::Set(wanted) => wanted,
        };
        let missing: Vec<_> = [
            (wanted.http && !there.http, "http needs port 80"),
            (wanted.https && !there.https, "https needs port 443"),
        ]
        .into_iter()
        .filter_map(|(missing, text)| missing.then_some(text))
        .collect();
        if !missing.is_empty() {
            let field = parsed.spelling(&PROTOCOL).unwrap_or(PROTOCOL.name());
            let text = format!("{}, TCP, which the Service does not have", missing.join(", and "));
            self.refused.push(Refusal::new(INVALID_ANNOTATION, field, text));
        }
        if ports.is_empty() || !odd.is_empty() || !missing.is_empty() {
            return None;
        }
        let left_out = [(there.http && !wanted.http, "80"), (there.https && !wanted.https, "443")];
        for (_, port) in left_out.into_iter().filter(|(out, _)| *out) {
            let text = format!("port {port} is not forwarded, because {} leaves it out", PROTOCOL.name());
            self.notices.push(Notice {
                severity: Severity::Normal,
                reason: PORT_NOT_FORWARDED,
                message: text,
            });
        }
        Some(wanted)
    }

    fn families(&mut self, families: &[IpFamily], policy: Option<&IpFamilyPolicy>) {
        let mut refuse = |field: &str, what: &str| {
            let text =
                format!("{what} cannot be had: the address of a BinaryLane load balancer is IPv4 only");
            self.refused.push(Refusal::new(UNSUPPORTED_IP_FAMILY, field, text));
        };
        match policy {
            Some(IpFamilyPolicy::RequireDualStack) => refuse("spec.ipFamilyPolicy", "RequireDualStack"),
            Some(IpFamilyPolicy::Other(text)) => refuse("spec.ipFamilyPolicy", text),
            _ if families == [IpFamily::V6] => refuse("spec.ipFamilies", "IPv6"),
            Some(IpFamilyPolicy::PreferDualStack) if families != [IpFamily::V4] => {
                let message = "spec.ipFamilyPolicy: the load balancer has an IPv4 address only".to_owned();
                self.notices.push(Notice { severity: Severity::Normal, reason: ONE_IP_FAMILY, message });
            }
            Some(IpFamilyPolicy::PreferDualStack | IpFamilyPolicy::SingleStack) | None => {}
        }
    }

    fn affinity(&mut self, affinity: &SessionAffinity) {
        let value = match affinity {
            SessionAffinity::None => return,
            SessionAffinity::ClientIp { .. } => "ClientIP",
            SessionAffinity::Other(text) => text,
        };
        let text = format!(
            "{value} cannot be set: every BinaryLane load balancer keeps a client IP with one server for 60 s; use None"
        );
        self.refused.push(Refusal::new(UNSUPPORTED_SESSION_AFFINITY, "spec.sessionAffinity", text));
    }

    fn address(&mut self, wanted: Option<&str>, existing: Option<&LoadBalancer>) {
        let Some(wanted) = wanted.filter(|text| !text.is_empty()) else { return };
        let ip = parse_ip(wanted);
        if ip.is_some() && existing.is_some_and(|existing| parse_ip(&existing.ip) == ip) {
            return;
        }
        let text = format!("{wanted} cannot be had: BinaryLane chooses the address itself; remove the field");
        self.refused.push(Refusal::new(UNSUPPORTED_LOAD_BALANCER_IP, "spec.loadBalancerIP", text));
    }

    fn check(&mut self, planner: &Planner, parsed: &Parsed<'_>, existing: Option<&LoadBalancer>) {
        let derived =
            match self.rules.iter().map(|rule| rule.entry_protocol.as_str()).collect::<Vec<_>>().as_slice() {
                [one] => *one,
                _ => "both",
            };
        let takes = |protocol: &str| self.rules.len() < 2 || protocol == "both";
        let observed = existing.map(|existing| existing.health_check.clone());
        let kept = observed
            .as_ref()
            .map(|check| check.protocol.as_str())
            .filter(|kept| takes(kept))
            .unwrap_or(derived);
        let protocol = match parsed.get(&HEALTH_CHECK_PROTOCOL) {
            Value::Unset => derived,
            Value::Wrong => kept,
            Value::Set(wanted) if takes(wanted) => wanted,
            Value::Set(wanted) => {
                let field = parsed.spelling(&HEALTH_CHECK_PROTOCOL).unwrap_or(HEALTH_CHECK_PROTOCOL.name());
                let text = format!(
                    "{wanted:?} checks one of two: where http and https are forwarded it has to be both"
                );
                self.refused.push(Refusal::new(INVALID_ANNOTATION, field, text));
                kept
            }
        };
        let path = match parsed.get(&HEALTH_CHECK_PATH) {
            Value::Unset => planner.health_check_path.clone(),
            Value::Set(path) => path,
            Value::Wrong => observed
                .as_ref()
                .map_or_else(|| planner.health_check_path.clone(), |check| check.path.clone()),
        };
        self.check = HealthCheck { protocol: protocol.to_owned(), path };
    }

    /// The region is chosen once. Of an existing load balancer only an annotation that says otherwise is worth a word:
    /// the program's own setting is for new ones.
    fn region(&mut self, parsed: &Parsed<'_>, existing: Option<&LoadBalancer>) {
        let asked = parsed.get(&REGION).set().map(|text| annotations::place(&text));
        if let Some(existing) = existing {
            let is = existing.region.as_ref().map(|region| region.slug.clone());
            if asked.is_some_and(|asked| asked != is) {
                let is = is.as_deref().unwrap_or(annotations::ANYCAST);
                let text = format!(
                    "load balancer {} is in region {is} and stays there; set it back, or create the Service anew",
                    existing.id
                );
                self.refused.push(Refusal::new(REGION_IMMUTABLE, REGION.name(), text));
            }
            self.region = existing.region.as_ref().map(|region| region.slug.clone());
        } else if let Some(asked) = asked {
            self.region = asked;
        }
    }

    /// The pool: the servers of the nodes, in the load balancer's region and in the VPC, if there is one. While a node's
    /// server is not known, any member may be its own, so none is surplus (law 5).
    fn servers(&mut self, planner: &Planner, want: &Desired, observed: &Observed) {
        let there = observed.servers.found.iter().filter(|one| !observed.gone.contains(&one.facts.server));
        let (near, far): (Vec<_>, Vec<_>) =
            there.partition(|one| self.region.as_ref().is_none_or(|region| *region == one.facts.region));
        let (near, outside): (Vec<_>, Vec<_>) =
            near.into_iter().partition(|one| planner.vpc.is_none_or(|vpc| one.facts.vpc == Some(vpc)));
        let names = |nodes: &[&BackendServer]| few(nodes.iter().map(|one| one.node.clone()).collect());
        if !far.is_empty() {
            let region = self.region.as_deref().unwrap_or_default();
            let text = format!("nodes outside region {region} take no traffic: {}", names(&far));
            self.notices.push(Notice::warning(NODE_REGION_MISMATCH, text));
        }
        if let Some(vpc) = planner.vpc.filter(|_| !outside.is_empty()) {
            let text = format!("nodes outside VPC {vpc} take no traffic: {}", names(&outside));
            self.notices.push(Notice::warning(NODE_OUTSIDE_VPC, text));
        }
        let unclear: Vec<_> = observed.servers.missing.iter().chain(&observed.servers.unknown).collect();
        if !unclear.is_empty() {
            let text = few(unclear.iter().map(|(node, why)| format!("{node}: {why}")).collect());
            let message = format!("nodes take no traffic for now: {text}");
            self.notices.push(Notice { severity: Severity::Normal, reason: NODE_NOT_RESOLVED, message });
        }
        self.servers = near.iter().map(|one| one.facts.server).collect();
        if !resolved(want, observed) {
            let members = observed.existing.iter().flat_map(|existing| &existing.server_ids);
            self.servers.extend(members.filter(|id| !observed.gone.contains(id)));
        }
    }
}

/// Whether it is known which servers the nodes have, and which have none any more.
fn resolved(want: &Desired, observed: &Observed) -> bool {
    let by_id = |name: &String| {
        let node = want.backends.iter().map(|backend| &backend.node).find(|node| node.name == *name);
        node.is_some_and(|node| node.provider_id.is_some())
    };
    observed.servers.unknown.is_empty() && observed.servers.missing.iter().all(|(node, _)| by_id(node))
}

fn rules(forwarded: Protocols) -> BTreeSet<Rule> {
    forwarded.words().into_iter().map(|word| Rule { entry_protocol: word.to_owned() }).collect()
}

fn few(all: Vec<String>) -> String {
    let more = all.len().saturating_sub(NAMED);
    let more = if more > 0 { format!("; and {more} more") } else { String::new() };
    format!("{}{more}", all.into_iter().take(NAMED).collect::<Vec<_>>().join("; "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_few_are_named_and_the_others_counted() {
        let told = |count: usize| few((1..=count).map(|number| format!("n{number}")).collect());
        assert_eq!(told(1), "n1");
        assert!(!told(NAMED).contains("more"), "{}", told(NAMED));
        assert!(told(NAMED + 2).ends_with(&format!("n{NAMED}; and 2 more")), "{}", told(NAMED + 2));
    }
}
