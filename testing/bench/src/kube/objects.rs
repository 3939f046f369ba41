//! Nodes and Services of the size that clusters have.

use serde_json::{Value, json};

/// What is watched and patched.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Node,
    Service,
}

impl Kind {
    /// Where they are listed and made.
    pub(crate) fn path(self) -> &'static str {
        match self {
            Self::Node => "/api/v1/nodes",
            Self::Service => "/api/v1/namespaces/default/services",
        }
    }

    /// The path of one of them.
    pub(crate) fn path_of(self, number: usize) -> String {
        format!("{}/{}", self.path(), name(self, number))
    }
}

/// What one of them is called.
pub(crate) fn name(kind: Kind, number: usize) -> String {
    match kind {
        Kind::Node => format!("node-{number:05}"),
        Kind::Service => format!("service-{number:05}"),
    }
}

/// An object as its maker would send it.
pub(crate) fn object(kind: Kind, number: usize) -> Value {
    match kind {
        Kind::Node => node(number),
        Kind::Service => service(number),
    }
}

fn node(number: usize) -> Value {
    let name = name(Kind::Node, number);
    let (high, low) = (number / 250 % 250, number % 250);
    let condition = |kind: &str, status: &str, why: &str| {
        json!({
            "type": kind, "status": status, "reason": why, "message": format!("kubelet has {why}"),
            "lastHeartbeatTime": "2024-01-01T00:00:00Z", "lastTransitionTime": "2024-01-01T00:00:00Z",
        })
    };
    let room = json!({
        "cpu": "8", "memory": "32778544Ki", "pods": "110", "ephemeral-storage": "101430960Ki", "hugepages-2Mi": "0",
    });
    json!({
        "apiVersion": "v1", "kind": "Node",
        "metadata": {
            "name": name,
            "labels": {
                "kubernetes.io/hostname": name, "kubernetes.io/os": "linux", "kubernetes.io/arch": "amd64",
                "node.kubernetes.io/instance-type": "flex-8-4", "topology.kubernetes.io/region": "rma",
                "topology.kubernetes.io/zone": "rma1",
            },
            "annotations": {"node.alpha.kubernetes.io/ttl": "0"},
        },
        "spec": {
            "providerID": format!("cloudscale://00000000-0000-4000-8000-{number:012}"),
            "podCIDR": format!("10.{high}.{low}.0/24"),
        },
        "status": {
            "addresses": [
                {"type": "Hostname", "address": name},
                {"type": "InternalIP", "address": format!("192.168.{high}.{low}")},
            ],
            "capacity": room, "allocatable": room,
            "conditions": [
                condition("MemoryPressure", "False", "KubeletHasSufficientMemory"),
                condition("DiskPressure", "False", "KubeletHasNoDiskPressure"),
                condition("PIDPressure", "False", "KubeletHasSufficientPID"),
                condition("Ready", "True", "KubeletReady"),
            ],
            "nodeInfo": {
                "architecture": "amd64", "operatingSystem": "linux", "osImage": "Debian GNU/Linux 13",
                "kernelVersion": "6.12.0", "kubeletVersion": "v1.37.1", "kubeProxyVersion": "",
                "containerRuntimeVersion": "containerd://2.1.0", "machineID": format!("{number:032x}"),
                "systemUUID": format!("{number:032x}"), "bootID": format!("{number:032x}"),
            },
        },
    })
}

fn service(number: usize) -> Value {
    let name = name(Kind::Service, number);
    json!({
        "apiVersion": "v1", "kind": "Service",
        "metadata": {
            "name": name, "labels": {"app": name},
            "annotations": {"k8s.cloudscale.ch/loadbalancer-name": format!("balancer-{number}")},
        },
        "spec": {
            "type": "LoadBalancer", "selector": {"app": name},
            "ports": [
                {"name": "http", "port": 80, "targetPort": 8080}, {"name": "https", "port": 443, "targetPort": 8443},
            ],
        },
    })
}
