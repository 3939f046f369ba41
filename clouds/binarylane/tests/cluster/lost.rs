//! Answers that are lost, and programs that die: never a second load balancer, and none that is left over.

use std::time::Duration;

use binarylane_sim::{Fault, Harm};
use embedded_kube::Fault as ApiFault;
use serde_json::json;

use crate::fixture::{FINALIZER, Fixture, ID, INTENT};

fn once(operation: &str, harm: Harm) -> Fault {
    Fault { operation: operation.to_owned(), times: Some(1), ..Fault::new(harm) }
}

#[tokio::test(start_paused = true)]
async fn a_creation_that_was_carried_out_is_found() {
    let table = [
        ("BL-74", Harm::LostAnswer),
        ("BL-74 it takes for ever", Harm::Stall { millis: 300 }),
        ("BL-75", Harm::Masked { code: 504, empty: false }),
        ("BL-75", Harm::Masked { code: 500, empty: true }),
        ("half an answer", Harm::Truncated),
        ("a page", Harm::Masked { code: 200, empty: false }),
        ("an empty 200", Harm::Masked { code: 200, empty: true }),
    ];
    for (case, harm) in table {
        let fixture = Fixture::with_nodes().await;
        fixture.cloud.add_fault(once("load_balancers.create", harm));
        fixture.create("web", json!({})).await;
        fixture.pass(400).await;
        assert_eq!(fixture.cloud.balancers().len(), 1, "{case}");
        assert_eq!(fixture.changes(), ["load_balancers.create"], "{case}");
        assert_eq!(fixture.ingress("web").await.len(), 1, "{case} {:?}", fixture.cluster.events("web"));
        assert_eq!(fixture.get("web").await.annotations.get(INTENT), None, "{case}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_creation_that_was_not_carried_out_is_repeated_in_time() {
    for (case, harm) in [("BL-75", Harm::status(500)), ("BL-75", Harm::LostCall)] {
        let fixture = Fixture::with_nodes().await;
        fixture.cloud.add_fault(once("load_balancers.create", harm));
        fixture.create("web", json!({})).await;
        fixture.pass(110).await;
        assert_eq!(fixture.tally().count("load_balancers.create"), 1, "{case} not before it is sure");
        fixture.pass(300).await;
        assert_eq!(fixture.cloud.balancers().len(), 1, "{case}");
        assert_eq!(fixture.ingress("web").await.len(), 1, "{case}");
    }
}

#[tokio::test(start_paused = true)]
async fn one_that_shows_up_late_is_waited_for() {
    for deleted in [false, true] {
        let fixture = Fixture::with_nodes().await;
        fixture.cloud.switch(|switches| switches.visible_after = Duration::from_secs(70));
        fixture.cloud.add_fault(once("load_balancers.create", Harm::LostAnswer));
        fixture.create("web", json!({})).await;
        fixture.pass(10).await;
        if deleted {
            fixture.delete("web").await;
            fixture.pass(40).await;
            assert_eq!(fixture.get("web").await.finalizers, [FINALIZER], "BL-141");
        }
        fixture.pass(400).await;
        assert_eq!(fixture.tally().count("load_balancers.create"), 1, "BL-141");
        assert_eq!(fixture.cloud.balancers().len(), usize::from(!deleted), "BL-141");
        assert_eq!(fixture.is_gone("web").await, deleted, "BL-141");
    }
}

#[tokio::test(start_paused = true)]
async fn one_that_was_answered_and_shows_up_late_is_waited_for() {
    let fixture = Fixture::with_nodes().await;
    fixture.cloud.switch(|switches| switches.visible_after = Duration::from_secs(60));
    fixture.create("web", json!({})).await;
    fixture.pass(300).await;
    assert_eq!(fixture.changes(), ["load_balancers.create"], "L6-1602");
    assert_eq!(fixture.ingress("web").await.len(), 1, "L6-1602 {:?}", fixture.cluster.events("web"));
}

#[tokio::test(start_paused = true)]
async fn a_record_that_cannot_be_written_is_written_later() {
    let fixture = Fixture::with_nodes().await;
    // The first patch is the finalizer and the intent.
    let fault = ApiFault { skip: 1, times: Some(2), ..ApiFault::new(Harm::Conflict).on("patch", "services") };
    fixture.cluster.api.add_fault(fault);
    fixture.create("web", json!({})).await;
    fixture.pass(300).await;
    assert_eq!(fixture.tally().count("load_balancers.create"), 1, "BL-77");
    assert_eq!(fixture.recorded("web").await, Some(fixture.cloud.balancers()[0].id), "BL-77");
    assert_eq!(fixture.get("web").await.annotations.get(ID).map(String::is_empty), Some(false));
}
