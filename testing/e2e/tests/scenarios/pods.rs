//! What initialising and deleting nodes means for pods: in a real cluster with a scheduler, a controller manager and
//! kwok in place of kubelets.

use std::collections::BTreeSet;
use std::time::Duration;

use cloudberth_e2e::{Cluster, PodPrograms, eventually, throughout};
use serde_json::{Value, json};

use crate::fixture::{Fixture, UNINITIALISED, taints, text};
use crate::simulated_cloud::SimulatedCloud as _;
use crate::{Fallible, Outcome};

/// Three programs more than elsewhere share a busy machine, and the controller manager has its own pauses: a pod is
/// removed about a minute after its node.
pub(crate) const IN_TIME: Duration = Duration::from_mins(8);
const A_WHILE: Duration = Duration::from_secs(2);
const DEPLOYMENTS: &str = "/apis/apps/v1/namespaces/default/deployments";
const PODS: &str = "/api/v1/namespaces/default/pods";
const REPLICAS: usize = 3;

/// A Deployment called `web`, of three pods that spread over the nodes, also over those that have a taint.
fn web() -> Value {
    let spread = json!({ "maxSkew": 1, "topologyKey": "kubernetes.io/hostname",
        "whenUnsatisfiable": "DoNotSchedule", "labelSelector": { "matchLabels": { "app": "web" } } });
    json!({ "apiVersion": "apps/v1", "kind": "Deployment", "metadata": { "name": "web" },
        "spec": { "replicas": REPLICAS, "selector": { "matchLabels": { "app": "web" } },
            "template": { "metadata": { "labels": { "app": "web" } },
                "spec": { "topologySpreadConstraints": [spread],
                    "containers": [{ "name": "web", "image": "example.com/web" }] } } } })
}

/// A cluster that runs pods, with nodes that wait for their cloud and a Deployment.
pub(crate) struct Pods<'w> {
    pub(crate) fixture: Fixture<'w>,
    pub(crate) programs: PodPrograms,
}

impl<'w> Pods<'w> {
    pub(crate) async fn new(cluster: &'w Cluster, nodes: &[&str]) -> Fallible<Self> {
        let fixture = Fixture::new(cluster, nodes).await?;
        let mut programs = PodPrograms::start(cluster)?;
        for node in nodes {
            fixture.join(node, json!({})).await?;
            programs.start_kubelet(node)?;
        }
        cluster.create(DEPLOYMENTS, &web()).await?;
        Ok(Self { fixture, programs })
    }

    /// Waits until there are three pods that `so` accepts, and no others.
    async fn until(&self, what: &str, so: impl Fn(&Value) -> bool) -> Fallible<Vec<Value>> {
        Ok(eventually(IN_TIME, what, async || self.all(&so).await).await?)
    }

    async fn all(&self, so: impl Fn(&Value) -> bool) -> Result<Vec<Value>, String> {
        let listed = self.fixture.cluster.get(PODS).await.map_err(|why| why.to_string())?;
        let pods = listed["items"].as_array().cloned().unwrap_or_default();
        let brief =
            |pod: &Value| format!("{} {} {}", text(pod, "/metadata/name"), node_of(pod), pod["status"]);
        if pods.len() == REPLICAS && pods.iter().all(so) {
            return Ok(pods);
        }
        Err(pods.iter().map(brief).collect::<Vec<_>>().join("\n"))
    }

    /// Waits until all pods run.
    pub(crate) async fn run(&self) -> Fallible<Vec<Value>> {
        self.until("three pods are Running", is_running).await
    }
}

pub(crate) fn node_of(pod: &Value) -> &str {
    text(pod, "/spec/nodeName")
}

pub(crate) fn is_running(pod: &Value) -> bool {
    text(pod, "/status/phase") == "Running"
}

/// Whether the scheduler has looked at a pod and found that all nodes have taints.
pub(crate) fn has_no_place(pod: &Value) -> bool {
    let conditions = pod["status"]["conditions"].as_array().map_or(&[][..], Vec::as_slice);
    text(pod, "/status/phase") == "Pending"
        && node_of(pod).is_empty()
        && conditions.iter().any(|condition| {
            text(condition, "/reason") == "Unschedulable" && text(condition, "/message").contains("taint")
        })
}

pub(crate) fn is_ready(node: &Value) -> bool {
    let conditions = node["status"]["conditions"].as_array().map_or(&[][..], Vec::as_slice);
    conditions.iter().any(|one| text(one, "/type") == "Ready" && text(one, "/status") == "True")
}

pub(crate) async fn pods_run_once_their_nodes_are_initialised_and_leave_a_node_that_is_gone(
    cluster: &Cluster,
) -> Outcome {
    let nodes = ["one", "two"];
    let mut pods = Pods::new(cluster, &nodes).await?;
    for node in nodes {
        eventually(IN_TIME, &format!("node {node} waits for nothing but its cloud"), async || {
            let node = pods.fixture.node(node).await.map_err(|why| why.to_string())?;
            let waits = is_ready(&node) && taints(&node) == [UNINITIALISED];
            if waits { Ok(()) } else { Err(node.to_string()) }
        })
        .await?;
    }
    pods.until("three pods are Pending without a node", has_no_place).await?;
    let stay = async || pods.all(has_no_place).await.map(drop);
    throughout(A_WHILE, "the pods are Pending", stay).await?;

    let manager = pods.fixture.leader(&["--node-monitor-period=1s"]).await?;
    for node in nodes {
        let node_object = pods.fixture.initialised(node).await?;
        let address = pods.fixture.cloud.private_address(node);
        assert!(node_object["status"]["addresses"].to_string().contains(&address), "{node_object}");
    }
    let before = pods.run().await?;

    let (gone, other) = match node_of(&before[0]) {
        "one" => ("one", "two"),
        _ => ("two", "one"),
    };
    pods.programs.stop_kubelet(gone);
    pods.fixture.cloud.delete(gone);
    eventually(IN_TIME, "the node of a deleted instance is gone", async || {
        match pods.fixture.node(gone).await {
            Err(_) => Ok(()),
            Ok(node) => Err(node.to_string()),
        }
    })
    .await?;
    eventually(IN_TIME, "the deletion is told", async || {
        let events = pods.fixture.events("Node", gone).await.map_err(|why| why.to_string())?;
        let told = events.iter().any(|event| event.starts_with("DeletingNode: "));
        if told { Ok(()) } else { Err(format!("{events:#?}")) }
    })
    .await?;

    let moved = |pod: &Value| is_running(pod) && node_of(pod) == other;
    let after = pods.until("three pods are Running on the other node", moved).await?;
    let names = |pods: &[Value]| -> BTreeSet<String> {
        let there = pods.iter().filter(|pod| node_of(pod) == other);
        there.map(|pod| text(pod, "/metadata/name").to_owned()).collect()
    };
    assert!(!names(&before).is_empty(), "they were on both nodes");
    assert!(names(&after).is_superset(&names(&before)), "the pods of the other node stay where they are");

    pods.fixture.close(&mut [manager]).await?;
    pods.programs.end();
    Ok(())
}
