//! The folder of a release on a real server: whoever has it needs nothing of the checkout to install from it.
#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing, missing_docs)]
// The progress of a first build is for people.
#![allow(clippy::print_stderr)]

#[path = "support/helm.rs"]
mod helm;
mod support;

use std::fs;
use std::path::Path;

use cloudberth_e2e::{ControlPlane, Options, Request};
use helm::{Helm, has_its_own_namespaces, make_namespace};
use serde_json::Value;
use support::assets;
use tokio::process::Command;

const VERSION: &str = env!("CARGO_PKG_VERSION");

/// What a command prints, if it succeeds.
async fn said(command: &mut Command) -> String {
    let output = command.kill_on_drop(true).output().await.unwrap();
    let all = String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned();
    assert!(output.status.success(), "{command:?}: {all}");
    all
}

/// A release around a program that is none: nothing is started from it here.
async fn make_folder(plane: &ControlPlane) -> std::path::PathBuf {
    let (program, folder) = (plane.dir().join("program"), plane.dir().join("release"));
    fs::write(&program, "#!/bin/sh\nexit 0\n").unwrap();
    let chore = tokio::task::spawn_blocking(cloudberth_e2e::chores).await.unwrap().unwrap();
    let mut command = Command::new(chore);
    command.args(["release", "--dry-run", "--variant=plain,lycke", "--program"]).arg(&program);
    said(command.arg("--output").arg(&folder)).await;
    fs::remove_file(&program).unwrap();
    said(Command::new("sha256sum").args(["--check", "--strict", "SHA256SUMS"]).current_dir(&folder)).await;
    folder
}

/// The names by which the archives of a folder are known after they were loaded.
async fn loaded(folder: &Path) -> Vec<String> {
    let mut names = Vec::new();
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_some_and(|ending| ending == "tar") {
            let manifest = said(Command::new("tar").arg("-xOf").arg(&path).arg("manifest.json")).await;
            let manifest: Value = serde_json::from_str(&manifest).unwrap();
            let tags = manifest[0]["RepoTags"].as_array().unwrap();
            names.extend(tags.iter().map(|tag| tag.as_str().unwrap().to_owned()));
        }
    }
    names
}

async fn get(plane: &ControlPlane, path: &str) -> (u16, Value) {
    let found = plane.send(&Request::get(path)).await.unwrap();
    (found.status, serde_json::from_slice(&found.body).unwrap())
}

fn image(workload: &Value) -> String {
    workload["spec"]["template"]["spec"]["containers"][0]["image"].as_str().unwrap().to_owned()
}

#[tokio::test]
async fn a_cluster_is_installed_from_the_folder_of_a_release() {
    let plane = ControlPlane::start(&assets(), &Options::default()).await.unwrap();
    for name in ["rancher-fip-manager", "fleet-default", "fleet-local", "cloudberth"] {
        make_namespace(&plane, name).await;
    }
    has_its_own_namespaces(&plane).await;
    let folder = make_folder(&plane).await;
    let images = loaded(&folder).await;
    assert_eq!(images.len(), 2, "{images:?}");

    // The chart of the folder, with the values of the folder, for each cloud: the image is one of the folder's.
    let helm = Helm::of(&plane, &folder);
    let package = format!("./cloudberth-{VERSION}.tgz");
    for cloud in ["binarylane", "brightbox", "cloudlycke", "cloudscale"] {
        let values = format!("--values=manifests/deploy/{cloud}/values.yaml");
        helm.does(&["install", cloud, &package, "--namespace=kube-system", &values]).await;
        let (status, list) = get(&plane, "/apis/apps/v1/namespaces/kube-system/deployments").await;
        let (also, more) = get(&plane, "/apis/apps/v1/namespaces/kube-system/daemonsets").await;
        assert_eq!((status, also), (200, 200), "{list} {more}");
        let items = |list: &Value| list["items"].as_array().unwrap().clone();
        let [workload] =
            [items(&list), items(&more)].concat().try_into().unwrap_or_else(|all| panic!("{cloud}: {all:?}"));
        assert!(images.contains(&image(&workload)), "{cloud}: {} is not in the folder", image(&workload));
        helm.does(&["uninstall", cloud, "--namespace=kube-system"]).await;
    }

    // The plain manifests, without helm.
    for cloud in ["binarylane", "brightbox", "cloudlycke", "cloudscale", "rancher-fip"] {
        let file = folder.join("manifests/deploy").join(cloud).join("manifest.yaml");
        let file = file.to_str().unwrap();
        let applied = plane.kubectl(&["apply", "--validate=strict", "--filename", file]).await.unwrap();
        assert!(applied.ok && applied.stderr.is_empty(), "{cloud}: {}", applied.stderr);
        assert!(applied.stdout.contains("created"), "{cloud}: {}", applied.stdout);
        let gone = plane.kubectl(&["delete", "--wait=false", "--filename", file]).await.unwrap();
        assert!(gone.ok, "{cloud}: {}", gone.stderr);
    }
    for cloud in ["binarylane", "brightbox", "cloudlycke", "cloudscale"] {
        let file = folder.join("manifests/deploy/admission").join(format!("{cloud}.yaml"));
        let args = ["apply", "--dry-run=server", "--validate=strict", "--filename", file.to_str().unwrap()];
        let applied = plane.kubectl(&args).await.unwrap();
        assert!(applied.ok, "{cloud}: {}", applied.stderr);
    }
}
