//! What everything costs, in calls and in time.

use std::time::Duration;

use serde_json::json;

use crate::scene::{Scene, annotated};

/// A settled cluster with ten nodes and one Service with one port.
async fn settled() -> Scene {
    let scene = Scene::new();
    scene.nodes(10).await;
    scene.pass(10).await;
    scene.create("web", json!({})).await;
    scene.pass(30).await;
    scene.cloud.clear_journal();
    scene
}

#[tokio::test(start_paused = true)]
async fn a_load_balancer_is_created() {
    let scene = Scene::new();
    scene.nodes(10).await;
    scene.pass(10).await;
    scene.cloud.clear_journal();
    scene.create("web", json!({})).await;
    let took = scene.addressed("web", Duration::from_secs(60)).await;
    scene.pass(30).await;
    let tally = scene.tally();
    println!("create: {took:?}, {tally:?}");
    for entry in scene.cloud.journal() {
        println!("{:?} {} {} {:?}", entry.sent, entry.method, entry.path, entry.status);
    }
    assert_eq!(tally.mutations, 14, "CS-160 {tally:?}");
    assert!(tally.calls <= 26, "CS-160 {tally:?}");
    assert!(took <= Duration::from_millis(2_500), "{took:?}");
}

#[tokio::test(start_paused = true)]
async fn a_node_joins() {
    let scene = settled().await;
    scene.node("node-11").await;
    scene.pass(30).await;
    let tally = scene.tally();
    println!("join: {tally:?}");
    assert_eq!(tally.mutations, 1, "CS-160 {tally:?}");
    assert!(tally.calls <= 8, "CS-160 {tally:?}");
    assert_eq!(scene.shape("web").await[0].1.len(), 11);
}

#[tokio::test(start_paused = true)]
async fn the_sources_change() {
    let scene = settled().await;
    scene.edit("web", annotated(&[("listener-allowed-cidrs", json!("[\"10.0.0.0/8\"]"))])).await;
    scene.pass(30).await;
    let tally = scene.tally();
    println!("sources: {tally:?}");
    assert_eq!(tally.mutations, 1, "CS-160 {tally:?}");
    assert!(tally.calls <= 8, "CS-160 {tally:?}");
}

#[tokio::test(start_paused = true)]
async fn a_load_balancer_is_deleted() {
    let scene = settled().await;
    scene.delete("web").await;
    scene.pass(30).await;
    let tally = scene.tally();
    println!("delete: {tally:?}");
    assert_eq!(tally.mutations, 1, "CS-148 {tally:?}");
    assert!(tally.calls <= 8, "CS-160 {tally:?}");
    assert!(scene.stage.service("web").await.is_none());
    assert_eq!(scene.cloud.balancers().len(), 0);
}
