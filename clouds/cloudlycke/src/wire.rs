//! What the API sends and takes.

#![allow(missing_docs, reason = "names are those of the API")]

use std::{
    collections::{BTreeMap, BTreeSet},
    net::{IpAddr, SocketAddr},
};

use serde::{Deserialize, Serialize};

/// A Kubernetes cluster of the inventory.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Cluster {
    pub key: String,
    pub kubernetes_name: String,
}

/// A machine. Its addresses and its state are always told, so that one without them is flawed and not one without
/// addresses (law 1).
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct Machine {
    pub id: String,
    pub name: String,
    pub cluster: String,
    #[serde(rename = "type")]
    pub machine_type: String,
    pub region: String,
    pub zone: String,
    pub internal: Vec<IpAddr>,
    pub external: Vec<IpAddr>,
    /// Where its node ports answer, as seen from the service.
    pub backend: IpAddr,
    pub state: String,
    #[serde(default)]
    pub labels: BTreeMap<String, String>,
    /// The provider id of its node where another program owns the node.
    #[serde(default, rename = "nodeProviderID")]
    pub node_provider_id: Option<String>,
}

/// What tells a machine from others, if the rest cannot be read.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct MachineIdentity {
    pub id: String,
    pub name: String,
    pub cluster: String,
}

/// A load balancer: what it should be and how it is.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct LoadBalancer {
    pub cluster: String,
    pub namespace: String,
    pub name: String,
    pub uid: String,
    pub addresses: Vec<IpAddr>,
    pub listeners: Vec<ListenerStatus>,
    pub spec: BalancerSpec,
}

/// What tells a load balancer from others, if the rest cannot be read.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct BalancerIdentity {
    pub cluster: String,
    pub namespace: String,
    pub name: String,
}

/// How a listener is.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct ListenerStatus {
    pub protocol: String,
    pub port: u16,
    /// Which of the addresses it is about, where there are several.
    #[serde(default)]
    pub address: Option<IpAddr>,
    /// Where it really listens.
    pub bound: Option<SocketAddr>,
    /// What is wrong with it, in one word.
    #[serde(default)]
    pub error: Option<String>,
    #[serde(default)]
    pub message: Option<String>,
}

/// What a load balancer should be. What has no order is a set, so that equal specs are equal.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct BalancerSpec {
    pub uid: String,
    /// Empty where the service chooses.
    pub requested_address: String,
    pub families: Vec<String>,
    pub listeners: BTreeSet<Listener>,
    pub backends: BTreeSet<Backend>,
    pub affinity: Affinity,
    /// Empty where everybody may connect.
    pub source_ranges: BTreeSet<String>,
    pub health: Health,
    pub proxy_protocol: String,
    pub policy: String,
    pub idle_timeout_seconds: u32,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub address_mode: Option<String>,
}

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Listener {
    pub protocol: String,
    pub port: u16,
    pub node_port: u16,
}

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Backend {
    pub machine: String,
    pub address: IpAddr,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Affinity {
    pub kind: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeout_seconds: Option<u32>,
}

impl Default for Affinity {
    fn default() -> Self {
        Self { kind: "None".to_owned(), timeout_seconds: None }
    }
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Health {
    pub kind: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub port: Option<u16>,
    pub path: String,
    pub interval_seconds: u32,
    pub timeout_seconds: u32,
    pub healthy_threshold: u32,
    pub unhealthy_threshold: u32,
}

/// The answer to a deletion.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
pub(crate) struct Deleted {
    pub(crate) deleted: bool,
}

/// An error. Programs go by the code; the message is for people and may change.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub(crate) struct ErrorBody {
    pub(crate) code: String,
}
