//! Rights in the cluster, as the manifests grant them and the check at the start asks for them.

use std::fmt;

/// A right on a kind of object.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Right {
    /// What it is for, in words for the person who grants it: "without it the program cannot …".
    pub purpose: &'static str,
    /// Where it holds.
    pub scope: Scope,
    /// The API group; empty for the core.
    pub group: &'static str,
    /// The resource, with its subresource behind a slash.
    pub resource: &'static str,
    /// The one object that it is about; empty for all of the kind.
    pub name: &'static str,
    /// What may be done.
    pub verbs: &'static [&'static str],
    /// Whether the program cannot do its work without it.
    pub needed: bool,
}

/// Where a right holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Scope {
    /// In the whole cluster.
    Cluster,
    /// In the namespace of the leader's Lease.
    LeaseNamespace,
    /// In `kube-system`, whatever namespace the Lease is in.
    KubeSystem,
}

/// What a cloud asks for whose load balancers [need endpoints](crate::lb::Balancers::needs_endpoints).
pub const ENDPOINT_SLICES: Right = Right {
    purpose: "know on which nodes the pods of a Service are ready",
    scope: Scope::Cluster,
    group: "discovery.k8s.io",
    resource: "endpointslices",
    name: "",
    verbs: &["list", "watch"],
    needed: true,
};

impl fmt::Display for Right {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let group = if self.group.is_empty() { String::new() } else { format!(".{}", self.group) };
        write!(f, "{} {}{group}", self.verbs.join(", "), self.resource)
    }
}
