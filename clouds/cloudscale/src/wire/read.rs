//! What the API answers.

use serde::{Deserialize, Deserializer};

/// A field that the API always sends: missing or `null` makes the resource unreadable.
fn always<'de, D: Deserializer<'de>, T: Deserialize<'de>>(from: D) -> Result<Option<T>, D::Error> {
    T::deserialize(from).map(Some)
}

/// A field that the API always sends, where `null` means none: only a missing one makes the resource unreadable.
fn told<'de, D: Deserializer<'de>, T: Deserialize<'de>>(from: D) -> Result<Option<T>, D::Error> {
    Option::deserialize(from)
}

/// A field that no decision needs: missing or `null` counts as empty.
fn or_default<'de, D: Deserializer<'de>, T: Deserialize<'de> + Default>(from: D) -> Result<T, D::Error> {
    Option::deserialize(from).map(Option::unwrap_or_default)
}

/// `null` or missing counts as switched on, as it does in the API.
fn or_true<'de, D: Deserializer<'de>>(from: D) -> Result<bool, D::Error> {
    Option::deserialize(from).map(|on| on.unwrap_or(true))
}

const fn on() -> bool {
    true
}

/// A reference to something by its id.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
pub struct Stub {
    pub uuid: String,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
pub struct SubnetStub {
    pub uuid: String,
}

/// A reference to a zone or region.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
pub struct SlugStub {
    pub slug: String,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
pub struct FlavorStub {
    pub slug: String,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
pub struct InterfaceAddress {
    pub address: String,
    /// The subnet that it is in; none for an address that no pool can reach.
    #[serde(deserialize_with = "told")]
    pub subnet: Option<SubnetStub>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
pub struct Interface {
    /// `public`, or anything else.
    #[serde(rename = "type")]
    pub kind: String,
    pub addresses: Vec<InterfaceAddress>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
pub struct Server {
    pub uuid: String,
    /// The name; not unique.
    pub name: String,
    /// `running`, `stopped`, `changing` and others.
    #[serde(default, deserialize_with = "or_default")]
    pub status: String,
    /// Where it is: a new load balancer goes there, for good.
    #[serde(deserialize_with = "always")]
    pub zone: Option<SlugStub>,
    #[serde(default)]
    pub flavor: Option<FlavorStub>,
    pub interfaces: Vec<Interface>,
}

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
        let word = String::deserialize(from)?;
        Ok(if word == "changing" { Self::Changing } else { Self::Settled })
    }
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
pub struct VipAddress {
    pub address: String,
    #[serde(default)]
    pub subnet: Option<SubnetStub>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
pub struct LoadBalancer {
    pub uuid: String,
    /// The name; not unique.
    pub name: String,
    pub status: BalancerStatus,
    #[serde(default)]
    pub zone: Option<SlugStub>,
    #[serde(default)]
    pub flavor: Option<FlavorStub>,
    pub vip_addresses: Vec<VipAddress>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
pub struct Pool {
    pub uuid: String,
    /// The name; not unique.
    pub name: String,
    /// The load balancer that it belongs to.
    pub load_balancer: Stub,
    pub algorithm: String,
    pub protocol: String,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
pub struct Member {
    pub uuid: String,
    pub name: String,
    /// Whether it takes traffic at all.
    #[serde(default = "on", deserialize_with = "or_true")]
    pub enabled: bool,
    #[serde(deserialize_with = "always")]
    pub subnet: Option<SubnetStub>,
    pub address: String,
    pub protocol_port: i64,
    /// Where checks go; `None` is the same port.
    #[serde(deserialize_with = "told")]
    pub monitor_port: Option<i64>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
pub struct Listener {
    pub uuid: String,
    pub name: String,
    #[serde(deserialize_with = "told")]
    pub pool: Option<Stub>,
    pub protocol: String,
    pub protocol_port: i64,
    /// Who may connect; empty is everybody.
    pub allowed_cidrs: Vec<String>,
    #[serde(default)]
    pub timeout_client_data_ms: Option<i64>,
    #[serde(default)]
    pub timeout_member_connect_ms: Option<i64>,
    #[serde(default)]
    pub timeout_member_data_ms: Option<i64>,
}

/// The HTTP part of a health monitor.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
pub struct HttpOptions {
    pub expected_codes: Vec<String>,
    pub method: String,
    pub url_path: String,
    /// `1.0` or `1.1`.
    pub version: String,
    #[serde(deserialize_with = "told")]
    pub host: Option<String>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
pub struct HealthMonitor {
    pub uuid: String,
    #[serde(deserialize_with = "always")]
    pub pool: Option<Stub>,
    #[serde(rename = "type")]
    pub kind: String,
    /// Seconds between checks.
    #[serde(default)]
    pub delay_s: Option<i64>,
    #[serde(default)]
    pub timeout_s: Option<i64>,
    #[serde(default)]
    pub up_threshold: Option<i64>,
    #[serde(default)]
    pub down_threshold: Option<i64>,
    #[serde(deserialize_with = "told")]
    pub http: Option<HttpOptions>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
pub struct FloatingIp {
    /// The network, `192.0.2.7/32` for a single address.
    pub network: String,
    /// The load balancer that it leads to.
    #[serde(deserialize_with = "told")]
    pub load_balancer: Option<Stub>,
    #[serde(deserialize_with = "told")]
    pub server: Option<Stub>,
}
