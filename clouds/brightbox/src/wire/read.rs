//! What the API answers.

use serde::{Deserialize, Deserializer};

/// A field that the API always sends, where `null` means none: only a missing one makes the resource unreadable.
fn told<'de, D: Deserializer<'de>, T: Deserialize<'de>>(from: D) -> Result<Option<T>, D::Error> {
    Option::deserialize(from)
}

/// A list that the API always sends, where `null` is an empty one.
fn told_list<'de, D: Deserializer<'de>, T: Deserialize<'de>>(from: D) -> Result<Vec<T>, D::Error> {
    told(from).map(Option::unwrap_or_default)
}

/// A name, which may be `null`; a missing one could be anything, ours too.
fn told_text<'de, D: Deserializer<'de>>(from: D) -> Result<String, D::Error> {
    told(from).map(Option::unwrap_or_default)
}

/// A field that no decision needs: missing or `null` counts as empty.
fn or_default<'de, D: Deserializer<'de>, T: Deserialize<'de> + Default>(from: D) -> Result<T, D::Error> {
    Option::deserialize(from).map(Option::unwrap_or_default)
}

/// A text that may be missing or `null`; an empty one counts as none.
fn filled<'de, D: Deserializer<'de>>(from: D) -> Result<Option<String>, D::Error> {
    Ok(Option::<String>::deserialize(from)?.filter(|text| !text.is_empty()))
}

/// A word of an enumeration; one that is not in the list is kept as [`Other`](Self::Other).
macro_rules! words {
    ($name:ident { $( $variant:ident = $word:literal ),+ }) => {
        #[derive(Clone, Debug, PartialEq, Eq)]
        pub enum $name {
            $( $variant, )+
            /// A word that is not known.
            Other(String),
        }

        impl $name {
            pub fn as_str(&self) -> &str {
                match self {
                    $( Self::$variant => $word, )+
                    Self::Other(word) => word,
                }
            }
        }

        impl<'de> Deserialize<'de> for $name {
            fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
                let word = String::deserialize(from)?;
                Ok(match word.as_str() {
                    $( $word => Self::$variant, )+
                    _ => Self::Other(word),
                })
            }
        }
    };
}

words!(ServerStatus {
    Creating = "creating", Active = "active", Inactive = "inactive", Deleting = "deleting", Deleted = "deleted",
    Failed = "failed", Unavailable = "unavailable"
});
words!(BalancerStatus {
    Creating = "creating", Active = "active", Deleting = "deleting", Deleted = "deleted", Failing = "failing",
    Failed = "failed"
});
words!(CloudIpStatus { Mapped = "mapped", Unmapped = "unmapped" });

impl BalancerStatus {
    /// Whether it serves traffic, or soon will.
    pub fn is_alive(&self) -> bool {
        matches!(self, Self::Creating | Self::Active)
    }
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
pub struct Account {
    pub id: String,
    #[serde(default, deserialize_with = "or_default")]
    pub name: String,
    pub load_balancers_used: Option<u64>,
    pub load_balancers_limit: Option<u64>,
    pub cloud_ips_used: Option<u64>,
    pub cloud_ips_limit: Option<u64>,
}

/// A reference to something by its id.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
pub struct Stub {
    pub id: String,
    #[serde(default, deserialize_with = "or_default")]
    pub name: String,
}

impl Stub {
    pub fn new(id: &str) -> Self {
        Self { id: id.to_owned(), name: String::new() }
    }
}

/// A zone or a server type.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
pub struct Handle {
    pub handle: String,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
pub struct Interface {
    #[serde(default, deserialize_with = "filled")]
    pub ipv4_address: Option<String>,
    #[serde(default, deserialize_with = "filled")]
    pub ipv6_address: Option<String>,
}

/// A Cloud IP that is mapped to a server.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
pub struct ServerCloudIp {
    pub id: String,
    #[serde(default, deserialize_with = "filled")]
    pub public_ip: Option<String>,
    #[serde(default, deserialize_with = "filled")]
    pub public_ipv6: Option<String>,
    #[serde(default, deserialize_with = "filled")]
    pub fqdn: Option<String>,
}

#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct Server {
    pub id: String,
    pub status: ServerStatus,
    #[serde(default, deserialize_with = "filled")]
    pub hostname: Option<String>,
    #[serde(default, deserialize_with = "filled")]
    pub fqdn: Option<String>,
    pub zone: Handle,
    pub server_type: Handle,
    pub interfaces: Vec<Interface>,
    pub cloud_ips: Vec<ServerCloudIp>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
pub struct Listener {
    pub protocol: String,
    #[serde(rename = "in")]
    pub inside: i64,
    #[serde(rename = "out", default)]
    pub outside: Option<i64>,
    /// Milliseconds.
    #[serde(default)]
    pub timeout: Option<i64>,
    #[serde(default, deserialize_with = "filled")]
    pub proxy_protocol: Option<String>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
pub struct HealthCheck {
    #[serde(rename = "type")]
    pub kind: String,
    pub port: i64,
    #[serde(default, deserialize_with = "or_default")]
    pub request: String,
    /// Milliseconds.
    #[serde(default)]
    pub interval: Option<i64>,
    #[serde(default)]
    pub timeout: Option<i64>,
    #[serde(default)]
    pub threshold_up: Option<i64>,
    #[serde(default)]
    pub threshold_down: Option<i64>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
pub struct AcmeDomain {
    pub identifier: String,
    #[serde(default, deserialize_with = "or_default")]
    pub status: String,
    #[serde(default, deserialize_with = "filled")]
    pub last_message: Option<String>,
}

impl AcmeDomain {
    /// Whether its certificate is there. The vendor's programs know both words.
    pub fn is_valid(&self) -> bool {
        matches!(self.status.as_str(), "valid" | "verified")
    }
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
pub struct Acme {
    #[serde(deserialize_with = "told_list")]
    pub domains: Vec<AcmeDomain>,
}

#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct LoadBalancer {
    pub id: String,
    /// The name; not unique.
    #[serde(deserialize_with = "told_text")]
    pub name: String,
    pub status: BalancerStatus,
    #[serde(default, deserialize_with = "or_default")]
    pub locked: bool,
    #[serde(default, deserialize_with = "filled")]
    pub policy: Option<String>,
    #[serde(deserialize_with = "told_list")]
    pub listeners: Vec<Listener>,
    pub healthcheck: HealthCheck,
    /// The collection lacks it.
    #[serde(default)]
    pub acme: Option<Acme>,
    pub cloud_ips: Vec<Stub>,
    #[serde(deserialize_with = "told_list")]
    pub nodes: Vec<Stub>,
}

#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct CloudIp {
    pub id: String,
    #[serde(deserialize_with = "told_text")]
    pub name: String,
    pub status: CloudIpStatus,
    #[serde(default, deserialize_with = "filled")]
    pub public_ipv4: Option<String>,
    #[serde(default, deserialize_with = "filled")]
    pub public_ipv6: Option<String>,
    #[serde(default, deserialize_with = "filled")]
    pub fqdn: Option<String>,
    #[serde(default, deserialize_with = "filled")]
    pub reverse_dns: Option<String>,
    /// The load balancer that it is mapped to.
    #[serde(deserialize_with = "told")]
    pub load_balancer: Option<Stub>,
    #[serde(default)]
    pub server: Option<Stub>,
    #[serde(default)]
    pub server_group: Option<Stub>,
    #[serde(default)]
    pub database_server: Option<Stub>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
pub struct ServerGroup {
    pub id: String,
    /// The name; not unique.
    #[serde(deserialize_with = "told_text")]
    pub name: String,
    pub servers: Vec<Stub>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
pub struct Rule {
    pub id: String,
    #[serde(default, deserialize_with = "or_default")]
    pub protocol: String,
    #[serde(default, deserialize_with = "or_default")]
    pub source: String,
    #[serde(default, deserialize_with = "or_default")]
    pub destination_port: String,
    #[serde(default, deserialize_with = "or_default")]
    pub description: String,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
pub struct Policy {
    pub id: String,
    /// The name; not unique.
    #[serde(deserialize_with = "told_text")]
    pub name: String,
    /// The group that it protects.
    #[serde(deserialize_with = "told")]
    pub server_group: Option<Stub>,
    pub rules: Vec<Rule>,
}
