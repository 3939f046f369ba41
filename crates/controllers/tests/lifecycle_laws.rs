//! What must not happen to a node: lying clouds, the cap, replaced nodes, crashes.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing, missing_docs)]
#![allow(dead_code, unreachable_pub, reason = "each test file uses a part of what the shared set-up can do")]

mod lifecycle_nodes;

use std::{
    pin::Pin,
    task::{Context, Poll},
    time::Duration,
};

use cloudberth_core::{
    Category,
    call::Unguarded,
    decide::{lifecycle::Share, node::taints::SHUTDOWN},
};
use cloudberth_fake::{Fault, PowerState, Request};
use embedded_kube::{self as kube, Harm};
use lifecycle_nodes::{LifecycleFixture, gone, lookups};
use serde_json::json;
use testing_kit::ClusterFixture;

const TEN: [&str; 10] = ["n0", "n1", "n2", "n3", "n4", "n5", "n6", "n7", "n8", "n9"];

/// A cluster of ten, and the ids of its instances.
async fn ten(stage: &ClusterFixture) -> Vec<String> {
    let mut ids = Vec::new();
    for name in TEN {
        ids.push(stage.member(0, name).await);
    }
    ids
}

type Lie = fn(&Request) -> Option<Fault>;

#[tokio::test(start_paused = true)]
async fn a_lying_cloud_costs_no_node_whose_instance_exists() {
    let table: [(&str, Lie); 8] = [
        ("L1-170 nothing is listed", |r| (r.operation == "list instances").then_some(Fault::Deny)),
        ("L1-171 half is listed", |r| (r.operation == "list instances").then_some(Fault::ShortPage)),
        ("L1-172 401", |_| Some(Fault::Refuse(Category::Unauthorised))),
        ("L1-173 503", |_| Some(Fault::Refuse(Category::Temporary))),
        ("L1-174 a look-up denies", |r| (r.operation == "get instance").then_some(Fault::Deny)),
        ("L1-175 nothing is listed and every look-up denies", |_| Some(Fault::Deny)),
        ("L1-176 answers get lost", |_| Some(Fault::AnswerLost)),
        ("L1-177 no answers", |_| Some(Fault::Stall(Duration::from_secs(90)))),
    ];
    for (case, lie) in table {
        for not_ready in [1, 10] {
            let mut stage = ClusterFixture::new();
            ten(&stage).await;
            stage.begin_lifecycle();
            stage.pass(100).await;
            stage.clouds[0].plan_faults(lie);
            for name in &TEN[..not_ready] {
                stage.set_ready(name, false).await;
            }
            stage.pass(1_800).await;
            assert_eq!(gone(&stage, &TEN).await, [""; 0], "{case}");
            for name in TEN {
                let said = stage.events(name);
                assert!(said.len() <= 1, "L4-123 {case}: {said:?}");
                assert!(
                    said.iter().all(|e| e.starts_with("Warning MachineListingDoubtful")),
                    "{case} {said:?}"
                );
            }
            stage.clouds[0].stop_faults();
            stage.pass(1_800).await;
            assert_eq!(gone(&stage, &TEN).await, [""; 0], "{case}, afterwards");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn an_outage_puts_a_deletion_off_and_loses_nothing() {
    let mut stage = ClusterFixture::new();
    let ids = ten(&stage).await;
    stage.begin_lifecycle();
    stage.pass(100).await;
    stage.clouds[0].delete_instance(&ids[3]);
    stage.clouds[0].plan_faults(|_| Some(Fault::Refuse(Category::Unauthorised)));
    stage.set_ready("n3", false).await;
    stage.pass(600).await;
    assert_eq!(gone(&stage, &TEN).await, [""; 0], "L1-178 for minutes");
    stage.clouds[0].stop_faults();
    stage.pass(330).await;
    assert_eq!(gone(&stage, &TEN).await, ["n3"], "L1-178 and then");
}

#[tokio::test(start_paused = true)]
async fn a_doubt_has_three_ways_out() {
    // Everything is gone: nothing tells this from a token of the wrong project.
    let mut stage = ClusterFixture::new();
    let ids = ten(&stage).await;
    stage.begin_lifecycle();
    stage.pass(100).await;
    for id in &ids {
        stage.clouds[0].delete_instance(id);
    }
    for name in TEN {
        stage.set_ready(name, false).await;
    }
    stage.pass(900).await;
    assert_eq!(gone(&stage, &TEN).await, [""; 0], "L1-179 in doubt");
    assert_eq!(stage.events("n5").len(), 1, "L4-124 said once");
    assert!(stage.events("n5")[0].contains("cloudberth.dev/machine-is-gone"), "L1-179");
    assert_eq!(lookups(&stage.clouds[0]), 0, "L7-129 a doubtful listing asks nobody");

    let declared = json!({"metadata": {"annotations": {"cloudberth.dev/machine-is-gone": "true"}}});
    stage.merge(&stage.nodes(), "n5", declared).await;
    stage.pass(60).await;
    assert_eq!(gone(&stage, &TEN).await, ["n5"], "L1-180 a person's word");

    let taint = json!({"key": "ToBeDeletedByClusterAutoscaler", "value": "1", "effect": "NoSchedule"});
    for name in ["n1", "n2", "n3"] {
        stage.merge(&stage.nodes(), name, json!({"spec": {"taints": [taint.clone()]}})).await;
    }
    stage.pass(60).await;
    assert_eq!(
        gone(&stage, &TEN).await,
        ["n1", "n2", "n3", "n5"],
        "L1-181 the autoscaler's, and past the cap"
    );

    let id = stage.clouds[0].add_balancer("ours");
    let annotations = json!({"fake.cloudberth.dev/balancer-id": id});
    let body = json!({
        "metadata": {"annotations": annotations},
        "spec": {"type": "LoadBalancer", "ports": [{"port": 80}]},
    });
    stage.create(&stage.services(), "Service", "web", body).await;
    stage.pass(700).await;
    let left = gone(&stage, &TEN).await;
    assert!(left.len() > 4, "L1-182 what we recorded is visible: {left:?}");
}

#[tokio::test(start_paused = true)]
async fn the_cap_holds_nodes_back_and_says_so_once() {
    let mut stage = ClusterFixture::new();
    let ids = ten(&stage).await;
    stage.begin_lifecycle();
    stage.pass(700).await;
    for (name, id) in TEN.iter().zip(&ids).take(4) {
        stage.clouds[0].delete_instance(id);
        stage.set_ready(name, false).await;
    }
    stage.pass(60).await;
    assert_eq!(gone(&stage, &TEN).await.len(), 1, "L2-122 one of ten in ten minutes");
    let asked = lookups(&stage.clouds[0]);
    assert_eq!(asked, 8, "L7-130 two confirmations for each");
    stage.pass(500).await;
    let held: Vec<_> =
        TEN[..4].iter().flat_map(|n| stage.events(n)).filter(|e| e.contains("NodeDeletionHeld")).collect();
    assert_eq!((held.len(), stage.held()), (3, 3), "L2-123 one event each {held:?}");
    assert!(held[0].contains("--max-node-deletions=10%"), "{held:?}");
    assert_eq!(
        (gone(&stage, &TEN).await.len(), lookups(&stage.clouds[0])),
        (1, asked),
        "L7-130 and then rest"
    );
    for want in 2..=4 {
        stage.pass(600).await;
        assert_eq!(gone(&stage, &TEN).await.len(), want, "L2-122 the window slides");
    }
    assert_eq!(stage.held(), 3, "L2-123 still");
}

#[tokio::test(start_paused = true)]
async fn a_node_that_was_replaced_after_the_verdict_survives() {
    let mut stage = ClusterFixture::new();
    let ids = ten(&stage).await;
    stage.begin_lifecycle();
    stage.pass(100).await;
    // Neither the watch nor the last look see the new node in time: only the UID protects it.
    stage.clouds[0].delete_instance(&ids[0]);
    stage.set_ready("n0", false).await;
    stage.pass(1).await;
    stage.api.add_fault(kube::Fault::new(Harm::Latency { millis: 5_000 }).on("delete", "nodes"));
    let from = stage.call_count();
    let looked =
        |stage: &ClusterFixture| stage.api.calls(from).iter().any(|c| c.verb == "get" && c.name == "n0");
    for _ in 0..600 {
        stage.pass_millis(100).await;
        if looked(&stage) {
            break;
        }
    }
    assert!(looked(&stage));
    stage.clear_and_replace("n0", "alpha://m-new").await;
    stage.pass(30).await;
    let refused = stage
        .api
        .calls(from)
        .iter()
        .any(|c| c.verb == "delete" && c.name == "n0" && c.outcome == kube::Outcome::Answered(409));
    assert!(refused, "L2-124 the precondition was needed");
    assert!(stage.node("n0").await.is_some(), "L2-124");
}

#[tokio::test(start_paused = true)]
async fn a_node_that_is_ready_again_is_not_deleted_though_the_watch_does_not_know() {
    let mut stage = ClusterFixture::new();
    let ids = ten(&stage).await;
    stage.begin_lifecycle();
    stage.pass(100).await;
    stage.clouds[0].delete_instance(&ids[0]);
    stage.set_ready("n0", false).await;
    stage.pass(3).await;
    stage.api.add_fault(kube::Fault::new(Harm::StallWatch { after_events: 0 }).on("watch", "nodes"));
    stage.api.restart();
    stage.pass(2).await;
    stage.set_ready("n0", true).await;
    let from = stage.call_count();
    stage.pass(60).await;
    assert!(stage.node("n0").await.is_some(), "L2-125");
    assert!(stage.api.calls(from).iter().all(|c| c.verb != "delete"), "L2-125");
}

#[tokio::test(start_paused = true)]
async fn an_uninitialised_node_is_never_deleted() {
    let mut stage = ClusterFixture::new();
    let ids = ten(&stage).await;
    stage.begin_lifecycle();
    let taint = json!({"key": "node.cloudprovider.kubernetes.io/uninitialized", "value": "true", "effect": "NoSchedule"});
    stage.merge(&stage.nodes(), "n0", json!({"spec": {"taints": [taint]}})).await;
    stage.pass(100).await;
    stage.clouds[0].delete_instance(&ids[0]);
    stage.set_ready("n0", false).await;
    stage.pass(3_600).await;
    assert_eq!(gone(&stage, &TEN).await, [""; 0], "L2-126");
}

#[tokio::test(start_paused = true)]
async fn a_new_node_is_not_deleted_before_its_instance_is_listed() {
    let mut stage = ClusterFixture::with(&["alpha"], |settings| settings.lag = Duration::from_secs(50));
    ten(&stage).await;
    stage.begin_lifecycle();
    stage.pass(200).await;
    let id = stage.clouds[0].add_instance("new", "north-1").id;
    stage.register("new", Some(&format!("alpha://{id}"))).await;
    stage.clouds[0].plan_faults(|r| (r.operation == "get instance").then_some(Fault::Deny));
    stage.pass(1).await;
    stage.set_ready("new", false).await;
    stage.pass(300).await;
    assert!(stage.node("new").await.is_some(), "L2-127");
    assert_eq!(lookups(&stage.clouds[0]), 0, "L7-131");
}

#[tokio::test(start_paused = true)]
async fn a_new_term_is_as_quick_for_what_happened_before_it() {
    let mut stage = ClusterFixture::new();
    let ids = ten(&stage).await;
    stage.run_watches();
    stage.pass(1).await;
    stage.clouds[0].set_state(&ids[0], PowerState::Stopped);
    stage.set_ready("n0", false).await;
    stage.clouds[0].plan_faults(|r| (r.number < 1).then_some(Fault::Refuse(Category::Temporary)));
    let term = stage.lifecycle(Share::Percent(10));
    stage.run(term.run());
    stage.pass(15).await;
    assert!(stage.node("n0").await.unwrap().has_taint(SHUTDOWN), "L6-173 though the first listing failed");
}

/// Runs something until so many calls of any kind were made, and then lets go of it wherever it is.
struct CrashAt<'a, F> {
    run: Pin<Box<F>>,
    stage: &'a ClusterFixture,
    calls: usize,
}

fn calls(stage: &ClusterFixture) -> usize {
    stage.clouds[0].calls().len() + stage.api.calls(0).iter().filter(|call| call.resource == "nodes").count()
}

impl<F: Future<Output = ()>> Future for CrashAt<'_, F> {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        if calls(self.stage) >= self.calls {
            return Poll::Ready(());
        }
        let poll = self.run.as_mut().poll(context);
        if calls(self.stage) >= self.calls {
            return Poll::Ready(());
        }
        poll
    }
}

#[tokio::test(start_paused = true)]
async fn killed_after_any_call_it_comes_to_the_same_end() {
    for k in 1..25 {
        let mut stage = ClusterFixture::new();
        let ids = ten(&stage).await;
        stage.run_watches();
        stage.pass(1).await;
        stage.clouds[0].delete_instance(&ids[0]);
        stage.clouds[0].set_state(&ids[1], PowerState::Stopped);
        stage.set_ready("n0", false).await;
        stage.set_ready("n1", false).await;
        let base = calls(&stage);
        let term = Box::pin(stage.lifecycle(Share::Percent(10)).run());
        let crash = CrashAt { run: term, stage: &stage, calls: base + k };
        let crashed = tokio::time::timeout(Duration::from_secs(400), crash).await.is_ok();
        let next = stage.lifecycle(Share::Percent(10));
        stage.run(next.run());
        stage.pass(100).await;
        assert_eq!(gone(&stage, &TEN).await, ["n0"], "L6-170 killed after {k} calls ({crashed})");
        assert!(stage.node("n1").await.unwrap().has_taint(SHUTDOWN), "L6-171 killed after {k} calls");
        let since = stage.call_count();
        stage.pass(900).await;
        assert_eq!(stage.writes(since), [], "L4-125 a second pass after {k} calls");
        assert_eq!(stage.panics(), 0);
    }
}

#[tokio::test(start_paused = true)]
async fn a_program_that_crashes_again_and_again_empties_no_cluster() {
    let mut stage = ClusterFixture::new();
    let mut names = Vec::new();
    let mut ids = Vec::new();
    for number in 0..40 {
        names.push(format!("n{number}"));
        ids.push(stage.member(0, &names[number]).await);
    }
    stage.run_watches();
    stage.pass(1).await;
    for number in 0..20 {
        stage.clouds[0].delete_instance(&ids[number]);
        stage.set_ready(&names[number], false).await;
    }
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    for process in 1..=4 {
        for term in 1..=2 {
            let controller = stage.lifecycle(Share::Percent(10));
            let ended = tokio::time::timeout(Duration::from_secs(120), controller.run()).await;
            assert!(ended.is_err(), "it never ends by itself");
            let gone = gone(&stage, &names).await.len();
            assert_eq!(
                gone, process,
                "L2-128 one in each process that knows no past, whatever the term: {term}"
            );
        }
        // The next process knows nothing.
        stage.ctx = stage.another_context(std::sync::Arc::new(Unguarded));
        stage.run_watches();
        stage.pass(1).await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_bug_in_a_cloud_stalls_nothing_else() {
    for operation in ["list instances", "get instance"] {
        let mut stage = ClusterFixture::with(&["alpha", "beta"], |_| {});
        let id = stage.member(0, "a").await;
        stage.member(0, "a2").await;
        let other = stage.member(1, "b").await;
        stage.begin_lifecycle();
        stage.pass(100).await;
        stage.clouds[0].plan_faults(move |request| {
            assert_ne!(request.operation, operation, "a bug");
            None
        });
        stage.clouds[0].delete_instance(&id);
        stage.clouds[1].set_state(&other, PowerState::Stopped);
        stage.set_ready("a", false).await;
        stage.set_ready("b", false).await;
        stage.pass(60).await;
        assert!(stage.node("b").await.unwrap().has_taint(SHUTDOWN), "L11-120 {operation}");
        assert_eq!(gone(&stage, &["a", "a2", "b"]).await, [""; 0], "L1-183 {operation}");
        stage.clouds[0].stop_faults();
        stage.pass(330).await;
        assert_eq!(gone(&stage, &["a", "a2", "b"]).await, ["a"], "L11-121 {operation}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_node_that_changes_while_its_deletion_is_on_its_way_is_looked_at_again() {
    let slow = || kube::Fault::new(Harm::Latency { millis: 3_000 }).on("delete", "nodes").times(1);
    for comes_back in [true, false] {
        let mut stage = ClusterFixture::new();
        let id = stage.member(0, "a").await;
        stage.member(0, "b").await;
        stage.begin_lifecycle();
        stage.pass(100).await;
        stage.api.add_fault(slow());
        stage.clouds[0].delete_instance(&id);
        stage.set_ready("a", false).await;
        for _ in 0..60 {
            stage.pass(1).await;
            if !stage.events("a").is_empty() {
                break;
            }
        }
        assert!(stage.events("a").len() == 1 && stage.node("a").await.is_some(), "the deletion is under way");
        if comes_back {
            stage.set_ready("a", true).await;
            stage.pass(30).await;
            assert!(stage.node("a").await.is_some(), "L2-606 a node that is Ready is not deleted");
        } else {
            stage.merge(&stage.nodes(), "a", json!({"metadata": {"labels": {"some": "label"}}})).await;
            stage.pass(5).await;
            assert!(
                stage.node("a").await.is_none(),
                "L2-607 a change that does not matter is no reason to wait"
            );
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_node_that_goes_while_its_instance_is_asked_about_leaves_nothing_behind() {
    let mut stage = ClusterFixture::new();
    let id = stage.member(0, "a").await;
    stage.member(0, "b").await;
    let controller = stage.lifecycle(Share::Percent(10));
    stage.run_watches();
    stage.run(std::sync::Arc::clone(&controller).run());
    stage.pass(100).await;
    stage.clouds[0].plan_faults(|request| {
        (request.operation == "get instance").then_some(Fault::Stall(Duration::from_secs(20)))
    });
    stage.clouds[0].delete_instance(&id);
    stage.set_ready("a", false).await;
    stage.pass(5).await;
    assert_eq!(lookups(&stage.clouds[0]), 0, "the question is under way");
    stage.delete(&stage.nodes(), "a").await;
    stage.pass(600).await;
    assert_eq!(lookups(&stage.clouds[0]), 1, "it was answered after the node had gone");
    assert_eq!(controller.remembered(), 0, "L12-600");
}

#[tokio::test(start_paused = true)]
async fn closed_it_ends_what_it_began() {
    let mut stage = ClusterFixture::new();
    let id = stage.member(0, "a").await;
    stage.run_watches();
    stage.pass(1).await;
    stage.clouds[0].set_state(&id, PowerState::Stopped);
    stage.set_ready("a", false).await;
    stage.api.add_fault(kube::Fault::new(Harm::Latency { millis: 5_000 }).on("patch", "nodes"));
    let controller = stage.lifecycle(Share::Percent(10));
    let closing = async {
        stage.pass(1).await;
        controller.close();
    };
    let ends = tokio::time::timeout(Duration::from_secs(20), std::sync::Arc::clone(&controller).run());
    let (ended, ()) = tokio::join!(ends, closing);
    assert!(ended.is_ok(), "it ends");
    assert!(stage.node("a").await.unwrap().has_taint(SHUTDOWN), "L6-172 what was under way is over");
}
