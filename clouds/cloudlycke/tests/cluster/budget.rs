//! What everything costs, in calls.

use cloudberth_core::decide::node::taints::UNINITIALISED;
use serde_json::json;
use testing_kit::checks::CloudFixture;

use crate::{seeded::ports, under_test::Lycke};

type Fixture = CloudFixture<Lycke>;

#[tokio::test(start_paused = true)]
async fn a_hundred_nodes_are_initialised_from_one_listing() {
    let mut fixture = Fixture::looking_again(None);
    fixture.killer().abort();
    for number in 0..100 {
        let name = format!("node-{number:03}");
        fixture.cloud.add_machine("c2", &name, &json!({}));
        fixture.join(&name).await;
    }
    fixture.restart();
    fixture.pass(30).await;
    let tally = fixture.cloud.tally();
    println!("initialise 100 nodes: {tally:?}");
    for number in 0..100 {
        let node = fixture.cluster.node(&format!("node-{number:03}")).await.unwrap();
        assert!(!node.has_taint(UNINITIALISED), "CL-20");
    }
    assert!(tally.calls <= 1, "CL-20 L7-1801 {tally:?}");
    fixture.cloud.front.clear_journal();
    let kube = fixture.kube_calls();
    fixture.pass(3_600).await;
    let tally = fixture.cloud.tally();
    println!("100 nodes for an hour: {tally:?}");
    assert!(tally.calls <= 60, "L7-1802 {tally:?}");
    assert_eq!(fixture.cluster.writes(kube), [], "L4-1806");
}

#[tokio::test(start_paused = true)]
async fn nodes_that_no_machine_is_called_like_share_a_listing() {
    let fixture = Fixture::looking_again(None);
    fixture.node("node-1").await;
    fixture.pass(10).await;
    fixture.cloud.front.clear_journal();
    for number in 0..100 {
        fixture.join(&format!("stray-{number:02}")).await;
    }
    fixture.pass(30).await;
    let tally = fixture.cloud.tally();
    println!("100 nodes without machines: {tally:?}");
    assert!(tally.calls <= 12, "L7-1807 {tally:?}");
    let told = fixture.cluster.events("stray-99").join("\n");
    assert!(told.contains("is not in the inventory"), "L7-1807 {told}");
}

#[tokio::test(start_paused = true)]
async fn a_load_balancer_costs_one_write_and_one_listing_for_all() {
    let fixture = Fixture::looking_again(None);
    for number in 1..=2 {
        fixture.node(&format!("node-{number}")).await;
    }
    fixture.pass(10).await;
    fixture.cloud.front.clear_journal();
    for number in 0..5 {
        fixture.create(&format!("web-{number}"), json!({})).await;
    }
    fixture.pass(30).await;
    let tally = fixture.cloud.tally();
    println!("create 5: {tally:?}");
    assert_eq!(tally.mutations, 5, "L7-1803 {tally:?}");
    assert!(tally.calls <= 5 + 1, "L7-1803 one listing for all: {tally:?}");
    fixture.cloud.front.clear_journal();
    fixture.edit("web-0", ports(&[443])).await;
    fixture.pass(30).await;
    let tally = fixture.cloud.tally();
    println!("update 1: {tally:?}");
    assert!(tally.mutations == 1 && tally.calls <= 2, "L7-1804 a shared listing and one PUT: {tally:?}");
    fixture.cloud.front.clear_journal();
    fixture.delete("web-0").await;
    fixture.pass(30).await;
    let tally = fixture.cloud.tally();
    println!("delete 1: {tally:?}");
    assert!(tally.mutations == 1 && tally.calls <= 2, "L7-1805 {tally:?}");
    fixture.cloud.front.clear_journal();
    fixture.edit("web-1", json!({"metadata": {"labels": {"edited": "yes"}}})).await;
    fixture.pass(30).await;
    let tally = fixture.cloud.tally();
    assert_eq!(tally.mutations, 0, "CL-33 L7-1806 {tally:?}");
}
