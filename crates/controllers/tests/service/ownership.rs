//! Whose a load balancer is, is judged for every cloud before anything is done about it (law 3).

use serde_json::json;

use crate::fixture::Fixture;

const ID: &str = "fake.cloudberth.dev/balancer-id";
const ADOPT: &str = "cloudberth.dev/adopt-load-balancer";

#[tokio::test(start_paused = true)]
async fn a_copied_manifest_takes_nothing_away() {
    let scene = Fixture::new();
    let instance = scene.node("n1").await;
    scene.create("own", json!({})).await;
    scene.pass(10).await;
    let balancer = scene.assert_served("own", &[80], &[&instance]).await;
    let copy = || json!({"metadata": {"annotations": {ID: balancer.id}}, "spec": {"ports": [{"port": 81}]}});

    scene.create("copy", copy()).await;
    scene.pass(60).await;
    assert_eq!(scene.balancers(), std::slice::from_ref(&balancer), "L3-342 not touched, and no second one");
    let said = scene.stage.events("copy").join("\n");
    assert!(said.contains("LoadBalancerOfAnotherService") && said.contains(ADOPT), "L3-342 {said}");
    scene.assert_quiet(600, "L4-302").await;
    scene.delete("copy").await;
    scene.pass(60).await;
    assert!(scene.stage.service("copy").await.is_none(), "L3-343 nobody is kept from going");
    assert_eq!(scene.balancers(), std::slice::from_ref(&balancer), "L3-343");

    // The first Service is gone without its load balancer, and a person hands that over.
    scene.kill();
    scene.edit("own", json!({"metadata": {"finalizers": null}})).await;
    scene.delete("own").await;
    let mut scene = scene;
    scene.restart();
    scene.create("heir", copy()).await;
    scene.pass(10).await;
    assert_eq!(scene.balancers(), std::slice::from_ref(&balancer), "L3-344");
    scene.annotate("heir", json!({ADOPT: balancer.id})).await;
    scene.pass(30).await;
    let ports: Vec<_> = scene.balancers()[0].listeners.values().map(|listener| listener.port).collect();
    assert_eq!((scene.balancers().len(), ports), (1, vec![81]), "L3-344 it is the heir's");
    scene.delete("heir").await;
    scene.pass(60).await;
    assert_eq!(scene.balancers().len(), 0, "L3-344");
}
