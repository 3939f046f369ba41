//! The program under the name of the one that it replaces, with a simulated cloudscale.ch and a simulated cluster, each a
//! process of its own.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing, missing_docs)]
#![cfg(feature = "sim")]

mod fixture;

use std::{os::unix::fs::symlink, path::Path, process::Command};

use fixture::{Cluster, PROGRAM, Process, text, until};
use serde_json::{Value, json};

const NAME: &str = "cloudscale-cloud-controller-manager";
const SECRET: &str = "s3cr3t-token-of-the-project-0815";
const SERVICES: &str = "/api/v1/namespaces/default/services";

/// A simulated cloud with four servers, called `node-1` to `node-4`; and its address.
async fn cloud(cluster: &Cluster) -> (Process, String) {
    let mut command = cluster.place.command(Path::new(PROGRAM));
    command.args(["sim", "cloud", "--provider", "cloudscale", "--listen", "127.0.0.1:0", "--instances", "4"]);
    command.args(["--latency", "5ms", "--build", "300ms", "--token", SECRET]);
    let mut cloud = Process::start(&mut command, cluster.place.path("cloud.log"));
    let line = cloud.says(&["http://"]).await;
    let address = line.split("http://").nth(1).unwrap().split(',').next().unwrap().trim().to_owned();
    (cloud, format!("http://{address}/"))
}

fn settings(command: &mut Command, url: &str) {
    command.env("CLOUDSCALE_ACCESS_TOKEN", SECRET).env("CLOUDSCALE_API_URL", url);
}

/// The program as the old manifest starts it.
fn manager(cluster: &Cluster, url: &str) -> Process {
    symlink(PROGRAM, cluster.place.path(NAME)).unwrap();
    let mut command = cluster.place.command(&cluster.place.path(NAME));
    settings(&mut command, url);
    command.args(["--allow-untagged-cloud", "--v=3", "--concurrent-service-syncs=2"]);
    command.args(["--kubeconfig=admin", "--bind-address=127.0.0.1", "--secure-port=0"]);
    Process::start(&mut command, cluster.place.path("manager.log"))
}

async fn plan(cluster: &Cluster, url: &str) -> (Option<i32>, String) {
    let mut command = cluster.place.command(Path::new(PROGRAM));
    settings(&mut command, url);
    command.args(["plan", "--cloud-provider=cloudscale", "--kubeconfig=admin"]);
    let output = tokio::task::spawn_blocking(move || command.output().unwrap()).await.unwrap();
    (output.status.code(), format!("{}{}", text(&output.stdout), text(&output.stderr)))
}

fn web() -> Value {
    json!({
        "apiVersion": "v1", "kind": "Service", "metadata": {"name": "web"},
        "spec": {"type": "LoadBalancer", "ports": [{"name": "http", "port": 80}]},
    })
}

#[tokio::test]
async fn called_by_the_old_name_it_does_the_old_work() {
    let cluster = Cluster::start().await;
    let (cloud, url) = cloud(&cluster).await;
    for number in 1..=4 {
        cluster.join(&format!("node-{number}"), false).await;
    }
    let (code, told) = plan(&cluster, &url).await;
    assert_eq!(code, Some(2), "nodes wait for their cloud: {told}");

    let mut manager = manager(&cluster, &url);
    until("all nodes are initialised", async || {
        let nodes = cluster.get("/api/v1/nodes").await?;
        let id = |node: &Value| {
            node["spec"]["providerID"].as_str().is_some_and(|id| id.starts_with("cloudscale://"))
        };
        let taint = |node: &Value| node["spec"]["taints"].to_string().contains("uninitialized");
        nodes["items"].as_array()?.iter().all(|node| id(node) && !taint(node)).then_some(())
    })
    .await;
    cluster.post(SERVICES, &web()).await;
    let path = format!("{SERVICES}/web");
    let service = until("the Service has its addresses", async || {
        let service = cluster.get(&path).await?;
        (service["status"]["loadBalancer"]["ingress"].as_array()?.len() == 2).then_some(service)
    })
    .await;
    let annotations = &service["metadata"]["annotations"];
    assert_eq!(annotations["k8s.cloudscale.ch/loadbalancer-config-version"], "1", "CS-136");
    assert_eq!(annotations["k8s.cloudscale.ch/loadbalancer-zone"], "rma1", "CS-136");
    let (code, told) = until("there is nothing left to do", async || {
        let (code, told) = plan(&cluster, &url).await;
        (code == Some(0)).then_some((code, told))
    })
    .await;
    assert_eq!(code, Some(0), "{told}");

    cluster.delete(&path).await;
    until("the Service is gone", async || cluster.get(&path).await.is_none().then_some(())).await;
    assert_eq!(manager.ended(), None, "{}", manager.log());
    let line = manager.says(&["cloudscale.ch", "s3cr****"]).await;
    assert!(line.contains(url.trim_end_matches('/')), "CS-2 {line}");
    for (name, log) in [("manager", manager.log()), ("plan", told), ("cloud", cloud.log())] {
        assert!(!log.contains(SECRET), "L10-809 {name}");
    }
    let log = manager.log();
    let (_, after) = log.split_once("EnsuringLoadBalancer").unwrap();
    assert!(!after.contains("WARN") && !after.contains("ERROR"), "CS-136 {after}");
    manager.signal("TERM");
    assert_eq!(manager.exit_code().await, Some(0), "{}", manager.log());
}

#[tokio::test]
async fn a_token_that_is_refused_is_told_and_nothing_is_written() {
    let cluster = Cluster::start().await;
    let (_cloud, url) = cloud(&cluster).await;
    cluster.join("node-1", false).await;
    let mut command = cluster.place.command(Path::new(PROGRAM));
    command.env("CLOUDSCALE_ACCESS_TOKEN", "another").env("CLOUDSCALE_API_URL", &url);
    command.args(["plan", "--cloud-provider=cloudscale", "--kubeconfig=admin"]);
    let output = tokio::task::spawn_blocking(move || command.output().unwrap()).await.unwrap();
    let told = format!("{}{}", text(&output.stdout), text(&output.stderr));
    assert_eq!(output.status.code(), Some(1), "{told}");
    assert!(told.contains("401") && !told.contains("another"), "L10-810 {told}");
}
