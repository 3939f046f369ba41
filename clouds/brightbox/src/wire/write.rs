//! What is sent to the API.

use serde::Serialize;

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct NodeRef {
    pub node: String,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ListenerOptions {
    pub protocol: String,
    #[serde(rename = "in")]
    pub inside: i64,
    #[serde(rename = "out")]
    pub outside: i64,
    /// Milliseconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub timeout: Option<i64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub proxy_protocol: Option<String>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct CheckOptions {
    #[serde(rename = "type")]
    pub kind: String,
    pub port: i64,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub request: Option<String>,
    /// Milliseconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub interval: Option<i64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub timeout: Option<i64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub threshold_up: Option<i64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub threshold_down: Option<i64>,
}

/// A whole load balancer. What is not sent stays as it is, or gets the cloud's default.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct BalancerOptions {
    pub name: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub nodes: Option<Vec<NodeRef>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub listeners: Option<Vec<ListenerOptions>>,
    pub healthcheck: CheckOptions,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub policy: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub domains: Option<Vec<String>>,
    pub https_redirect: bool,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct NewPolicy {
    pub name: String,
    pub server_group: String,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct RuleOptions {
    pub firewall_policy: String,
    pub protocol: String,
    pub source: String,
    pub destination_port: String,
    pub description: String,
}
