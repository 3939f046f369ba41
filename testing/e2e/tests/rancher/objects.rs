//! What stands in the three clusters before the manager starts: the reference fixture.

use serde_json::{Value, json};

/// The group of the floating-IP kinds.
pub(crate) const FIP: &str = "/apis/rancher.k8s.binbash.org/v1beta2";
/// Rancher's own kinds.
pub(crate) const MANAGEMENT: &str = "/apis/management.cattle.io/v3";
/// Where the manager's configuration is, and the target namespace downstream.
pub(crate) const APP: &str = "rancher-fip-manager";

/// The kinds of Rancher and of rancher-fip-manager.
pub(crate) fn definitions() -> Vec<Value> {
    let free = json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true});
    let text = json!({"type": "string"});
    let pool = json!({"type": "object", "properties": {
        "spec": {"type": "object", "properties": {
            "targetCluster": text, "targetNetwork": text, "targetNetworkInterface": text,
        }},
        "status": free,
    }});
    let quota = json!({"type": "object", "properties": {
        "spec": {"type": "object", "properties": {
            "displayName": text,
            "floatingIPQuota": {"type": "object", "additionalProperties": {"type": "integer"}},
        }},
        "status": free,
    }});
    let services = json!({"type": "array", "items": {"type": "object", "properties": {
        "serviceNamespace": text, "serviceName": text,
    }}});
    let old =
        json!({"clusterName": text, "projectName": text, "serviceNamespace": text, "serviceName": text});
    let new = json!({"clusterName": text, "projectName": text, "floatingIPGroup": text, "sharedKey": text, "services": services});
    let address = |assigned: Value| {
        json!({"type": "object", "properties": {
            "spec": {"type": "object", "required": ["floatingIPPool"], "properties": {"ipAddr": text, "floatingIPPool": text}},
            "status": {"type": "object", "properties": {
                "ipAddr": text, "state": text, "assigned": {"type": "object", "properties": assigned},
            }},
        }})
    };
    let fip = "rancher.k8s.binbash.org";
    let both = |new: &Value, old: &Value| vec![("v1beta2", new.clone()), ("v1beta1", old.clone())];
    vec![
        definition("management.cattle.io", "Cluster", "clusters", "Cluster", &[("v3", free.clone())]),
        definition("management.cattle.io", "Project", "projects", "Namespaced", &[("v3", free.clone())]),
        definition("provisioning.cattle.io", "Cluster", "clusters", "Namespaced", &[("v1", free.clone())]),
        definition(
            "rke-machine-config.cattle.io",
            "HarvesterConfig",
            "harvesterconfigs",
            "Namespaced",
            &[("v1", free)],
        ),
        definition(fip, "FloatingIPPool", "floatingippools", "Cluster", &both(&pool, &pool)),
        definition(
            fip,
            "FloatingIPProjectQuota",
            "floatingipprojectquotas",
            "Cluster",
            &both(&quota, &quota),
        ),
        definition(fip, "FloatingIP", "floatingips", "Namespaced", &both(&address(new), &address(old))),
    ]
}

/// The first version is the one that is stored.
fn definition(group: &str, kind: &str, plural: &str, scope: &str, versions: &[(&str, Value)]) -> Value {
    let versions: Vec<_> = versions
        .iter()
        .enumerate()
        .map(|(at, (name, schema))| {
            json!({"name": name, "served": true, "storage": at == 0, "deprecated": at > 0,
                "subresources": {"status": {}}, "schema": {"openAPIV3Schema": schema}})
        })
        .collect();
    json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": format!("{plural}.{group}")},
        "spec": {
            "group": group, "scope": scope, "versions": versions,
            "names": {"kind": kind, "listKind": format!("{kind}List"), "plural": plural, "singular": kind.to_lowercase()},
        },
    })
}

pub(crate) fn namespace(name: &str, annotations: &Value) -> Value {
    json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name, "annotations": annotations}})
}

pub(crate) fn secret(name: &str, data: &[(&str, &str)]) -> Value {
    let data: serde_json::Map<_, _> =
        data.iter().map(|(key, value)| ((*key).to_owned(), json!(value))).collect();
    json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": name}, "stringData": data})
}

pub(crate) fn cluster(name: &str, display: &str, labels: &Value) -> Value {
    json!({"apiVersion": "management.cattle.io/v3", "kind": "Cluster",
        "metadata": {"name": name, "labels": labels}, "spec": {"displayName": display}})
}

pub(crate) fn pool(name: &str, target: &str, network: &str, interface: &str) -> Value {
    json!({"apiVersion": "rancher.k8s.binbash.org/v1beta2", "kind": "FloatingIPPool", "metadata": {"name": name},
        "spec": {"targetCluster": target, "targetNetwork": network, "targetNetworkInterface": interface}})
}

/// A floating IP that a cluster uses.
pub(crate) fn address(name: &str, cluster: &str) -> Value {
    let label = |name: &str| format!("rancher.k8s.binbash.org/{name}");
    json!({"apiVersion": "rancher.k8s.binbash.org/v1beta2", "kind": "FloatingIP",
        "metadata": {"name": name, "finalizers": [label("floatingip-cleanup")], "labels": {
            label("cluster-name"): cluster, label("project-name"): "p-abcde", label("service-0-name"): "web",
            label("service-0-namespace"): "shop", label("floatingip-group"): "g", "mine": "kept",
        }},
        "spec": {"floatingIPPool": "harv01--vlan10", "ipAddr": "10.0.0.9"}})
}

/// The objects of the management cluster, with the path that each is created at.
pub(crate) fn management(guest: &str, harvester: &str) -> Vec<(String, Value)> {
    let core = |namespace: &str, plural: &str| format!("/api/v1/namespaces/{namespace}/{plural}");
    let fleet = "fleet-default";
    let mut all: Vec<(String, Value)> = [APP, fleet, "cattle-global-data", "c-m-harv01"]
        .map(|name| ("/api/v1/namespaces".to_owned(), namespace(name, &json!({}))))
        .to_vec();
    all.extend([
        (format!("{MANAGEMENT}/clusters"), cluster("c-m-harv01", "harv01", &json!({"provider.cattle.io": "harvester"}))),
        (format!("{MANAGEMENT}/clusters"), cluster("c-m-guest01", "guest01", &json!({"rancher-fip": "enabled"}))),
        (
            format!("/apis/provisioning.cattle.io/v1/namespaces/{fleet}/clusters"),
            json!({"apiVersion": "provisioning.cattle.io/v1", "kind": "Cluster", "metadata": {"name": "guest01"}, "spec": {
                "cloudCredentialSecretName": "cattle-global-data:cc-hv1",
                "rkeConfig": {"machinePools": [{"controlPlaneRole": true,
                    "machineConfigRef": {"kind": "HarvesterConfig", "name": "nc-guest01-cp"}}]},
            }}),
        ),
        (
            format!("/apis/rke-machine-config.cattle.io/v1/namespaces/{fleet}/harvesterconfigs"),
            json!({"apiVersion": "rke-machine-config.cattle.io/v1", "kind": "HarvesterConfig",
                "metadata": {"name": "nc-guest01-cp"}, "vmNamespace": "team-a",
                "networkInfo": r#"{"interfaces":[{"networkName":"team-a/vlan10"}]}"#}),
        ),
        (core("cattle-global-data", "secrets"), secret("cc-hv1", &[("harvestercredentialConfig-clusterId", "c-m-harv01")])),
        (core(fleet, "secrets"), secret("guest01-kubeconfig", &[("value", guest)])),
        (core(fleet, "secrets"), secret("c-m-harv01-kubeconfig", &[("value", harvester)])),
        (
            format!("{MANAGEMENT}/namespaces/c-m-harv01/projects"),
            json!({"apiVersion": "management.cattle.io/v3", "kind": "Project", "metadata": {"name": "p-abcde"},
                "spec": {"clusterName": "c-m-harv01", "displayName": "team-a"}}),
        ),
        (format!("{FIP}/floatingippools"), pool("harv01--vlan10", "harv01", "vlan10", "eth1")),
    ]);
    all
}

/// The role that the Go program is shipped with.
pub(crate) const ROLE_OF_THE_GO_PROGRAM: &str = "
apiVersion: v1
kind: ServiceAccount
metadata: {name: go-cluster-manager, namespace: rancher-fip-manager}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: go-cluster-manager}
rules:
- {apiGroups: [rancher.k8s.binbash.org], resources: [floatingipprojectquotas, floatingippools], verbs: [get, list, watch]}
- {apiGroups: [rancher.k8s.binbash.org], resources: [floatingipprojectquotas/status], verbs: [get]}
- {apiGroups: [rancher.k8s.binbash.org], resources: [floatingips], verbs: [get, list, update, watch]}
- {apiGroups: [provisioning.cattle.io], resources: [clusters], verbs: [get, list, watch]}
- {apiGroups: [management.cattle.io], resources: [clusters, projects], verbs: [get, list, watch]}
- {apiGroups: [rke-machine-config.cattle.io], resources: [harvesterconfigs], verbs: [get, list]}
- {apiGroups: [''], resources: [secrets], verbs: [create, get, list, update, watch]}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: go-cluster-manager}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: go-cluster-manager}
subjects: [{kind: ServiceAccount, name: go-cluster-manager, namespace: rancher-fip-manager}]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata: {name: go-cluster-manager, namespace: rancher-fip-manager}
rules:
- {apiGroups: [''], resources: [configmaps], verbs: [get]}
- {apiGroups: [coordination.k8s.io], resources: [leases], verbs: [get, list, watch, create, update, delete]}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: go-cluster-manager, namespace: rancher-fip-manager}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: go-cluster-manager}
subjects: [{kind: ServiceAccount, name: go-cluster-manager, namespace: rancher-fip-manager}]
";

/// Whoever may read everything and write nothing.
pub(crate) const READER: &str = "
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: previewer}
rules:
- {apiGroups: ['*'], resources: ['*'], verbs: [get, list, watch]}
- {nonResourceURLs: ['*'], verbs: [get]}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: previewer}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: previewer}
subjects: [{kind: ServiceAccount, name: previewer, namespace: rancher-fip-manager}]
";

/// What we ship.
pub(crate) const MANIFEST: &str = include_str!("../../../../deploy/rancher-fip/manifest.yaml");

/// What a kubeconfig of Rancher may do downstream: everything.
pub(crate) const EVERYTHING: &str = "
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: everything}
rules:
- {apiGroups: ['*'], resources: ['*'], verbs: ['*']}
- {nonResourceURLs: ['*'], verbs: ['*']}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: everything}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: everything}
subjects: [{kind: ServiceAccount, name: rancher, namespace: kube-system}]
";
