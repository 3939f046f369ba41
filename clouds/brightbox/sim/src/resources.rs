//! The resources of an account, as plain values. A field without a comment is the API's field of that name.
#![expect(missing_docs, reason = "Brightbox documents the fields of its API")]

use std::{collections::BTreeMap, net::IpAddr};

use cloudberth_core::Tick;
use jiff::Timestamp;

/// All resources of an account by id. Changing them here bypasses the rules of the API.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Resources {
    pub servers: BTreeMap<String, Server>,
    pub groups: BTreeMap<String, Group>,
    pub policies: BTreeMap<String, FirewallPolicy>,
    pub balancers: BTreeMap<String, Balancer>,
    pub cloud_ips: BTreeMap<String, CloudIp>,
    /// What names resolve to, beside the names of the Cloud IPs.
    pub domains: BTreeMap<String, Vec<IpAddr>>,
}

impl Resources {
    /// The Cloud IPs that are mapped to this destination, oldest first.
    pub fn cloud_ips_of(&self, destination: &Destination) -> Vec<&CloudIp> {
        let mapped = self.cloud_ips.values().filter(|ip| ip.destination.as_ref() == Some(destination));
        in_order(mapped, |ip| (ip.created_at, &ip.id))
    }

    /// The policy that is attached to a group.
    pub fn policy_of(&self, group: &str) -> Option<&FirewallPolicy> {
        self.policies.values().find(|policy| policy.group.as_deref() == Some(group))
    }

    /// What a name resolves to: the addresses of the Cloud IPs that are called so, and those of the table.
    pub fn resolve(&self, name: &str) -> Vec<IpAddr> {
        let named = |ip: &&CloudIp| ip.fqdn == name || ip.reverse_dns.as_deref() == Some(name);
        let own = self.cloud_ips.values().filter(named).flat_map(CloudIp::addresses);
        own.chain(self.domains.get(name).into_iter().flatten().copied()).collect()
    }
}

/// In the order of listings: oldest first, and of the same age by id.
pub(crate) fn in_order<'a, T, K: Ord>(
    items: impl Iterator<Item = &'a T>,
    key: impl Fn(&'a T) -> K,
) -> Vec<&'a T> {
    let mut items: Vec<_> = items.collect();
    items.sort_by_key(|item| key(item));
    items
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Server {
    pub id: String,
    /// Names need not be unique.
    pub name: String,
    /// `creating`, `active`, `inactive`, `deleting`, `deleted`, `failed` or `unavailable`.
    pub status: String,
    pub locked: bool,
    pub hostname: String,
    pub fqdn: String,
    pub created_at: Timestamp,
    pub started_at: Option<Timestamp>,
    pub deleted_at: Option<Timestamp>,
    /// The handle of the zone.
    pub zone: Option<String>,
    /// The handle of the type.
    pub server_type: Option<String>,
    pub interfaces: Vec<Interface>,
    /// When it gets which status.
    pub settles: Option<(Tick, String)>,
}

/// Addresses are texts, so that tests can make them unreadable.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Interface {
    pub id: String,
    pub mac_address: String,
    pub ipv4_address: Option<String>,
    /// It is left out if there is none.
    pub ipv6_address: Option<String>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Group {
    pub id: String,
    pub name: Option<String>,
    pub description: Option<String>,
    pub default: bool,
    pub fqdn: String,
    pub created_at: Timestamp,
    /// The ids of its servers, in the order in which they were added.
    pub servers: Vec<String>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FirewallPolicy {
    pub id: String,
    pub name: Option<String>,
    pub description: Option<String>,
    pub default: bool,
    pub created_at: Timestamp,
    /// The id of the group that it is attached to.
    pub group: Option<String>,
    /// Oldest first.
    pub rules: Vec<FirewallRule>,
}

/// Texts are given back as they were sent.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FirewallRule {
    pub id: String,
    pub created_at: Timestamp,
    pub source: Option<String>,
    pub source_port: Option<String>,
    pub destination: Option<String>,
    pub destination_port: Option<String>,
    pub protocol: Option<String>,
    pub icmp_type_name: Option<String>,
    pub description: Option<String>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Balancer {
    pub id: String,
    pub name: Option<String>,
    /// `creating`, `active`, `deleting`, `deleted`, `failing` or `failed`.
    pub status: String,
    pub locked: bool,
    pub policy: String,
    pub buffer_size: i64,
    pub https_redirect: bool,
    pub ssl_minimum_version: String,
    pub listeners: Vec<Listener>,
    pub healthcheck: HealthCheck,
    pub domains: Vec<Domain>,
    /// It has a certificate of the client's own.
    pub certificate: bool,
    pub created_at: Timestamp,
    pub deleted_at: Option<Timestamp>,
    /// The ids of its servers, in the order in which they were last written.
    pub nodes: Vec<String>,
    /// When it became `active`.
    pub active_since: Option<Tick>,
    /// When it gets which status.
    pub settles: Option<(Tick, String)>,
}

impl Balancer {
    /// It is there: neither on its way out nor gone nor broken.
    pub fn alive(&self) -> bool {
        matches!(self.status.as_str(), "creating" | "active")
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Listener {
    /// `tcp`, `http` or `https`.
    pub protocol: String,
    /// The API calls it `in`.
    pub in_port: u16,
    /// The API calls it `out`.
    pub out_port: u16,
    pub timeout: i64,
    pub proxy_protocol: Option<String>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HealthCheck {
    /// `tcp` or `http`; the API calls it `type`.
    pub kind: String,
    pub port: u16,
    pub request: String,
    pub interval: i64,
    pub timeout: i64,
    pub threshold_up: i64,
    pub threshold_down: i64,
}

/// A domain that a balancer has a certificate for, or is to get one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Domain {
    pub identifier: String,
    /// `pending`, `valid` or `invalid`.
    pub status: String,
    pub last_message: Option<String>,
    /// When the balancer was given it.
    pub since: Tick,
}

/// What a Cloud IP is mapped to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Destination {
    /// The server with this id.
    Server(String),
    /// The load balancer with this id.
    Balancer(String),
    /// The server group with this id.
    Group(String),
}

/// Addresses are texts, so that tests can make them unreadable.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CloudIp {
    pub id: String,
    pub name: Option<String>,
    pub mode: String,
    pub public_ipv4: Option<String>,
    pub public_ipv6: Option<String>,
    pub fqdn: String,
    pub reverse_dns: Option<String>,
    pub created_at: Timestamp,
    /// Where it is mapped to; without one it is `unmapped`.
    pub destination: Option<Destination>,
    /// When it was mapped.
    pub mapped_since: Option<Tick>,
    /// When it gets which destination.
    pub settles: Option<(Tick, Option<Destination>)>,
    /// Translators of ports, as they were sent.
    pub port_translators: Vec<serde_json::Value>,
}

impl CloudIp {
    /// The addresses that can be read.
    pub fn addresses(&self) -> impl Iterator<Item = IpAddr> {
        [&self.public_ipv4, &self.public_ipv6].into_iter().flatten().filter_map(|text| text.parse().ok())
    }

    /// `mapped` or `unmapped`.
    pub const fn status(&self) -> &'static str {
        if self.destination.is_some() { "mapped" } else { "unmapped" }
    }
}
