//! What everything costs, in calls and in time.

use std::time::Duration;

use serde_json::json;

use crate::fixture::{Fixture, annotated};

/// A settled cluster with ten nodes and one Service with one port.
async fn settled() -> Fixture {
    let fixture = Fixture::new();
    fixture.nodes(10).await;
    fixture.pass(10).await;
    fixture.create("web", json!({})).await;
    fixture.pass(30).await;
    fixture.cloud.clear_journal();
    fixture
}

#[tokio::test(start_paused = true)]
async fn a_load_balancer_is_created() {
    let fixture = Fixture::new();
    fixture.nodes(10).await;
    fixture.pass(10).await;
    fixture.cloud.clear_journal();
    fixture.create("web", json!({})).await;
    let took = fixture.addressed("web", Duration::from_secs(60)).await;
    fixture.pass(30).await;
    let tally = fixture.tally();
    println!("create: {took:?}, {tally:?}");
    assert_eq!(tally.mutations, 14, "CS-160 {tally:?}");
    assert!(tally.calls <= 21, "CS-160 {tally:?}");
    // The cloud takes one second, twelve mutations one after the other a quarter of another.
    assert!(took <= Duration::from_millis(1_500), "CS-160 {took:?}");
}

#[tokio::test(start_paused = true)]
async fn a_node_joins() {
    let fixture = settled().await;
    fixture.node("node-11").await;
    fixture.pass(30).await;
    let tally = fixture.tally();
    println!("join: {tally:?}");
    assert_eq!(tally.mutations, 1, "CS-160 {tally:?}");
    assert!(tally.calls <= 6, "CS-160 {tally:?}");
    assert_eq!(fixture.shape("web").await[0].1.len(), 11);
}

#[tokio::test(start_paused = true)]
async fn an_instance_joins_whose_node_nobody_has_claimed_yet() {
    let fixture = settled().await;
    fixture.cloud.add_server("fresh", "rma1");
    fixture.join("fresh").await;
    fixture.pass(30).await;
    let tally = fixture.tally();
    println!("join with initialisation: {tally:?}");
    assert_eq!(tally.mutations, 1, "CS-160 {tally:?}");
    assert!(tally.calls <= 6, "CS-160 {tally:?}");
    assert_eq!(fixture.shape("web").await[0].1.len(), 11);
}

#[tokio::test(start_paused = true)]
async fn a_node_leaves() {
    let fixture = settled().await;
    fixture.cluster.delete(&fixture.cluster.nodes(), "node-03").await;
    fixture.pass(30).await;
    let tally = fixture.tally();
    println!("leave: {tally:?}");
    assert_eq!(tally.mutations, 1, "CS-160 {tally:?}");
    assert!(tally.calls <= 6, "CS-160 {tally:?}");
    assert_eq!(fixture.shape("web").await[0].1.len(), 9);
}

#[tokio::test(start_paused = true)]
async fn nothing_to_do_after_a_restart() {
    let mut fixture = settled().await;
    fixture.restart();
    fixture.pass(30).await;
    let tally = fixture.tally();
    println!("restart: {tally:?}");
    assert_eq!(tally.mutations, 0, "CS-160 L4-801 {tally:?}");
    assert!(tally.calls <= 7, "CS-160 {tally:?}");
}

#[tokio::test(start_paused = true)]
async fn a_thousand_nodes_are_initialised_from_two_listings() {
    let fixture = Fixture::new();
    for number in 0..1_000 {
        let name = format!("node-{number:04}");
        fixture.cloud.add_server(&name, "rma1");
        fixture.join(&name).await;
    }
    fixture.pass(60).await;
    let tally = fixture.tally();
    println!("1,000 nodes: {tally:?}");
    assert!(tally.calls <= 2, "L7-806 {tally:?}");
    let nodes = fixture.cluster.nodes().list(&kube::api::ListParams::default()).await.unwrap();
    let tainted = |node: &kube::api::DynamicObject| {
        let taints = node.data["spec"]["taints"].as_array().cloned().unwrap_or_default();
        taints.iter().any(|taint| taint["key"] == "node.cloudprovider.kubernetes.io/uninitialized")
    };
    assert_eq!(nodes.items.len(), 1_000);
    assert_eq!(nodes.items.iter().filter(|node| tainted(node)).count(), 0, "CS-26");
}

/// The API cannot filter by name, so a look-up by name would be a listing for each of them.
#[tokio::test(start_paused = true)]
async fn nodes_that_no_server_is_called_like_share_a_listing() {
    let fixture = settled().await;
    for number in 0..100 {
        fixture.join(&format!("stray-{number:02}")).await;
    }
    fixture.pass(30).await;
    let tally = fixture.tally();
    println!("100 nodes without servers: {tally:?}");
    assert!(tally.calls <= 12, "L7-809 {tally:?}");
    for name in ["stray-00", "stray-99"] {
        let told = fixture.cluster.events(name);
        assert!(told.iter().any(|event| event.contains("CloudResourceNotFound")), "L7-809 {name}: {told:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_listing_of_ten_thousand_servers_is_not_too_long() {
    let fixture = Fixture::new();
    for number in 0..10_000 {
        fixture.cloud.add_server(&format!("other-{number}"), "rma1");
    }
    fixture.cloud.add_server("node-1", "rma1");
    fixture.join("node-1").await;
    fixture.pass(60).await;
    let node = fixture.cluster.node("node-1").await.unwrap();
    assert!(node.provider_id.is_some(), "L7-1601 {:?}", fixture.cluster.events("node-1"));
}

#[tokio::test(start_paused = true)]
async fn a_large_cluster_at_rest_asks_next_to_nothing() {
    let fixture = Fixture::new();
    fixture.nodes(1_000).await;
    for number in 1..=10 {
        let label = json!({"metadata": {"labels": {"pick": "me"}}});
        fixture.cluster.merge(&fixture.cluster.nodes(), &format!("node-{number:02}"), label).await;
    }
    for number in 0..50 {
        // Ten nodes each, so that the test is done before tea.
        let picked = annotated(&[("node-selector", json!("pick=me"))]);
        fixture.create(&format!("web-{number:02}"), picked).await;
    }
    fixture.pass(120).await;
    assert_eq!(fixture.cloud.balancers().len(), 50);
    assert_eq!(fixture.cloud.members().len(), 500);
    fixture.cloud.clear_journal();
    let kube = fixture.kube_calls();
    fixture.pass(600).await;
    let tally = fixture.tally();
    println!("1,000 nodes and 50 load balancers, 10 minutes: {tally:?}");
    assert!(tally.calls <= 12, "L7-807 {tally:?}");
    assert_eq!(tally.mutations, 0, "L4-802 {tally:?}");
    assert_eq!(fixture.cluster.writes(kube), [], "L4-803");
}

#[tokio::test(start_paused = true)]
async fn fifty_services_at_once_are_all_addressed_in_time() {
    let fixture = Fixture::new();
    fixture.nodes(10).await;
    fixture.pass(10).await;
    fixture.cloud.clear_journal();
    let start = fixture.cluster.clock.now();
    let names: Vec<_> = (0..50).map(|number| format!("web-{number:02}")).collect();
    for name in &names {
        fixture.create(name, json!({})).await;
    }
    for name in &names {
        fixture.addressed(name, Duration::from_secs(60)).await;
    }
    let took = fixture.cluster.clock.now().since(start);
    fixture.pass(30).await;
    println!("50 Services: {took:?}, {:?}", fixture.tally());
    assert!(took <= Duration::from_secs(12), "{took:?}");
    assert_eq!(fixture.tally().mutations, 50 * 14);
    for name in &names {
        assert_eq!(fixture.shape(name).await[0].1.len(), 10, "{name}");
    }
}

#[tokio::test(start_paused = true)]
async fn the_sources_change() {
    let fixture = settled().await;
    fixture.edit("web", annotated(&[("listener-allowed-cidrs", json!("[\"10.0.0.0/8\"]"))])).await;
    fixture.pass(30).await;
    let tally = fixture.tally();
    println!("sources: {tally:?}");
    assert_eq!(tally.mutations, 1, "CS-160 {tally:?}");
    assert!(tally.calls <= 6, "CS-160 {tally:?}");
}

#[tokio::test(start_paused = true)]
async fn a_port_changes() {
    let fixture = settled().await;
    let service = fixture.get("web").await;
    let node_port = service.ports[0].node_port;
    let ports = json!([{"port": 8080, "protocol": "TCP", "nodePort": node_port}]);
    fixture.edit("web", json!({"spec": {"ports": ports}})).await;
    fixture.pass(30).await;
    let tally = fixture.tally();
    println!("port: {tally:?}");
    assert_eq!(tally.mutations, 2, "CS-160 {tally:?}");
    assert!(tally.calls <= 6, "CS-160 {tally:?}");
    let open: Vec<_> = fixture.cloud.listeners().iter().map(|listener| listener.protocol_port).collect();
    assert_eq!(open, [8080]);
}

#[tokio::test(start_paused = true)]
async fn a_load_balancer_is_deleted() {
    let fixture = settled().await;
    fixture.delete("web").await;
    fixture.pass(30).await;
    let tally = fixture.tally();
    println!("delete: {tally:?}");
    assert_eq!(tally.mutations, 1, "CS-148 {tally:?}");
    assert!(tally.calls <= 7, "CS-160 {tally:?}");
    assert!(fixture.cluster.service("web").await.is_none());
    assert_eq!(fixture.cloud.balancers().len(), 0);
}
