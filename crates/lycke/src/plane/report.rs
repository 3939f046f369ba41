//! What the plane tells of its load balancers.

use std::net::{IpAddr, SocketAddr};

use ipnet::IpNet;
use jiff::Timestamp;

use super::config::{BalancerKey, Protocol};

/// How a load balancer is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BalancerReport {
    /// In the order of the configuration, for each address in its order.
    pub listeners: Vec<ListenerReport>,
    /// In the order of the configuration.
    pub backends: Vec<BackendReport>,
}

/// How a listener is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ListenerReport {
    /// The transport.
    pub protocol: Protocol,
    /// The address that was asked for.
    pub address: IpAddr,
    /// The port that was asked for.
    pub port: u16,
    /// Where it really listens.
    pub bound: Option<SocketAddr>,
    /// What is wrong with it. `Shifted` comes with an address.
    pub fault: Option<ListenerFault>,
    /// What is wrong in words; empty if nothing is.
    pub message: String,
}

/// What is wrong with a listener.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ListenerFault {
    /// The port is taken: by this load balancer, or by another program.
    AddressInUse(Option<BalancerKey>),
    /// The process may not bind it.
    PermissionDenied,
    /// The machine has no such address.
    AddressNotAvailable,
    /// The process has too many files open.
    TooManyFiles,
    /// It needs a privilege, so another port is bound.
    Shifted,
}

/// How a backend is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BackendReport {
    /// The id of its machine.
    pub machine: String,
    /// Whether all its checks pass; unknown before the first result, and used meanwhile.
    pub healthy: Option<bool>,
    /// Why it is not healthy.
    pub reason: Option<String>,
    /// When `healthy` changed last.
    pub since: Timestamp,
}

/// What a load balancer has done.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// Its TCP connections.
    pub connections: Connections,
    /// Bytes from clients, TCP and UDP together.
    pub bytes_in: u64,
    /// Bytes to clients.
    pub bytes_out: u64,
    /// Its datagrams.
    pub udp: UdpCounters,
    /// In the order of the configuration.
    pub backends: Vec<BackendCounters>,
    /// Connections and datagrams that each range has let in.
    pub source_ranges: Vec<(IpNet, u64)>,
    /// When it began to count.
    pub since: Option<Timestamp>,
}

/// What became of TCP clients.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Connections {
    /// Those that are connected now.
    pub open: u64,
    /// Those handed to a backend.
    pub accepted: u64,
    /// Those from an address that is not let in.
    pub refused_source: u64,
    /// Those that came when the limit was reached.
    pub refused_limit: u64,
    /// Those for whom there was no healthy backend.
    pub no_backend: u64,
    /// Those for whom every healthy backend was tried in vain.
    pub failed: u64,
}

/// What became of datagrams.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct UdpCounters {
    /// Flows that are remembered now.
    pub flows: u64,
    /// From clients to backends.
    pub datagrams_in: u64,
    /// From backends to clients.
    pub datagrams_out: u64,
    /// Refused for source, limit or lack of a backend.
    pub dropped: u64,
}

/// What one backend has done.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct BackendCounters {
    /// The id of its machine.
    pub machine: String,
    /// Connections that are open now.
    pub open: u64,
    /// Connections that it took.
    pub connections: u64,
    /// Connections that it did not take.
    pub failures: u64,
}

/// What all load balancers together have done since the start, those that were removed included.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PlaneTotals {
    /// What became of TCP clients.
    pub connections: Connections,
    /// Bytes from clients.
    pub bytes_in: u64,
    /// Bytes to clients.
    pub bytes_out: u64,
    /// Flows that are remembered now.
    pub udp_flows: u64,
}

/// What the plane notices by itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PlaneEvent {
    /// A backend passes its checks.
    BackendUp {
        /// The id of its machine.
        machine: String,
    },
    /// A backend does not pass its checks.
    BackendDown {
        /// The id of its machine.
        machine: String,
        /// What failed.
        reason: String,
    },
    /// A listener is bound, maybe at another port.
    ListenerBound {
        /// The listener.
        listener: ListenerReport,
    },
    /// A listener could not be bound.
    ListenerFailed {
        /// The listener.
        listener: ListenerReport,
    },
}
