//! What everything costs, in calls.

use binarylane_sim::Cloud;
use serde_json::json;

use crate::fixture::{Fixture, Setup};

async fn uninitialised(fixture: &Fixture) -> usize {
    let nodes = fixture.cluster.nodes().list(&kube::api::ListParams::default()).await.unwrap();
    let tainted = |node: &kube::api::DynamicObject| {
        let taints = node.data["spec"]["taints"].as_array().cloned().unwrap_or_default();
        taints.iter().any(|taint| taint["key"] == "node.cloudprovider.kubernetes.io/uninitialized")
    };
    nodes.items.iter().filter(|node| tainted(node)).count()
}

#[tokio::test(start_paused = true)]
async fn a_thousand_nodes_are_initialised_from_five_pages_and_rest_cheaply() {
    let fixture = Fixture::new();
    for number in 0..1_000 {
        let name = format!("node-{number:04}");
        fixture.cloud.add_server(&name, "bne");
    }
    fixture.killer().abort();
    let mut fixture = fixture;
    for number in 0..1_000 {
        fixture.join(&format!("node-{number:04}"), json!({})).await;
    }
    fixture.cloud.clear_journal();
    fixture.restart();
    fixture.pass(45).await;
    let tally = fixture.tally();
    println!("initialise 1,000 nodes: {tally:?}");
    assert_eq!(uninitialised(&fixture).await, 0, "BL-40");
    assert!(tally.calls <= 5, "BL-40 L7-1600 {tally:?}");
    fixture.cloud.clear_journal();
    let kube = fixture.kube_calls();
    fixture.pass(3_600).await;
    let tally = fixture.tally();
    println!("1,000 nodes for an hour: {tally:?}");
    assert!(tally.calls <= 60, "BL-41 L7-1601 {tally:?}");
    assert_eq!(fixture.cluster.writes(kube), [], "L4-1603");
}

#[tokio::test(start_paused = true)]
async fn a_load_balancer_costs_five_calls() {
    let fixture = Fixture::with_nodes().await;
    fixture.create("web", json!({})).await;
    fixture.pass(60).await;
    let tally = fixture.tally();
    println!("create: {tally:?}");
    assert_eq!(fixture.ingress("web").await.len(), 1);
    assert!(tally.calls <= 5, "L7-1602 {tally:?}");
}

#[tokio::test(start_paused = true)]
async fn a_node_costs_two_calls_for_each_load_balancer() {
    let fixture = Fixture::with_nodes().await;
    for number in 0..5 {
        fixture.create(&format!("web-{number}"), json!({})).await;
    }
    fixture.pass(60).await;
    fixture.cloud.clear_journal();
    fixture.node("node-03").await;
    fixture.pass(60).await;
    let tally = fixture.tally();
    println!("a node for five load balancers: {tally:?}");
    assert_eq!(tally.mutations, 5, "{tally:?}");
    assert!(tally.calls <= 10, "BL-87 L7-1603 {tally:?}");
}

#[tokio::test(start_paused = true)]
async fn a_hundred_routes_cost_three_calls() {
    let fixture = Fixture::with(Setup { routes: true, ..Setup::default() }, |_| {});
    fixture.killer().abort();
    let mut fixture = fixture;
    let join = async |fixture: &Fixture, cloud: &Cloud, number: usize| {
        let name = format!("node-{number:03}");
        let id = cloud.add_server(&name, "bne").id;
        let cidr = format!("10.244.{number}.0/24");
        let spec = json!({"providerID": format!("binarylane://{id}"), "podCIDR": cidr, "podCIDRs": [cidr]});
        fixture.cluster.create(&fixture.cluster.nodes(), "Node", &name, json!({"spec": spec})).await;
        fixture.cluster.set_ready(&name, true).await;
    };
    for number in 0..100 {
        join(&fixture, &fixture.cloud.clone(), number).await;
    }
    fixture.cloud.clear_journal();
    fixture.restart();
    fixture.pass(30).await;
    let tally = fixture.tally();
    println!("100 routes: {tally:?}");
    assert_eq!(fixture.routes().len(), 100, "BL-121");
    assert!(tally.count("vpcs.get") + tally.count("vpcs.patch") <= 3, "L7-1604 {tally:?}");
}
