//! What is sent to the API.

use serde::Serialize;

/// An address that a new load balancer should have.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct NewVip {
    /// The address; the cloud picks one where there is none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub address: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub subnet: Option<String>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct NewBalancer {
    pub name: String,
    pub flavor: String,
    /// Where it should be; the cloud's default zone where there is none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub zone: Option<String>,
    /// None is a public IPv4 and a public IPv6 address.
    pub vip_addresses: Vec<NewVip>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct NewPool {
    pub name: String,
    /// The load balancer that it belongs to.
    pub load_balancer: String,
    pub algorithm: String,
    pub protocol: String,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct NewMember {
    pub name: String,
    pub protocol_port: i64,
    pub monitor_port: i64,
    pub address: String,
    pub subnet: String,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct NewListener {
    pub name: String,
    pub pool: String,
    pub protocol: String,
    pub protocol_port: i64,
    /// Who may connect; empty is everybody.
    pub allowed_cidrs: Vec<String>,
    pub timeout_client_data_ms: i64,
    pub timeout_member_connect_ms: i64,
    pub timeout_member_data_ms: i64,
}

/// The HTTP part of a new health monitor; empty for one that does not speak HTTP.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct NewHttp {
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub expected_codes: Vec<String>,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub method: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub url_path: String,
    /// `1.0` or `1.1`.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub version: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub host: Option<String>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct NewMonitor {
    pub pool: String,
    #[serde(rename = "type")]
    pub kind: String,
    /// Seconds between checks.
    pub delay_s: i64,
    pub timeout_s: i64,
    pub up_threshold: i64,
    pub down_threshold: i64,
    /// Always sent, also when it is empty.
    pub http: NewHttp,
}

/// The one attribute of a listener that a request changes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub enum ListenerChange {
    #[serde(rename = "allowed_cidrs")]
    AllowedCidrs(Vec<String>),
    #[serde(rename = "timeout_client_data_ms")]
    TimeoutClientData(i64),
    #[serde(rename = "timeout_member_connect_ms")]
    TimeoutMemberConnect(i64),
    #[serde(rename = "timeout_member_data_ms")]
    TimeoutMemberData(i64),
}

/// The one HTTP attribute of a health monitor that a request changes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub enum HttpChange {
    #[serde(rename = "host")]
    Host(String),
    #[serde(rename = "url_path")]
    UrlPath(String),
    #[serde(rename = "method")]
    Method(String),
    #[serde(rename = "expected_codes")]
    ExpectedCodes(Vec<String>),
}

/// The one attribute of a health monitor that a request changes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub enum MonitorChange {
    #[serde(rename = "http")]
    Http(HttpChange),
    /// Seconds between checks.
    #[serde(rename = "delay_s")]
    Delay(i64),
    #[serde(rename = "timeout_s")]
    Timeout(i64),
    #[serde(rename = "up_threshold")]
    UpThreshold(i64),
    #[serde(rename = "down_threshold")]
    DownThreshold(i64),
}
