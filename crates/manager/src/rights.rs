//! The rights that the program needs in the cluster for any cloud, and no more. A cloud may add its own in its
//! [`ProviderFactory`](cloudberth_http::ProviderFactory).

use cloudberth_core::rights::{Right, Scope};

const fn right(
    purpose: &'static str,
    scope: Scope,
    group: &'static str,
    resource: &'static str,
    verbs: &'static [&'static str],
) -> Right {
    Right { purpose, scope, group, resource, name: "", verbs, needed: true }
}

/// The `ConfigMap` from which clients of the metrics are authenticated.
pub const AUTHENTICATION_CONFIG: &str = "extension-apiserver-authentication";

/// Everything that the program asks of the API server.
pub static RIGHTS: [Right; 11] = [
    right("know the nodes", Scope::Cluster, "", "nodes", &["get", "list", "watch"]),
    right("label, untaint and remove nodes", Scope::Cluster, "", "nodes", &["patch", "delete"]),
    right("write addresses and conditions of nodes", Scope::Cluster, "", "nodes/status", &["patch"]),
    right("know the Services", Scope::Cluster, "", "services", &["list", "watch"]),
    right(
        "write addresses, finalizers and ids on Services",
        Scope::Cluster,
        "",
        "services/status",
        &["patch"],
    ),
    right("tell people what happened", Scope::Cluster, "", "events", &["create", "patch"]),
    right(
        "be the only one who writes",
        Scope::LeaseNamespace,
        "coordination.k8s.io",
        "leases",
        &["create", "get", "update"],
    ),
    Right {
        needed: false,
        ..right(
            "take over at once from a replica that stops",
            Scope::LeaseNamespace,
            "coordination.k8s.io",
            "leases",
            &["list", "watch"],
        )
    },
    Right {
        needed: false,
        ..right(
            "ask who wants to read metrics",
            Scope::Cluster,
            "authentication.k8s.io",
            "tokenreviews",
            &["create"],
        )
    },
    Right {
        needed: false,
        ..right(
            "ask whether they may",
            Scope::Cluster,
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
            Scope::KubeSystem,
            "",
            "configmaps",
            &["get", "list", "watch"],
        )
    },
];
