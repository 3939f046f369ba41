//! The resources of a project, as plain values. A field without a comment is the API's field of that name.
#![expect(missing_docs, reason = "cloudscale.ch documents the fields of its API")]

use std::{
    collections::{BTreeMap, BTreeSet},
    net::IpAddr,
};

use cloudberth_core::Tick;
use ipnet::IpNet;
use jiff::Timestamp;

/// Tags of a resource.
pub type Tags = BTreeMap<String, String>;

/// All resources of a project by id, floating IPs by address. Changing them here bypasses the rules of the API.
#[derive(Clone, Debug, Default)]
pub struct Resources {
    pub networks: BTreeMap<String, Network>,
    pub subnets: BTreeMap<String, Subnet>,
    pub servers: BTreeMap<String, Server>,
    pub balancers: BTreeMap<String, Balancer>,
    pub pools: BTreeMap<String, Pool>,
    pub members: BTreeMap<String, Member>,
    pub listeners: BTreeMap<String, Listener>,
    pub monitors: BTreeMap<String, Monitor>,
    pub floating_ips: BTreeMap<IpAddr, FloatingIp>,
    /// Addresses of deleted servers: members with one of these are down.
    pub vacated: BTreeSet<IpAddr>,
}

impl Resources {
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

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Network {
    pub uuid: String,
    pub name: String,
    pub created_at: Timestamp,
    pub zone: String,
    /// It is a public network, which belongs to the cloud and is in no list.
    pub public: bool,
    pub mtu: i64,
    pub tags: Tags,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Subnet {
    pub uuid: String,
    pub cidr: IpNet,
    pub network: String,
    pub gateway: Option<IpAddr>,
    pub dns_servers: Vec<IpAddr>,
    pub tags: Tags,
    /// The last address that was allocated.
    pub handed_out: u32,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Server {
    pub uuid: String,
    /// Names need not be unique.
    pub name: String,
    pub created_at: Timestamp,
    /// `running`, `stopped`, `changing`, `paused`, `rescue_running`, `rescue_stopped`, `error` or `unknown`.
    pub status: String,
    /// The state after `changing`, and when it is reached.
    pub settles: Option<(Tick, String)>,
    pub zone: String,
    pub flavor: String,
    pub image: String,
    pub interfaces: Vec<Interface>,
    pub tags: Tags,
}

impl Server {
    /// The addresses of all interfaces, in order.
    pub fn addresses(&self) -> impl Iterator<Item = &Address> {
        self.interfaces.iter().flat_map(|interface| &interface.addresses)
    }

    /// The first private address.
    pub fn private_address(&self) -> Option<&Address> {
        self.interfaces.iter().filter(|interface| !interface.public).flat_map(|i| &i.addresses).next()
    }

    /// Whether it runs.
    pub fn is_running(&self) -> bool {
        self.status == "running"
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Interface {
    /// `public`, or else `private`.
    pub public: bool,
    pub network: String,
    pub addresses: Vec<Address>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Address {
    pub address: IpAddr,
    /// Shown as `null` when there is none.
    pub subnet: Option<String>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Balancer {
    pub uuid: String,
    /// Names need not be unique.
    pub name: String,
    pub created_at: Timestamp,
    pub zone: String,
    pub flavor: String,
    pub vips: Vec<Vip>,
    pub tags: Tags,
    /// When it is built. Before that it is `changing` and can have no pools.
    pub ready: Tick,
    /// Until when it is `changing` because of its children.
    pub busy: Tick,
    /// A status that is shown instead of the real one.
    pub shown: Option<String>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Vip {
    pub address: IpAddr,
    pub subnet: String,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pool {
    pub uuid: String,
    pub name: String,
    pub created_at: Timestamp,
    pub balancer: String,
    /// `round_robin`, `least_connections` or `source_ip`.
    pub algorithm: String,
    /// `tcp`, `udp`, `proxy` or `proxyv2`.
    pub protocol: String,
    pub tags: Tags,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Member {
    pub uuid: String,
    pub name: String,
    pub created_at: Timestamp,
    pub pool: String,
    pub enabled: bool,
    pub address: IpAddr,
    pub protocol_port: u16,
    /// The port that is checked; `protocol_port` when there is none.
    pub monitor_port: Option<u16>,
    pub subnet: String,
    pub tags: Tags,
    /// A health that is shown instead of the real one: `up`, `down`, `changing` or `unknown`.
    pub health: Option<String>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Listener {
    pub uuid: String,
    pub name: String,
    pub created_at: Timestamp,
    pub pool: Option<String>,
    pub balancer: String,
    /// `tcp` or `udp`.
    pub protocol: String,
    pub protocol_port: u16,
    /// As the client wrote them; empty allows everyone.
    pub allowed_cidrs: Vec<String>,
    pub timeout_client_data_ms: i64,
    pub timeout_member_connect_ms: i64,
    pub timeout_member_data_ms: i64,
    pub tags: Tags,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Monitor {
    pub uuid: String,
    pub created_at: Timestamp,
    pub pool: String,
    /// `ping`, `tcp`, `http`, `https`, `tls-hello` or `udp-connect`.
    pub kind: String,
    pub delay_s: i64,
    pub timeout_s: i64,
    pub up_threshold: i64,
    pub down_threshold: i64,
    /// Only for the types `http` and `https`.
    pub http: Option<HttpCheck>,
    pub tags: Tags,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HttpCheck {
    pub expected_codes: Vec<String>,
    pub method: String,
    pub url_path: String,
    /// `1.0` or `1.1`.
    pub version: String,
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

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FloatingIp {
    /// The address, or the network of a prefix.
    pub network: IpNet,
    pub created_at: Timestamp,
    /// Without a region it is global.
    pub region: Option<String>,
    pub target: Option<Target>,
    pub reverse_ptr: Option<String>,
    pub tags: Tags,
}

/// What a floating IP points to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Target {
    /// A server, by its id.
    Server(String),
    /// A load balancer, by its id.
    Balancer(String),
}
