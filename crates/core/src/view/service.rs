//! A Service, with every field that a cloud could be asked to honour (law 8).

#![allow(missing_docs, reason = "names are those of the Kubernetes API")]

use std::collections::BTreeMap;

use super::Pairs;
use crate::{net::IpFamily, view::ObjectKey};

/// `spec.type`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum ServiceType {
    #[default]
    ClusterIp,
    NodePort,
    /// The one that concerns us.
    LoadBalancer,
    ExternalName,
    /// A type that we do not know.
    Other(String),
}

#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum ServiceProtocol {
    #[default]
    Tcp,
    Udp,
    Sctp,
    /// A protocol that we do not know.
    Other(String),
}

impl ServiceProtocol {
    pub fn as_str(&self) -> &str {
        match self {
            Self::Tcp => "TCP",
            Self::Udp => "UDP",
            Self::Sctp => "SCTP",
            Self::Other(text) => text,
        }
    }
}

/// `targetPort`: a number or the name of a container port.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TargetPort {
    Number(i64),
    Name(String),
}

/// One entry of `spec.ports`, as written. Numbers are checked by whoever uses them, so that the refusal can name
/// the field.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ServicePort {
    /// Empty when the port has no name.
    pub name: String,
    pub protocol: ServiceProtocol,
    pub port: i64,
    /// What nodes listen on; 0 when none is allocated.
    pub node_port: i64,
    pub target_port: Option<TargetPort>,
    pub app_protocol: Option<String>,
}

/// `spec.externalTrafficPolicy`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum ExternalTrafficPolicy {
    /// Any node takes traffic for any pod.
    #[default]
    Cluster,
    /// Only nodes with a pod of the Service take traffic.
    Local,
    /// A policy that we do not know.
    Other(String),
}

/// `spec.sessionAffinity` with its configuration.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum SessionAffinity {
    #[default]
    None,
    /// One client stays with one pod for this long (`None`: the field is not set).
    ClientIp {
        /// `sessionAffinityConfig.clientIP.timeoutSeconds`.
        timeout_seconds: Option<i64>,
    },
    /// A kind that we do not know.
    Other(String),
}

/// `spec.ipFamilyPolicy`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum IpFamilyPolicy {
    SingleStack,
    PreferDualStack,
    RequireDualStack,
    /// A policy that we do not know.
    Other(String),
}

/// `ipMode` of an ingress address.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum IpMode {
    /// Packets arrive with the load balancer's address as their destination.
    Vip,
    /// Packets arrive with the node's address as their destination.
    Proxy,
    /// A mode that we do not know.
    Other(String),
}

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct IngressPort {
    pub port: i64,
    pub protocol: ServiceProtocol,
    /// Why it does not work, if it does not.
    pub error: Option<String>,
}

/// One entry of `status.loadBalancer.ingress`.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Ingress {
    pub ip: Option<String>,
    pub hostname: Option<String>,
    pub ip_mode: Option<IpMode>,
    pub ports: Vec<IngressPort>,
}

/// A Service, reduced to what decisions and providers use.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ServiceView {
    /// `metadata.namespace`.
    pub namespace: String,
    /// `metadata.name`.
    pub name: String,
    /// `metadata.uid`.
    pub uid: String,
    /// `metadata.resourceVersion`, for patches that must not meet a newer object.
    pub resource_version: String,
    /// `metadata.generation`; 0 when not set.
    pub generation: i64,
    /// `metadata.deletionTimestamp` is set.
    pub deleting: bool,
    /// `metadata.finalizers`, in order.
    pub finalizers: Vec<String>,
    /// `metadata.labels`.
    pub labels: Pairs,
    /// `metadata.annotations`. Read through an annotation table, which keeps "not set" apart from "wrong".
    pub annotations: BTreeMap<String, String>,
    /// `spec.type`.
    pub service_type: ServiceType,
    /// `spec.loadBalancerClass`.
    pub class: Option<String>,
    /// `spec.ports`, in order.
    pub ports: Vec<ServicePort>,
    /// `spec.allocateLoadBalancerNodePorts`.
    pub allocate_node_ports: Option<bool>,
    /// `spec.externalTrafficPolicy`.
    pub external_traffic_policy: ExternalTrafficPolicy,
    /// `spec.healthCheckNodePort`; 0 when not set.
    pub health_check_node_port: i64,
    /// `spec.loadBalancerSourceRanges`; `None` when not set, which differs from an empty list.
    pub source_ranges: Option<Vec<String>>,
    /// `spec.loadBalancerIP`.
    pub load_balancer_ip: Option<String>,
    /// `spec.externalIPs`, in order.
    pub external_ips: Vec<String>,
    /// `spec.sessionAffinity` and its configuration.
    pub session_affinity: SessionAffinity,
    /// `spec.ipFamilies`, in order; unknown ones are left out.
    pub ip_families: Vec<IpFamily>,
    /// `spec.ipFamilyPolicy`.
    pub ip_family_policy: Option<IpFamilyPolicy>,
    /// `spec.clusterIPs`, in order.
    pub cluster_ips: Vec<String>,
    /// `spec.internalTrafficPolicy`.
    pub internal_traffic_policy: Option<String>,
    /// `spec.publishNotReadyAddresses`.
    pub publish_not_ready_addresses: bool,
    /// `spec.trafficDistribution`.
    pub traffic_distribution: Option<String>,
    /// `status.loadBalancer.ingress`, in order.
    pub ingress: Vec<Ingress>,
}

impl ServiceView {
    pub fn key(&self) -> ObjectKey {
        ObjectKey::new(&self.namespace, &self.name)
    }
}
