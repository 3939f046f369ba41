//! Killed anywhere and started again: the same end, nothing leaked, nothing doubled, nothing lost (law 6).

use std::time::Duration;

use embedded_kube::{Fault as ApiFault, Harm};
use serde_json::json;

use crate::fixture::Fixture;

/// Lets the program live for so long, kills it, and starts it anew.
async fn crash_after(scene: &mut Fixture, life: Duration) {
    tokio::time::sleep(life).await;
    scene.kill();
    tokio::time::sleep(Duration::from_secs(1)).await;
    scene.restart();
}

async fn live_and_die(step: u64) -> u64 {
    let mut scene = Fixture::with(&["alpha"], |settings| {
        settings.latency = Duration::from_millis(20);
        settings.lag = Duration::from_secs(10);
        settings.build = Duration::from_millis(100);
    });
    // Writes to Kubernetes take their time too, so that a kill can fall into them.
    let slow = |verb| ApiFault::new(Harm::Latency { millis: 25 }).on(verb, "services");
    scene.stage.api.add_fault(slow("patch"));
    scene.stage.clouds[0].add_floating("198.51.100.7");
    let (one, two) = (scene.node("n1").await, scene.node("n2").await);
    scene.pass(1).await;
    let life = Duration::from_millis(step);

    let naming = json!({"fake.cloudberth.dev/floating-address": "198.51.100.7"});
    scene.create("web", json!({"metadata": {"annotations": naming}})).await;
    scene.create("api", json!({})).await;
    crash_after(&mut scene, life).await;
    scene.pass(300).await;
    let web = scene.assert_served("web", &[80], &[&one, &two]).await;
    assert!(web.floating.contains("198.51.100.7"), "step {step}");
    scene.assert_served("api", &[80], &[&one, &two]).await;
    assert_eq!(scene.balancers().len(), 2, "L6-151 step {step}: nothing doubled");

    scene.edit("web", json!({"spec": {"ports": [{"port": 443}]}})).await;
    scene.stage.delete(&scene.stage.nodes(), "n2").await;
    crash_after(&mut scene, life).await;
    scene.pass(300).await;
    assert_eq!(scene.assert_served("web", &[443], &[&one]).await.id, web.id, "L6-152 step {step}");

    scene.delete("web").await;
    scene.edit("api", json!({"spec": {"type": "ClusterIP"}})).await;
    crash_after(&mut scene, life).await;
    scene.pass(300).await;
    assert!(scene.stage.service("web").await.is_none(), "L6-153 step {step}");
    assert_eq!(scene.get("api").await.finalizers, [""; 0]);
    assert_eq!(scene.balancers(), [], "L6-154 step {step}: nothing leaked");
    let creations = scene.mutations(0).iter().filter(|call| call.operation == "create balancer").count();
    assert_eq!(creations, 2, "L6-155 step {step}");
    assert_eq!(scene.metrics().orphans.get(), 0);
    scene.kube_calls()
}

#[tokio::test(start_paused = true)]
async fn killed_at_any_moment_it_reaches_the_same_end() {
    let mut lives = 0;
    for step in (0..400).step_by(4).chain((400..2_600).step_by(100)) {
        live_and_die(step).await;
        lives += 1;
    }
    println!("{lives} programs were killed three times each");
}

#[tokio::test(start_paused = true)]
async fn killed_again_and_again_it_still_gets_there() {
    let mut scene = Fixture::with(&["alpha"], |settings| settings.lag = Duration::from_secs(5));
    let instance = scene.node("n1").await;
    for name in ["a", "b", "c"] {
        scene.create(name, json!({})).await;
    }
    for life in 0..40 {
        crash_after(&mut scene, Duration::from_millis(10 + life * 13 % 90)).await;
    }
    scene.pass(300).await;
    for name in ["a", "b", "c"] {
        scene.assert_served(name, &[80], &[&instance]).await;
        scene.delete(name).await;
    }
    for life in 0..40 {
        crash_after(&mut scene, Duration::from_millis(5 + life * 7 % 60)).await;
    }
    scene.pass(300).await;
    assert_eq!(scene.balancers(), [], "L6-156");
    let creations = scene.mutations(0).iter().filter(|call| call.operation == "create balancer").count();
    assert_eq!(creations, 3, "L6-157");
}
