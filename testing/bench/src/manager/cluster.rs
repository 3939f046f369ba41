//! The cluster that the program is started on.

use futures_util::{StreamExt, TryStreamExt, stream};
use serde_json::{Value, json};

use super::Size;
use crate::kube::objects::{Kind, name, object};
use crate::programs::{BenchError, Environment, UNINITIALISED};

/// How many objects are made at once.
const AT_ONCE: usize = 16;
/// As many images as a kubelet reports.
const IMAGES: usize = 50;

/// Makes all nodes, each with its server, and all Services.
pub(crate) async fn fill(env: &Environment, cluster: Size) -> Result<(), BenchError> {
    for number in 0..cluster.nodes {
        env.cloud.add_server(&name(Kind::Node, number), "rma1");
    }
    let nodes = (0..cluster.nodes).map(|number| (Kind::Node, node(number)));
    let services = (0..cluster.services).map(|number| (Kind::Service, service(number)));
    let made = stream::iter(nodes.chain(services))
        .map(|(kind, body)| async move { env.post(kind, &body).await })
        .buffer_unordered(AT_ONCE);
    made.try_collect::<()>().await
}

/// Makes a Service that is ours to serve, and the last of all by name: when it is served, all others have been listed.
/// One node takes its traffic, so that a load balancer with thousands of members is not measured too.
pub(crate) async fn add_ours(env: &Environment, number: usize) -> Result<String, BenchError> {
    let ours = format!("zz-ours-{number}");
    let selector = format!("kubernetes.io/hostname={}", name(Kind::Node, 0));
    let annotations = json!({"k8s.cloudscale.ch/loadbalancer-node-selector": selector});
    let more = json!({"metadata": {"name": ours, "annotations": annotations}});
    env.post(Kind::Service, &merged(object(Kind::Service, number), &more)).await?;
    Ok(ours)
}

/// An uninitialised node as a kubelet registers it: mostly images and conditions.
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
    let taint = json!({"key": UNINITIALISED, "value": "true", "effect": "NoSchedule"});
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
                // The fields that come from the cloud are not set yet.
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

/// A Service of another class, as `kubectl apply` writes it. We only watch it, and that is what is measured.
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
