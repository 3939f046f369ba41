//! What there is in a project, as plain values.

use std::{
    collections::{BTreeMap, BTreeSet},
    net::IpAddr,
};

use cloudberth_core::Tick;
use ipnet::IpNet;
use jiff::Timestamp;

/// What people write on things.
pub type Tags = BTreeMap<String, String>;

/// Everything that there is, by id; floating IPs by address.
///
/// Whoever writes here goes past every rule: that is what it is for.
#[derive(Clone, Debug, Default)]
pub struct Stock {
    /// Networks, public and private.
    pub networks: BTreeMap<String, Network>,
    /// Their subnets.
    pub subnets: BTreeMap<String, Subnet>,
    /// Servers.
    pub servers: BTreeMap<String, Server>,
    /// Load balancers.
    pub balancers: BTreeMap<String, Balancer>,
    /// Pools of all balancers.
    pub pools: BTreeMap<String, Pool>,
    /// Members of all pools.
    pub members: BTreeMap<String, Member>,
    /// Listeners of all pools.
    pub listeners: BTreeMap<String, Listener>,
    /// Health monitors of all pools.
    pub monitors: BTreeMap<String, Monitor>,
    /// Floating IPs.
    pub floating_ips: BTreeMap<IpAddr, FloatingIp>,
    /// Addresses of servers that are gone: who sends traffic there gets no answer.
    pub vacated: BTreeSet<IpAddr>,
}

impl Stock {
    /// The addresses of all servers and balancers.
    pub fn addresses(&self) -> impl Iterator<Item = IpAddr> {
        let servers = self.servers.values().flat_map(Server::addresses).map(|address| address.address);
        servers.chain(self.balancers.values().flat_map(|balancer| &balancer.vips).map(|vip| vip.address))
    }

    /// The members of a pool.
    pub fn members_of<'a>(&'a self, pool: &'a str) -> impl Iterator<Item = &'a Member> {
        self.members.values().filter(move |member| member.pool == pool)
    }

    /// The monitor of a pool.
    pub fn monitor_of(&self, pool: &str) -> Option<&Monitor> {
        self.monitors.values().find(|monitor| monitor.pool == pool)
    }
}

/// A network.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Network {
    /// Its id.
    pub uuid: String,
    /// Its name.
    pub name: String,
    /// When it was made.
    pub created_at: Timestamp,
    /// Where it is.
    pub zone: String,
    /// The internet is on it. Such a network belongs to the cloud and shows in no list.
    pub public: bool,
    /// The largest packet.
    pub mtu: i64,
    /// What people wrote on it.
    pub tags: Tags,
}

/// A part of a network.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Subnet {
    /// Its id.
    pub uuid: String,
    /// Its addresses.
    pub cidr: IpNet,
    /// The network that it is a part of.
    pub network: String,
    /// The way out.
    pub gateway: Option<IpAddr>,
    /// Who answers for names.
    pub dns_servers: Vec<IpAddr>,
    /// What people wrote on it.
    pub tags: Tags,
    /// How far addresses were handed out.
    pub handed_out: u32,
}

/// A server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Server {
    /// Its id.
    pub uuid: String,
    /// Its name. Nothing keeps two from having the same.
    pub name: String,
    /// When it was made.
    pub created_at: Timestamp,
    /// `running`, `stopped`, `changing`, `paused`, `rescue_running`, `rescue_stopped`, `error` or `unknown`.
    pub status: String,
    /// What `changing` ends in, and when.
    pub settles: Option<(Tick, String)>,
    /// Where it is.
    pub zone: String,
    /// Its size.
    pub flavor: String,
    /// What it was made from.
    pub image: String,
    /// Its ways to networks.
    pub interfaces: Vec<Interface>,
    /// What people wrote on it.
    pub tags: Tags,
}

impl Server {
    /// The addresses of all interfaces, in order.
    pub fn addresses(&self) -> impl Iterator<Item = &Address> {
        self.interfaces.iter().flat_map(|interface| &interface.addresses)
    }

    /// The first address that is not open to the internet.
    pub fn private_address(&self) -> Option<&Address> {
        self.interfaces.iter().filter(|interface| !interface.public).flat_map(|i| &i.addresses).next()
    }

    /// It does its work.
    pub fn is_running(&self) -> bool {
        self.status == "running"
    }
}

/// A server's way to a network.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Interface {
    /// `public`, or else `private`.
    pub public: bool,
    /// The network.
    pub network: String,
    /// The addresses on it.
    pub addresses: Vec<Address>,
}

/// An address of a server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Address {
    /// The address.
    pub address: IpAddr,
    /// The subnet that it is from; none is shown as `null`.
    pub subnet: Option<String>,
}

/// A load balancer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Balancer {
    /// Its id.
    pub uuid: String,
    /// Its name. Nothing keeps two from having the same.
    pub name: String,
    /// When it was made.
    pub created_at: Timestamp,
    /// Where it is.
    pub zone: String,
    /// Its size.
    pub flavor: String,
    /// The addresses that it is reached by.
    pub vips: Vec<Vip>,
    /// What people wrote on it.
    pub tags: Tags,
    /// When it is built. Before, it is `changing` and takes no children.
    pub ready: Tick,
    /// Until when it is `changing` because of its children.
    pub busy: Tick,
    /// A status that hides the true one.
    pub shown: Option<String>,
}

/// An address of a balancer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Vip {
    /// The address.
    pub address: IpAddr,
    /// The subnet that it is from.
    pub subnet: String,
}

/// A pool.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pool {
    /// Its id.
    pub uuid: String,
    /// Its name.
    pub name: String,
    /// When it was made.
    pub created_at: Timestamp,
    /// Whose it is.
    pub balancer: String,
    /// `round_robin`, `least_connections` or `source_ip`.
    pub algorithm: String,
    /// `tcp`, `udp`, `proxy` or `proxyv2`.
    pub protocol: String,
    /// What people wrote on it.
    pub tags: Tags,
}

/// A member of a pool.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Member {
    /// Its id.
    pub uuid: String,
    /// Its name.
    pub name: String,
    /// When it was made.
    pub created_at: Timestamp,
    /// Whose it is.
    pub pool: String,
    /// It takes part.
    pub enabled: bool,
    /// Where traffic goes.
    pub address: IpAddr,
    /// The port that it goes to.
    pub protocol_port: u16,
    /// The port that is checked; none is the same.
    pub monitor_port: Option<u16>,
    /// The subnet of the address.
    pub subnet: String,
    /// What people wrote on it.
    pub tags: Tags,
    /// A health that hides what the server's state would give: `up`, `down`, `changing` or `unknown`.
    pub health: Option<String>,
}

/// A listener.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Listener {
    /// Its id.
    pub uuid: String,
    /// Its name.
    pub name: String,
    /// When it was made.
    pub created_at: Timestamp,
    /// Where it sends traffic.
    pub pool: Option<String>,
    /// Whose it is.
    pub balancer: String,
    /// `tcp` or `udp`.
    pub protocol: String,
    /// The port for clients.
    pub protocol_port: u16,
    /// Who may come, as it was written; empty is everyone.
    pub allowed_cidrs: Vec<String>,
    /// How long a client may be silent.
    pub timeout_client_data_ms: i64,
    /// How long a member may take to accept.
    pub timeout_member_connect_ms: i64,
    /// How long a member may be silent.
    pub timeout_member_data_ms: i64,
    /// What people wrote on it.
    pub tags: Tags,
}

/// A health monitor.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Monitor {
    /// Its id.
    pub uuid: String,
    /// When it was made.
    pub created_at: Timestamp,
    /// Whose it is.
    pub pool: String,
    /// `ping`, `tcp`, `http`, `https`, `tls-hello` or `udp-connect`.
    pub kind: String,
    /// Seconds between checks.
    pub delay_s: i64,
    /// Seconds per check.
    pub timeout_s: i64,
    /// Successes until up.
    pub up_threshold: i64,
    /// Failures until down.
    pub down_threshold: i64,
    /// How it asks, if it speaks HTTP.
    pub http: Option<HttpCheck>,
    /// What people wrote on it.
    pub tags: Tags,
}

/// How a monitor asks over HTTP.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HttpCheck {
    /// The answers that mean up.
    pub expected_codes: Vec<String>,
    /// The method.
    pub method: String,
    /// The path.
    pub url_path: String,
    /// `1.0` or `1.1`.
    pub version: String,
    /// The host that it asks for.
    pub host: Option<String>,
}

impl Default for HttpCheck {
    fn default() -> Self {
        Self {
            expected_codes: vec!["200".to_owned()],
            method: "GET".to_owned(),
            url_path: "/".to_owned(),
            version: "1.1".to_owned(),
            host: None,
        }
    }
}

/// A floating IP.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FloatingIp {
    /// The address, or the network of a prefix.
    pub network: IpNet,
    /// When it was made.
    pub created_at: Timestamp,
    /// Where it can be used; none is everywhere.
    pub region: Option<String>,
    /// What it leads to.
    pub target: Option<Target>,
    /// Its name in the DNS.
    pub reverse_ptr: Option<String>,
    /// What people wrote on it.
    pub tags: Tags,
}

/// What a floating IP leads to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Target {
    /// The server with this id.
    Server(String),
    /// The balancer with this id.
    Balancer(String),
}
