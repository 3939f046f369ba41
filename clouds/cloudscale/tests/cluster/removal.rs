//! The end of a load balancer, and everything that may be in its way.

use std::time::Duration;

use cloudberth_core::decide::service::PROVIDER_ANNOTATION;
use cloudscale_sim::{Access, Fault, Harm};
use serde_json::json;

use crate::fixture::{FINALIZER, Fixture, PREFIX, annotated};

async fn served() -> Fixture {
    let fixture = Fixture::new();
    fixture.nodes(2).await;
    fixture.pass(5).await;
    fixture.create("web", json!({})).await;
    fixture.pass(30).await;
    fixture.cloud.clear_journal();
    fixture
}

#[tokio::test(start_paused = true)]
async fn one_request_deletes_it_with_all_that_is_below() {
    let fixture = served().await;
    fixture.delete("web").await;
    fixture.pass(30).await;
    assert_eq!(fixture.changes(), ["load-balancers.delete"], "CS-148");
    assert_eq!(fixture.parts().map(|kind| kind.len()), [0; 4], "CS-148");
    assert!(fixture.cluster.service("web").await.is_none(), "CS-148");
}

#[tokio::test(start_paused = true)]
async fn what_somebody_has_deleted_already_is_gone() {
    let fixture = served().await;
    fixture.cloud.delete_balancer(&fixture.balancer("web").await.uuid);
    fixture.delete("web").await;
    fixture.pass(30).await;
    assert_eq!(fixture.changes(), [""; 0], "CS-149");
    assert!(fixture.cluster.service("web").await.is_none(), "CS-149");
}

#[tokio::test(start_paused = true)]
async fn a_removal_that_meets_another_is_done() {
    let fixture = served().await;
    fixture.cloud.add_fault(Fault {
        operation: "load-balancers.delete".to_owned(),
        times: Some(1),
        ..Fault::new(Harm::NotFound)
    });
    fixture.delete("web").await;
    fixture.pass(30).await;
    assert!(fixture.cluster.service("web").await.is_none(), "CS-152");
}

#[tokio::test(start_paused = true)]
async fn what_is_changing_is_waited_for() {
    let fixture = Fixture::with(|settings| {
        settings.build = Duration::from_secs(20);
        settings.refuse_early_delete = true;
    });
    fixture.nodes(2).await;
    fixture.pass(5).await;
    fixture.create("web", json!({})).await;
    fixture.pass(5).await;
    fixture.cloud.clear_journal();
    fixture.delete("web").await;
    fixture.pass(5).await;
    assert_eq!(fixture.changes(), [""; 0], "CS-150 it is still being built");
    assert!(fixture.cluster.service("web").await.is_some(), "CS-150");
    fixture.pass(60).await;
    assert_eq!(fixture.changes(), ["load-balancers.delete"], "CS-150");
    assert!(fixture.cluster.service("web").await.is_none(), "CS-150");
}

#[tokio::test(start_paused = true)]
async fn nothing_that_is_wrong_with_a_service_keeps_it() {
    let wrong = [
        ("ip-mode", "nonsense"),
        ("floating-ips", "[broken"),
        ("health-monitor-delay-s", "a"),
        ("node-selector", "a===b"),
        ("flavor", ""),
    ];
    for (key, value) in wrong {
        let fixture = served().await;
        fixture.annotate("web", &[(key, json!(value))]).await;
        fixture.delete("web").await;
        fixture.pass(60).await;
        assert!(fixture.cluster.service("web").await.is_none(), "CS-151 {key}");
        assert_eq!(fixture.cloud.balancers().len(), 0, "CS-151 {key}");
    }
}

#[tokio::test(start_paused = true)]
async fn while_the_api_fails_nothing_is_created_deleted_or_let_go() {
    for (case, fault) in [
        ("CS-46 CS-157", Harm::status(500)),
        ("L1-824", Harm::status(401)),
        ("L1-825", Harm::status(502)),
        ("L1-826", Harm::LostCall),
    ] {
        let fixture = served().await;
        let before = fixture.parts();
        let harm = Fault { path: "/v1/load-balancers".to_owned(), ..Fault::new(fault) };
        fixture.cloud.add_fault(harm);
        fixture.edit("web", annotated(&[("name", json!("other"))])).await;
        fixture.pass(120).await;
        fixture.delete("web").await;
        fixture.pass(300).await;
        let service = fixture.get("web").await;
        assert!(service.finalizers.contains(&FINALIZER.to_owned()), "{case} the finalizer is kept");
        assert_eq!((fixture.cloud.balancers().len(), fixture.parts()), (1, before), "{case}");
        assert_eq!(fixture.changes(), [""; 0], "{case} nothing is even tried");
        fixture.cloud.stop_faults();
        fixture.pass(600).await;
        assert!(fixture.cluster.service("web").await.is_none(), "{case} it ends well");
        assert_eq!(fixture.cloud.balancers().len(), 0, "{case}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_service_that_is_no_load_balancer_any_more_lets_go_of_everything() {
    let fixture = served().await;
    fixture.edit("web", json!({"spec": {"type": "ClusterIP"}})).await;
    fixture.pass(60).await;
    let service = fixture.get("web").await;
    assert_eq!(fixture.cloud.balancers().len(), 0);
    assert_eq!(service.finalizers, [""; 0]);
    assert!(service.ingress.is_empty());
    assert_eq!(
        service.annotations.keys().collect::<Vec<_>>(),
        [""; 0],
        "no stale id, and no zone that binds"
    );
    fixture.edit("web", json!({"spec": {"type": "LoadBalancer"}})).await;
    fixture.pass(60).await;
    assert_eq!(fixture.cloud.balancers().len(), 1);
    assert_eq!(
        fixture.get("web").await.annotations.get(&format!("{PREFIX}uuid")),
        Some(&fixture.balancer("web").await.uuid),
        "CS-48"
    );
}

/// The token is the same text, and from now on it is one of another project.
fn lead_astray(fixture: &Fixture) {
    fixture.cloud.set_tokens([(crate::under_test::TOKEN, Access::OtherProject)]);
}

fn lead_back(fixture: &Fixture) {
    fixture.cloud.set_tokens([(crate::under_test::TOKEN, Access::ReadWrite)]);
}

#[tokio::test(start_paused = true)]
async fn a_token_of_another_project_lets_go_of_nothing() {
    for (case, change) in
        [("L1-827 deleted", None), ("L1-828 of another type", Some(json!({"spec": {"type": "ClusterIP"}})))]
    {
        let mut fixture = served().await;
        lead_astray(&fixture);
        match change.clone() {
            None => fixture.delete("web").await,
            Some(body) => fixture.edit("web", body).await,
        }
        fixture.pass(300).await;
        let held = async |fixture: &Fixture| {
            let service = fixture.cluster.service("web").await;
            service.is_some_and(|service| service.finalizers.contains(&FINALIZER.to_owned()))
        };
        assert!(held(&fixture).await, "{case}: its load balancer stands in the right project");
        let said = fixture.warnings("web");
        for words in ["ids 2 nodes carry", "If the token is of another project", FINALIZER] {
            assert!(said.iter().any(|line| line.contains(words)), "{case} {words}: {said:?}");
        }
        fixture.restart();
        fixture.pass(120).await;
        assert!(held(&fixture).await, "{case}: a new leader is led astray no more than the old one");
        assert_eq!(fixture.changes(), [""; 0], "{case}");
        assert_eq!(fixture.cloud.balancers().len(), 1, "{case}");
        lead_back(&fixture);
        fixture.pass(120).await;
        assert!(!held(&fixture).await, "{case}");
        assert_eq!(fixture.changes(), ["load-balancers.delete"], "{case}");
        assert_eq!(fixture.cloud.balancers().len(), 0, "{case}: nothing has leaked");
    }
}

#[tokio::test(start_paused = true)]
async fn what_somebody_has_deleted_already_costs_few_calls() {
    let fixture = served().await;
    fixture.cloud.delete_balancer(&fixture.balancer("web").await.uuid);
    fixture.pass(30).await;
    fixture.cloud.clear_journal();
    fixture.delete("web").await;
    fixture.pass(1).await;
    let tally = fixture.tally();
    assert!(fixture.cluster.service("web").await.is_none(), "CS-149 at once");
    assert!(tally.calls <= 8, "L7-808 {tally:?}");
}

/// Beside the class of others an id may be copied, so the cloud is asked whose it is. Meanwhile a person takes the class away.
#[tokio::test(start_paused = true)]
async fn a_service_that_comes_back_while_its_proof_is_under_way_keeps_its_load_balancer() {
    let mut fixture = served().await;
    let balancer = fixture.balancer("web").await.uuid;
    fixture.killer().abort();
    let set_class = async |fixture: &Fixture, class: Option<&str>| {
        fixture.edit("web", json!({"spec": {"type": "ClusterIP", "loadBalancerClass": null}})).await;
        fixture.edit("web", json!({"spec": {"type": "LoadBalancer", "loadBalancerClass": class}})).await;
    };
    fixture.edit("web", json!({"metadata": {"annotations": {PROVIDER_ANNOTATION: null}}})).await;
    set_class(&fixture, Some("example.net/other")).await;
    fixture.cloud.set_latency(Duration::from_secs(10));
    fixture.restart();
    fixture.pass(8).await;
    assert!(fixture.tally().operations.contains_key("load-balancers.get"), "the proof is under way");
    set_class(&fixture, None).await;
    fixture.cloud.set_latency(Duration::from_millis(20));
    fixture.pass(60).await;
    // The Service has another node port now, so the members change.
    let touched: Vec<_> =
        fixture.changes().into_iter().filter(|change| !change.starts_with("members.")).collect();
    assert_eq!(touched, [""; 0], "L3-802");
    assert_eq!(fixture.balancer("web").await.uuid, balancer, "L3-802");
}
