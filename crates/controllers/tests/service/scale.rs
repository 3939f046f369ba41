//! Many Services: what they cost together.

use std::collections::BTreeMap;

use cloudberth_controllers::service::ServiceSettings;
use cloudberth_fake::SimSettings;
use serde_json::json;
use testing_kit::ClusterFixture;

use crate::fixture::Fixture;

const MANY: usize = 100;

async fn hundred(scene: &Fixture) {
    for number in 0..MANY {
        scene.create(&format!("s{number:03}"), json!({})).await;
    }
    scene.pass(60).await;
    assert_eq!(scene.balancers().len(), MANY);
}

#[tokio::test(start_paused = true)]
async fn one_node_changes_each_of_a_hundred_services_once_and_costs_one_survey() {
    let mut scene = Fixture::new();
    scene.node("n1").await;
    hundred(&scene).await;
    let surveys = scene.surveys();
    println!("100 Services created with {surveys} surveys");
    assert!(surveys <= 10, "L7-140 {surveys}");

    let (calls, kube) = (scene.calls(), scene.kube_calls());
    // It joins as nodes do: first without an id, then its cloud gives it one.
    let id = scene.stage.clouds[0].add_instance("n2", "north-1").id;
    scene.stage.create(&scene.stage.nodes(), "Node", "n2", json!({})).await;
    scene.pass(2).await;
    scene
        .stage
        .merge(&scene.stage.nodes(), "n2", json!({"spec": {"providerID": format!("alpha://{id}")}}))
        .await;
    scene.pass(60).await;
    let mut each: BTreeMap<String, Vec<&str>> = BTreeMap::new();
    for call in scene.mutations(calls) {
        each.entry(call.subject).or_default().push(call.operation);
    }
    assert_eq!(each.len(), MANY);
    assert!(each.values().all(|done| *done == ["add member"]), "L7-141 {each:?}");
    let looks = scene.surveys() - surveys;
    println!("one node joining: {looks} surveys, {} mutations", scene.mutations(calls).len());
    assert!(looks <= 2, "L7-142 one for each of its two appearances, not one for each Service: {looks}");
    let writes = scene.stage.writes(kube);
    assert!(writes.iter().all(|write| write.resource != "services"), "L4-144");
    assert_eq!(scene.metrics().load_balancer_syncs.get(), 2 * MANY as u64);

    scene.assert_quiet(3_600, "L4-145 at rest").await;
    let surveys = scene.surveys();
    scene.restart();
    scene.assert_quiet(600, "L4-146 after a restart").await;
    println!("a restart: {} surveys", scene.surveys() - surveys);
    assert_eq!(scene.surveys() - surveys, 1, "L7-143");
}

#[tokio::test(start_paused = true)]
async fn no_more_services_at_once_than_workers() {
    for (workers, most) in [(1, 1), (2, 2), (16, 16)] {
        let slow = |settings: &mut SimSettings| settings.latency = std::time::Duration::from_secs(1);
        let settings = ServiceSettings { workers, drift: None, ..ServiceSettings::default() };
        let scene = Fixture::on(ClusterFixture::with(&["alpha"], slow), settings);
        scene.node("n1").await;
        for number in 0..40 {
            scene.create(&format!("s{number:03}"), json!({})).await;
        }
        let mut seen = 0;
        for _ in 0..600 {
            scene.stage.pass(1).await;
            let unfinished = scene.controller.pool().look(|queue| queue.known() - queue.depth());
            seen = seen.max(unfinished);
        }
        assert_eq!(scene.balancers().len(), 40, "FW-212 all of them, {workers} at once");
        assert_eq!(seen, most, "FW-212 L12-140");
    }
}

#[tokio::test(start_paused = true)]
async fn the_drift_pass_repairs_hand_edits_within_its_budget() {
    let settings = ServiceSettings::default();
    let scene = Fixture::on(ClusterFixture::new(), settings);
    let instance = scene.node("n1").await;
    hundred(&scene).await;
    let victim = scene.balancer("s050").await;
    scene.stage.clouds[0].delete_balancer(&victim.id);
    let (calls, surveys) = (scene.calls(), scene.surveys());
    scene.pass(1_000).await;
    let new = scene.assert_served("s050", &[80], &[&instance]).await;
    assert_ne!(new.id, victim.id, "it was built anew");
    let mut repairs: Vec<_> = scene.mutations(calls).iter().map(|call| call.operation).collect();
    repairs.sort_unstable();
    assert_eq!(repairs, ["add listener", "add member", "create balancer"], "and nothing else");

    let (calls, looked) = (scene.calls(), scene.surveys());
    scene.pass(3_600).await;
    let (per_hour, surveys_per_hour) = (scene.calls() - calls, scene.surveys() - looked);
    println!("drift: {per_hour} calls in an hour for {MANY} Services, {surveys_per_hour} of them surveys");
    // Between four and six passes of at most one survey and one look at each.
    assert!(surveys_per_hour <= 6, "L7-144 {surveys_per_hour}");
    assert!((3 * MANY..=6 * (MANY + 1)).contains(&per_hour), "L7-145 {per_hour}");
    assert!(looked - surveys <= 3);
    assert_eq!(scene.mutations(calls), [], "L4-147");
}
