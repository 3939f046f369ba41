//! `cloudberth orphans`: what is left over is found, and deleted only by name and only where it is certain.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing, missing_docs)]
#![cfg(feature = "sim")]

mod fixture;

use std::{
    io::{Read, Write},
    net::TcpStream,
    path::Path,
    process::Stdio,
};

use fixture::{Cluster, PROGRAM, Process, text, until};
use serde_json::{Value, json};

const SECRET: &str = "s3cr3t-token-of-the-account-0815";
const SERVICES: &str = "/api/v1/namespaces/default/services";

async fn cloud(cluster: &Cluster, provider: &str) -> (Process, String) {
    let mut command = cluster.place.command(Path::new(PROGRAM));
    command.args(["sim", "cloud", "--provider", provider, "--listen", "127.0.0.1:0", "--instances", "2"]);
    command.args(["--token", SECRET]);
    let mut cloud = Process::start(&mut command, cluster.place.path("cloud.log"));
    let line = cloud.says(&["http://"]).await;
    let address = line.split("http://").nth(1).unwrap().split(',').next().unwrap().trim().to_owned();
    (cloud, address)
}

/// The environment of the cloud at this address.
fn env(provider: &str, address: &str) -> [(String, String); 2] {
    let prefix = provider.to_uppercase();
    [
        (format!("{prefix}_ACCESS_TOKEN"), SECRET.to_owned()),
        (format!("{prefix}_API_URL"), format!("http://{address}/")),
    ]
}

async fn orphans(cluster: &Cluster, provider: &str, address: &str, args: &[&str]) -> (Option<i32>, Value) {
    let mut command = cluster.place.command(Path::new(PROGRAM));
    command.arg("orphans").arg(format!("--cloud-provider={provider}"));
    command.args(["--kubeconfig=admin", "--output=json"]).args(args).envs(env(provider, address));
    command.stdin(Stdio::null());
    let output = tokio::task::spawn_blocking(move || command.output().unwrap()).await.unwrap();
    let said = format!("{}{}", text(&output.stdout), text(&output.stderr));
    assert!(!said.contains(SECRET), "L10-2102");
    (output.status.code(), serde_json::from_str(&said).unwrap_or(Value::String(said)))
}

fn web(name: &str) -> Value {
    json!({
        "apiVersion": "v1", "kind": "Service", "metadata": {"name": name},
        "spec": {"type": "LoadBalancer", "ports": [{"port": 80}]},
    })
}

/// A request to the simulated cloud itself.
fn ask(address: &str, request: &str, body: &str) -> u16 {
    let mut stream = TcpStream::connect(address).unwrap();
    write!(
        stream,
        "{request} HTTP/1.1\r\nHost: {address}\r\nAuthorization: Bearer {SECRET}\r\nConnection: close\r\n\
         Content-Length: {}\r\n\r\n{body}",
        body.len()
    )
    .unwrap();
    let mut text = String::new();
    stream.read_to_string(&mut text).unwrap();
    text.split(' ').nth(1).unwrap().parse().unwrap()
}

#[tokio::test]
async fn what_is_left_over_for_certain_is_deleted_by_its_name() {
    let cluster = Cluster::start().await;
    let (_cloud, address) = cloud(&cluster, "binarylane").await;
    for node in ["node-1", "node-2"] {
        cluster.join(node, false).await;
    }
    let mut command = cluster.place.command(Path::new(PROGRAM));
    command.args(["controller-manager", "--cloud-provider=binarylane", "--kubeconfig=admin"]);
    command.args(["--bind-address=127.0.0.1", "--secure-port=0", "--configure-cloud-routes=false"]);
    command.envs(env("binarylane", &address));
    let mut manager = Process::start(&mut command, cluster.place.path("manager.log"));
    for name in ["web", "shop"] {
        cluster.post(SERVICES, &web(name)).await;
    }
    for name in ["web", "shop"] {
        until(&format!("{name} has its address and its nodes"), async || {
            let service = cluster.get(&format!("{SERVICES}/{name}")).await?;
            service["status"]["loadBalancer"]["ingress"]
                .as_array()
                .filter(|list| !list.is_empty())
                .map(|_| ())
        })
        .await;
    }
    let (code, found) = until("nothing is left over while the Services are there", async || {
        let (code, found) = orphans(&cluster, "binarylane", &address, &[]).await;
        (code == Some(0)).then_some((code, found))
    })
    .await;
    assert_eq!((code, &found["orphans"]), (Some(0), &json!([])), "L3-2103 {found:#}");

    // Somebody takes the finalizer off while nobody leads: the load balancer stays behind.
    manager.signal("TERM");
    manager.exit_code().await;
    let path = format!("{SERVICES}/web");
    cluster.merge(&path, &json!({"metadata": {"finalizers": null}})).await;
    cluster.delete(&path).await;
    let (code, found) = orphans(&cluster, "binarylane", &address, &[]).await;
    assert_eq!(code, Some(1), "{found:#}");
    let all = found["orphans"].as_array().unwrap();
    assert_eq!((all.len(), &all[0]["certain"]), (1, &true.into()), "{found:#}");
    let name = all[0]["name"].as_str().unwrap();
    assert_eq!(name, "k8s-kubernetes-default-web");

    let (code, found) =
        orphans(&cluster, "binarylane", &address, &["--delete", "k8s-kubernetes-default-shop"]).await;
    assert_eq!((code, &found["deleted"]), (Some(3), &json!([])), "L3-2104 {found:#}");
    assert!(found["refused"][0]["why"].as_str().unwrap().contains("a Service may have it"), "{found:#}");
    for (case, args) in [("no names", &["--delete"][..]), ("a flag behind it", &["--delete", name, "--v=2"])]
    {
        let (code, said) = orphans(&cluster, "binarylane", &address, args).await;
        assert_eq!(code, Some(2), "{case}: {said}");
    }
    let (code, found) = orphans(&cluster, "binarylane", &address, &["--delete", name]).await;
    assert_eq!((code, &found["deleted"]), (Some(0), &json!([name])), "{found:#}");
    let (code, found) = orphans(&cluster, "binarylane", &address, &[]).await;
    assert_eq!((code, &found["orphans"]), (Some(0), &json!([])), "{found:#}");
    let shop = cluster.get(&format!("{SERVICES}/shop")).await.unwrap();
    assert!(!shop["status"]["loadBalancer"]["ingress"].as_array().unwrap().is_empty(), "L3-2105 {shop:#}");
}

#[tokio::test]
async fn what_may_be_another_clusters_is_shown_and_never_deleted() {
    let cluster = Cluster::start().await;
    let (_cloud, address) = cloud(&cluster, "cloudscale").await;
    let name = "k8s-service-5f8d1c1e-0a3b-4c5d-8e9f-001122334455";
    let made = format!(r#"{{"name": "{name}", "flavor": "lb-standard"}}"#);
    assert_eq!(ask(&address, "POST /v1/load-balancers", &made), 201);
    assert_eq!(
        ask(&address, "POST /v1/load-balancers", r#"{"name": "by-hand", "flavor": "lb-standard"}"#),
        201
    );
    let (code, found) = orphans(&cluster, "cloudscale", &address, &[]).await;
    let all = found["orphans"].as_array().unwrap();
    assert_eq!((code, all.len()), (Some(1), 1), "L3-2106 what has no mark is not shown: {found:#}");
    assert_eq!((&all[0]["name"], &all[0]["certain"]), (&name.into(), &false.into()), "{found:#}");
    let (code, found) = orphans(&cluster, "cloudscale", &address, &["--delete", name]).await;
    assert_eq!((code, &found["deleted"]), (Some(3), &json!([])), "L3-2107 {found:#}");
    assert_eq!(found["orphans"].as_array().unwrap().len(), 1, "{found:#}");

    // A listing that fails proves nothing.
    let fault = r#"{"faults": [{"operation": "load-balancers.list", "times": 9, "harm": {"status": {"code": 403}}}]}"#;
    assert_eq!(ask(&address, "POST /_sim/faults", fault), 200);
    let (code, found) = orphans(&cluster, "cloudscale", &address, &[]).await;
    assert_eq!((code, &found["orphans"]), (Some(3), &json!([])), "L1-2109 {found:#}");
}
