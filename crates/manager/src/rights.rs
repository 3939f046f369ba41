//! What the program has to be allowed to do in the cluster, and no more.
//!
//! The manifests of the clouds grant exactly this, and the check at the start asks for exactly this.

use std::fmt;

/// A right on a kind of object.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Right {
    /// What it is for, in the words of a person who has to grant it.
    pub purpose: &'static str,
    /// Where: everywhere, in the namespace of the Lease, or in `kube-system`.
    pub place: Place,
    /// The API group; empty for the core.
    pub group: &'static str,
    /// The resource, with its subresource behind a slash.
    pub resource: &'static str,
    /// The one object that it is about; empty for all of the kind.
    pub name: &'static str,
    /// What may be done.
    pub verbs: &'static [&'static str],
    /// Whether the program can do its work without.
    pub needed: bool,
}

/// Where a right holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Place {
    /// In the whole cluster.
    Cluster,
    /// In the namespace of the leader's Lease.
    Election,
    /// In `kube-system`, whatever the Lease's namespace is.
    System,
}

const fn right(
    purpose: &'static str,
    place: Place,
    group: &'static str,
    resource: &'static str,
    verbs: &'static [&'static str],
) -> Right {
    Right { purpose, place, group, resource, name: "", verbs, needed: true }
}

/// The `ConfigMap` from which clients of the metrics are authenticated.
pub const AUTHENTICATION_CONFIG: &str = "extension-apiserver-authentication";

/// Everything that the program asks of the API server.
pub static RIGHTS: [Right; 11] = [
    right("know the nodes", Place::Cluster, "", "nodes", &["get", "list", "watch"]),
    right("label, untaint and remove nodes", Place::Cluster, "", "nodes", &["patch", "delete"]),
    right("write addresses and conditions of nodes", Place::Cluster, "", "nodes/status", &["patch"]),
    right("know the Services", Place::Cluster, "", "services", &["list", "watch"]),
    right(
        "write addresses, finalizers and ids on Services",
        Place::Cluster,
        "",
        "services/status",
        &["patch"],
    ),
    right("tell people what happened", Place::Cluster, "", "events", &["create", "patch"]),
    right(
        "be the only one who writes",
        Place::Election,
        "coordination.k8s.io",
        "leases",
        &["create", "get", "update"],
    ),
    Right {
        needed: false,
        ..right(
            "take over at once from a replica that stops",
            Place::Election,
            "coordination.k8s.io",
            "leases",
            &["list", "watch"],
        )
    },
    Right {
        needed: false,
        ..right(
            "ask who wants to read metrics",
            Place::Cluster,
            "authentication.k8s.io",
            "tokenreviews",
            &["create"],
        )
    },
    Right {
        needed: false,
        ..right(
            "ask whether they may",
            Place::Cluster,
            "authorization.k8s.io",
            "subjectaccessreviews",
            &["create"],
        )
    },
    Right {
        needed: false,
        name: AUTHENTICATION_CONFIG,
        ..right(
            "know whose certificates to trust",
            Place::System,
            "",
            "configmaps",
            &["get", "list", "watch"],
        )
    },
];

impl fmt::Display for Right {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let group = if self.group.is_empty() { String::new() } else { format!(".{}", self.group) };
        write!(f, "{} {}{group}", self.verbs.join(", "), self.resource)
    }
}
