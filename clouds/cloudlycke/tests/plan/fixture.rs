//! Services, nodes and machines as plain values.

use std::{net::IpAddr, sync::Arc};

use cloudberth_cloudlycke::{
    Action, BackendMachine, Facts, Observed, assume, decide,
    wire::{BalancerSpec, ListenerStatus, LoadBalancer},
};
use cloudberth_core::{
    NodeView, ServiceView,
    lb::{Backend, Claims, Decision, Desired, Goal, Located, Next, Step},
    view::{ServicePort, ServiceProtocol, ServiceType},
};

pub(crate) const PREFIX: &str = "service.beta.kubernetes.io/cloudlycke-load-balancer-";

pub(crate) fn port(protocol: ServiceProtocol, port: i64) -> ServicePort {
    ServicePort { protocol, port, node_port: 30_000 + port, ..ServicePort::default() }
}

pub(crate) fn service(annotations: &[(&str, &str)], ports: &[i64]) -> ServiceView {
    ServiceView {
        namespace: "shop".to_owned(),
        name: "web".to_owned(),
        uid: "uid-web".to_owned(),
        service_type: ServiceType::LoadBalancer,
        annotations: annotations.iter().map(|(k, v)| (format!("{PREFIX}{k}"), (*v).to_owned())).collect(),
        ports: ports.iter().map(|number| port(ServiceProtocol::Tcp, *number)).collect(),
        ..ServiceView::default()
    }
}

pub(crate) fn want(service: ServiceView, nodes: &[u8]) -> Desired {
    let node = |number: &u8| NodeView {
        name: format!("node-{number}"),
        provider_id: Some(format!("cloudlycke://n-{number}")),
        ..NodeView::default()
    };
    let nodes: Vec<Arc<NodeView>> = nodes.iter().map(|number| Arc::new(node(number))).collect();
    Desired {
        service: Arc::new(service),
        cluster: "test".to_owned(),
        goal: Goal::Present,
        backends: nodes.iter().map(|node| Backend { node: Arc::clone(node), local_endpoint: None }).collect(),
        nodes,
        rivals: Vec::new(),
        claims: Claims::default(),
    }
}

/// What is observed where there is no load balancer yet.
pub(crate) fn absent(want: &Desired) -> Observed {
    let machine = |backend: &Backend| BackendMachine {
        node: backend.node.name.clone(),
        facts: Facts {
            machine: backend.node.name.replace("node", "n"),
            backend: IpAddr::from([10, 0, 0, backend.node.name.as_bytes()[5]]),
            internal: vec![IpAddr::from([10, 0, 0, backend.node.name.as_bytes()[5]])],
        },
    };
    let found = want.backends.iter().map(machine).collect();
    Observed { machines: Located { found, ..Located::default() }, ..Observed::default() }
}

/// The load balancer that a spec leads to.
pub(crate) fn served(spec: BalancerSpec) -> LoadBalancer {
    let address = IpAddr::from([127, 77, 0, 9]);
    let listener = |one: &cloudberth_cloudlycke::wire::Listener| ListenerStatus {
        protocol: one.protocol.clone(),
        port: one.port,
        address: None,
        bound: Some((address, one.port).into()),
        error: None,
        message: None,
    };
    LoadBalancer {
        cluster: "c2".to_owned(),
        namespace: "shop".to_owned(),
        name: "web".to_owned(),
        uid: spec.uid.clone(),
        addresses: vec![address],
        listeners: spec.listeners.iter().map(listener).collect(),
        spec: BalancerSpec {
            address_mode: Some(spec.address_mode.clone().unwrap_or_else(|| "loopback".to_owned())),
            ..spec
        },
    }
}

pub(crate) fn step(decision: &Decision<Action>) -> &Step<Action> {
    match &decision.next {
        Next::Act(steps) if steps.len() == 1 => &steps[0],
        other => panic!("{other:?}"),
    }
}

/// The spec that a Service leads to.
pub(crate) fn spec_of(want: &Desired) -> BalancerSpec {
    let decision = decide(want, Some(&absent(want)));
    match &step(&decision).act {
        Action::Put { spec, .. } => (**spec).clone(),
        other @ Action::Delete { .. } => panic!("{other:?}"),
    }
}

/// What is observed once a Service is served.
pub(crate) fn present(want: &Desired) -> Observed {
    Observed { existing: Some(served(spec_of(want))), ..absent(want) }
}

pub(crate) fn assumed(act: &Action) -> cloudberth_cloudlycke::Answer {
    assume(act)
}
