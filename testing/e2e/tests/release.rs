//! The folder of a release on a real server: whoever has it needs nothing of the checkout to install from it. And the pages
//! about installing, followed until a Service is served.
#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing, missing_docs)]
// The progress of a first build is for people.
#![allow(clippy::print_stderr)]

#[path = "support/clouds.rs"]
mod clouds;
#[path = "support/helm.rs"]
mod helm;
#[path = "support/kubelet.rs"]
mod kubelet;
#[path = "support/pages.rs"]
mod pages;
mod support;

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use cloudberth_e2e::{
    Account, Cluster, ClusterFactory, ClusterKind, ControlPlane, Manager, Options, Program, Request,
    eventually, shipped,
};
use helm::{Helm, has_its_own_namespaces, make_namespace};
use kubelet::Pod;
use pages::{CLOUDLYCKE, Reader, blocks, program_of_image, root};
use serde_json::{Value, json};
use support::assets;
use tokio::process::Command;

const VERSION: &str = env!("CARGO_PKG_VERSION");
/// It ends a hang and measures nothing.
const SOON: Duration = Duration::from_secs(120);
/// Names the folder of a release. Then the chart's package and the program are those of the folder, the latter out of its
/// image. Otherwise they are made of the checkout.
const RELEASE: &str = "CLOUDBERTH_RELEASE";
/// The pages that are followed until a Service is served, and the cloud of each.
const PAGES: [(&str, &str); 4] = [
    ("install-binarylane.md", "binarylane"),
    ("install-brightbox.md", "brightbox"),
    ("install-cloudlycke.md", "cloudlycke"),
    ("install-cloudscale.md", "cloudscale"),
];
const RANCHER_PAGE: &str = "install-rancher.md";
/// What on these pages needs kubelets, or a Rancher.
const NOT_HERE: [&str; 2] = ["rollout status", "clusters.management.cattle.io"];
/// What runs in a pod that was installed.
const IN_THE_POD: [&str; 2] = ["kubectl -n ", " exec "];
const SERVICES: &str = "/api/v1/namespaces/default/services";

/// What a command prints, if it succeeds.
async fn said(command: &mut Command) -> String {
    let output = command.kill_on_drop(true).output().await.unwrap();
    let all = String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned();
    assert!(output.status.success(), "{command:?}: {all}");
    all
}

/// A release around a program that is none: nothing is started from it here.
async fn make_folder(plane: &ControlPlane) -> PathBuf {
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

fn release() -> Option<PathBuf> {
    std::env::var_os(RELEASE).map(|folder| root().join(folder))
}

fn commands_of(page: &str) -> Vec<String> {
    let text = fs::read_to_string(root().join("docs/how-to").join(page)).unwrap();
    let found = blocks(&text);
    assert!(found.len() >= 4, "{page}: {found:?}");
    found
}

/// A reader who has the chart as a package, and tries out the plain manifest only.
async fn reader(cluster: &Cluster, page: &str) -> Reader {
    let mut reader = Reader::new(cluster, page.trim_end_matches(".md"));
    let package = format!("cloudberth-{VERSION}.tgz");
    let package = if let Some(folder) = release() {
        folder.join(package)
    } else {
        reader.run("helm package charts/cloudberth").await;
        reader.dir.join(package)
    };
    reader.fill("charts/cloudberth", package.display().to_string());
    reader.fill("kubectl apply -f -", "kubectl apply --dry-run=server --validate=strict -f -");
    reader
}

/// The node of an instance, as its kubelet registers it: Ready, and waiting for its cloud.
async fn join(cluster: &Cluster, name: &str) {
    let taint = json!({ "key": "node.cloudprovider.kubernetes.io/uninitialized", "value": "true", "effect": "NoSchedule" });
    let node = json!({ "apiVersion": "v1", "kind": "Node", "spec": { "taints": [taint] },
        "metadata": { "name": name, "labels": { "kubernetes.io/hostname": name } } });
    cluster.create("/api/v1/nodes", &node).await.unwrap();
    let ready = json!([{ "type": "Ready", "status": "True", "reason": "Kubelet", "message": "",
        "lastHeartbeatTime": "2026-01-01T00:00:00Z", "lastTransitionTime": "2026-01-01T00:00:00Z" }]);
    let path = format!("/api/v1/nodes/{name}/status");
    cluster.patch(&path, &json!({ "status": { "conditions": ready } })).await.unwrap();
}

/// Starts the service that the page has on the computer itself, and returns it with its address.
async fn serve_cloudlycke(reader: &Reader, command: &str) -> (Program, String) {
    // Nobody else on this computer uses these addresses.
    let inventory = reader.dir.join("inventory.yaml");
    let text = fs::read_to_string(&inventory).unwrap();
    fs::write(&inventory, format!("{text}loadBalancers: {{ pool: 127.171.7.0/24 }}\n")).unwrap();
    let words = command.split_whitespace().skip(1).map(|word| match word {
        "inventory.yaml" | "token" => reader.dir.join(word).display().to_string(),
        CLOUDLYCKE => "127.0.0.1:0".to_owned(),
        other => other.to_owned(),
    });
    let words: Vec<String> = words.collect();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let mut service = Program::start(&words, &[]).unwrap();
    let line = service.says("listening on http://", SOON).await.unwrap();
    let address = line.split("http://").nth(1).unwrap().to_owned();
    (service, address)
}

/// What runs in the pod that was installed.
struct Installed {
    manager: Manager,
    account: Account,
    env: Vec<(String, String)>,
}

impl Installed {
    /// What a command in the pod prints.
    async fn run(&self, reader: &Reader, command: &str) -> String {
        let kubeconfig = self.account.kubeconfig.display();
        reader.run_with(&format!("{command} --kubeconfig={kubeconfig}"), &self.env).await
    }
}

/// Starts what was installed as a kubelet would, with the arguments, the Secrets and the account that are on the server.
async fn start_installed(
    cluster: &Cluster,
    reader: &Reader,
    cloud: &str,
    variable: Option<&(&str, String)>,
) -> Installed {
    let workload = cluster.get("/apis/apps/v1/namespaces/kube-system/daemonsets/cloudberth").await.unwrap();
    let pod = Pod::of(cluster, &workload, &reader.dir.join("root")).await;
    assert_eq!(pod.command, ["cloudberth"]);
    assert!(pod.image.starts_with("registry.example.com/cloudberth:"), "{}", pod.image);
    let manifest = reader.run("helm get manifest cloudberth --namespace kube-system").await;
    let account = cluster.account_made(&pod.namespace, &pod.account, &manifest).await.unwrap();
    let mut program = shipped().unwrap();
    if let Some(folder) = release() {
        match program_of_image(&folder, &pod.image, &reader.dir.join("image")).await {
            Some(of_image) => program = of_image,
            None => eprintln!(
                "SKIPPED: {} is not in {}; the program of the checkout is started",
                pod.image,
                folder.display()
            ),
        }
    }
    let mut env = pod.env;
    if let Some((name, value)) = variable.filter(|(name, _)| !env.iter().any(|(given, _)| given == name)) {
        env.push(((*name).to_owned(), value.clone()));
    }
    let mut manager = Manager::start(&account, cloud, (program, pod.args), &[], &env).await.unwrap();
    manager.leads(SOON).await.unwrap();
    Installed { manager, account, env }
}

/// What a line of a page has run in the pod.
fn in_the_pod(line: &str) -> Option<&str> {
    let (outside, inside) = line.split_once(" -- ")?;
    IN_THE_POD.iter().all(|part| outside.contains(part)).then_some(inside)
}

async fn follow(cluster: &Cluster, page: &str, cloud: &str) {
    let simulated = clouds::open(cloud).await;
    let mut reader = reader(cluster, page).await;
    reader.fill("CLIENT", simulated.credentials.0.clone());
    reader.fill("TOKEN", simulated.credentials.1.clone());
    for node in &simulated.nodes {
        join(cluster, node).await;
    }
    let (mut installed, mut service) = (None, None);
    for commands in commands_of(page) {
        if NOT_HERE.iter().any(|part| commands.contains(part)) {
            continue;
        }
        let inside: Vec<_> = commands.lines().filter_map(in_the_pod).collect();
        if !inside.is_empty() {
            let installed: &Installed = installed.as_ref().expect("the page installs first");
            for command in inside {
                let said = installed.run(&reader, command).await;
                assert!(said.contains("Problems: 0. Warnings: 0."), "{page}: {command}: {said}");
            }
            continue;
        }
        if commands.contains("lycke serve") {
            let (program, address) = serve_cloudlycke(&reader, &commands).await;
            service = Some(program);
            reader.fill(CLOUDLYCKE, address);
            continue;
        }
        reader.run(&commands).await;
        if commands.contains("helm install") {
            installed = Some(start_installed(cluster, &reader, cloud, simulated.variable.as_ref()).await);
            for node in &simulated.nodes {
                eventually(SOON, &format!("{page}: {node} is in service"), async || {
                    let path = format!("/api/v1/nodes/{node}");
                    let node = cluster.get(&path).await.map_err(|why| why.to_string())?;
                    let id = node["spec"]["providerID"].as_str().unwrap_or_default();
                    let done = id.starts_with(&format!("{cloud}://"))
                        && !node["spec"]
                            .to_string()
                            .contains("node.cloudprovider.kubernetes.io/uninitialized");
                    if done { Ok(()) } else { Err(node["spec"].to_string()) }
                })
                .await
                .unwrap();
            }
        }
    }
    // The page has waited for the address. What it says about the end holds too.
    let services = cluster.get(SERVICES).await.unwrap();
    let mine = services["items"].as_array().unwrap().iter().find(|one| one["spec"]["type"] == "LoadBalancer");
    let mine = mine.unwrap_or_else(|| panic!("{page}: {services}"));
    assert!(mine["status"]["loadBalancer"]["ingress"][0].is_object(), "{page}: {mine}");
    let name = mine["metadata"]["name"].as_str().unwrap();
    reader.run(&format!("kubectl delete service {name} --timeout=120s")).await;
    let Installed { mut manager, account, .. } = installed.expect("the page installs");
    assert_eq!(manager.stop(SOON).await.unwrap(), 0);
    for row in cluster.settled_calls_of(&account.user).await.unwrap() {
        // The doctor looks at more than the program may see, and says so.
        let looked =
            row.verb == "list" && ["events", "deployments", "daemonsets"].contains(&row.resource.as_str());
        assert!(
            looked || !matches!(row.status, 401 | 403),
            "{page}: refused by the rights that were installed: {row:?}"
        );
    }
    reader.run("helm uninstall cloudberth --namespace kube-system; kubectl delete deployment web; kubectl delete nodes --all").await;
    drop(service);
}

/// The page for Rancher, as far as it goes without one.
async fn follow_the_page_for_rancher(cluster: &Cluster) {
    let reader = reader(cluster, RANCHER_PAGE).await;
    for commands in commands_of(RANCHER_PAGE) {
        if !NOT_HERE.iter().any(|part| commands.contains(part))
            && !commands.lines().any(|line| in_the_pod(line).is_some())
        {
            reader.run(&commands).await;
        }
    }
    let path = "/api/v1/namespaces/rancher-fip-manager/configmaps/rancher-fip-config";
    let data = cluster.get(path).await.unwrap()["data"].take();
    let data: BTreeMap<String, String> = serde_json::from_value(data).unwrap();
    let checked = cloudberth_rancher_fip::config::check(&data).unwrap();
    assert!(checked.warnings.is_empty(), "{:?}", checked.warnings);
    let path = "/apis/apps/v1/namespaces/rancher-fip-manager/deployments/cloudberth-rancher-fip";
    let workload = cluster.get(path).await.unwrap();
    assert_eq!(image(&workload), format!("registry.example.com/cloudberth:{VERSION}-rancher"));
    let pod = Pod::of(cluster, &workload, &reader.dir.join("root")).await;
    assert_eq!(
        (pod.command.as_slice(), pod.args[0].as_str()),
        (&["cloudberth".to_owned()][..], "rancher-fip-cluster-manager")
    );
}

#[tokio::test]
async fn every_page_about_installing_leads_to_a_service_that_is_served() {
    let assets = assets();
    let factory = ClusterFactory::start(ClusterKind::Real, &assets, None).await.unwrap();
    let cluster = factory.cluster().await.unwrap();
    for (page, cloud) in PAGES {
        follow(&cluster, page, cloud).await;
    }
    for name in ["rancher-fip-manager", "fleet-default"] {
        let namespace = json!({ "apiVersion": "v1", "kind": "Namespace", "metadata": { "name": name } });
        cluster.create("/api/v1/namespaces", &namespace).await.unwrap();
    }
    follow_the_page_for_rancher(&cluster).await;
}
