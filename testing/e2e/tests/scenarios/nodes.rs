//! Nodes that join the cluster.

use std::time::Duration;

use cloudberth_e2e::{Cluster, throughout};
use serde_json::json;

use crate::Outcome;
use crate::fixture::{Fixture, SOON, taints, text};
use crate::simulated_cloud::SimulatedCloud as _;

pub(crate) async fn a_node_goes_from_its_taint_to_its_labels(cluster: &Cluster) -> Outcome {
    let fixture = Fixture::new(cluster, &["one", "two"]).await?;
    let manager = fixture.leader(&[]).await?;
    fixture.join("one", json!({})).await?;
    let node = fixture.initialised("one").await?;
    assert_eq!(text(&node, "/spec/providerID"), fixture.cloud.provider_id("one"));
    for (label, value) in fixture.cloud.labels("one") {
        assert_eq!(node["metadata"]["labels"][label], json!(value), "{label}");
    }
    let addresses = node["status"]["addresses"].as_array().unwrap();
    let internal = json!({ "type": "InternalIP", "address": fixture.cloud.private_address("one") });
    assert!(addresses.contains(&internal), "{addresses:?}");
    fixture.has_events("Node", "one", &["Synced: Node synced successfully"]).await?;
    assert_eq!(fixture.writes(|row| row.name == "one").await?, ["patch nodes/status", "patch nodes"]);
    let shown = cluster.kubectl(&["describe", "node", "one"]).await?.stdout;
    let event = shown.lines().find(|line| line.contains("Synced")).unwrap_or_default();
    assert!(
        event.ends_with("Node synced successfully") && event.contains("cloud-node-controller"),
        "{shown}"
    );
    // A later node of the same name is another node.
    cluster.delete("/api/v1/nodes/one").await?;
    fixture.nodes_join(&["one"]).await?;
    fixture.has_events("Node", "one", &["Synced: Node synced successfully"; 2]).await?;
    fixture.close(&mut [manager]).await
}

pub(crate) async fn a_provider_id_that_the_kubelet_set_is_kept(cluster: &Cluster) -> Outcome {
    let fixture = Fixture::new(cluster, &["one", "two"]).await?;
    // Under the name of the replaced program, which says which cloud it is for.
    let mut manager = fixture.manager_by_its_old_name().await?;
    manager.leads(SOON).await?;
    // Its name is not that of its instance: the provider id alone identifies it.
    let id = fixture.cloud.provider_id("two");
    fixture.join("known-by-its-id", json!({ "spec": { "providerID": id } })).await?;
    let node = fixture.initialised("known-by-its-id").await?;
    assert_eq!(text(&node, "/spec/providerID"), id);
    for (label, value) in fixture.cloud.labels("two") {
        assert_eq!(node["metadata"]["labels"][label], json!(value), "{label}");
    }
    fixture.close(&mut [manager]).await
}

pub(crate) async fn a_node_of_another_cloud_is_left_alone(cluster: &Cluster) -> Outcome {
    let fixture = Fixture::new(cluster, &["one", "two"]).await?;
    let id = "elsewhere://one";
    let foreign = fixture.join("two", json!({ "spec": { "providerID": id } })).await?;
    let manager = fixture.leader(&[]).await?;
    fixture.join("one", json!({})).await?;
    // When this one is initialised, the manager has seen the other too.
    fixture.initialised("one").await?;
    throughout(Duration::from_secs(2), "the node of another cloud is as it was", async || {
        let now = fixture.node("two").await.map_err(|why| why.to_string())?;
        if now["metadata"]["resourceVersion"] == foreign["metadata"]["resourceVersion"] {
            Ok(())
        } else {
            Err(now.to_string())
        }
    })
    .await?;
    assert_eq!(taints(&fixture.node("two").await?), taints(&foreign));
    fixture.has_events("Node", "two", &[]).await?;
    fixture.close(&mut [manager]).await
}
