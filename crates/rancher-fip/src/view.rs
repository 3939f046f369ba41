//! The objects of the management cluster, trimmed to what decisions need.
//!
//! A view is who an object is and a body. Two versions with one body differ in nothing that matters here: the status of
//! a management Cluster changes every few seconds, and none of that may cause any work.

use std::fmt::Debug;

use cloudberth_core::{Error, ObjectKey, Result};
use cloudberth_runtime::object::Watched;
use jiff::Timestamp;
use serde_json::Value;

use crate::names::{BALANCER_LABEL, DEFAULT_NETWORK, ENABLED_LABEL, GO_FINALIZER, PROVIDER_LABEL};

/// The part of an object that decisions need.
pub trait Body: Clone + Debug + PartialEq + Send + Sync + 'static {
    /// Reads it. What is missing or of another type reads as empty: others write these objects.
    fn read(json: &Value) -> Self;
}

/// An object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct View<B> {
    /// Namespace and name.
    pub key: ObjectKey,
    /// `metadata.uid`.
    pub uid: String,
    /// `metadata.resourceVersion`.
    pub version: String,
    /// The rest.
    pub body: B,
}

impl<B> View<B> {
    /// `metadata.name`.
    pub fn name(&self) -> &str {
        &self.key.name
    }
}

impl<B: Body> Watched for View<B> {
    type Key = ObjectKey;

    fn read(json: Value) -> Result<Self> {
        let metadata = |field: &str| text(&json, &format!("/metadata/{field}")).to_owned();
        let name = metadata("name");
        if name.is_empty() {
            return Err(Error::permanent("metadata.name is missing"));
        }
        Ok(Self {
            key: ObjectKey::new(&metadata("namespace"), &name),
            uid: metadata("uid"),
            version: metadata("resourceVersion"),
            body: B::read(&json),
        })
    }

    fn key_of(namespace: &str, name: &str) -> ObjectKey {
        ObjectKey::new(namespace, name)
    }

    fn key(&self) -> ObjectKey {
        self.key.clone()
    }

    fn uid(&self) -> &str {
        &self.uid
    }

    fn resource_version(&self) -> &str {
        &self.version
    }
}

/// The text at a JSON pointer; empty if there is none.
pub fn text<'a>(json: &'a Value, pointer: &str) -> &'a str {
    json.pointer(pointer).and_then(Value::as_str).unwrap_or_default()
}

/// A label, an annotation or any other text in a map of texts below `metadata`.
pub fn entry<'a>(json: &'a Value, map: &str, key: &str) -> Option<&'a str> {
    json.get("metadata")?.get(map)?.get(key)?.as_str()
}

/// A management Cluster.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ClusterBody {
    /// `spec.displayName`.
    pub display_name: String,
    /// The label that opts in.
    pub enabled: Option<String>,
    /// The label that chooses the load balancer.
    pub balancer: Option<String>,
    /// The label of its provider.
    pub provider: Option<String>,
    /// It is being deleted.
    pub deleting: bool,
}

/// A management Cluster.
pub type ClusterView = View<ClusterBody>;

impl Body for ClusterBody {
    fn read(json: &Value) -> Self {
        let label = |key: &str| entry(json, "labels", key).map(str::to_owned);
        Self {
            display_name: text(json, "/spec/displayName").to_owned(),
            enabled: label(ENABLED_LABEL),
            balancer: label(BALANCER_LABEL),
            provider: label(PROVIDER_LABEL),
            deleting: json.pointer("/metadata/deletionTimestamp").is_some(),
        }
    }
}

impl ClusterView {
    /// Whether `target`, of a pool, is this cluster: its id or its display name, and never nothing.
    pub fn is_target(&self, target: &str) -> bool {
        !target.is_empty() && (target == self.name() || target == self.body.display_name)
    }
}

/// A Project. Newer Rancher also has `status.backingNamespace`; the API server of the floating IPs does not look there.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ProjectBody {
    /// `spec.clusterName`.
    pub cluster: String,
}

/// A Project.
pub type ProjectView = View<ProjectBody>;

impl Body for ProjectBody {
    fn read(json: &Value) -> Self {
        Self { cluster: text(json, "/spec/clusterName").to_owned() }
    }
}

/// A provisioning Cluster.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ProvisioningBody {
    /// `spec.cloudCredentialSecretName`.
    pub credential: String,
    /// `spec.rkeConfig.machinePools`.
    pub pools: Vec<InstancePool>,
    /// `status.clusterName`: the management Cluster.
    pub cluster: String,
    /// `status.clientSecretName`: the Secret with the kubeconfig.
    pub client_secret: String,
}

/// One of the pools that a cluster's instances are made from.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct InstancePool {
    /// `controlPlaneRole`.
    pub control_plane: bool,
    /// `machineConfigRef.kind`.
    pub kind: String,
    /// `machineConfigRef.name`.
    pub config: String,
    /// `cloudCredentialSecretName` of the pool.
    pub credential: String,
}

/// A provisioning Cluster.
pub type ProvisioningView = View<ProvisioningBody>;

impl Body for ProvisioningBody {
    fn read(json: &Value) -> Self {
        let pools = json.pointer("/spec/rkeConfig/machinePools").and_then(Value::as_array);
        let pool = |pool: &Value| InstancePool {
            control_plane: pool.get("controlPlaneRole").and_then(Value::as_bool).unwrap_or_default(),
            kind: text(pool, "/machineConfigRef/kind").to_owned(),
            config: text(pool, "/machineConfigRef/name").to_owned(),
            credential: text(pool, "/cloudCredentialSecretName").to_owned(),
        };
        Self {
            credential: text(json, "/spec/cloudCredentialSecretName").to_owned(),
            pools: pools.into_iter().flatten().map(pool).collect(),
            cluster: text(json, "/status/clusterName").to_owned(),
            client_secret: text(json, "/status/clientSecretName").to_owned(),
        }
    }
}

/// A pool of floating IPs.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PoolBody {
    /// `spec.targetCluster`: a display name or an id.
    pub cluster: String,
    /// `spec.targetNetwork`.
    pub network: String,
    /// `spec.targetNetworkInterface`.
    pub interface: String,
    /// It is annotated as the default of its cluster.
    pub default: bool,
}

/// A pool of floating IPs.
pub type PoolView = View<PoolBody>;

impl Body for PoolBody {
    fn read(json: &Value) -> Self {
        let spec = |field: &str| text(json, &format!("/spec/{field}")).to_owned();
        Self {
            cluster: spec("targetCluster"),
            network: spec("targetNetwork"),
            interface: spec("targetNetworkInterface"),
            // Exactly this text, as the Go program compares it.
            default: entry(json, "annotations", DEFAULT_NETWORK) == Some("true"),
        }
    }
}

/// The quota of a project.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct QuotaBody {
    /// It is being deleted.
    pub deleting: bool,
    /// When its deletion was asked for, if that can be read.
    pub deleted_at: Option<Timestamp>,
    /// It carries the finalizer of a later Go release.
    pub finalizer: bool,
}

/// The quota of a project, which it is named like.
pub type QuotaView = View<QuotaBody>;

impl Body for QuotaBody {
    fn read(json: &Value) -> Self {
        let finalizers = json.pointer("/metadata/finalizers").and_then(Value::as_array);
        let deleted = json.pointer("/metadata/deletionTimestamp");
        Self {
            deleting: deleted.is_some(),
            deleted_at: deleted.and_then(Value::as_str).and_then(|text| text.parse().ok()),
            finalizer: finalizers.into_iter().flatten().any(|name| name == GO_FINALIZER),
        }
    }
}

/// A Secret of which only the version is known: enough to see that a kubeconfig changed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct VersionBody(String);

/// That a Secret exists, and in which version.
pub type SecretMark = View<VersionBody>;

impl Body for VersionBody {
    fn read(json: &Value) -> Self {
        Self(text(json, "/metadata/resourceVersion").to_owned())
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn cluster(json: Value) -> ClusterView {
        ClusterView::read(json).unwrap()
    }

    #[test]
    fn a_heartbeat_changes_nothing_that_matters() {
        let of = |version: &str, beat: u32| {
            cluster(json!({"metadata": {"name": "c-1", "uid": "u", "resourceVersion": version,
                "labels": {"rancher-fip": "enabled", "rancher-fip-lbtype": "metallb"}},
                "spec": {"displayName": "one"}, "status": {"beat": beat}}))
        };
        let (one, two) = (of("1", 1), of("2", 2));
        assert_eq!(one.body, two.body, "RF-30");
        assert_eq!(
            (one.body.enabled.as_deref(), one.body.balancer.as_deref()),
            (Some("enabled"), Some("metallb"))
        );
    }

    #[test]
    fn whatever_others_write_can_be_read() {
        let odd = json!({"metadata": {"name": "x", "labels": [1], "annotations": {"a": 1}, "finalizers": "no"},
            "spec": {"displayName": 7, "rkeConfig": {"machinePools": [1, {"controlPlaneRole": "yes"}]},
                "cloudCredentialSecretName": null}});
        assert_eq!(ClusterBody::read(&odd), ClusterBody::default());
        assert_eq!(ProvisioningBody::read(&odd).pools, vec![InstancePool::default(); 2]);
        assert_eq!(QuotaBody::read(&odd), QuotaBody::default());
        assert!(ClusterView::read(json!({"metadata": {}})).is_err());
    }

    #[test]
    fn only_the_exact_text_makes_a_default_pool() {
        let of = |value: &str| {
            PoolBody::read(&json!({"metadata": {"annotations": {"rancher-fip-default-network": value}}}))
                .default
        };
        for (value, want) in [("true", true), ("True", false), ("yes", false), ("", false)] {
            assert_eq!(of(value), want, "RF-162 {value}");
        }
    }

    #[test]
    fn a_pool_targets_a_cluster_by_id_or_display_name() {
        let named =
            |display: &str| cluster(json!({"metadata": {"name": "c-1"}, "spec": {"displayName": display}}));
        let table = [
            ("RF-164 RF-130 by id", named("one"), "c-1", true),
            ("by display name", named("one"), "one", true),
            ("another", named("one"), "two", false),
            ("RF-131 nothing is not nothing", named(""), "", false),
        ];
        for (case, cluster, target, want) in table {
            assert_eq!(cluster.is_target(target), want, "{case}");
        }
    }
}
