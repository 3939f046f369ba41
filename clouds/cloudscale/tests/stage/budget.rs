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
async fn an_instance_joins_whose_node_nobody_has_claimed_yet() {
    let scene = settled().await;
    scene.cloud.add_server("fresh", "rma1");
    scene.join("fresh").await;
    scene.pass(30).await;
    let tally = scene.tally();
    println!("join with initialisation: {tally:?}");
    assert_eq!(tally.mutations, 1, "CS-160 {tally:?}");
    assert!(tally.calls <= 8, "CS-160 {tally:?}");
    assert_eq!(scene.shape("web").await[0].1.len(), 11);
}

#[tokio::test(start_paused = true)]
async fn a_node_leaves() {
    let scene = settled().await;
    scene.stage.delete(&scene.stage.nodes(), "node-03").await;
    scene.pass(30).await;
    let tally = scene.tally();
    println!("leave: {tally:?}");
    assert_eq!(tally.mutations, 1, "CS-160 {tally:?}");
    assert!(tally.calls <= 8, "CS-160 {tally:?}");
    assert_eq!(scene.shape("web").await[0].1.len(), 9);
}

#[tokio::test(start_paused = true)]
async fn nothing_to_do_after_a_restart() {
    let mut scene = settled().await;
    scene.restart();
    scene.pass(30).await;
    let tally = scene.tally();
    println!("restart: {tally:?}");
    assert_eq!(tally.mutations, 0, "CS-160 L4-801 {tally:?}");
    assert!(tally.calls <= 8, "CS-160 {tally:?}");
}

#[tokio::test(start_paused = true)]
async fn a_thousand_nodes_are_initialised_from_two_listings() {
    let scene = Scene::new();
    for number in 0..1_000 {
        let name = format!("node-{number:04}");
        scene.cloud.add_server(&name, "rma1");
        scene.join(&name).await;
    }
    scene.pass(60).await;
    let tally = scene.tally();
    println!("1,000 nodes: {tally:?}");
    assert!(tally.calls <= 2, "L7-806 {tally:?}");
    let nodes = scene.stage.nodes().list(&kube::api::ListParams::default()).await.unwrap();
    let tainted = |node: &kube::api::DynamicObject| {
        let taints = node.data["spec"]["taints"].as_array().cloned().unwrap_or_default();
        taints.iter().any(|taint| taint["key"] == "node.cloudprovider.kubernetes.io/uninitialized")
    };
    assert_eq!(nodes.items.len(), 1_000);
    assert_eq!(nodes.items.iter().filter(|node| tainted(node)).count(), 0, "CS-26");
}

#[tokio::test(start_paused = true)]
async fn a_large_cluster_at_rest_asks_next_to_nothing() {
    let scene = Scene::new();
    scene.nodes(1_000).await;
    for number in 1..=10 {
        let label = json!({"metadata": {"labels": {"pick": "me"}}});
        scene.stage.merge(&scene.stage.nodes(), &format!("node-{number:02}"), label).await;
    }
    for number in 0..50 {
        // Ten nodes each, so that the test is done before tea.
        let picked = annotated(&[("node-selector", json!("pick=me"))]);
        scene.create(&format!("web-{number:02}"), picked).await;
    }
    scene.pass(120).await;
    assert_eq!(scene.cloud.balancers().len(), 50);
    assert_eq!(scene.cloud.members().len(), 500);
    scene.cloud.clear_journal();
    let kube = scene.kube_calls();
    scene.pass(600).await;
    let tally = scene.tally();
    println!("1,000 nodes and 50 load balancers, 10 minutes: {tally:?}");
    assert!(tally.calls <= 12, "L7-807 {tally:?}");
    assert_eq!(tally.mutations, 0, "L4-802 {tally:?}");
    assert_eq!(scene.stage.writes(kube), [], "L4-803");
}

#[tokio::test(start_paused = true)]
async fn fifty_services_at_once_are_all_addressed_in_time() {
    let scene = Scene::new();
    scene.nodes(10).await;
    scene.pass(10).await;
    scene.cloud.clear_journal();
    let start = scene.stage.clock.now();
    let names: Vec<_> = (0..50).map(|number| format!("web-{number:02}")).collect();
    for name in &names {
        scene.create(name, json!({})).await;
    }
    for name in &names {
        scene.addressed(name, Duration::from_secs(60)).await;
    }
    let took = scene.stage.clock.now().since(start);
    scene.pass(30).await;
    println!("50 Services: {took:?}, {:?}", scene.tally());
    assert!(took <= Duration::from_secs(12), "{took:?}");
    assert_eq!(scene.tally().mutations, 50 * 14);
    for name in &names {
        assert_eq!(scene.shape(name).await[0].1.len(), 10, "{name}");
    }
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
