//! The chart on a real server: installed, upgraded, rolled back and uninstalled, and every object that it makes accepted.
#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing, missing_docs)]
// The progress of a first build is for people.
#![allow(clippy::print_stderr)]

#[path = "support/helm.rs"]
mod helm;
mod support;

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use cloudberth_e2e::{ControlPlane, Kubectl, Options, Request};
use helm::{Helm, has_its_own_namespaces, make_namespace};
use serde_json::{Value, json};
use support::assets;

/// The kinds of everything that the chart makes.
const CONTENTS: &[&str] = &[
    "serviceaccounts",
    "configmaps",
    "services",
    "daemonsets.apps",
    "deployments.apps",
    "poddisruptionbudgets.policy",
    "networkpolicies.networking.k8s.io",
    "roles.rbac.authorization.k8s.io",
    "rolebindings.rbac.authorization.k8s.io",
    "clusterroles.rbac.authorization.k8s.io",
    "clusterrolebindings.rbac.authorization.k8s.io",
    "podmonitors.monitoring.coreos.com",
    "servicemonitors.monitoring.coreos.com",
];

fn root() -> PathBuf {
    PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../.."))
}

/// The kinds of the Prometheus operator, without their schemas: a server that has no such kind refuses the objects.
async fn know_monitors(plane: &ControlPlane) {
    for (kind, plural) in [("PodMonitor", "podmonitors"), ("ServiceMonitor", "servicemonitors")] {
        let schema = json!({ "type": "object", "x-kubernetes-preserve-unknown-fields": true });
        let definition = json!({
            "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
            "metadata": { "name": format!("{plural}.monitoring.coreos.com") },
            "spec": { "group": "monitoring.coreos.com", "scope": "Namespaced",
                "names": { "kind": kind, "plural": plural },
                "versions": [{ "name": "v1", "served": true, "storage": true,
                    "schema": { "openAPIV3Schema": schema } }] } });
        let path = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
        let made = plane.send(&Request::post(path, &definition)).await.unwrap();
        assert_eq!(made.status, 201, "{made:?}");
        let name = format!("crd/{plural}.monitoring.coreos.com");
        let wait = ["wait", "--for=condition=Established", "--timeout=120s", &name];
        let waited = plane.kubectl(&wait).await.unwrap();
        assert!(waited.ok, "{}", waited.stderr);
    }
}

/// What a release has made, as `kind namespace name`.
async fn contents(kubectl: &Kubectl) -> BTreeSet<String> {
    let kinds = CONTENTS.join(",");
    let columns = "--output=custom-columns=K:.kind,S:.metadata.namespace,N:.metadata.name";
    let args = ["get", &kinds, "-A", "--selector=app.kubernetes.io/managed-by=Helm", columns, "--no-headers"];
    let found = kubectl.run(&args).await.unwrap();
    assert!(found.ok, "{}", found.stderr);
    let line = |line: &str| line.split_whitespace().collect::<Vec<_>>().join(" ");
    found.stdout.lines().map(line).filter(|line| !line.is_empty()).collect()
}

async fn get(plane: &ControlPlane, path: &str) -> Value {
    let found = plane.send(&Request::get(path)).await.unwrap();
    assert_eq!(found.status, 200, "{path}: {found:?}");
    serde_json::from_slice(&found.body).unwrap()
}

/// Every file under a folder whose name ends like this.
fn files(folder: &Path, end: &str) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            found.extend(files(&path, end));
        } else if path.to_str().unwrap().ends_with(end) {
            found.push(path);
        }
    }
    found.sort();
    found
}

async fn every_object_is_accepted(plane: &ControlPlane) {
    let rendered = files(&root().join("charts/cloudberth/ci"), "-rendered.yaml");
    let manifests = files(&root().join("deploy"), "manifest.yaml");
    assert!(rendered.len() >= 3 && manifests.len() >= 5, "{rendered:?} {manifests:?}");
    let kubectl = plane.kubectl_command();
    for file in rendered.iter().chain(&manifests) {
        let args = ["apply", "--dry-run=server", "--validate=strict", "--filename", file.to_str().unwrap()];
        let said = kubectl.run(&args).await.unwrap();
        assert!(said.ok && said.stderr.is_empty(), "{}: {}", file.display(), said.stderr);
        let text = fs::read_to_string(file).unwrap();
        let objects = text.lines().filter(|line| line.starts_with("kind:")).count();
        assert_eq!(said.stdout.lines().count(), objects, "{}: {}", file.display(), said.stdout);
    }
    // It would notice a field that there is not.
    let wrong = fs::read_to_string(&manifests[0]).unwrap().replace("dnsPolicy:", "dnsPolizei:");
    let args = ["apply", "--dry-run=server", "--validate=strict", "--filename=-"];
    let said = kubectl.run_with_input(&args, &wrong).await.unwrap();
    assert!(!said.ok && said.stderr.contains("dnsPolizei"), "{}", said.stderr);
}

async fn every_base_and_overlay_is_built(plane: &ControlPlane) {
    for file in files(&root().join("deploy"), "kustomization.yaml") {
        let folder = file.parent().unwrap().to_str().unwrap();
        let built = plane.kubectl(&["kustomize", folder]).await.unwrap();
        assert!(built.ok, "{folder}: {}", built.stderr);
        let args = ["apply", "--dry-run=server", "--validate=strict", "--filename=-"];
        let said = plane.kubectl_command().run_with_input(&args, &built.stdout).await.unwrap();
        assert!(said.ok, "{folder}: {}", said.stderr);
        let is_overlay = folder.contains("/overlays/");
        assert_eq!(built.stdout.contains("image: registry.example.com/cloudberth:"), is_overlay, "{folder}");
    }
}

#[tokio::test]
async fn the_chart_is_installed_upgraded_rolled_back_and_uninstalled() {
    let plane = ControlPlane::start(&assets(), &Options::default()).await.unwrap();
    know_monitors(&plane).await;
    for name in ["rancher-fip-manager", "fleet-default", "fleet-local", "cloudberth"] {
        make_namespace(&plane, name).await;
    }
    has_its_own_namespaces(&plane).await;
    every_object_is_accepted(&plane).await;
    every_base_and_overlay_is_built(&plane).await;

    let helm = Helm::of(&plane, &root());
    let kubectl = plane.kubectl_command();
    let packages = plane.dir().join("packages");
    let destination = format!("--destination={}", packages.display());
    helm.does(&["package", "charts/cloudberth", &destination]).await;
    let next = format!("{}-next.0", env!("CARGO_PKG_VERSION"));
    helm.does(&["package", "charts/cloudberth", &destination, "--version", &next, "--app-version", "next"])
        .await;
    let package = |version: &str| packages.join(format!("cloudberth-{version}.tgz")).display().to_string();
    let (first, second) = (package(env!("CARGO_PKG_VERSION")), package(&next));

    // Nothing becomes ready without a scheduler, so nobody waits for it.
    let ci = |name: &str| format!("--values=charts/cloudberth/ci/{name}-values.yaml");
    let namespace = "--namespace=cloudberth";
    let said = helm.does(&["install", "cloudberth", &first, namespace, &ci("minimal")]).await;
    assert!(said.contains("logs in with the Secret cloudscale of the namespace cloudberth"), "{said}");
    let installed = contents(&kubectl).await;
    let minimal = [
        "ClusterRole <none> cloudberth",
        "ClusterRoleBinding <none> cloudberth",
        "DaemonSet cloudberth cloudberth",
        "Role kube-system cloudberth",
        "RoleBinding kube-system cloudberth",
        "ServiceAccount cloudberth cloudberth",
    ];
    assert_eq!(installed, BTreeSet::from(minimal.map(str::to_owned)));

    // From one cloud to all of them, in the next version, and back.
    helm.does(&["upgrade", "cloudberth", &second, namespace, &ci("several")]).await;
    let several = contents(&kubectl).await;
    let more =
        ["Deployment", "PodDisruptionBudget", "NetworkPolicy", "ServiceMonitor", "ConfigMap", "Service"];
    for kind in more {
        assert!(several.iter().any(|one| one.split(' ').next() == Some(kind)), "{kind}: {several:?}");
    }
    assert!(!several.iter().any(|one| one.starts_with("DaemonSet")), "{several:?}");
    let workload = "/apis/apps/v1/namespaces/cloudberth/deployments/cloudberth";
    let labels = get(&plane, workload).await["metadata"]["labels"].clone();
    assert_eq!(labels["app.kubernetes.io/version"], "next", "{labels}");
    helm.does(&["rollback", "cloudberth", "1", namespace]).await;
    assert_eq!(contents(&kubectl).await, installed);
    let workload = "/apis/apps/v1/namespaces/cloudberth/daemonsets/cloudberth";
    let daemons = get(&plane, workload).await;
    assert_eq!(daemons["metadata"]["labels"]["app.kubernetes.io/version"], env!("CARGO_PKG_VERSION"));

    // A wrong value changes nothing.
    let values = ci("minimal");
    let wrong = ["upgrade", "cloudberth", &second, namespace, &values, "--set=replicaCount=2"];
    let (ok, said) = helm.run(&wrong).await;
    assert!(!ok && said.contains("replicaCount"), "{said}");
    assert_eq!(get(&plane, workload).await["metadata"]["generation"], daemons["metadata"]["generation"]);

    helm.does(&["uninstall", "cloudberth", namespace]).await;
    assert_eq!(contents(&kubectl).await, BTreeSet::new());
}
