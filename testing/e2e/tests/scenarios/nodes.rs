//! Nodes join, and what becomes of them.

use std::time::Duration;

use cloudberth_e2e::{World, throughout};
use serde_json::json;

use crate::Outcome;
use crate::stage::{SOON, Stage, taints, text};

pub(crate) async fn a_node_goes_from_its_taint_to_its_labels(world: &World) -> Outcome {
    let stage = Stage::set(world, &["one", "two"]).await?;
    let manager = stage.leader(&[]).await?;
    stage.join("one", json!({})).await?;
    let node = stage.initialised("one").await?;
    assert_eq!(text(&node, "/spec/providerID"), stage.cloud.provider_id("one"));
    for (label, value) in stage.cloud.labels("one") {
        assert_eq!(node["metadata"]["labels"][label], json!(value), "{label}");
    }
    let addresses = node["status"]["addresses"].as_array().unwrap();
    let internal = json!({ "type": "InternalIP", "address": stage.cloud.private_address("one") });
    assert!(addresses.contains(&internal), "{addresses:?}");
    stage.told("Node", "one", &["Synced: Node synced successfully"]).await?;
    assert_eq!(stage.writes(|row| row.name == "one").await?, ["patch nodes/status", "patch nodes"]);
    let shown = world.kubectl(&["describe", "node", "one"]).await?.stdout;
    let event = shown.lines().find(|line| line.contains("Synced")).unwrap_or_default();
    assert!(
        event.ends_with("Node synced successfully") && event.contains("cloud-node-controller"),
        "{shown}"
    );
    // One of the same name that comes later is another.
    world.delete("/api/v1/nodes/one").await?;
    stage.nodes_join(&["one"]).await?;
    stage.told("Node", "one", &["Synced: Node synced successfully"; 2]).await?;
    stage.close(&mut [manager]).await
}

pub(crate) async fn a_provider_id_that_the_kubelet_set_is_kept(world: &World) -> Outcome {
    let stage = Stage::set(world, &["one", "two"]).await?;
    // By the name that the manifests call it by, which says which cloud it is for.
    let mut manager = stage.manager_by_its_old_name().await?;
    manager.leads(SOON).await?;
    // Not the name of its instance: the id alone says which one it is.
    let id = stage.cloud.provider_id("two");
    stage.join("known-by-its-id", json!({ "spec": { "providerID": id } })).await?;
    let node = stage.initialised("known-by-its-id").await?;
    assert_eq!(text(&node, "/spec/providerID"), id);
    for (label, value) in stage.cloud.labels("two") {
        assert_eq!(node["metadata"]["labels"][label], json!(value), "{label}");
    }
    stage.close(&mut [manager]).await
}

pub(crate) async fn a_node_of_another_cloud_is_left_alone(world: &World) -> Outcome {
    let stage = Stage::set(world, &["one", "two"]).await?;
    let id = "elsewhere://one";
    let foreign = stage.join("two", json!({ "spec": { "providerID": id } })).await?;
    let manager = stage.leader(&[]).await?;
    stage.join("one", json!({})).await?;
    // Whoever has initialised this one has seen the other too.
    stage.initialised("one").await?;
    throughout(Duration::from_secs(2), "the node of another cloud is as it was", async || {
        let now = stage.node("two").await.map_err(|why| why.to_string())?;
        if now["metadata"]["resourceVersion"] == foreign["metadata"]["resourceVersion"] {
            Ok(())
        } else {
            Err(now.to_string())
        }
    })
    .await?;
    assert_eq!(taints(&stage.node("two").await?), taints(&foreign));
    stage.told("Node", "two", &[]).await?;
    stage.close(&mut [manager]).await
}
