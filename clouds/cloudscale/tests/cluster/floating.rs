//! Floating IPs, which several Services may want.

use cloudscale_sim::Target;
use serde_json::json;

use crate::fixture::{Fixture, annotated};

const ONE: &str = "192.0.2.7";

async fn fixture() -> Fixture {
    let fixture = Fixture::new();
    fixture.nodes(2).await;
    fixture.cloud.add_floating_ip("192.0.2.7/32".parse().unwrap(), Some("rma"));
    fixture.cloud.add_floating_ip("192.0.2.8/32".parse().unwrap(), None);
    fixture.pass(5).await;
    fixture
}

fn wanting(list: &str) -> serde_json::Value {
    annotated(&[("floating-ips", json!(list))])
}

fn leads_to(fixture: &Fixture, address: &str) -> Option<String> {
    match fixture.cloud.target_of(address.parse().unwrap())? {
        Target::Balancer(id) => Some(id),
        Target::Server(id) => panic!("{address} leads to server {id}"),
    }
}

#[tokio::test(start_paused = true)]
async fn regional_and_global_ones_are_assigned_once() {
    let fixture = fixture().await;
    fixture.create("web", wanting(r#"["192.0.2.7/32", "192.0.2.8/32"]"#)).await;
    fixture.pass(30).await;
    let id = fixture.balancer("web").await.uuid;
    assert_eq!(leads_to(&fixture, ONE).as_ref(), Some(&id), "CS-129");
    assert_eq!(leads_to(&fixture, "192.0.2.8").as_ref(), Some(&id), "CS-129");
    assert_eq!(fixture.tally().count("floating-ips.update"), 2, "CS-129");
    fixture.assert_quiet(600, "CS-135").await;
    fixture.annotate("web", &[("floating-ips", json!(r#"["192.0.2.8"]"#))]).await;
    fixture.pass(30).await;
    assert_eq!(leads_to(&fixture, ONE).as_ref(), Some(&id), "CS-133");
    assert_eq!(fixture.changes(), [""; 0], "CS-133 CS-135 in another spelling it is the same");

    fixture.create("second", wanting(r#"["192.0.2.7/32"]"#)).await;
    fixture.pass(30).await;
    assert_eq!(leads_to(&fixture, ONE), Some(fixture.balancer("second").await.uuid), "CS-134");
}

#[tokio::test(start_paused = true)]
async fn the_one_that_has_it_keeps_it_and_stays_manageable() {
    let fixture = fixture().await;
    fixture.create("web", wanting(r#"["192.0.2.7/32"]"#)).await;
    fixture.pass(30).await;
    let id = fixture.balancer("web").await.uuid;
    fixture.create("late", wanting(r#"["192.0.2.7"]"#)).await;
    fixture.pass(60).await;
    assert_eq!(leads_to(&fixture, ONE).as_ref(), Some(&id), "CS-130");
    let warnings = fixture.warnings("late");
    assert!(warnings.iter().any(|line| line.contains("assigned to another service")), "CS-130 {warnings:?}");
    fixture.edit("web", json!({"spec": {"ports": [{"port": 8080, "protocol": "TCP"}]}})).await;
    fixture.pass(30).await;
    assert_eq!(fixture.shape("web").await[0].0, 8080, "CS-130 the first one is still manageable");
    fixture.delete("late").await;
    fixture.pass(30).await;
    assert!(fixture.cluster.service("late").await.is_none(), "CS-151");
    fixture.delete("web").await;
    fixture.pass(30).await;
    assert_eq!(leads_to(&fixture, ONE), None, "CS-148 it survives, unassigned");
    assert_eq!(fixture.cloud.floating_ips().len(), 2, "CS-148");
    assert_eq!(fixture.cloud.balancers().len(), 0, "CS-148 CS-151");
}

#[tokio::test(start_paused = true)]
async fn a_list_that_cannot_be_read_claims_nothing() {
    let fixture = fixture().await;
    fixture.create("broken", wanting("[192.0.2.7")).await;
    fixture.create("web", wanting(r#"["192.0.2.7/32"]"#)).await;
    fixture.pass(60).await;
    assert_eq!(leads_to(&fixture, ONE), Some(fixture.balancer("web").await.uuid), "CS-131");
    let warnings = fixture.warnings("broken");
    assert!(warnings.iter().any(|line| line.contains("floating-ips")), "CS-132 {warnings:?}");
    assert_eq!(fixture.cloud.balancers().len(), 1, "CS-132");
}
