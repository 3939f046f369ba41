//! Several clouds, and several Services that want the same thing.

use serde_json::json;

use crate::fixture::Fixture;

#[tokio::test(start_paused = true)]
async fn each_cloud_serves_its_class_with_its_own_nodes() {
    let scene = Fixture::with(&["alpha", "beta"], |_| {});
    let (one, two) = (scene.node_in(0, "alpha", "n1").await, scene.node_in(1, "beta", "n2").await);
    scene
        .stage
        .create(&scene.stage.nodes(), "Node", "stranger", json!({"spec": {"providerID": "else://1"}}))
        .await;
    scene.create("plain", json!({})).await;
    scene.create("other", json!({"spec": {"loadBalancerClass": "beta.example/lb"}})).await;
    scene.pass(5).await;
    scene.assert_served("plain", &[80], &[&one]).await;
    let members = |cloud: usize| {
        let all = scene.stage.clouds[cloud].balancers();
        all.into_iter().map(|b| b.members.into_values().collect::<Vec<_>>()).collect::<Vec<_>>()
    };
    assert_eq!(members(0), [[one.clone()]], "L3-142 the default provider, its own nodes only");
    assert_eq!(members(1), [[two.clone()]], "L3-143 the class leads to the other");

    let beta = scene.stage.clouds[1].calls().len();
    let three = scene.node_in(0, "alpha", "n3").await;
    scene.pass(5).await;
    assert_eq!(members(0), [[one, three]]);
    assert_eq!(scene.stage.clouds[1].calls().len(), beta, "a node of one cloud is no news to the other");

    scene.delete("other").await;
    scene.pass(5).await;
    assert_eq!(scene.stage.clouds[1].balancers(), []);
    assert!(scene.stage.service("other").await.is_none());
    assert_eq!(scene.balancers().len(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_service_that_gets_a_class_moves_or_is_left_alone() {
    let scene = Fixture::with(&["alpha", "beta"], |_| {});
    scene.node_in(0, "alpha", "n1").await;
    scene.node_in(1, "beta", "n2").await;
    scene.create("web", json!({})).await;
    scene.pass(5).await;
    // The class may be set only together with the type, so a person takes two steps; both are there at the restart.
    scene.kill();
    scene.pass(1).await;
    scene.edit("web", json!({"spec": {"type": "ClusterIP"}})).await;
    scene
        .edit("web", json!({"spec": {"type": "LoadBalancer", "loadBalancerClass": "beta.example/lb"}}))
        .await;
    let mut scene = scene;
    scene.restart();
    scene.pass(10).await;
    assert_eq!(scene.balancers(), [], "cleaned up where it was");
    assert_eq!(scene.stage.clouds[1].balancers().len(), 1, "and built where it is to be");

    scene.kill();
    scene.pass(1).await;
    scene.edit("web", json!({"spec": {"type": "ClusterIP", "loadBalancerClass": null}})).await;
    scene
        .edit("web", json!({"spec": {"type": "LoadBalancer", "loadBalancerClass": "example.net/other"}}))
        .await;
    scene.restart();
    scene.pass(10).await;
    assert_eq!(scene.stage.clouds[1].balancers(), [], "ours goes, by our own record");
    assert!(scene.get("web").await.finalizers.is_empty());
    scene.assert_quiet(600, "L3-144 from here on it is somebody else's").await;
}

#[tokio::test(start_paused = true)]
async fn a_cloud_that_hangs_does_not_hold_up_the_other() {
    let scene = Fixture::with(&["alpha", "beta"], |_| {});
    scene.node_in(0, "alpha", "n1").await;
    scene.node_in(1, "beta", "n2").await;
    scene.stage.clouds[0]
        .plan_faults(|_| Some(cloudberth_fake::Fault::Stall(std::time::Duration::from_secs(3_600))));
    for number in 0..50 {
        scene.create(&format!("s{number}"), json!({})).await;
    }
    scene.pass(2).await;
    scene.create("other", json!({"spec": {"loadBalancerClass": "beta.example/lb"}})).await;
    scene.pass(5).await;
    assert_eq!(
        scene.stage.clouds[1].balancers().len(),
        1,
        "L11-144 although fifty wait for the cloud that hangs"
    );
    for number in 5..45 {
        scene.delete(&format!("s{number}")).await;
    }
    scene.stage.clouds[0].stop_faults();
    scene.pass(900).await;
    assert_eq!(
        scene.balancers().len(),
        10,
        "and these get there too, those in line behind the ones that are gone"
    );
}

#[tokio::test(start_paused = true)]
async fn an_orphan_that_lives_on_is_told_once_too() {
    let scene = Fixture::with(&["alpha", "beta"], |_| {});
    scene.node_in(0, "alpha", "n1").await;
    scene.create("web", json!({})).await;
    scene.pass(5).await;
    let calls = scene.calls();
    scene.edit("web", json!({"metadata": {"finalizers": null}, "spec": {"type": "ClusterIP"}})).await;
    scene.pass(5).await;
    let told = |scene: &Fixture| scene.reasons("web").iter().filter(|r| *r == "OrphanedLoadBalancer").count();
    assert_eq!((told(&scene), scene.metrics().orphans.get()), (1, 1), "L5-146");
    scene.annotate("web", json!({"note": "x"})).await;
    scene.delete("web").await;
    scene.pass(60).await;
    assert!(scene.stage.service("web").await.is_none());
    assert_eq!((told(&scene), scene.metrics().orphans.get()), (1, 1), "L5-147 not again when it goes");
    assert_eq!((scene.balancers().len(), scene.mutations(calls)), (1, vec![]), "L5-148 never deleted");
}

#[tokio::test(start_paused = true)]
async fn two_services_that_name_one_address_do_not_fight_and_the_second_gets_it_when_the_first_goes() {
    let scene = Fixture::new();
    scene.node("n1").await;
    scene.stage.clouds[0].add_floating("198.51.100.7");
    let naming =
        json!({"metadata": {"annotations": {"fake.cloudberth.dev/floating-address": "198.51.100.7"}}});
    scene.create("first", naming.clone()).await;
    scene.pass(5).await;
    scene.create("second", naming).await;
    scene.pass(5).await;
    let first = scene.balancer("first").await;
    assert!(first.floating.contains("198.51.100.7"));
    assert!(scene.balancer("second").await.floating.is_empty());
    let events = scene.stage.events("second");
    let told = events.iter().find(|line| line.contains("AddressTaken")).expect("told why");
    assert!(told.contains("default/first"), "{told}");
    scene.assert_quiet(3_600, "L4-143 nobody takes it from the other").await;

    scene.delete("first").await;
    scene.pass(5).await;
    assert!(scene.balancer("second").await.floating.contains("198.51.100.7"), "it was waited for");
}

#[tokio::test(start_paused = true)]
async fn one_writer_per_thing_at_a_time() {
    let mut scene = Fixture::new();
    scene.node("n1").await;
    // All of them are there before the first pass begins.
    scene.kill();
    scene.stage.clouds[0].add_floating("198.51.100.7");
    let naming =
        json!({"metadata": {"annotations": {"fake.cloudberth.dev/floating-address": "198.51.100.7"}}});
    for name in ["a", "b", "c", "d"] {
        scene.create(name, naming.clone()).await;
    }
    scene.restart();
    scene.pass(5).await;
    assert_eq!(scene.balancers().len(), 4, "who has to wait gets its turn");
    // All four claim it, so none of them may take it.
    assert!(scene.balancers().iter().all(|b| b.floating.is_empty()));
    let mutations = scene.mutations(0);
    let turns = mutations.chunk_by(|a, b| owner(&scene, a) == owner(&scene, b)).count();
    assert_eq!(turns, 4, "one after the other: {mutations:?}");
}

fn owner(scene: &Fixture, call: &cloudberth_fake::CallRecord) -> String {
    scene.stage.clouds[0].name_of_balancer(&call.subject).unwrap_or_else(|| call.subject.clone())
}
