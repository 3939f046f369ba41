//! What the API answers.

use serde::{Deserialize, Deserializer};

/// `null` counts as absent.
fn or_default<'de, D: Deserializer<'de>, T: Deserialize<'de> + Default>(from: D) -> Result<T, D::Error> {
    Option::deserialize(from).map(Option::unwrap_or_default)
}

/// `null` or absent counts as switched on, as the API does for a member that nobody switched off.
fn or_true<'de, D: Deserializer<'de>>(from: D) -> Result<bool, D::Error> {
    Option::deserialize(from).map(|on| on.unwrap_or(true))
}

const fn on() -> bool {
    true
}

/// A reference to something by its id.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
pub struct Stub {
    /// The id.
    pub uuid: String,
}

/// A reference to a subnet.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
pub struct SubnetStub {
    /// The id.
    pub uuid: String,
}

/// A reference to a zone or region.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
pub struct SlugStub {
    /// Its name.
    pub slug: String,
}

/// A reference to a flavor.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
pub struct FlavorStub {
    /// Its name.
    pub slug: String,
}

/// An address of a server's interface.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
pub struct InterfaceAddress {
    /// The address.
    pub address: String,
    /// The subnet that it is in.
    #[serde(default)]
    pub subnet: Option<SubnetStub>,
}

/// An interface of a server.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
pub struct Interface {
    /// `public`, or anything else.
    #[serde(rename = "type", default, deserialize_with = "or_default")]
    pub kind: String,
    /// In the API's order.
    #[serde(default, deserialize_with = "or_default")]
    pub addresses: Vec<InterfaceAddress>,
}

/// A machine.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
pub struct Server {
    /// The id.
    pub uuid: String,
    /// The name; not unique.
    pub name: String,
    /// `running`, `stopped`, `changing` and others.
    #[serde(default, deserialize_with = "or_default")]
    pub status: String,
    /// Where it is.
    #[serde(default)]
    pub zone: Option<SlugStub>,
    /// Its size.
    #[serde(default)]
    pub flavor: Option<FlavorStub>,
    /// In the API's order.
    #[serde(default, deserialize_with = "or_default")]
    pub interfaces: Vec<Interface>,
}

/// What a load balancer is doing.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum BalancerStatus {
    /// A change is under way: nothing is sent until it is over.
    Changing,
    /// Anything else, as written. None of these words delays work.
    #[default]
    Settled,
}

impl<'de> Deserialize<'de> for BalancerStatus {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        let word: Option<String> = Option::deserialize(from)?;
        Ok(if word.as_deref() == Some("changing") { Self::Changing } else { Self::Settled })
    }
}

/// An address of a load balancer.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
pub struct VipAddress {
    /// The address.
    pub address: String,
    /// The subnet that it is in.
    #[serde(default)]
    pub subnet: Option<SubnetStub>,
}

/// A load balancer.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
pub struct LoadBalancer {
    /// The id.
    pub uuid: String,
    /// The name; not unique.
    pub name: String,
    /// What it is doing.
    #[serde(default)]
    pub status: BalancerStatus,
    /// Where it is.
    #[serde(default)]
    pub zone: Option<SlugStub>,
    /// Its size.
    #[serde(default)]
    pub flavor: Option<FlavorStub>,
    /// In the API's order.
    #[serde(default, deserialize_with = "or_default")]
    pub vip_addresses: Vec<VipAddress>,
}

/// A pool of a load balancer.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
pub struct Pool {
    /// The id.
    pub uuid: String,
    /// The name; not unique.
    pub name: String,
    /// The load balancer that it belongs to.
    pub load_balancer: Stub,
    /// How a member is chosen.
    pub algorithm: String,
    /// What is spoken to members.
    pub protocol: String,
}

/// A member of a pool.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
pub struct Member {
    /// The id.
    pub uuid: String,
    /// The name.
    pub name: String,
    /// Whether it takes traffic at all.
    #[serde(default = "on", deserialize_with = "or_true")]
    pub enabled: bool,
    /// The subnet of the address.
    #[serde(default)]
    pub subnet: Option<SubnetStub>,
    /// The address.
    pub address: String,
    /// Where traffic goes.
    pub protocol_port: i64,
    /// Where checks go; `None` is the same port.
    #[serde(default)]
    pub monitor_port: Option<i64>,
}

/// A listener of a load balancer.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
pub struct Listener {
    /// The id.
    pub uuid: String,
    /// The name.
    pub name: String,
    /// The pool that it feeds.
    #[serde(default)]
    pub pool: Option<Stub>,
    /// What clients speak.
    pub protocol: String,
    /// What clients connect to.
    pub protocol_port: i64,
    /// Who may connect; empty is everybody.
    #[serde(default, deserialize_with = "or_default")]
    pub allowed_cidrs: Vec<String>,
    /// Milliseconds.
    #[serde(default)]
    pub timeout_client_data_ms: Option<i64>,
    /// Milliseconds.
    #[serde(default)]
    pub timeout_member_connect_ms: Option<i64>,
    /// Milliseconds.
    #[serde(default)]
    pub timeout_member_data_ms: Option<i64>,
}

/// The HTTP part of a health monitor.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
pub struct HttpOptions {
    /// The answers that count as good.
    #[serde(default, deserialize_with = "or_default")]
    pub expected_codes: Vec<String>,
    /// The request's method.
    #[serde(default, deserialize_with = "or_default")]
    pub method: String,
    /// The request's path.
    #[serde(default, deserialize_with = "or_default")]
    pub url_path: String,
    /// `1.0` or `1.1`.
    #[serde(default, deserialize_with = "or_default")]
    pub version: String,
    /// The request's host.
    #[serde(default)]
    pub host: Option<String>,
}

/// The health monitor of a pool.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
pub struct HealthMonitor {
    /// The id.
    pub uuid: String,
    /// The pool that it watches.
    #[serde(default)]
    pub pool: Option<Stub>,
    /// How it checks.
    #[serde(rename = "type")]
    pub kind: String,
    /// Seconds between checks.
    #[serde(default)]
    pub delay_s: Option<i64>,
    /// Seconds per check.
    #[serde(default)]
    pub timeout_s: Option<i64>,
    /// Successes until up.
    #[serde(default)]
    pub up_threshold: Option<i64>,
    /// Failures until down.
    #[serde(default)]
    pub down_threshold: Option<i64>,
    /// For HTTP checks.
    #[serde(default)]
    pub http: Option<HttpOptions>,
}

/// A floating IP.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
pub struct FloatingIp {
    /// The network, `192.0.2.7/32` for a single address.
    pub network: String,
    /// The load balancer that it leads to.
    #[serde(default)]
    pub load_balancer: Option<Stub>,
    /// Or the server.
    #[serde(default)]
    pub server: Option<Stub>,
}
