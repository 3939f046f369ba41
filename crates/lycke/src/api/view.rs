//! Objects as the API shows them.

use std::{
    collections::BTreeMap,
    net::{IpAddr, SocketAddr},
};

use jiff::Timestamp;
use serde::Serialize;
use serde_json::Value;

use crate::{
    control::BalancerStatus,
    inventory::Cluster,
    plane::{BackendReport, BalancerReport, Counters, ListenerFault, ListenerReport},
    spec::{SpecView, protocol_word},
    state::KnownMachine,
};

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct ClusterView {
    key: String,
    kubernetes_name: String,
    managed: bool,
}

impl ClusterView {
    pub(super) fn new(key: &str, cluster: &Cluster) -> Self {
        let kubernetes_name = cluster.kubernetes_name.clone();
        Self { key: key.to_owned(), kubernetes_name, managed: cluster.managed }
    }
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct MachineView {
    id: String,
    #[serde(rename = "providerID")]
    provider_id: String,
    name: String,
    cluster: String,
    r#type: String,
    region: String,
    zone: String,
    internal: Vec<IpAddr>,
    external: Vec<IpAddr>,
    backend: IpAddr,
    state: &'static str,
    labels: BTreeMap<String, String>,
    source: &'static str,
    #[serde(rename = "nodeProviderID", skip_serializing_if = "Option::is_none")]
    node_provider_id: Option<String>,
}

impl MachineView {
    pub(super) fn new(known: KnownMachine) -> Self {
        let KnownMachine { machine, state, source } = known;
        Self {
            provider_id: format!("cloudlycke://{}", machine.id),
            id: machine.id,
            name: machine.name,
            cluster: machine.cluster,
            r#type: machine.machine_type,
            region: machine.place.region,
            zone: machine.place.zone,
            internal: machine.internal,
            external: machine.external,
            backend: machine.backend,
            state: state.as_str(),
            labels: machine.labels,
            source: source.as_str(),
            node_provider_id: machine.node_provider_id,
        }
    }
}

#[derive(Debug, Serialize)]
pub(super) struct BalancerView {
    cluster: String,
    namespace: String,
    name: String,
    uid: String,
    address: Option<IpAddr>,
    addresses: Vec<IpAddr>,
    state: &'static str,
    generation: u64,
    listeners: Vec<ListenerView>,
    backends: Vec<BackendView>,
    spec: Value,
}

#[derive(Debug, Serialize)]
struct ListenerView {
    protocol: &'static str,
    port: u16,
    /// Tells the two entries of a port apart where there are two families.
    #[serde(skip_serializing_if = "Option::is_none")]
    address: Option<IpAddr>,
    bound: Option<SocketAddr>,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    message: Option<String>,
}

#[derive(Debug, Serialize)]
struct BackendView {
    machine: String,
    healthy: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<String>,
    since: Timestamp,
}

impl BalancerView {
    pub(super) fn new(status: &BalancerStatus) -> Self {
        let BalancerStatus { key, balancer, mode, report } = status;
        let listeners = report.iter().flat_map(|report| &report.listeners);
        let dual = balancer.addresses.len() > 1;
        let active = listeners.clone().any(|listener| listener.bound.is_some());
        Self {
            cluster: key.cluster.clone(),
            namespace: key.namespace.clone(),
            name: key.name.clone(),
            uid: balancer.spec.uid.clone(),
            address: balancer.addresses.first().copied(),
            addresses: balancer.addresses.clone(),
            state: if active { "active" } else { "failed" },
            generation: balancer.generation,
            listeners: listeners.map(|listener| ListenerView::new(listener, dual)).collect(),
            backends: report.iter().flat_map(|report| &report.backends).map(BackendView::new).collect(),
            spec: serde_json::to_value(SpecView::new(&balancer.spec, Some(*mode))).unwrap_or_default(),
        }
    }
}

impl ListenerView {
    fn new(listener: &ListenerReport, dual: bool) -> Self {
        let error = listener.fault.as_ref().map(|fault| match fault {
            ListenerFault::AddressInUse(_) => "AddressInUse",
            ListenerFault::PermissionDenied => "PermissionDenied",
            ListenerFault::AddressNotAvailable => "AddressNotAvailable",
            ListenerFault::TooManyFiles => "TooManyFiles",
            ListenerFault::Shifted => "Shifted",
        });
        Self {
            protocol: protocol_word(listener.protocol),
            port: listener.port,
            address: dual.then_some(listener.address),
            bound: listener.bound,
            error,
            message: error.map(|_| listener.message.clone()),
        }
    }
}

impl BackendView {
    fn new(backend: &BackendReport) -> Self {
        Self {
            machine: backend.machine.clone(),
            healthy: backend.healthy,
            reason: backend.reason.clone().filter(|_| backend.healthy == Some(false)),
            since: backend.since,
        }
    }
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct StatsView {
    uid: String,
    since: Option<Timestamp>,
    connections: ConnectionsView,
    bytes: BytesView,
    udp: UdpView,
    backends: Vec<BackendStatsView>,
    source_ranges: Vec<RangeView>,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct ConnectionsView {
    open: u64,
    accepted: u64,
    refused_source: u64,
    refused_limit: u64,
    no_backend: u64,
    failed: u64,
}

#[derive(Debug, Serialize)]
struct BytesView {
    r#in: u64,
    out: u64,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct UdpView {
    flows: u64,
    datagrams_in: u64,
    datagrams_out: u64,
    dropped: u64,
}

#[derive(Debug, Serialize)]
struct BackendStatsView {
    machine: String,
    healthy: Option<bool>,
    open: u64,
    connections: u64,
    failures: u64,
}

#[derive(Debug, Serialize)]
struct RangeView {
    range: String,
    hits: u64,
}

impl StatsView {
    pub(super) fn new(uid: String, counters: Counters, report: Option<&BalancerReport>) -> Self {
        let health = |machine: &str| {
            let backends = report.map(|report| report.backends.as_slice()).unwrap_or_default();
            backends.iter().find(|backend| backend.machine == machine).and_then(|backend| backend.healthy)
        };
        let Counters { connections, bytes_in, bytes_out, udp, backends, source_ranges, since } = counters;
        Self {
            uid,
            since,
            connections: ConnectionsView {
                open: connections.open,
                accepted: connections.accepted,
                refused_source: connections.refused_source,
                refused_limit: connections.refused_limit,
                no_backend: connections.no_backend,
                failed: connections.failed,
            },
            bytes: BytesView { r#in: bytes_in, out: bytes_out },
            udp: UdpView {
                flows: udp.flows,
                datagrams_in: udp.datagrams_in,
                datagrams_out: udp.datagrams_out,
                dropped: udp.dropped,
            },
            backends: (backends.into_iter())
                .map(|backend| BackendStatsView {
                    healthy: health(&backend.machine),
                    machine: backend.machine,
                    open: backend.open,
                    connections: backend.connections,
                    failures: backend.failures,
                })
                .collect(),
            source_ranges: (source_ranges.into_iter())
                .map(|(range, hits)| RangeView { range: range.to_string(), hits })
                .collect(),
        }
    }
}
