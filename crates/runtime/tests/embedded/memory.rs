//! How much of an object stays.

use std::sync::Arc;

use cloudberth_core::{ObjectKey, Random};
use serde_json::{Value, json};

use crate::fixture::Fixture;

/// A node as a kubelet writes it: mostly images and conditions.
fn node() -> Value {
    let image = |n: usize| {
        let digest = format!("registry.example/team/app-{n}@sha256:{}", "0123456789abcdef".repeat(4));
        json!({"names": [digest, format!("registry.example/team/app-{n}:v1.{n}")], "sizeBytes": 123_456_789})
    };
    let condition = |kind: &str| {
        json!({"type": kind, "status": "False", "reason": format!("KubeletHas{kind}"),
            "message": "the kubelet has looked and found what it hoped to find",
            "lastHeartbeatTime": "2026-01-01T00:00:00Z", "lastTransitionTime": "2026-01-01T00:00:00Z"})
    };
    let conditions = ["MemoryPressure", "DiskPressure", "PIDPressure", "Ready"].map(condition);
    json!({
        "apiVersion": "v1", "kind": "Node",
        "metadata": {
            "name": "n1",
            "labels": {"kubernetes.io/arch": "amd64", "kubernetes.io/os": "linux", "kubernetes.io/hostname": "n1",
                "node.kubernetes.io/instance-type": "flex-4", "topology.kubernetes.io/zone": "rma1"},
            "annotations": {"volumes.kubernetes.io/controller-managed-attach-detach": "true"},
        },
        "spec": {"podCIDR": "10.0.1.0/24", "podCIDRs": ["10.0.1.0/24"], "providerID": "cloudscale://1234"},
        "status": {
            "addresses": [{"type": "InternalIP", "address": "10.1.0.5"}, {"type": "Hostname", "address": "n1"}],
            "conditions": conditions,
            "images": (0..60).map(image).collect::<Vec<_>>(),
        },
    })
}

/// A Service as `kubectl apply` writes it: its text once more, and who wrote which field.
fn service() -> Value {
    let applied = json!({"spec": {"ports": [{"port": 80}]}, "comment": "x".repeat(10_000)}).to_string();
    json!({
        "apiVersion": "v1", "kind": "Service",
        "metadata": {"name": "web", "labels": {"app": "web"}, "annotations": {
            "kubectl.kubernetes.io/last-applied-configuration": applied, "k8s.cloudscale.ch/flavor": "lb-standard"}},
        "spec": {"type": "LoadBalancer", "ports": [{"name": "http", "port": 80}, {"name": "https", "port": 443}],
            "selector": {"app": "web"}},
    })
}

#[tokio::test(start_paused = true)]
async fn of_ten_kilobytes_less_than_two_stay() {
    let fixture = Fixture::new();
    let (client, random) = (fixture.client.clone(), Arc::new(Random::seeded(1)));
    let sent = [
        fixture.send("POST", "/api/v1/nodes", Some(node())).await,
        fixture.send("POST", "/api/v1/namespaces/default/services", Some(service())).await,
    ];
    let (nodes, services) = (Arc::clone(&fixture.cluster.nodes), Arc::clone(&fixture.cluster.services));
    let watching = tokio::time::timeout(std::time::Duration::from_secs(2), async {
        tokio::join!(nodes.run(client.clone(), Arc::clone(&random)), services.run(client.clone(), random));
    });
    assert!(watching.await.is_err(), "watching never ends");
    // Every byte that is kept is part of this text, and the names of the fields on top.
    let node = format!("{:?}", nodes.get(&"n1".to_owned()).unwrap());
    let service = format!("{:?}", services.get(&ObjectKey::new("default", "web")).unwrap());
    for (before, after, mark) in [(&sent[0], node, "cloudscale://1234"), (&sent[1], service, "lb-standard")] {
        let before = before.to_string().len();
        assert!(before > 10_000, "{before}");
        assert!(after.len() < 2_000, "{} bytes of {before}: {after}", after.len());
        assert!(after.contains(mark), "what is used is kept: {after}");
    }
}
