//! The resources of an account, as plain values. A field without a comment is the API's field of that name.
#![expect(missing_docs, reason = "BinaryLane documents the fields of its API")]

use std::{
    collections::BTreeMap,
    net::{Ipv4Addr, Ipv6Addr},
};

use cloudberth_core::Tick;
use ipnet::Ipv4Net;
use jiff::Timestamp;

use crate::switches::Question;

/// All resources of an account by id. Changing them here bypasses the rules of the API.
#[derive(Clone, Debug, Default)]
pub struct Resources {
    pub servers: BTreeMap<i64, Server>,
    pub balancers: BTreeMap<i64, Balancer>,
    pub vpcs: BTreeMap<i64, Vpc>,
    pub actions: BTreeMap<i64, Action>,
    /// Balancers that were deleted and are still listed, each with the time until when.
    pub ghosts: Vec<(Tick, Balancer)>,
}

impl Resources {
    /// The servers of a VPC.
    pub fn members_of(&self, vpc: i64) -> impl Iterator<Item = &Server> {
        self.servers.values().filter(move |server| server.vpc_id == Some(vpc))
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Server {
    pub id: i64,
    /// Names need not be unique.
    pub name: String,
    pub created_at: Timestamp,
    /// `new`, `active`, `off` or `archive`.
    pub status: String,
    /// Whether it runs, which the status does not always tell. `is_running` asks for it.
    pub running: bool,
    /// The slug.
    pub region: String,
    /// The slug.
    pub size: String,
    /// The slug.
    pub image: String,
    /// The host's display name; empty on a dedicated host.
    pub host: String,
    pub vpc_id: Option<i64>,
    /// `networks.v4`, in the order in which the API lists them.
    pub v4: Vec<Address>,
    /// `networks.v6`: public ones only.
    pub v6: Vec<Ipv6Addr>,
    pub port_blocking: bool,
    pub source_and_destination_check: bool,
    pub cancelled_at: Option<Timestamp>,
    /// When a cancelled server is switched off for good.
    pub archived: Option<Tick>,
    /// When a cancelled server cannot be found any more.
    pub gone: Option<Tick>,
}

impl Server {
    /// The first public address.
    pub fn public_address(&self) -> Option<Ipv4Addr> {
        self.v4.iter().find(|address| address.public).map(|address| address.address)
    }

    /// The first private address.
    pub fn private_address(&self) -> Option<Ipv4Addr> {
        self.v4.iter().find(|address| !address.public).map(|address| address.address)
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Address {
    pub address: Ipv4Addr,
    /// `public`, or else `private`.
    pub public: bool,
    pub prefix: u8,
    pub nat_target: Option<Ipv4Addr>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Balancer {
    pub id: i64,
    /// Names need not be unique.
    pub name: String,
    /// Shown as an empty text when there is none yet.
    pub ip: Option<Ipv4Addr>,
    /// `new`, `active` or `errored`.
    pub status: String,
    pub created_at: Timestamp,
    /// The `entry_protocol` of each rule.
    pub rules: Vec<String>,
    pub health_check: HealthCheck,
    /// The slug; an anycast balancer has none.
    pub region: Option<String>,
    pub server_ids: Vec<i64>,
    /// When it can be read and is listed.
    pub visible: Tick,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HealthCheck {
    /// `http`, `https` or `both`.
    pub protocol: String,
    pub path: String,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Vpc {
    pub id: i64,
    pub name: String,
    pub ip_range: Ipv4Net,
    pub route_entries: Vec<RouteEntry>,
}

/// A route of a VPC, in the words of the client.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RouteEntry {
    pub router: String,
    pub destination: String,
    pub description: Option<String>,
}

/// Something that takes time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Action {
    pub id: i64,
    /// The API's `type`.
    pub kind: String,
    /// `in-progress`, `completed` or `errored`.
    pub status: String,
    pub started_at: Timestamp,
    pub completed_at: Option<Timestamp>,
    /// `server` or `load-balancer`.
    pub resource_type: String,
    pub resource_id: i64,
    /// The slug.
    pub region: Option<String>,
    /// When it started, on the other clock.
    pub started: Tick,
    /// When it ends, unless something blocks it.
    pub due: Tick,
    /// Whether it ends `errored`.
    pub fails: bool,
    pub blocked: Option<Blocked>,
    /// What its end changes.
    pub effect: Effect,
}

/// What an action waits for, for ever if need be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Blocked {
    /// The API's `blocking_invoice_id`.
    Invoice(i64),
    /// The API's `user_interaction_required`.
    Question(Question),
}

/// What the end of an action changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Effect {
    /// Nothing.
    Nothing,
    /// The balancer becomes `active`, or `errored` if the action fails.
    BalancerBuilt,
    /// The server runs.
    ServerOn,
    /// The server is off.
    ServerOff,
}
