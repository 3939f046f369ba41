//! A load balancer goes with its Service.

use binarylane_sim::{Fault, Harm};
use serde_json::json;

use crate::fixture::{FINALIZER, Fixture, ID};

#[tokio::test(start_paused = true)]
async fn a_service_takes_its_load_balancer_along() {
    let fixture = Fixture::settled().await;
    fixture.delete("web").await;
    fixture.pass(30).await;
    assert_eq!(fixture.changes(), ["load_balancers.delete"], "BL-106");
    assert!(fixture.is_gone("web").await && fixture.cloud.balancers().is_empty(), "BL-106");
    assert!(fixture.tally().calls <= 4, "BL-106 {:?}", fixture.tally());
}

#[tokio::test(start_paused = true)]
async fn one_that_is_gone_already_holds_nobody() {
    let fixture = Fixture::settled().await;
    fixture.cloud.delete_balancer(fixture.recorded("web").await.unwrap());
    fixture.delete("web").await;
    fixture.pass(900).await;
    assert!(fixture.is_gone("web").await, "BL-107 {:?}", fixture.cluster.events("web"));
}

#[tokio::test(start_paused = true)]
async fn an_error_keeps_the_finalizer() {
    let fixture = Fixture::settled().await;
    let on = |operation: &str, harm| Fault { operation: operation.to_owned(), ..Fault::new(harm) };
    fixture.cloud.add_fault(on("load_balancers.delete", Harm::status(500)));
    fixture.delete("web").await;
    fixture.pass(60).await;
    assert_eq!(fixture.get("web").await.finalizers, [FINALIZER], "BL-108");
    assert_eq!(fixture.cloud.balancers().len(), 1, "BL-108");
    fixture.cloud.stop_faults();
    fixture.cloud.add_fault(on("load_balancers.list", Harm::status(500)));
    fixture.pass(120).await;
    assert_eq!(fixture.get("web").await.finalizers, [FINALIZER], "BL-110");
    fixture.cloud.stop_faults();
    fixture.pass(600).await;
    assert!(fixture.is_gone("web").await && fixture.cloud.balancers().is_empty(), "BL-108 BL-110");
}

#[tokio::test(start_paused = true)]
async fn a_lost_answer_to_a_deletion_is_looked_after() {
    let fixture = Fixture::settled().await;
    let operation = "load_balancers.delete".to_owned();
    fixture.cloud.add_fault(Fault { operation, times: Some(1), ..Fault::new(Harm::LostAnswer) });
    fixture.delete("web").await;
    fixture.pass(120).await;
    assert!(fixture.is_gone("web").await && fixture.cloud.balancers().is_empty(), "BL-108");
}

#[tokio::test(start_paused = true)]
async fn without_an_id_it_is_found_by_its_name() {
    let mut fixture = Fixture::settled().await;
    fixture.killer().abort();
    fixture.edit("web", json!({"metadata": {"annotations": {ID: null}}})).await;
    fixture.delete("web").await;
    fixture.restart();
    fixture.pass(60).await;
    assert!(fixture.is_gone("web").await && fixture.cloud.balancers().is_empty(), "BL-109");
}

#[tokio::test(start_paused = true)]
async fn another_type_needs_no_load_balancer() {
    let fixture = Fixture::settled().await;
    fixture.edit("web", json!({"spec": {"type": "ClusterIP"}})).await;
    fixture.pass(60).await;
    let service = fixture.get("web").await;
    assert!(fixture.cloud.balancers().is_empty(), "BL-111");
    assert_eq!((service.finalizers.len(), service.ingress.len()), (0, 0), "BL-111");
    assert_eq!(service.annotations.get(ID), None, "BL-111");
}

#[tokio::test(start_paused = true)]
async fn one_that_is_being_built_goes_too() {
    let fixture = Fixture::with_nodes().await;
    fixture.create("web", json!({})).await;
    fixture.pass(1).await;
    assert_eq!(fixture.cloud.balancers()[0].status, "new");
    fixture.delete("web").await;
    fixture.pass(60).await;
    assert!(fixture.is_gone("web").await && fixture.cloud.balancers().is_empty(), "BL-112");
}

#[tokio::test(start_paused = true)]
async fn what_another_service_records_stays() {
    let fixture = Fixture::with_nodes().await;
    let servers: Vec<i64> = fixture.cloud.servers().iter().map(|server| server.id).collect();
    let shared = fixture.cloud.add_balancer("by-hand", None, &servers).unwrap();
    let adopt = json!({"metadata": {"annotations": {ID: shared.to_string()}}});
    fixture.create("one", adopt.clone()).await;
    fixture.pass(60).await;
    assert_eq!(fixture.recorded("one").await, Some(shared));
    // It asks for what cannot be done, so it gets no load balancer of its own, and goes on to claim that one.
    let mut odd = adopt;
    odd["spec"] = json!({"ports": [{"port": 8080, "protocol": "TCP"}]});
    fixture.create("two", odd).await;
    fixture.pass(30).await;
    fixture.delete("one").await;
    fixture.pass(200).await;
    assert!(fixture.cloud.balancer(shared).is_some(), "BL-113");
    assert!(fixture.is_gone("one").await, "BL-113 {:?}", fixture.cluster.events("one"));
}
