//! What a thousand nodes cost: writes to Kubernetes and calls to the cloud, counted.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing, missing_docs)]

use cloudberth_controllers::node::{NodeController, NodeSettings};
use cloudberth_core::decide::node::taints::UNINITIALISED;
use embedded_kube::Call;
use testing_kit::ClusterFixture;
use tokio::task::JoinHandle;

const NODES: usize = 1_000;

fn start(stage: &ClusterFixture) -> JoinHandle<()> {
    tokio::spawn(NodeController::new(stage.ctx.clone(), NodeSettings::default()).unwrap().run())
}

fn name(number: usize) -> String {
    format!("node-{number:04}")
}

/// The next number of the log of calls.
fn now(stage: &ClusterFixture) -> u64 {
    stage.api.calls(0).last().map_or(0, |call| call.number + 1)
}

/// How many of the writes were of which kind: `patch nodes/status` and so on.
fn count(writes: &[Call], kind: &str) -> usize {
    let text = |call: &Call| match call.subresource.as_str() {
        "" => format!("{} {}", call.verb, call.resource),
        part => format!("{} {}/{part}", call.verb, call.resource),
    };
    writes.iter().filter(|call| text(call) == kind).count()
}

/// How often the cloud was asked for all instances, and for one.
fn asked(stage: &ClusterFixture) -> (usize, usize) {
    let calls = stage.clouds[0].calls();
    let of = |operation: &str| calls.iter().filter(|call| call.operation == operation).count();
    (of("list instances"), of("get instance"))
}

async fn assert_all_in_service(stage: &ClusterFixture) {
    for number in 0..NODES {
        let node = stage.node(&name(number)).await.unwrap();
        assert!(!node.has_taint(UNINITIALISED) && !node.addresses.is_empty(), "{node:?}");
        assert!(node.provider_id.unwrap().starts_with("alpha://m"));
    }
}

fn assert_initialised_in_two_writes_each(writes: &[Call]) {
    assert_eq!(count(writes, "patch nodes/status"), NODES, "addresses");
    assert_eq!(count(writes, "patch nodes"), NODES, "id, labels and taint");
    assert_eq!(count(writes, "create events"), NODES, "one event each");
    assert_eq!(writes.len(), 3 * NODES, "and nothing else");
}

#[tokio::test(start_paused = true)]
async fn a_thousand_nodes_that_wait_for_the_controller() {
    let mut stage = ClusterFixture::new();
    stage.run_watches();
    for number in 0..NODES {
        stage.join(&name(number)).await;
    }
    let before = now(&stage);
    let first = start(&stage);
    stage.pass(10).await;
    let writes = stage.writes(before);
    assert_initialised_in_two_writes_each(&writes);
    assert_eq!(asked(&stage), (1, 0), "L7-401 one listing serves all");
    assert_all_in_service(&stage).await;
    println!("{NODES} waiting nodes: {} writes, {} listing", writes.len(), asked(&stage).0);

    let before = now(&stage);
    stage.pass(360).await;
    assert_eq!(stage.writes(before), [], "L4-402 a second pass");
    assert_eq!(asked(&stage), (2, 0), "there was a second pass");
    first.abort();
    assert!(first.await.unwrap_err().is_cancelled());

    let second = start(&stage);
    stage.pass(60).await;
    assert_eq!(stage.writes(before), [], "L4-403 a new controller");
    assert!(asked(&stage).0 <= 3, "{:?}", asked(&stage));
    second.abort();
    let writes = stage.writes(before).len();
    println!("second pass and new controller: {writes} writes, {} listings in all", asked(&stage).0);
}

#[tokio::test(start_paused = true)]
async fn a_thousand_nodes_that_join_at_once() {
    let mut stage = ClusterFixture::new();
    stage.run_watches();
    let _task = start(&stage);
    let metrics = &stage.ctx.metrics.node;
    stage.pass(60).await;
    let before = now(&stage);
    let listings = asked(&stage).0;
    for number in 0..NODES {
        stage.join(&name(number)).await;
    }
    stage.pass(20).await;
    let writes: Vec<_> = stage
        .writes(before)
        .into_iter()
        .filter(|call| (call.verb.as_str(), call.resource.as_str()) != ("create", "nodes"))
        .collect();
    assert_initialised_in_two_writes_each(&writes);
    let listings = asked(&stage).0 - listings;
    assert!(listings <= 2, "L7-402 {listings} listings");
    assert_eq!(asked(&stage).1, 0, "L7-402 nobody is asked about alone");
    let counts = (metrics.initial_sync_delay.count(), metrics.taint_removal_delay.count());
    assert_eq!(counts, (1_000, 1_000), "FW-37");
    println!("{NODES} nodes that join at once: {} writes, {listings} listings", writes.len());
}

#[tokio::test(start_paused = true)]
async fn nodes_that_join_one_by_one_share_listings() {
    let mut stage = ClusterFixture::new();
    stage.run_watches();
    let _task = start(&stage);
    stage.pass(60).await;
    let listings = asked(&stage).0;
    for number in 0..200 {
        stage.join(&name(number)).await;
        tokio::time::sleep(std::time::Duration::from_millis(100)).await;
    }
    stage.pass(5).await;
    for number in 0..200 {
        assert!(!stage.node(&name(number)).await.unwrap().has_taint(UNINITIALISED));
    }
    let listings = asked(&stage).0 - listings;
    assert!(listings <= 13, "L7-403 {listings} listings in 20 s");
    println!("200 nodes in 20 s, one by one: {listings} listings");
}

#[tokio::test(start_paused = true)]
async fn a_quiet_hour_and_an_instance_that_grows() {
    let mut stage = ClusterFixture::new();
    stage.run_watches();
    for number in 0..NODES {
        stage.join(&name(number)).await;
    }
    let _task = start(&stage);
    stage.pass(100).await;
    let (before, listings) = (now(&stage), asked(&stage).0);
    stage.pass(3_600).await;
    assert_eq!(stage.writes(before), [], "L4-404 nothing has changed");
    let listings = asked(&stage).0 - listings;
    assert!((10..=12).contains(&listings), "L7-404 {listings} listings in an hour");
    assert_eq!(asked(&stage).1, 0, "L7-404 nobody is asked about alone");
    let (writes, alone) = (stage.writes(before).len(), asked(&stage).1);
    println!("a quiet hour with {NODES} nodes: {writes} writes, {listings} listings, {alone} look-ups");

    let instance =
        stage.clouds[0].instances().into_iter().find(|instance| instance.name == name(500)).unwrap();
    stage.clouds[0].resize(&instance.id, "large");
    stage.pass(360).await;
    let writes = stage.writes(before);
    assert_eq!((writes.len(), count(&writes, "patch nodes")), (1, 1), "one patch of the labels");
    assert_eq!(writes[0].name, name(500));
    assert_eq!(&stage.node(&name(500)).await.unwrap().labels["node.kubernetes.io/instance-type"], "large");
    println!("an instance that grew: {} write", writes.len());
}

#[tokio::test(start_paused = true)]
async fn nodes_without_instances_share_their_retries() {
    let mut stage = ClusterFixture::new();
    stage.run_watches();
    stage.clouds[0].add_instance("other", "north-1");
    let _task = start(&stage);
    stage.pass(60).await;
    let taint = serde_json::json!({"key": UNINITIALISED, "effect": "NoSchedule"});
    for number in 0..200 {
        let body = serde_json::json!({"spec": {"taints": [taint]}});
        stage.create(&stage.nodes(), "Node", &name(number), body).await;
        tokio::time::sleep(std::time::Duration::from_millis(50)).await;
    }
    let (before, listings) = (now(&stage), asked(&stage).0);
    stage.pass(3_600).await;
    let told = stage.api.objects("events").len();
    assert_eq!(told, 200, "L4-408 each is told about once");
    assert!(stage.writes(before).iter().all(|call| call.resource == "events"), "L1-405");
    let listings = asked(&stage).0 - listings;
    assert!(listings <= 30, "L7-406 {listings} listings in an hour");
    assert_eq!(asked(&stage).1, 0, "L7-406");
    println!("200 nodes without instances for an hour: {told} events, {listings} listings");
}
