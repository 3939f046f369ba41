//! The life of a node, from an instance that stops to a node that goes.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing, missing_docs)]
#![allow(dead_code, unreachable_pub, reason = "each test file uses a part of what the shared set-up can do")]

mod lifecycle_nodes;

use cloudberth_core::{
    Category,
    decide::{lifecycle::Share, node::taints::SHUTDOWN},
};
use cloudberth_fake::{Fault as CloudFault, PowerState, Request};
use embedded_kube::{Fault, Harm};
use lifecycle_nodes::{LifecycleFixture, gone, lookups};
use serde_json::json;
use testing_kit::ClusterFixture;

#[tokio::test(start_paused = true)]
async fn a_stopped_instance_is_marked_in_seconds_and_unmarked_when_its_node_is_ready() {
    let mut stage = ClusterFixture::new();
    let id = stage.member(0, "a").await;
    stage.member(0, "b").await;
    stage.begin_lifecycle();
    stage.pass(100).await;
    stage.clouds[0].set_state(&id, PowerState::Stopped);
    stage.set_ready("a", false).await;
    stage.pass(15).await;
    assert!(stage.node("a").await.unwrap().has_taint(SHUTDOWN), "FW-112 within 15 s");
    assert!(!stage.node("b").await.unwrap().has_taint(SHUTDOWN));

    let since = stage.call_count();
    stage.pass(900).await;
    assert_eq!(stage.writes(since), [], "L4-120 the mark is written once");
    stage.clouds[0].set_state(&id, PowerState::Running);
    stage.pass(400).await;
    assert!(stage.node("a").await.unwrap().has_taint(SHUTDOWN), "FW-125 not Ready yet");
    let listings = stage.listings(0);
    stage.set_ready("a", true).await;
    stage.pass(2).await;
    assert!(!stage.node("a").await.unwrap().has_taint(SHUTDOWN), "FW-123");
    assert_eq!(stage.listings(0), listings, "FW-123 the cloud is not asked");
    assert_eq!(lookups(&stage.clouds[0]), 0, "L7-121");
}

#[tokio::test(start_paused = true)]
async fn a_listing_that_hides_who_is_powered_off_is_made_up_for_by_asking() {
    let mut stage = ClusterFixture::with(&["alpha"], |settings| settings.hides_power = true);
    let off = stage.member(0, "off").await;
    for name in ["on", "fine"] {
        stage.member(0, name).await;
    }
    stage.begin_lifecycle();
    stage.pass(100).await;
    stage.clouds[0].set_state(&off, PowerState::Stopped);
    for name in ["off", "on"] {
        stage.set_ready(name, false).await;
    }
    let asked = |stage: &ClusterFixture| {
        stage.clouds[0].calls().iter().filter(|call| call.operation == "is running").count()
    };
    stage.pass(50).await;
    assert_eq!(asked(&stage), 0, "BL-49 not about a node that was Ready a moment ago");
    stage.pass(30).await;
    assert!(stage.node("off").await.unwrap().has_taint(SHUTDOWN), "BL-49");
    for name in ["on", "fine"] {
        assert!(!stage.node(name).await.unwrap().has_taint(SHUTDOWN), "{name}");
    }
    assert_eq!(asked(&stage), 2, "BL-49 each once");
    stage.pass(3_600).await;
    assert!((10..=14).contains(&asked(&stage)), "BL-49 one question in five minutes: {}", asked(&stage));
    let plan = |request: &Request| {
        (request.operation == "is running").then_some(CloudFault::Refuse(Category::Temporary))
    };
    stage.clouds[0].plan_faults(plan);
    stage.pass(700).await;
    assert!(!stage.node("on").await.unwrap().has_taint(SHUTDOWN), "BL-50 no answer is no answer");
}

#[tokio::test(start_paused = true)]
async fn however_many_are_not_ready_few_are_asked_about_at_once() {
    let mut stage = ClusterFixture::with(&["alpha"], |settings| settings.hides_power = true);
    let names: Vec<_> = (0..40).map(|number| format!("n{number:02}")).collect();
    for name in &names {
        let id = stage.member(0, name).await;
        stage.clouds[0].set_state(&id, PowerState::Stopped);
    }
    stage.begin_lifecycle();
    stage.pass(100).await;
    for name in &names {
        stage.set_ready(name, false).await;
    }
    stage.pass(290).await;
    let calls = stage.clouds[0].calls();
    let asked: Vec<_> =
        calls.iter().filter(|call| call.operation == "is running").map(|call| call.sent).collect();
    for at in &asked {
        let soon = asked.iter().filter(|other| *other >= at && other.since(*at).as_secs() < 25).count();
        assert!(soon <= 8, "L7-1501 {asked:?}");
    }
    for name in &names {
        assert!(stage.node(name).await.unwrap().has_taint(SHUTDOWN), "BL-49 {name}");
    }
    assert_eq!(asked.len(), names.len(), "L7-1501 each once");
}

#[tokio::test(start_paused = true)]
async fn a_node_whose_instance_is_gone_goes_within_a_minute() {
    let mut stage = ClusterFixture::new();
    let id = stage.member(0, "a").await;
    stage.member(0, "b").await;
    stage.begin_lifecycle();
    stage.pass(100).await;
    stage.clouds[0].delete_instance(&id);
    stage.pass(60).await;
    assert!(stage.node("a").await.is_some(), "FW-110 Ready");
    stage.set_ready("a", false).await;
    stage.pass(9).await;
    assert!(stage.node("a").await.is_some(), "L2-120 not on one round");
    stage.pass(51).await;
    assert!(stage.node("a").await.is_none(), "FW-108 within 60 s");
    assert!(stage.node("b").await.is_some());
    let said = "Normal DeletingNode: Deleting node a because it does not exist in the cloud provider";
    assert_eq!(stage.events("a"), [said], "FW-108 FW-127");
    let event = &stage.api.objects("events")[0];
    let about = &event["involvedObject"];
    assert_eq!((&about["apiVersion"], &about["kind"]), (&json!("v1"), &json!("Node")), "FW-127");
    assert!(about["uid"].as_str().is_some_and(|uid| !uid.is_empty()), "FW-127");
    assert_eq!(lookups(&stage.clouds[0]), 2, "L7-122 asked once for each confirmation");
    assert_eq!(stage.asked("instance_exists", "instance_not_found"), 2, "FW-137");
    assert_eq!(stage.panics(), 0);
}

#[tokio::test(start_paused = true)]
async fn one_listing_is_counted_as_the_questions_that_it_answers() {
    let mut stage = ClusterFixture::new();
    for name in ["a", "b", "c"] {
        stage.member(0, name).await;
    }
    stage.set_ready("c", false).await;
    stage.begin_lifecycle();
    stage.pass(1).await;
    assert_eq!(stage.asked("instance_exists", "success"), 1, "FW-136");
    assert_eq!(stage.asked("instance_shutdown", "success"), 1, "FW-136");
    assert_eq!(stage.ctx.metrics.lifecycle.monitor_duration.count(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_quiet_hour_of_a_thousand_nodes_takes_twelve_listings() {
    let mut stage = ClusterFixture::new();
    for number in 0..1_000 {
        stage.member(0, &format!("n{number}")).await;
    }
    stage.begin_lifecycle();
    stage.pass(10).await;
    let (before, since) = (stage.listings(0), stage.call_count());
    stage.pass(3_600).await;
    let listings = stage.listings(0) - before;
    println!("a quiet hour of 1,000 nodes: {listings} listings");
    assert!((11..=12).contains(&listings), "L7-123 {listings}");
    assert_eq!(stage.clouds[0].calls().len(), stage.listings(0), "L7-123 and nothing else");
    assert_eq!(stage.writes(since), [], "L4-121");

    // A fifth of them are not Ready, for good.
    for number in 0..200 {
        stage.set_ready(&format!("n{number}"), false).await;
    }
    let (before, since) = (stage.listings(0), stage.call_count());
    stage.pass(3_600).await;
    let listings = stage.listings(0) - before;
    println!("an hour with 200 nodes that are not Ready: {listings} listings");
    assert!(listings <= 12 + 10, "L7-124 {listings}");
    assert_eq!(lookups(&stage.clouds[0]), 0, "L7-124");
    assert_eq!(stage.writes(since), [], "L4-122");
}

#[tokio::test(start_paused = true)]
async fn a_listing_that_somebody_else_asked_for_counts() {
    let mut stage = ClusterFixture::new();
    let id = stage.member(0, "a").await;
    stage.begin_lifecycle();
    stage.pass(100).await;
    let before = stage.listings(0);
    let cloud = stage.ctx.clouds.named("alpha").unwrap().clone();
    for _ in 0..10 {
        stage.pass(200).await;
        cloud.inventory.listing(stage.clock.now()).await;
    }
    stage.pass(1).await;
    assert_eq!(stage.listings(0), before + 10, "L7-125 none of its own");
    // It is judged too, and at once.
    stage.set_ready("a", false).await;
    stage.pass(200).await;
    stage.clouds[0].set_state(&id, PowerState::Stopped);
    cloud.inventory.listing(stage.clock.now()).await;
    stage.pass(1).await;
    assert!(stage.node("a").await.unwrap().has_taint(SHUTDOWN), "L7-126");
}

#[tokio::test(start_paused = true)]
async fn nodes_without_an_id_are_reported_once_and_foreign_ones_not_looked_at() {
    let mut stage = ClusterFixture::with(&["alpha", "beta"], |_| {});
    stage.member(0, "a").await;
    stage.member(1, "b").await;
    stage.register("stray", None).await;
    stage
        .merge(&stage.nodes(), "stray", json!({"metadata": {"labels": {"cloudberth.dev/provider": "alpha"}}}))
        .await;
    stage.register("nobody", None).await;
    stage.register("metal", Some("metal://7")).await;
    stage.begin_lifecycle();
    stage.pass(100).await;
    for name in ["stray", "nobody", "metal"] {
        stage.set_ready(name, false).await;
    }
    stage.pass(3_600).await;
    let said = stage.events("stray");
    assert_eq!(said.len(), 1, "FW-116 {said:?}");
    assert!(said[0].starts_with("Warning MachineNotFound: Node stray has no provider id"), "FW-116 {said:?}");
    for name in ["stray", "nobody", "metal"] {
        assert!(stage.node(name).await.is_some(), "L3-122 {name}");
    }
    assert_eq!(stage.events("nobody").len() + stage.events("metal").len(), 0, "L3-122");
    assert_eq!((lookups(&stage.clouds[0]), lookups(&stage.clouds[1])), (0, 0), "L3-122");
}

#[tokio::test(start_paused = true)]
async fn each_cloud_answers_for_its_own_nodes() {
    let mut stage = ClusterFixture::with(&["alpha", "beta"], |_| {});
    let id = stage.member(0, "a").await;
    let other = stage.member(1, "b").await;
    for name in ["a2", "a3"] {
        stage.member(0, name).await;
        stage.member(1, &name.replace('a', "b")).await;
    }
    stage.begin_lifecycle();
    stage.pass(100).await;
    let (alpha, beta) = (stage.listings(0), stage.listings(1));
    stage.clouds[0].delete_instance(&id);
    stage.clouds[1].set_state(&other, PowerState::Stopped);
    stage.set_ready("a", false).await;
    stage.pass(60).await;
    assert_eq!(gone(&stage, &["a", "a2", "a3", "b", "b2", "b3"]).await, ["a"], "L3-123");
    assert!(stage.listings(0) > alpha, "L7-127");
    assert_eq!(stage.listings(1), beta, "L7-127 nobody asks the other cloud");
    assert!(!stage.node("b").await.unwrap().has_taint(SHUTDOWN), "FW-119 Ready");
    stage.set_ready("b", false).await;
    stage.pass(15).await;
    assert!(stage.node("b").await.unwrap().has_taint(SHUTDOWN), "FW-112");
}

#[tokio::test(start_paused = true)]
async fn a_conflict_on_the_mark_is_decided_anew() {
    for (conflicts, marked) in [(4, true), (5, false)] {
        let mut stage = ClusterFixture::new();
        let id = stage.member(0, "a").await;
        stage.begin_lifecycle();
        stage.pass(100).await;
        stage.clouds[0].set_state(&id, PowerState::Stopped);
        stage.set_ready("a", false).await;
        stage.api.add_fault(Fault::new(Harm::Conflict).on("patch", "nodes").times(conflicts));
        let since = stage.call_count();
        stage.pass_millis(1_500).await;
        let patches = stage.writes(since).len();
        assert_eq!(patches, 5, "FW-144 at most 5 attempts");
        assert_eq!(stage.node("a").await.unwrap().has_taint(SHUTDOWN), marked, "FW-144 after {conflicts}");
        stage.pass(10).await;
        assert!(stage.node("a").await.unwrap().has_taint(SHUTDOWN), "FW-144 the queue brings it back");
    }
}

#[tokio::test(start_paused = true)]
async fn a_deletion_that_fails_is_told_and_tried_again() {
    let mut stage = ClusterFixture::new();
    let id = stage.member(0, "a").await;
    stage.member(0, "b").await;
    stage.begin_lifecycle();
    stage.pass(100).await;
    stage.clouds[0].delete_instance(&id);
    stage
        .api
        .add_fault(Fault::new(Harm::Status { code: 503, retry_after: None }).on("delete", "nodes").times(2));
    stage.set_ready("a", false).await;
    stage.pass(60).await;
    assert_eq!(gone(&stage, &["a", "b"]).await, ["a"], "FW-126 retried");
    let events = stage.api.objects("events");
    let failed: Vec<_> = events.iter().filter(|event| event["reason"] == "DeletingNodeFailed").collect();
    assert_eq!(
        failed.iter().filter_map(|event| event["count"].as_u64()).sum::<u64>(),
        2,
        "FW-126 {failed:?}"
    );
    assert!(failed[0]["message"].as_str().unwrap().starts_with("Failed deleting node a: "), "FW-126");
}

#[tokio::test(start_paused = true)]
async fn the_flag_for_no_deletions_means_none() {
    let mut stage = ClusterFixture::new();
    let id = stage.member(0, "a").await;
    stage.member(0, "b").await;
    stage.begin_lifecycle_with(Share::Count(0));
    stage.pass(100).await;
    stage.clouds[0].delete_instance(&id);
    stage.set_ready("a", false).await;
    stage.pass(3_600).await;
    assert!(stage.node("a").await.is_some(), "L2-121");
    assert_eq!((stage.events("a").len(), stage.held()), (1, 1), "L2-121");
    assert_eq!(lookups(&stage.clouds[0]), 2, "L7-128 not asked for nothing");
}
