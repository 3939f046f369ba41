//! The names that the neighbours read: they are the contract, and none of them may change.

/// The namespace of most kubeconfigs and provisioning Clusters.
pub const FLEET_DEFAULT: &str = "fleet-default";
/// The `ConfigMap` with our settings.
pub const CONFIG_MAP: &str = "rancher-fip-config";
/// The Secret with the certificate authority of the floating-IP API, here and downstream.
pub const CA_SECRET: &str = "cacerts";
/// The one key of [`CA_SECRET`] that is copied.
pub const CA_KEY: &str = "ca.crt";
/// The `ConfigMap` that maps pools to network interfaces.
pub const INTERFACE_MAP: &str = "network-interface-mappings";
/// The Deployment of the load-balancer controller, where nothing else is known of its name.
pub const CONTROLLER_DEPLOYMENT: &str = "rancher-fip-lb-controller";

/// The label that opts a management Cluster in.
pub const ENABLED_LABEL: &str = "rancher-fip";
/// The label that chooses the load balancer.
pub const BALANCER_LABEL: &str = "rancher-fip-lbtype";
/// The label that marks a Harvester host.
pub const PROVIDER_LABEL: &str = "provider.cattle.io";
/// The annotation that marks the default pool of a cluster.
pub const DEFAULT_NETWORK: &str = "rancher-fip-default-network";
/// The annotation with the project of a namespace, `<cluster>:<project>`.
pub const PROJECT_ID: &str = "field.cattle.io/projectId";

/// The label with the project on a floating IP, and on the namespace of the load-balancer controller.
pub const PROJECT_NAME: &str = "rancher.k8s.binbash.org/project-name";
/// The label with the management Cluster that uses a floating IP.
pub const CLUSTER_NAME: &str = "rancher.k8s.binbash.org/cluster-name";
/// What all labels about the use of a floating IP begin with.
pub const PREFIX: &str = "rancher.k8s.binbash.org/";
/// The annotation on a pod template whose change is a rollout.
pub const RESTARTED_AT: &str = "rancher.k8s.binbash.org/lb-controller-restarted-at";
/// The annotation on the Deployment: a hash of what its pods have read.
pub const READ_HASH: &str = "rancher.k8s.binbash.org/lb-controller-read-hash";
/// `"true"`: we wrote it. `"false"`: we never touch it.
pub const MANAGED: &str = "rancher.k8s.binbash.org/managed";
/// The annotation on a downstream Secret with the pool that we wrote last.
pub const RECORDED_POOL: &str = "rancher.k8s.binbash.org/recorded-floating-ip-pool";
/// The annotation on a local Secret, set to `"true"` by a person who wants a new token.
pub const ROTATE: &str = "rancher.k8s.binbash.org/rotate-token";
/// The finalizer that a later Go release puts on quotas.
pub const GO_FINALIZER: &str = "rancher.k8s.binbash.org/clustermanager-secret-cleanup";

/// The API group of the floating-IP kinds.
pub const FIP_GROUP: &str = "rancher.k8s.binbash.org";

/// The name of a project's Secret, here and downstream.
pub fn project_secret(project: &str) -> String {
    format!("rancher-fip-config-{project}")
}
