//! What a load balancer should be.

use std::{fmt, net::IpAddr, time::Duration};

use ipnet::IpNet;

/// The name of a load balancer: the Service that it belongs to.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct BalancerKey {
    /// The key of its cluster in the inventory.
    pub cluster: String,
    /// The namespace of the Service.
    pub namespace: String,
    /// The name of the Service.
    pub name: String,
}

impl fmt::Display for BalancerKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}/{}", self.cluster, self.namespace, self.name)
    }
}

/// What a load balancer should be: complete, valid, with every default filled in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BalancerConfig {
    /// The UID of its Service. With another one, counters start again; nothing else happens.
    pub uid: String,
    /// Where it listens: one address of each family. Each listener is bound to all of them.
    pub addresses: Vec<IpAddr>,
    /// Sorted, no two with one protocol and port.
    pub listeners: Vec<Listener>,
    /// Sorted, no two of one machine.
    pub backends: Vec<Backend>,
    /// How long a client keeps its backend, from its latest new connection or flow on. `None`: it does not.
    pub affinity: Option<Duration>,
    /// Who may connect; empty means everybody.
    pub source_ranges: Vec<IpNet>,
    /// How backends are checked.
    pub health: Health,
    /// The header before the bytes of a client.
    pub proxy_protocol: ProxyProtocol,
    /// How a backend is chosen.
    pub policy: Policy,
    /// After how long without a byte in either direction a connection is closed; `None` means never.
    pub idle_timeout: Option<Duration>,
    /// What it may use up.
    pub limits: Limits,
}

/// A port that is open to clients.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Listener {
    /// The transport.
    pub protocol: Protocol,
    /// The port that clients connect to.
    pub port: u16,
    /// The port of every backend that they are led to.
    pub node_port: u16,
}

/// A transport.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Protocol {
    /// Connections.
    Tcp,
    /// Datagrams.
    Udp,
}

/// A machine that takes traffic.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Backend {
    /// The id of the machine.
    pub machine: String,
    /// Where its node ports answer.
    pub address: IpAddr,
    /// Why the machine cannot take traffic, such as "machine stopped". It counts as down and its connections drain.
    pub down: Option<String>,
}

/// How backends are checked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Health {
    /// What is asked.
    pub kind: HealthKind,
    /// The time between two checks.
    pub interval: Duration,
    /// How long an answer may take.
    pub timeout: Duration,
    /// So many good checks in a row bring a backend back.
    pub healthy_threshold: u32,
    /// So many bad checks in a row take it out.
    pub unhealthy_threshold: u32,
}

/// What a health check asks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum HealthKind {
    /// `Tcp` without a port if there is a TCP listener. Else kube-proxy's health port 10256: it is well if nobody answers there.
    Auto,
    /// A connection. Without a port, each TCP listener's node port is checked on its own.
    Tcp {
        /// The port for all listeners.
        port: Option<u16>,
    },
    /// A GET that is answered with 2xx.
    Http {
        /// The port for all listeners.
        port: u16,
        /// The path.
        path: String,
    },
    /// Nothing: every backend is well.
    None,
}

/// The header that tells a backend who its client is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ProxyProtocol {
    /// None.
    #[default]
    None,
    /// As a line of text.
    V1,
    /// In bytes.
    V2,
}

/// How a backend is chosen among those that are well.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Policy {
    /// One after the other, one sequence for each listener.
    #[default]
    RoundRobin,
    /// The one with the fewest open connections and flows of this load balancer.
    LeastConnections,
    /// By the client's address: a client moves only if its backend goes away.
    SourceHash,
}

/// What a load balancer may use up, and how long it lets things end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// How long connections may go on after their backend, listener or load balancer was removed.
    pub drain: Duration,
    /// Open TCP connections.
    pub connections: usize,
    /// How long a flow without a datagram is remembered.
    pub udp_idle: Duration,
    /// Flows for each UDP listener; the oldest gives way.
    pub udp_flows: usize,
    /// What happens to ports that need a privilege which the process lacks.
    pub low_ports: LowPorts,
}

/// What happens to a port below 1024 that the process may not bind.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum LowPorts {
    /// It is bound at the port plus 10,000.
    #[default]
    Shift,
    /// It is reported.
    Fail,
}
