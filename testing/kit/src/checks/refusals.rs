//! What becomes of Services that ask for what cannot be done.

use serde_json::json;

use super::{CloudFixture, CloudUnderTest};

/// A new Service asks for a protocol that no cloud forwards. People are told which field is wrong, and nothing else
/// happens: nothing is written on it, so it can be deleted at once. When it is corrected it gets its load balancer.
pub async fn a_new_service_that_is_refused_is_not_touched<C: CloudUnderTest>() {
    let fixture: CloudFixture<C> = CloudFixture::with_nodes(2).await;
    fixture.pass(10).await;
    let mutations = fixture.cloud.mutations();
    fixture.create("web", json!({"spec": {"ports": [{"port": 80, "protocol": "SCTP"}]}})).await;
    fixture.pass(60).await;
    let service = fixture.service("web").await.unwrap();
    assert_eq!(service.finalizers, [""; 0], "L8-1500 it carries no finalizer");
    assert!(service.annotations.is_empty(), "L8-1500 nothing is recorded: {:?}", service.annotations);
    assert_eq!(fixture.cloud.mutations(), mutations, "L8-1500 nothing is changed in the cloud");
    let warnings = fixture.warnings("web");
    assert!(
        matches!(warnings.as_slice(), [one] if one.contains("spec.ports")),
        "L8-1501 one warning names the field: {warnings:?}"
    );

    fixture.edit("web", json!({"spec": {"ports": [{"port": 80, "protocol": "TCP"}]}})).await;
    fixture.pass(60).await;
    assert!(!fixture.ingress("web").await.is_empty(), "L8-1502 once it is corrected it is served");
    assert_eq!(fixture.cloud.balancers().len(), 1);

    // What is there is kept, and cleaned up later, whatever the Service asks for.
    fixture.edit("web", json!({"spec": {"ports": [{"port": 80, "protocol": "SCTP"}]}})).await;
    fixture.pass(60).await;
    assert_eq!(fixture.cloud.balancers().len(), 1, "L8-1503 what is there is kept");
    fixture.delete("web").await;
    fixture.pass(60).await;
    assert_eq!(fixture.cloud.balancers(), [""; 0], "L8-1503 and goes with the Service");
    assert!(fixture.service("web").await.is_none());
}
