//! Services, nodes and servers as plain values.

use std::sync::Arc;

use cloudberth_binarylane::{
    Action, BackendServer, Facts, Observed, Planner,
    wire::{BalancerStatus, HealthCheck, LoadBalancer, Rule, Slug},
};
use cloudberth_core::{
    NodeView, ServiceView,
    lb::{Backend, Claims, Decision, Desired, Goal, Located, Next},
    view::{ServicePort, ServiceProtocol, ServiceType},
};

pub(crate) const PREFIX: &str = "service.beta.kubernetes.io/binarylane-loadbalancer-";
pub(crate) const LB: i64 = 5512;

pub(crate) fn planner() -> Planner {
    Planner { region: None, vpc: None, prefix: "k8s".to_owned(), health_check_path: "/".to_owned() }
}

pub(crate) fn port(protocol: ServiceProtocol, port: i64) -> ServicePort {
    ServicePort { protocol, port, ..ServicePort::default() }
}

pub(crate) fn tcp(numbers: &[i64]) -> Vec<ServicePort> {
    numbers.iter().map(|number| port(ServiceProtocol::Tcp, *number)).collect()
}

/// A Service with these annotations and ports; a key without a slash gets the prefix.
pub(crate) fn service(annotations: &[(&str, &str)], ports: &[i64]) -> ServiceView {
    let key = |key: &str| if key.contains('/') { key.to_owned() } else { format!("{PREFIX}{key}") };
    ServiceView {
        namespace: "shop".to_owned(),
        name: "web".to_owned(),
        uid: "uid-web".to_owned(),
        service_type: ServiceType::LoadBalancer,
        annotations: annotations.iter().map(|(k, v)| (key(k), (*v).to_owned())).collect(),
        ports: tcp(ports),
        ..ServiceView::default()
    }
}

pub(crate) fn node(number: i64) -> NodeView {
    NodeView {
        name: format!("node-{number}"),
        provider_id: Some(format!("binarylane://{number}")),
        ..NodeView::default()
    }
}

pub(crate) fn want(service: ServiceView, nodes: impl IntoIterator<Item = i64>) -> Desired {
    let nodes: Vec<Arc<NodeView>> = nodes.into_iter().map(|number| Arc::new(node(number))).collect();
    Desired {
        service: Arc::new(service),
        cluster: "prod".to_owned(),
        goal: Goal::Present,
        backends: nodes.iter().map(|node| Backend { node: Arc::clone(node), local_endpoint: None }).collect(),
        nodes,
        rivals: Vec::new(),
        claims: Claims::default(),
    }
}

pub(crate) fn gone(want: &Desired) -> Desired {
    Desired { goal: Goal::Gone, backends: Vec::new(), ..want.clone() }
}

pub(crate) fn server(number: i64, region: &str, vpc: Option<i64>) -> BackendServer {
    let facts = Facts {
        server: number,
        region: region.to_owned(),
        vpc,
        vpc_addresses: Vec::new(),
        checks_destination: false,
    };
    BackendServer { node: format!("node-{number}"), facts }
}

/// The servers of all backends, in `bne` and in VPC 4021.
pub(crate) fn servers(want: &Desired) -> Located<BackendServer> {
    let number = |backend: &Backend| backend.node.name.trim_start_matches("node-").parse().unwrap();
    let found = want.backends.iter().map(|backend| server(number(backend), "bne", Some(4021))).collect();
    Located { found, ..Located::default() }
}

pub(crate) fn rules(words: &[&str]) -> Vec<Rule> {
    words.iter().map(|word| Rule { entry_protocol: (*word).to_owned() }).collect()
}

pub(crate) fn check(protocol: &str, path: &str) -> HealthCheck {
    HealthCheck { protocol: protocol.to_owned(), path: path.to_owned() }
}

pub(crate) fn balancer(words: &[&str], protocol: &str, members: &[i64]) -> LoadBalancer {
    LoadBalancer {
        id: LB,
        name: "k8s-prod-shop-web".to_owned(),
        ip: "203.0.113.80".to_owned(),
        status: BalancerStatus::Active,
        created_at: "2026-03-02T04:05:06+00:00".to_owned(),
        forwarding_rules: rules(words),
        health_check: check(protocol, "/"),
        region: None,
        server_ids: members.to_vec(),
    }
}

pub(crate) fn in_region(balancer: LoadBalancer, slug: &str) -> LoadBalancer {
    LoadBalancer { region: Some(Slug { slug: slug.to_owned() }), ..balancer }
}

/// A look at an account without a load balancer for this Service.
pub(crate) fn absent(want: &Desired) -> Observed {
    Observed { servers: servers(want), ..Observed::default() }
}

pub(crate) fn present(want: &Desired, balancer: LoadBalancer) -> Observed {
    Observed { existing: Some(balancer), ..absent(want) }
}

pub(crate) fn steps(decision: &Decision<Action>) -> Vec<Action> {
    match &decision.next {
        Next::Act(steps) => steps.iter().map(|step| step.act.clone()).collect(),
        Next::Converged | Next::Wait { .. } => Vec::new(),
    }
}

pub(crate) fn refusals(decision: &Decision<Action>) -> Vec<String> {
    decision.refused.iter().map(|refusal| format!("{}: {refusal}", refusal.reason)).collect()
}

pub(crate) fn reasons(decision: &Decision<Action>) -> Vec<&'static str> {
    decision.notices.iter().map(|notice| notice.reason.name()).collect()
}
