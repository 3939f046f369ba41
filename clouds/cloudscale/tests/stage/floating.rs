//! Floating IPs, which several Services may want.

use cloudscale_sim::Target;
use serde_json::json;

use crate::scene::{Scene, annotated};

const ONE: &str = "192.0.2.7";

async fn scene() -> Scene {
    let scene = Scene::new();
    scene.nodes(2).await;
    scene.cloud.add_floating_ip("192.0.2.7/32".parse().unwrap(), Some("rma"));
    scene.cloud.add_floating_ip("192.0.2.8/32".parse().unwrap(), None);
    scene.pass(5).await;
    scene
}

fn wanting(list: &str) -> serde_json::Value {
    annotated(&[("floating-ips", json!(list))])
}

fn leads_to(scene: &Scene, address: &str) -> Option<String> {
    match scene.cloud.target_of(address.parse().unwrap())? {
        Target::Balancer(id) => Some(id),
        Target::Server(id) => panic!("{address} leads to server {id}"),
    }
}

#[tokio::test(start_paused = true)]
async fn regional_and_global_ones_are_assigned_once() {
    let scene = scene().await;
    scene.create("web", wanting(r#"["192.0.2.7/32", "192.0.2.8/32"]"#)).await;
    scene.pass(30).await;
    let id = scene.balancer("web").await.uuid;
    assert_eq!(leads_to(&scene, ONE).as_ref(), Some(&id), "CS-129");
    assert_eq!(leads_to(&scene, "192.0.2.8").as_ref(), Some(&id), "CS-129");
    assert_eq!(scene.tally().count("floating-ips.update"), 2, "CS-129");
    scene.assert_quiet(600, "CS-135").await;
    scene.annotate("web", &[("floating-ips", json!(r#"["192.0.2.8"]"#))]).await;
    scene.pass(30).await;
    assert_eq!(leads_to(&scene, ONE).as_ref(), Some(&id), "CS-133");
    assert_eq!(scene.changes(), [""; 0], "CS-133 CS-135 in another spelling it is the same");

    scene.create("second", wanting(r#"["192.0.2.7/32"]"#)).await;
    scene.pass(30).await;
    assert_eq!(leads_to(&scene, ONE), Some(scene.balancer("second").await.uuid), "CS-134");
}

#[tokio::test(start_paused = true)]
async fn the_one_that_has_it_keeps_it_and_stays_manageable() {
    let scene = scene().await;
    scene.create("web", wanting(r#"["192.0.2.7/32"]"#)).await;
    scene.pass(30).await;
    let id = scene.balancer("web").await.uuid;
    scene.create("late", wanting(r#"["192.0.2.7"]"#)).await;
    scene.pass(60).await;
    assert_eq!(leads_to(&scene, ONE).as_ref(), Some(&id), "CS-130");
    let warnings = scene.warnings("late");
    assert!(warnings.iter().any(|line| line.contains("assigned to another service")), "CS-130 {warnings:?}");
    scene.edit("web", json!({"spec": {"ports": [{"port": 8080, "protocol": "TCP"}]}})).await;
    scene.pass(30).await;
    assert_eq!(scene.shape("web").await[0].0, 8080, "CS-130 the first one is still manageable");
    scene.delete("late").await;
    scene.pass(30).await;
    assert!(scene.stage.service("late").await.is_none(), "CS-151");
    scene.delete("web").await;
    scene.pass(30).await;
    assert_eq!(leads_to(&scene, ONE), None, "CS-148 it survives, unassigned");
    assert_eq!(scene.cloud.floating_ips().len(), 2, "CS-148");
    assert_eq!(scene.cloud.balancers().len(), 0, "CS-148 CS-151");
}

#[tokio::test(start_paused = true)]
async fn a_list_that_cannot_be_read_claims_nothing() {
    let scene = scene().await;
    scene.create("broken", wanting("[192.0.2.7")).await;
    scene.create("web", wanting(r#"["192.0.2.7/32"]"#)).await;
    scene.pass(60).await;
    assert_eq!(leads_to(&scene, ONE), Some(scene.balancer("web").await.uuid), "CS-131");
    let warnings = scene.warnings("broken");
    assert!(warnings.iter().any(|line| line.contains("floating-ips")), "CS-132 {warnings:?}");
    assert_eq!(scene.cloud.balancers().len(), 1, "CS-132");
}
