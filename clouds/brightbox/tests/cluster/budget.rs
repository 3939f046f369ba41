//! What everything costs, in calls.

use brightbox_sim::Entry;
use cloudberth_core::view::Ingress;
use serde_json::{Value, json};
use testing_kit::checks::CloudUnderTest;

use crate::under_test::{Fixture, annotated};

/// A settled cluster with nodes and one Service.
async fn settled(nodes: usize, more: Value) -> Fixture {
    let fixture = Fixture::with_nodes(nodes).await;
    fixture.pass(10).await;
    fixture.create("web", more).await;
    fixture.pass(60).await;
    assert!(!fixture.ingress("web").await.is_empty(), "{:?}", fixture.cluster.events("web"));
    fixture.cloud.cloud.clear_journal();
    fixture
}

fn is_listing(entry: &Entry) -> bool {
    entry.operation.split('.').nth(1) == Some("list")
}

/// Writes, and reads that are not listings for everybody.
fn count(calls: &[Entry]) -> (usize, usize) {
    let writes = calls.iter().filter(|entry| entry.mutation).count();
    let reads = calls.iter().filter(|entry| !entry.mutation && !is_listing(entry)).count();
    (writes, reads)
}

fn operations(calls: &[Entry]) -> Vec<&str> {
    calls.iter().map(|entry| entry.operation.as_str()).collect()
}

#[tokio::test(start_paused = true)]
async fn a_load_balancer_is_created() {
    for (case, more) in [("http", json!({})), ("tcp", annotated(&[("listener-protocol", "tcp")]))] {
        let fixture = Fixture::with_nodes(3).await;
        fixture.pass(10).await;
        fixture.cloud.cloud.clear_journal();
        fixture.create("web", more).await;
        let mut published: Vec<Ingress> = Vec::new();
        for _ in 0..600 {
            tokio::time::sleep(std::time::Duration::from_millis(10)).await;
            published = fixture.service("web").await.unwrap().ingress;
            if !published.is_empty() {
                break;
            }
        }
        let calls = fixture.cloud.calls();
        println!("create {case}: {:?}", operations(&calls));
        assert_eq!(published.len(), 2, "BB-136 {:?}", fixture.cluster.events("web"));
        assert_eq!(count(&calls), (7, 1), "BB-138 {case}: {:?}", operations(&calls));
        let listings = calls.iter().filter(|entry| is_listing(entry) && entry.operation != "servers.list");
        assert_eq!(listings.count(), 4, "BB-138 {case}: {:?}", operations(&calls));
        let writes: Vec<_> =
            calls.iter().filter(|entry| entry.mutation).map(|entry| entry.operation.as_str()).collect();
        let order = [
            "cloud_ips.create",
            "server_groups.create",
            "server_groups.add_servers",
            "firewall_policies.create",
            "firewall_rules.create",
            "load_balancers.create",
            "cloud_ips.map",
        ];
        assert_eq!(writes, order, "BB-138 {case}");
        fixture.pass(60).await;
        fixture.assert_quiet(300, "L4-1605 BB-140").await;
    }
}

#[tokio::test(start_paused = true)]
async fn nothing_to_do_costs_nothing() {
    for (case, more) in [
        ("http", json!({})),
        ("https", json!({"spec": {"ports": [{"name": "s", "port": 443, "protocol": "TCP"}]}})),
    ] {
        let fixture = settled(3, more).await;
        fixture.pass(600).await;
        let calls = fixture.cloud.calls();
        println!("no change {case}: {:?}", operations(&calls));
        assert_eq!(count(&calls), (0, 0), "BB-139 {case}: {:?}", operations(&calls));
    }
}

#[tokio::test(start_paused = true)]
async fn a_node_joins_and_leaves() {
    let fixture = settled(3, json!({})).await;
    fixture.node("node-4").await;
    fixture.pass(30).await;
    let calls = fixture.cloud.calls();
    println!("join: {:?}", operations(&calls));
    assert_eq!(fixture.cloud.changes(), ["server_groups.add_servers", "load_balancers.update"], "BB-123");
    let (writes, reads) = count(&calls);
    assert!(writes + reads <= 3, "{:?}", operations(&calls));
    assert_eq!(fixture.cloud.alive()[0].nodes.len(), 4);
    fixture.cloud.cloud.clear_journal();
    fixture.cluster.delete(&fixture.cluster.nodes(), "node-4").await;
    fixture.pass(30).await;
    assert_eq!(fixture.cloud.changes(), ["server_groups.remove_servers", "load_balancers.update"], "BB-131");
    assert_eq!(fixture.cloud.alive()[0].nodes.len(), 3);
}

#[tokio::test(start_paused = true)]
async fn a_load_balancer_is_deleted() {
    let fixture = settled(3, json!({})).await;
    fixture.delete("web").await;
    fixture.pass(60).await;
    println!("delete: {:?}", operations(&fixture.cloud.calls()));
    let order = [
        "server_groups.remove_servers",
        "server_groups.delete",
        "firewall_policies.delete",
        "load_balancers.delete",
        "cloud_ips.delete",
    ];
    assert_eq!(fixture.cloud.changes(), order, "BB-146");
    assert_eq!(fixture.cloud.counts(), [0, 0, 0, 0], "BB-145");
    assert!(fixture.service("web").await.is_none());
}

#[tokio::test(start_paused = true)]
async fn a_thousand_nodes_are_one_listing() {
    const NODES: usize = 1_000;
    let fixture = Fixture::new();
    for number in 0..NODES {
        let name = format!("node-{number}");
        fixture.cloud.add_instance(&name);
        fixture.join(&name).await;
    }
    fixture.pass(60).await;
    let listings = |calls: &[Entry]| calls.iter().filter(|entry| entry.operation == "servers.list").count();
    let calls = fixture.cloud.calls();
    println!("{NODES} nodes are initialised: {} calls", calls.len());
    assert!(calls.len() <= 2 && listings(&calls) == calls.len(), "BB-52 L7-1601 {:?}", operations(&calls));
    for number in [0, 99, NODES - 1] {
        let node = fixture.cluster.node(&format!("node-{number}")).await.unwrap();
        assert!(!node.addresses.is_empty(), "BB-52");
        assert_eq!(node.provider_id, Some(format!("brightbox://node-{number}")), "BB-25");
    }

    fixture.cloud.cloud.clear_journal();
    fixture.create("web", json!({})).await;
    fixture.pass(60).await;
    let calls = fixture.cloud.calls();
    println!("a Service on {NODES} nodes: {:?}", operations(&calls));
    assert_eq!(count(&calls), (7, 1), "L7-1602 {:?}", operations(&calls));
    let passes = calls.iter().filter(|entry| entry.operation == "load_balancers.list").count();
    assert!(passes <= 2 && listings(&calls) <= passes, "L7-1602 one for each pass {:?}", operations(&calls));
    assert_eq!(fixture.cloud.alive()[0].nodes.len(), NODES, "L7-1602");

    fixture.cloud.cloud.clear_journal();
    fixture.node("late").await;
    fixture.pass(30).await;
    let calls = fixture.cloud.calls();
    assert!(listings(&calls) <= 1, "L7-1603 {:?}", operations(&calls));
    assert_eq!(count(&calls), (2, 0), "L7-1603 {:?}", operations(&calls));

    fixture.pass(300).await;
    fixture.cloud.cloud.clear_journal();
    fixture.pass(900).await;
    let calls = fixture.cloud.calls();
    println!("a quarter of an hour with {NODES} nodes at rest: {} listings of servers", listings(&calls));
    assert_eq!(count(&calls), (0, 0), "L7-1604");
    assert!(listings(&calls) <= 15, "L7-1604 one listing for each pass: {}", listings(&calls));
}
