//! The cluster that the program is started on.

use futures_util::{StreamExt, TryStreamExt, stream};
use http::Request;
use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::{Client, Config};
use serde_json::{Value, json};
use std::path::Path;

use super::{Size, Trouble};
use crate::kube::objects::{Kind, name, object};

/// How many objects are made at once.
const AT_ONCE: usize = 16;
/// As many images as a kubelet reports.
const IMAGES: usize = 50;

/// A way to the API.
pub(crate) async fn client(kubeconfig: &Path) -> Result<Client, Trouble> {
    let file = Kubeconfig::read_from(kubeconfig)?;
    let config = Config::from_custom_kubeconfig(file, &KubeConfigOptions::default()).await?;
    Ok(Client::try_from(config)?)
}

/// Makes all nodes and Services.
pub(crate) async fn fill(client: &Client, size: Size) -> Result<(), Trouble> {
    let nodes = (0..size.nodes).map(|number| (Kind::Node, node(number)));
    let services = (0..size.services).map(|number| (Kind::Service, service(number)));
    let made = stream::iter(nodes.chain(services))
        .map(|(kind, body)| async move { post(client, kind, &body).await })
        .buffer_unordered(AT_ONCE);
    made.try_collect::<()>().await
}

/// Makes a Service that is ours to serve, and the last of all by name: who serves it has listed all others.
pub(crate) async fn add_ours(client: &Client, number: usize) -> Result<(), Trouble> {
    let name = json!({"metadata": {"name": ours(number)}});
    post(client, Kind::Service, &merged(object(Kind::Service, number), &name)).await
}

fn ours(number: usize) -> String {
    format!("zz-ours-{number}")
}

async fn post(client: &Client, kind: Kind, body: &Value) -> Result<(), Trouble> {
    let request = Request::post(kind.path()).header("content-type", "application/json");
    client.request::<Value>(request.body(body.to_string().into_bytes())?).await?;
    Ok(())
}

async fn get(client: &Client, path: &str) -> Result<Value, Trouble> {
    Ok(client.request(Request::get(path).body(Vec::new())?).await?)
}

/// Whether the Service that is ours has its address.
pub(crate) async fn is_served(client: &Client, number: usize) -> Result<bool, Trouble> {
    let service = get(client, &format!("{}/{}", Kind::Service.path(), ours(number))).await?;
    Ok(service.pointer("/status/loadBalancer/ingress/0").is_some())
}

/// How many nodes still wait to be initialised, and how many bytes a node has by now.
pub(crate) async fn uninitialised(client: &Client) -> Result<(usize, usize), Trouble> {
    let list = get(client, Kind::Node.path()).await?;
    let nodes = list.get("items").and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
    let waiting = nodes.iter().filter(|node| node.pointer("/spec/taints/0").is_some()).count();
    let bytes: usize = nodes.iter().map(|node| node.to_string().len()).sum();
    Ok((waiting, bytes / nodes.len().max(1)))
}

/// The settings of the cloud in memory: a machine for each node.
pub(crate) fn cloud_config(size: Size) -> String {
    let machines: Vec<_> = (0..size.nodes).map(|number| name(Kind::Node, number)).collect();
    json!({ "machines": machines }).to_string()
}

/// A node as a kubelet registers it that waits for its cloud: mostly images and conditions.
fn node(number: usize) -> Value {
    let image = |number: usize| {
        let (digest, tag) = (number.wrapping_mul(0x9e37_79b9), number % 7);
        json!({
            "names": [
                format!("registry.example/team-{tag}/app-{number}@sha256:{digest:064x}"),
                format!("registry.example/team-{tag}/app-{number}:v1.{tag}"),
            ],
            "sizeBytes": 12_345_678 + number,
        })
    };
    let taint = json!({"key": "node.cloudprovider.kubernetes.io/uninitialized", "value": "true", "effect": "NoSchedule"});
    let more = json!({
        "metadata": {
            "annotations": {
                "volumes.kubernetes.io/controller-managed-attach-detach": "true",
                "csi.volume.kubernetes.io/nodeid":
                    format!("{{\"csi.example\":\"00000000-0000-4000-8000-{number:012}\"}}"),
                "network.example/vxlan-mac": format!("02:00:00:00:{:02x}:{:02x}", number / 256 % 256, number % 256),
                "network.example/public-ip": format!("192.0.2.{}", number % 256),
            },
            "labels": {
                "node-role.kubernetes.io/worker": "",
                "pool.example/name": format!("pool-{}", number % 10),
                "storage.example/topology": "fast",
                // What the cloud tells is not there yet.
                "node.kubernetes.io/instance-type": null,
                "topology.kubernetes.io/region": null,
                "topology.kubernetes.io/zone": null,
            },
        },
        "spec": {"providerID": null, "taints": [taint]},
        "status": {"images": (0..IMAGES).map(image).collect::<Vec<_>>()},
    });
    merged(object(Kind::Node, number), &more)
}

/// A Service of another class, as `kubectl apply` writes it. Its load balancer is somebody else's, so that the memory
/// of a thousand simulated load balancers is not counted.
fn service(number: usize) -> Value {
    let class = json!({"spec": {"loadBalancerClass": "example.com/another"}});
    let service = merged(object(Kind::Service, number), &class);
    let applied = json!({"kubectl.kubernetes.io/last-applied-configuration": service.to_string()});
    merged(service, &json!({"metadata": {"annotations": applied}}))
}

fn merged(mut object: Value, more: &Value) -> Value {
    json_patch::merge(&mut object, more);
    object
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_node_has_about_ten_kilobytes() {
        let bytes = node(4_999).to_string().len();
        assert!((9_000..14_000).contains(&bytes), "{bytes}");
    }
}
