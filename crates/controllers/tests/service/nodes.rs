//! Nodes come, go, are left out, and change their labels.

use cloudberth_fake::Fault;
use embedded_kube::{Fault as ApiFault, Harm};
use serde_json::json;

use crate::fixture::Fixture;

const EXCLUDE: &str = "node.kubernetes.io/exclude-from-external-load-balancers";

#[tokio::test(start_paused = true)]
async fn load_balancers_follow_the_nodes() {
    let scene = Fixture::new();
    let one = scene.node("n1").await;
    scene.create("web", json!({})).await;
    scene.pass(5).await;
    let two = scene.node("n2").await;
    scene.pass(5).await;
    scene.assert_served("web", &[80], &[&one, &two]).await;
    assert_eq!(scene.reasons("web").last().unwrap(), "UpdatedLoadBalancer");
    assert_eq!(scene.metrics().load_balancer_syncs.get(), 1);
    assert_eq!(scene.metrics().node_sync_latency.count(), 1);
    assert_eq!(scene.metrics().update_hosts_latency.count(), 1);

    scene.label_node("n1", json!({EXCLUDE: ""})).await;
    scene.pass(5).await;
    scene.assert_served("web", &[80], &[&two]).await;
    scene.label_node("n1", json!({EXCLUDE: null})).await;
    scene.pass(5).await;
    scene.assert_served("web", &[80], &[&one, &two]).await;

    scene.stage.delete(&scene.stage.nodes(), "n2").await;
    scene.pass(5).await;
    scene.assert_served("web", &[80], &[&one]).await;
    let calls = scene.calls();
    scene.stage.set_ready("n1", false).await;
    scene.label_node("n1", json!({"zone": "a"})).await;
    scene.pass(60).await;
    assert_eq!(scene.calls(), calls, "readiness and labels that nobody selects touch nothing");

    scene.stage.delete(&scene.stage.nodes(), "n1").await;
    scene.pass(5).await;
    scene.assert_served("web", &[80], &[]).await;
    assert_eq!(scene.reasons("web").last().unwrap(), "UnAvailableLoadBalancer");
}

#[tokio::test(start_paused = true)]
async fn a_label_touches_only_those_who_select_by_it() {
    let scene = Fixture::new();
    let one = scene.node("n1").await;
    let two = scene.node("n2").await;
    scene.label_node("n1", json!({"pool": "edge"})).await;
    let selector = json!({"metadata": {"annotations": {"fake.cloudberth.dev/node-selector": "pool=edge"}}});
    scene.create("edge", selector).await;
    scene.create("all", json!({})).await;
    scene.pass(5).await;
    scene.assert_served("edge", &[80], &[&one]).await;
    scene.assert_served("all", &[80], &[&one, &two]).await;

    let (calls, all) = (scene.calls(), scene.balancer("all").await.id);
    scene.label_node("n2", json!({"pool": "edge"})).await;
    scene.pass(5).await;
    scene.assert_served("edge", &[80], &[&one, &two]).await;
    scene.label_node("n1", json!({"pool": "inner"})).await;
    scene.pass(5).await;
    scene.assert_served("edge", &[80], &[&two]).await;
    let looked: Vec<_> = scene.stage.clouds[0].calls().into_iter().skip(calls).collect();
    assert!(looked.iter().all(|call| call.subject != all), "the other is not even looked at: {looked:?}");

    scene.annotate("edge", json!({"fake.cloudberth.dev/node-selector": "pool in ("})).await;
    scene.pass(5).await;
    scene.assert_served("edge", &[80], &[&two]).await;
    assert!(scene.stage.events("edge").last().unwrap().contains("node-selector"), "L8-144 refused, and kept");
}

#[tokio::test(start_paused = true)]
async fn a_failed_update_comes_back_by_itself_and_is_not_doubled() {
    let scene = Fixture::new();
    let one = scene.node("n1").await;
    scene.create("web", json!({})).await;
    scene.pass(5).await;
    let mut left = 1;
    scene.stage.clouds[0].plan_faults(move |request| {
        (request.operation == "add member" && std::mem::take(&mut left) == 1)
            .then_some(Fault::Refuse(cloudberth_core::Category::Temporary))
    });
    let calls = scene.calls();
    let two = scene.node("n2").await;
    scene.pass(3).await;
    assert_eq!(scene.reasons("web").last().unwrap(), "UpdateLoadBalancerFailed");
    assert_eq!(scene.metrics().node_sync_errors.get(), 1);
    scene.label_node("n2", json!({"unrelated": "x"})).await;
    scene.pass(1).await;
    assert_eq!(scene.mutations(calls).len(), 1, "FW-215 no second try because of the nodes");
    scene.pass(5).await;
    scene.assert_served("web", &[80], &[&one, &two]).await;
    assert_eq!(scene.mutations(calls).len(), 2, "FW-215 but the retry");
}

#[tokio::test(start_paused = true)]
async fn a_turn_in_the_middle_of_a_change_of_nodes_never_falls_back_to_the_old_set() {
    let scene =
        Fixture::with(&["alpha"], |settings| settings.latency = std::time::Duration::from_millis(800));
    let one = scene.node("n1").await;
    scene.create("a", json!({})).await;
    scene.pass(30).await;
    let calls = scene.calls();
    let two = scene.node("n2").await;
    scene.pass(1).await;
    // While A is being updated, B comes and another node joins.
    scene.create("b", json!({})).await;
    let three = scene.node("n3").await;
    scene.pass(60).await;
    scene.assert_served("a", &[80], &[&one, &two, &three]).await;
    let b = scene.assert_served("b", &[80], &[&one, &two, &three]).await;
    let added = |id: &str| {
        scene.mutations(calls).iter().filter(|c| c.operation == "add member" && c.subject == id).count()
    };
    assert_eq!(added(&b.id), 3, "FW-230 each instance once, none taken out again");
    assert!(scene.mutations(calls).iter().all(|call| call.operation != "remove member"), "FW-230");
}

#[tokio::test(start_paused = true)]
async fn a_pass_right_after_our_own_write_works_from_the_written_version() {
    let scene = Fixture::new();
    let instance = scene.node("n1").await;
    scene.pass(1).await;
    // From here on the watch of Services tells only about the creation; all that comes later is known from answers.
    let mut silent = ApiFault::new(Harm::StallWatch { after_events: 1 });
    silent.resource = "services".into();
    scene.stage.api.add_fault(silent);
    scene.stage.api.restart();
    scene.pass(5).await;
    scene.create("web", json!({})).await;
    scene.pass(3).await;
    scene.assert_served("web", &[80], &[&instance]).await;
    let (calls, kube) = (scene.calls(), scene.kube_calls());
    let two = scene.node("n2").await;
    scene.pass(5).await;
    assert_eq!(scene.balancer("web").await.members.len(), 2);
    let writes = scene.stage.writes(kube);
    assert!(
        writes.iter().all(|write| write.resource != "services"),
        "L4-142 nothing is written twice: {writes:?}"
    );
    assert_eq!(scene.mutations(calls).len(), 1, "L6-142 and nothing is made twice");
    scene.assert_served("web", &[80], &[&instance, &two]).await;
}
