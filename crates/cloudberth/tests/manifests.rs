//! The manifests of the clouds, which the chart makes, grant exactly what the program asks for, and confine it.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing, missing_docs)]

use std::{collections::BTreeSet, fs, path::PathBuf};

use cloudberth::CLOUDS;
use cloudberth_core::rights::Scope;
use cloudberth_manager::rights::RIGHTS;
use serde_json::Value;

fn folder() -> PathBuf {
    [env!("CARGO_MANIFEST_DIR"), "..", "..", "deploy"].iter().collect()
}

/// Every cloud that replaces a program.
fn providers() -> Vec<&'static str> {
    CLOUDS.iter().filter(|factory| !factory.replaces.is_empty()).map(|factory| factory.name).collect()
}

fn documents(provider: &str) -> Vec<Value> {
    let text = fs::read_to_string(folder().join(provider).join("manifest.yaml")).unwrap();
    let parts = text.split("\n---\n").skip(1);
    parts
        .map(|part| serde_saphyr::from_str(part).unwrap_or_else(|why| panic!("{provider}: {why}\n{part}")))
        .collect()
}

fn one<'a>(documents: &'a [Value], kind: &str) -> &'a Value {
    let found: Vec<_> = documents.iter().filter(|document| document["kind"] == kind).collect();
    assert_eq!(found.len(), 1, "{kind}");
    found[0]
}

fn texts(list: &Value) -> Vec<String> {
    list.as_array().into_iter().flatten().map(|item| item.as_str().unwrap().to_owned()).collect()
}

/// Every single right that a role grants: group, resource, name, verb.
fn granted(role: &Value) -> BTreeSet<[String; 4]> {
    let mut out = BTreeSet::new();
    for rule in role["rules"].as_array().unwrap() {
        let names = texts(&rule["resourceNames"]);
        let names = if names.is_empty() { vec![String::new()] } else { names };
        for group in texts(&rule["apiGroups"]) {
            for resource in texts(&rule["resources"]) {
                for verb in texts(&rule["verbs"]) {
                    out.extend(
                        names.iter().map(|n| [group.clone(), resource.clone(), n.clone(), verb.clone()]),
                    );
                }
            }
        }
    }
    out
}

/// Every single right that the program asks for when it serves `provider`.
fn asked(provider: &str, scopes: &[Scope]) -> BTreeSet<[String; 4]> {
    let own = CLOUDS.iter().filter(|factory| factory.name == provider).flat_map(|factory| factory.rights);
    let rights = RIGHTS.iter().chain(own).filter(|right| scopes.contains(&right.scope));
    rights
        .flat_map(|right| {
            right.verbs.iter().map(|verb| [right.group, right.resource, right.name, verb].map(str::to_owned))
        })
        .collect()
}

#[test]
fn every_cloud_that_replaces_a_program_has_a_manifest() {
    assert!(providers().len() > 3);
    for provider in providers() {
        let path = folder().join(provider).join("manifest.yaml");
        assert!(
            path.exists(),
            "deploy/{provider}/manifest.yaml; write values.yaml there and run `cargo xtask chart`"
        );
    }
}

#[test]
fn every_manifest_grants_what_is_asked_for_and_nothing_else() {
    for provider in providers() {
        let documents = documents(provider);
        assert_eq!(granted(one(&documents, "ClusterRole")), asked(provider, &[Scope::Cluster]), "{provider}");
        let namespaced = asked(provider, &[Scope::LeaseNamespace, Scope::KubeSystem]);
        assert_eq!(granted(one(&documents, "Role")), namespaced, "{provider}");
        for kind in ["ClusterRoleBinding", "RoleBinding"] {
            let binding = one(&documents, kind);
            assert_eq!(binding["subjects"][0]["name"], one(&documents, "ServiceAccount")["metadata"]["name"]);
            assert_eq!(binding["roleRef"]["name"], "system:cloud-controller-manager", "{provider}");
        }
    }
}

#[test]
fn every_manifest_can_bootstrap_a_cluster_and_is_confined() {
    for provider in providers() {
        let documents = documents(provider);
        let pod = &one(&documents, "DaemonSet")["spec"]["template"]["spec"];
        assert_eq!(pod["hostNetwork"], true, "{provider}: there is no pod network yet");
        let tolerated: BTreeSet<_> =
            pod["tolerations"].as_array().unwrap().iter().map(|t| t["key"].as_str().unwrap()).collect();
        for key in ["node.cloudprovider.kubernetes.io/uninitialized", "node.kubernetes.io/not-ready"] {
            assert!(tolerated.contains(key), "{provider}: {key}");
        }
        assert_eq!(pod["securityContext"]["runAsNonRoot"], true, "{provider}");
        let container = &pod["containers"][0];
        assert_eq!(texts(&container["command"]), ["cloudberth"], "{provider}");
        let args = texts(&container["args"]);
        let told = ["controller-manager".to_owned(), format!("--cloud-provider={provider}")];
        assert_eq!(args[..2], told, "{provider}");
        for variable in container["env"].as_array().unwrap() {
            let name = variable["name"].as_str().unwrap();
            assert!(name.ends_with("_FILE") || name.ends_with("_URL"), "{provider}: {name} is no file");
        }
        let confined = &container["securityContext"];
        assert_eq!(confined["allowPrivilegeEscalation"], false, "{provider}");
        assert_eq!(confined["readOnlyRootFilesystem"], true, "{provider}");
        assert_eq!(confined["capabilities"]["drop"][0], "ALL", "{provider}");
    }
}
