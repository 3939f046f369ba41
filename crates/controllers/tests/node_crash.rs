//! A controller that stops between any two moments of its work, and the one after it.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing, missing_docs)]

use std::{
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
    time::Duration,
};

use cloudberth_controllers::node::{NodeController, NodeSettings};
use cloudberth_core::decide::node::taints::UNINITIALISED;
use embedded_kube::{Fault, Harm};
use testing_kit::ClusterFixture;

const NODES: [&str; 3] = ["a", "b", "c"];

/// A program that is killed when it wakes up for the n-th time: what it has sent takes effect, what it would have done
/// with the answer does not happen.
struct Killed<F> {
    program: Option<Pin<Box<F>>>,
    wakes: usize,
}

impl<F: Future<Output = ()>> Future for Killed<F> {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        if self.wakes == 0 {
            self.program = None;
            return Poll::Ready(());
        }
        self.wakes -= 1;
        self.program.as_mut().unwrap().as_mut().poll(context)
    }
}

fn controller(stage: &ClusterFixture) -> Arc<NodeController> {
    let settings = NodeSettings { workers: Some(2), ..NodeSettings::default() };
    NodeController::new(stage.ctx.clone(), settings).unwrap()
}

async fn assert_sound(stage: &ClusterFixture, case: usize) {
    for name in NODES {
        let node = stage.node(name).await.unwrap();
        if !node.has_taint(UNINITIALISED) {
            assert!(
                !node.addresses.is_empty() && node.provider_id.is_some(),
                "L6-401 killed at {case}: {node:?}"
            );
        }
    }
}

/// Kills the controller at its n-th wake and lets another one finish; whether the first got that far.
async fn killed_at(wake: usize) -> bool {
    let mut stage = ClusterFixture::new();
    stage.run_watches();
    for name in NODES {
        stage.join(name).await;
    }
    // Calls take their time, so that a controller can be killed while one is under way.
    stage.api.add_fault(Fault::new(Harm::Latency { millis: 7 }).on("patch", "nodes"));
    let first = Killed { program: Some(Box::pin(controller(&stage).run())), wakes: wake };
    let killed = tokio::time::timeout(Duration::from_secs(10), first).await.is_ok();
    assert_sound(&stage, wake).await;
    let done = stage.writes(0).len();
    let second = controller(&stage);
    stage.run(second.run());
    stage.pass(20).await;
    assert_sound(&stage, wake).await;
    for (number, name) in NODES.into_iter().enumerate() {
        let node = stage.node(name).await.unwrap();
        assert!(!node.has_taint(UNINITIALISED), "L6-402 killed at {wake}: {node:?}");
        assert_eq!(node.provider_id, Some(format!("alpha://m-{:04}", number + 1)), "L6-402 killed at {wake}");
        assert_eq!(&node.labels["topology.kubernetes.io/zone"], "north-1", "L6-402 killed at {wake}");
        let told = stage.events(name).len();
        assert!(told <= 1, "L6-403 killed at {wake}: told {told} times");
    }
    let patches = stage.writes(0).iter().filter(|call| call.verb == "patch").count();
    assert!((6..=10).contains(&patches), "L6-404 killed at {wake} after {done} writes: {patches} patches");
    let writes = stage.writes(0).len();
    stage.pass(360).await;
    assert_eq!(stage.writes(0).len(), writes, "L4-407 killed at {wake}");
    killed
}

#[tokio::test(start_paused = true)]
async fn killed_at_any_moment_the_next_controller_finishes_the_work() {
    let mut wake = 0;
    while killed_at(wake).await {
        wake += 1;
        assert!(wake < 1_000, "a controller comes to rest");
    }
    println!("killed at each of {wake} moments, and the next one always finished");
    assert!(wake > 12, "there are more moments than calls");
}

#[tokio::test(start_paused = true)]
async fn told_to_stop_it_ends_what_it_began() {
    let mut stage = ClusterFixture::new();
    let early = controller(&stage);
    early.close();
    early.run().await;
    stage.run_watches();
    stage.join("a").await;
    stage.api.add_fault(Fault::new(Harm::Latency { millis: 7 }).on("patch", "nodes"));
    let first = controller(&stage);
    let running = tokio::spawn(Arc::clone(&first).run());
    while stage.writes(0).iter().all(|call| call.verb != "patch") {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    first.close();
    stage.join("b").await;
    running.await.unwrap();
    assert!(!stage.node("a").await.unwrap().has_taint(UNINITIALISED), "what was begun is finished");
    assert!(stage.node("b").await.unwrap().has_taint(UNINITIALISED), "nothing else is begun");
}
