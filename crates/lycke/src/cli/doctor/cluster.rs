//! The cluster, as kubectl shows it.

use std::{path::Path, process::Stdio};

use serde_json::Value;
use tokio::process::Command;

use super::finding::Finding;
use crate::inventory::Inventory;

const EXCLUDE: &str = "node.kubernetes.io/exclude-from-external-load-balancers";
const UNINITIALIZED: &str = "node.cloudprovider.kubernetes.io/uninitialized";
/// What the parts of other load-balancer controllers are called, and how to be rid of them.
const OTHERS: &[(&str, &str, &str)] = &[
    ("svclb-", "k3s ServiceLB", "start k3s with --disable=servicelb"),
    ("metallb", "MetalLB", "give its Services and ours different load-balancer classes, or remove it"),
    ("cloud-provider-kind", "cloud-provider-kind", "stop it: both would work on the same Services"),
];

/// What was seen of a cluster.
#[derive(Debug)]
pub(super) struct Facts {
    nodes: Value,
    /// Deployments and `DaemonSets` of all namespaces.
    workloads: Value,
}

pub(super) async fn gather(kubeconfig: Option<&Path>) -> Result<Facts, String> {
    let nodes = kubectl(kubeconfig, &["get", "nodes"]).await?;
    let workloads = kubectl(kubeconfig, &["get", "daemonsets,deployments", "--all-namespaces"]).await?;
    Ok(Facts { nodes, workloads })
}

async fn kubectl(kubeconfig: Option<&Path>, arguments: &[&str]) -> Result<Value, String> {
    let mut command = Command::new("kubectl");
    if let Some(kubeconfig) = kubeconfig {
        command.arg("--kubeconfig").arg(kubeconfig);
    }
    command.args(arguments).args(["--output=json", "--request-timeout=10s"]);
    command.stdin(Stdio::null()).kill_on_drop(true);
    let output = command.output().await.map_err(|why| format!("kubectl: {why}"))?;
    if !output.status.success() {
        return Err(String::from_utf8_lossy(&output.stderr).trim().to_owned());
    }
    serde_json::from_slice(&output.stdout).map_err(|why| format!("kubectl: {why}"))
}

fn items(list: &Value) -> &[Value] {
    list.get("items").and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default()
}

fn text<'a>(object: &'a Value, path: &str) -> &'a str {
    object.pointer(path).and_then(Value::as_str).unwrap_or_default()
}

fn name(object: &Value) -> &str {
    text(object, "/metadata/name")
}

impl Facts {
    pub(super) fn judge(&self, key: &str, inventory: &Inventory) -> Vec<Finding> {
        let nodes = items(&self.nodes);
        let mut findings = vec![Finding::ok("API server", format!("it answers, with {} nodes", nodes.len()))];
        findings.extend(nodes.iter().filter_map(|node| judge_id(node, key, inventory)));
        findings.extend(judge_exclusion(nodes));
        findings.extend(self.judge_others());
        findings
    }

    fn judge_others(&self) -> impl Iterator<Item = Finding> {
        OTHERS.iter().filter_map(|(part, who, remedy)| {
            let found = items(&self.workloads).iter().find(|workload| {
                name(workload).contains(part) || text(workload, "/metadata/namespace").contains(part)
            })?;
            let where_it_is = format!("{}/{}", text(found, "/metadata/namespace"), name(found));
            let found = format!("{who} works here too ({where_it_is})");
            Some(Finding::warning("other load balancers", found, &[remedy]))
        })
    }
}

/// Whether a node and its machine know each other.
fn judge_id(node: &Value, key: &str, inventory: &Inventory) -> Option<Finding> {
    let (node_name, id) = (name(node), text(node, "/spec/providerID"));
    let machine =
        inventory.machines.values().find(|machine| machine.cluster == key && machine.name == node_name);
    let Some(machine) = machine else {
        let found = format!("node {node_name} is not in the inventory of cluster {key}");
        return Some(Finding::warning("nodes", found, &["add a machine with this name"]));
    };
    let want = machine.node_provider_id.clone().unwrap_or_else(|| format!("cloudlycke://{}", machine.id));
    if id == want {
        return None;
    }
    if id.is_empty() {
        let taints = node.pointer("/spec/taints").and_then(Value::as_array);
        let waits =
            taints.is_some_and(|taints| taints.iter().any(|taint| text(taint, "/key") == UNINITIALIZED));
        let found = format!("node {node_name} has no provider id and does not wait for one");
        return (!waits).then(|| {
            Finding::warning("kubelets", found, &["start its kubelet with --cloud-provider=external"])
        });
    }
    let found = format!("node {node_name} has the provider id {id}, and its machine would have {want}");
    let remedy = if id.starts_with("cloudlycke://") {
        "start its kubelet with the --provider-id of its machine, or mend the id in the inventory".to_owned()
    } else {
        format!("the node belongs to another program; say nodeProviderID: {id} at its machine")
    };
    Some(Finding::problem("provider ids", found, remedy))
}

/// A cluster whose only nodes are excluded has no backend at all.
fn judge_exclusion(nodes: &[Value]) -> Option<Finding> {
    let is_excluded =
        |node: &&Value| node.pointer("/metadata/labels").and_then(|labels| labels.get(EXCLUDE)).is_some();
    let excluded: Vec<_> = nodes.iter().filter(is_excluded).map(name).collect();
    (!nodes.is_empty() && excluded.len() == nodes.len()).then(|| {
        let nodes = excluded.join(" ");
        Finding::problem(
            "exclude label",
            format!("every node has the label {EXCLUDE}, so load balancers have no backend"),
            format!("kubectl label node {nodes} {EXCLUDE}-"),
        )
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::inventory::{self, Demo};

    fn node(name: &str, id: &str) -> Value {
        json!({"metadata": {"name": name, "labels": {}}, "spec": {"providerID": id}})
    }

    fn judge(nodes: &[Value], workloads: &[Value]) -> Vec<String> {
        let text = Demo { clusters: 2, workers: 1, loopback: false }.inventory().unwrap();
        let text = text
            .replace("internal: [192.168.20.10]", "nodeProviderID: kind://x/y, internal: [192.168.20.10]");
        let inventory = inventory::read(&text, "inv.yaml".as_ref()).unwrap();
        let facts = Facts { nodes: json!({"items": nodes}), workloads: json!({"items": workloads}) };
        let found = facts.judge("c2", &inventory);
        found
            .into_iter()
            .skip(1)
            .map(|finding| format!("{} -> {}", finding.found, finding.remedies.join("; ")))
            .collect()
    }

    #[test]
    fn a_single_node_with_the_exclude_label_is_named_with_its_remedy() {
        let mut only = node("node-c2-1", "cloudlycke://n-c2-1");
        only["metadata"]["labels"][EXCLUDE] = json!("");
        let found = judge(&[only.clone()], &[]);
        assert_eq!(found.len(), 1, "CL-75 {found:?}");
        assert!(found[0].contains(EXCLUDE), "CL-75 {found:?}");
        assert!(found[0].ends_with(&format!("kubectl label node node-c2-1 {EXCLUDE}-")), "CL-75 {found:?}");
        assert!(
            judge(&[only, node("master-c2-1", "kind://x/y")], &[]).is_empty(),
            "CL-75 another node is enough"
        );
    }

    #[test]
    fn nodes_and_machines_have_to_know_each_other() {
        let table = [
            (node("node-c2-1", "cloudlycke://n-c2-1"), None),
            (node("master-c2-1", "kind://x/y"), None),
            (node("node-c2-1", "cloudlycke://other"), Some("--provider-id")),
            (node("node-c2-1", "kind://a/b"), Some("nodeProviderID: kind://a/b")),
            (node("node-c1-1", "cloudlycke://n-c1-1"), Some("not in the inventory of cluster c2")),
            (node("node-c2-1", ""), Some("--cloud-provider=external")),
            (json!({"metadata": {"name": "node-c2-1"}, "spec": {"taints": [{"key": UNINITIALIZED}]}}), None),
        ];
        for (node, want) in table {
            let found = judge(std::slice::from_ref(&node), &[]);
            match want {
                None => assert_eq!(found, Vec::<String>::new(), "{node}"),
                Some(want) => assert!(found.len() == 1 && found[0].contains(want), "{node}: {found:?}"),
            }
        }
    }

    #[test]
    fn other_controllers_are_named() {
        let workload =
            |namespace: &str, name: &str| json!({"metadata": {"namespace": namespace, "name": name}});
        let found = judge(
            &[],
            &[
                workload("kube-system", "svclb-traefik-1"),
                workload("metallb-system", "controller"),
                workload("default", "web"),
            ],
        );
        assert_eq!(found.len(), 2, "{found:?}");
        assert!(found[0].starts_with("k3s ServiceLB works here too (kube-system/svclb-traefik-1)"));
        assert!(found[1].starts_with("MetalLB"));
    }
}
