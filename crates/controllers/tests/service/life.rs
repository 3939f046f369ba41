//! The life of one Service: it comes, changes, and goes.

use cloudberth_core::view::IpMode;
use serde_json::json;

use crate::fixture::{FINALIZER, Fixture};

#[tokio::test(start_paused = true)]
async fn a_service_gets_a_load_balancer_with_finalizer_first_and_a_second_pass_writes_nothing() {
    let mut scene = Fixture::new();
    let instance = scene.node("n1").await;
    let kube = scene.kube_calls();
    scene.create("web", json!({})).await;
    scene.pass(5).await;
    scene.assert_served("web", &[80], &[&instance]).await;
    assert_eq!(scene.get("web").await.ingress[0].ip_mode, Some(IpMode::Proxy));
    let writes: Vec<_> =
        scene.stage.writes(kube + 1).into_iter().filter(|w| w.resource == "services").collect();
    assert!(writes.iter().all(|w| w.verb == "patch" && w.subresource == "status"), "{writes:?}");
    assert_eq!(writes.len(), 2, "finalizer with intent, then id, address and the end of the intent");
    let first_mutation = scene.mutations(0).first().map(|call| call.operation);
    assert_eq!(first_mutation, Some("create balancer"));
    assert_eq!(scene.reasons("web"), ["EnsuringLoadBalancer", "EnsuredLoadBalancer"]);

    scene.assert_quiet(3_600, "L4-140 an hour in which nothing happens").await;
    scene.restart();
    scene.assert_quiet(600, "L4-141 a restart").await;
    assert!(scene.surveys() >= 2, "it was looked at again");
}

#[tokio::test(start_paused = true)]
async fn ports_and_annotations_are_carried_out_and_labels_are_not_looked_at() {
    let scene = Fixture::new();
    let instance = scene.node("n1").await;
    scene.create("web", json!({})).await;
    scene.pass(5).await;
    let ports = json!([{"name": "a", "port": 80}, {"name": "b", "port": 443}]);
    scene.edit("web", json!({"spec": {"ports": ports}})).await;
    scene.pass(5).await;
    scene.assert_served("web", &[80, 443], &[&instance]).await;
    scene.annotate("web", json!({"fake.cloudberth.dev/algorithm": "least-connections"})).await;
    scene.pass(5).await;
    assert_eq!(scene.balancer("web").await.algorithm, "least-connections");
    let calls = scene.calls();
    scene.edit("web", json!({"metadata": {"labels": {"a": "b"}}})).await;
    scene.pass(60).await;
    assert_eq!(scene.calls(), calls, "not even a look");
}

#[tokio::test(start_paused = true)]
async fn everything_refused_is_told_at_once_and_not_tried_until_the_object_changes() {
    let scene = Fixture::new();
    scene.node("n1").await;
    let wrong = json!({"fake.cloudberth.dev/algorithm": "fastest"});
    let spec = json!({"loadBalancerSourceRanges": ["10.0.0.0/8"], "sessionAffinity": "ClientIP"});
    scene.create("web", json!({"metadata": {"annotations": wrong}, "spec": spec})).await;
    scene.pass(5).await;
    assert_eq!(scene.balancers(), [], "L8-140 a refusal blocks creation");
    let events = scene.stage.events("web");
    let told: Vec<_> = events.iter().filter(|line| line.contains("sessionAffinity")).collect();
    assert_eq!(told.len(), 1, "{events:?}");
    for field in ["loadBalancerSourceRanges", "sessionAffinity", "fake.cloudberth.dev/algorithm"] {
        assert!(told[0].contains(field) && told[0].starts_with("Warning"), "L8-141 {field}: {events:?}");
    }
    let calls = scene.calls();
    scene.pass(3_600).await;
    assert_eq!(scene.calls(), calls, "L8-142 the object has not changed");

    let good = json!({"loadBalancerSourceRanges": null, "sessionAffinity": "None"});
    let mended = json!({"metadata": {"annotations": {"fake.cloudberth.dev/algorithm": null}}, "spec": good});
    scene.edit("web", mended).await;
    scene.pass(5).await;
    assert_eq!(scene.balancers().len(), 1);
    scene
        .edit("web", json!({"spec": {"loadBalancerSourceRanges": ["10.0.0.0/8"], "ports": [{"port": 81}]}}))
        .await;
    scene.pass(5).await;
    let port = scene.balancer("web").await.listeners.into_values().next().unwrap().port;
    assert_eq!(port, 81, "L8-143 on an existing load balancer a refusal blocks only its field");
}

#[tokio::test(start_paused = true)]
async fn another_type_takes_the_load_balancer_away_and_back() {
    let scene = Fixture::new();
    let instance = scene.node("n1").await;
    scene.create("web", json!({})).await;
    scene.pass(5).await;
    scene.edit("web", json!({"spec": {"type": "ClusterIP"}})).await;
    scene.pass(5).await;
    let service = scene.get("web").await;
    assert_eq!(scene.balancers(), []);
    assert!(service.ingress.is_empty() && service.finalizers.is_empty(), "{service:?}");
    assert_eq!(scene.reasons("web")[2..], ["DeletingLoadBalancer", "DeletedLoadBalancer"]);
    scene.edit("web", json!({"spec": {"type": "LoadBalancer"}})).await;
    scene.pass(5).await;
    scene.assert_served("web", &[80], &[&instance]).await;
}

#[tokio::test(start_paused = true)]
async fn a_deleted_service_takes_its_load_balancer_along() {
    let mut scene = Fixture::new();
    scene.node("n1").await;
    scene.create("web", json!({})).await;
    scene.create("off", json!({})).await;
    scene.pass(5).await;
    let surveys = scene.surveys();
    scene.delete("web").await;
    scene.pass(5).await;
    assert!(scene.stage.service("web").await.is_none());
    assert_eq!(scene.balancers().len(), 1);
    assert_eq!(scene.surveys(), surveys + 1, "L7-146 one look, and none after it was let go of");
    assert_eq!(scene.reasons("web")[2..], ["DeletingLoadBalancer", "DeletedLoadBalancer"]);
    assert_eq!(scene.controller.remembered(), 1, "nothing is remembered about it");

    scene.kill();
    scene.pass(1).await;
    scene.delete("off").await;
    scene.pass(60).await;
    assert!(scene.stage.service("off").await.is_some_and(|s| s.deleting), "L5-140 held by the finalizer");
    scene.restart();
    scene.pass(5).await;
    assert!(scene.stage.service("off").await.is_none());
    assert_eq!(scene.balancers(), [], "L6-140 deleted while nobody was there");
    assert_eq!(scene.metrics().orphans.get(), 0);
}

#[tokio::test(start_paused = true)]
async fn a_service_made_anew_under_the_same_name_gets_a_load_balancer_of_its_own() {
    let scene = Fixture::new();
    let instance = scene.node("n1").await;
    for round in 0..3 {
        scene.create("web", json!({})).await;
        if round > 0 {
            scene.pass(5).await;
        }
        scene.delete("web").await;
        while scene.stage.service("web").await.is_some() {
            scene.stage.pass(1).await;
        }
    }
    scene.create("web", json!({})).await;
    scene.pass(5).await;
    scene.assert_served("web", &[80], &[&instance]).await;
    assert_eq!(scene.balancers().len(), 1, "L6-141");
    assert_eq!(scene.metrics().orphans.get(), 0);
}

#[tokio::test(start_paused = true)]
async fn a_stripped_finalizer_is_put_back_and_an_orphan_is_told_once_and_left_alone() {
    let scene = Fixture::new();
    scene.node("n1").await;
    scene.create("web", json!({})).await;
    scene.pass(5).await;
    scene.edit("web", json!({"metadata": {"finalizers": null}})).await;
    scene.pass(5).await;
    assert_eq!(scene.get("web").await.finalizers, [FINALIZER], "L5-141 it is still wanted");

    scene.kill();
    scene.pass(1).await;
    let calls = scene.calls();
    scene.delete("web").await;
    let mut scene = scene;
    scene.stage.reboot();
    scene.stage.run_watches();
    scene.pass(1).await;
    // Somebody is impatient, and quicker than the cleanup.
    scene.stage.clouds[0].plan_faults(|_| Some(cloudberth_fake::Fault::RequestLost));
    let controller = cloudberth_controllers::service::ServiceController::new(
        scene.stage.ctx.clone(),
        scene.settings.clone(),
    );
    scene.stage.run(std::sync::Arc::clone(&controller).run());
    scene.pass(1).await;
    scene.edit("web", json!({"metadata": {"finalizers": null}})).await;
    scene.pass(1).await;
    scene.stage.clouds[0].stop_faults();
    scene.pass(600).await;
    assert!(scene.stage.service("web").await.is_none());
    assert_eq!(scene.balancers().len(), 1, "L5-142 never deleted");
    assert_eq!(scene.mutations(calls), []);
    let told = scene.reasons("web").into_iter().filter(|reason| reason == "OrphanedLoadBalancer").count();
    assert_eq!((told, scene.metrics().orphans.get()), (1, 1), "L5-143 {:?}", scene.stage.events("web"));
}

#[tokio::test(start_paused = true)]
async fn other_classes_and_other_types_are_invisible() {
    let scene = Fixture::new();
    scene.node("n1").await;
    scene.create("theirs", json!({"spec": {"loadBalancerClass": "example.net/other"}})).await;
    scene.create("inside", json!({"spec": {"type": "ClusterIP"}})).await;
    scene.create("claimed", json!({"spec": {"loadBalancerClass": "alpha.example/lb"}})).await;
    scene.pass(5).await;
    assert_eq!(scene.balancers().len(), 1, "L3-140 only the class that is claimed");
    for name in ["theirs", "inside"] {
        assert!(scene.get(name).await.finalizers.is_empty(), "L3-141 {name}");
        assert_eq!(scene.reasons(name), [""; 0], "{name}");
    }
    scene.delete("theirs").await;
    scene.pass(5).await;
    assert_eq!(scene.reasons("theirs"), [""; 0]);
    assert_eq!(scene.controller.remembered(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_survey_from_before_a_mutation_does_not_serve_what_was_mutated() {
    let scene = Fixture::new();
    scene.node("n1").await;
    scene.create("web", json!({})).await;
    scene.pass(1).await;
    assert_eq!(scene.surveys(), 1);
    scene.create("new", json!({})).await;
    scene.pass(1).await;
    assert_eq!(scene.surveys(), 1, "L7-147 a young one serves whom nothing was done to");
    scene.edit("web", json!({"spec": {"ports": [{"port": 81}]}})).await;
    scene.pass(1).await;
    assert_eq!(scene.surveys(), 2, "L6-162 but not the one that was built after it");
}
