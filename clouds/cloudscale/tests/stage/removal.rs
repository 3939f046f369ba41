//! The end of a load balancer, and everything that may be in its way.

use std::time::Duration;

use cloudscale_sim::{Access, Fault, Harm};
use serde_json::json;

use crate::scene::{FINALIZER, PREFIX, Scene, annotated};

async fn served() -> Scene {
    let scene = Scene::new();
    scene.nodes(2).await;
    scene.pass(5).await;
    scene.create("web", json!({})).await;
    scene.pass(30).await;
    scene.cloud.clear_journal();
    scene
}

#[tokio::test(start_paused = true)]
async fn one_request_deletes_it_with_all_that_is_below() {
    let scene = served().await;
    scene.delete("web").await;
    scene.pass(30).await;
    assert_eq!(scene.changes(), ["load-balancers.delete"], "CS-148");
    assert_eq!(scene.parts().map(|kind| kind.len()), [0; 4], "CS-148");
    assert!(scene.stage.service("web").await.is_none(), "CS-148");
}

#[tokio::test(start_paused = true)]
async fn what_somebody_has_deleted_already_is_gone() {
    let scene = served().await;
    scene.cloud.delete_balancer(&scene.balancer("web").await.uuid);
    scene.delete("web").await;
    scene.pass(30).await;
    assert_eq!(scene.changes(), [""; 0], "CS-149");
    assert!(scene.stage.service("web").await.is_none(), "CS-149");
}

#[tokio::test(start_paused = true)]
async fn a_removal_that_meets_another_is_done() {
    let scene = served().await;
    scene.cloud.add_fault(Fault {
        operation: "load-balancers.delete".to_owned(),
        times: Some(1),
        ..Fault::new(Harm::NotFound)
    });
    scene.delete("web").await;
    scene.pass(30).await;
    assert!(scene.stage.service("web").await.is_none(), "CS-152");
}

#[tokio::test(start_paused = true)]
async fn what_is_changing_is_waited_for() {
    let scene = Scene::with(|settings| {
        settings.build = Duration::from_secs(20);
        settings.refuse_early_delete = true;
    });
    scene.nodes(2).await;
    scene.pass(5).await;
    scene.create("web", json!({})).await;
    scene.pass(5).await;
    scene.cloud.clear_journal();
    scene.delete("web").await;
    scene.pass(5).await;
    assert_eq!(scene.changes(), [""; 0], "CS-150 it is still being built");
    assert!(scene.stage.service("web").await.is_some(), "CS-150");
    scene.pass(60).await;
    assert_eq!(scene.changes(), ["load-balancers.delete"], "CS-150");
    assert!(scene.stage.service("web").await.is_none(), "CS-150");
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
        let scene = served().await;
        scene.annotate("web", &[(key, json!(value))]).await;
        scene.delete("web").await;
        scene.pass(60).await;
        assert!(scene.stage.service("web").await.is_none(), "CS-151 {key}");
        assert_eq!(scene.cloud.balancers().len(), 0, "CS-151 {key}");
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
        let scene = served().await;
        let before = scene.parts();
        let harm = Fault { path: "/v1/load-balancers".to_owned(), ..Fault::new(fault) };
        scene.cloud.add_fault(harm);
        scene.edit("web", annotated(&[("name", json!("other"))])).await;
        scene.pass(120).await;
        scene.delete("web").await;
        scene.pass(300).await;
        let service = scene.get("web").await;
        assert!(service.finalizers.contains(&FINALIZER.to_owned()), "{case} the finalizer is kept");
        assert_eq!((scene.cloud.balancers().len(), scene.parts()), (1, before), "{case}");
        assert_eq!(scene.changes(), [""; 0], "{case} nothing is even tried");
        scene.cloud.stop_faults();
        scene.pass(600).await;
        assert!(scene.stage.service("web").await.is_none(), "{case} it ends well");
        assert_eq!(scene.cloud.balancers().len(), 0, "{case}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_service_that_is_no_load_balancer_any_more_lets_go_of_everything() {
    let scene = served().await;
    scene.edit("web", json!({"spec": {"type": "ClusterIP"}})).await;
    scene.pass(60).await;
    let service = scene.get("web").await;
    assert_eq!(scene.cloud.balancers().len(), 0);
    assert_eq!(service.finalizers, [""; 0]);
    assert!(service.ingress.is_empty());
    assert_eq!(
        service.annotations.keys().collect::<Vec<_>>(),
        [""; 0],
        "no stale id, and no zone that binds"
    );
    scene.edit("web", json!({"spec": {"type": "LoadBalancer"}})).await;
    scene.pass(60).await;
    assert_eq!(scene.cloud.balancers().len(), 1);
    assert_eq!(
        scene.get("web").await.annotations.get(&format!("{PREFIX}uuid")),
        Some(&scene.balancer("web").await.uuid),
        "CS-48"
    );
}

/// The token is the same text, and from now on it is one of another project.
fn lead_astray(scene: &Scene) {
    scene.cloud.set_tokens([("t0k3n", Access::OtherProject)]);
}

fn lead_back(scene: &Scene) {
    scene.cloud.set_tokens([("t0k3n", Access::ReadWrite)]);
}

#[tokio::test(start_paused = true)]
async fn a_token_of_another_project_lets_go_of_nothing() {
    for (case, change) in
        [("L1-827 deleted", None), ("L1-828 of another type", Some(json!({"spec": {"type": "ClusterIP"}})))]
    {
        let mut scene = served().await;
        lead_astray(&scene);
        match change.clone() {
            None => scene.delete("web").await,
            Some(body) => scene.edit("web", body).await,
        }
        scene.pass(300).await;
        let held = async |scene: &Scene| {
            let service = scene.stage.service("web").await;
            service.is_some_and(|service| service.finalizers.contains(&FINALIZER.to_owned()))
        };
        assert!(held(&scene).await, "{case}: its load balancer stands in the right project");
        let said = scene.warnings("web");
        for words in ["ids 2 nodes carry", "If the token is of another project", FINALIZER] {
            assert!(said.iter().any(|line| line.contains(words)), "{case} {words}: {said:?}");
        }
        scene.restart();
        scene.pass(120).await;
        assert!(held(&scene).await, "{case}: a new leader is led astray no more than the old one");
        assert_eq!(scene.changes(), [""; 0], "{case}");
        assert_eq!(scene.cloud.balancers().len(), 1, "{case}");
        lead_back(&scene);
        scene.pass(120).await;
        assert!(!held(&scene).await, "{case}");
        assert_eq!(scene.changes(), ["load-balancers.delete"], "{case}");
        assert_eq!(scene.cloud.balancers().len(), 0, "{case}: nothing has leaked");
    }
}

#[tokio::test(start_paused = true)]
async fn what_somebody_has_deleted_already_costs_few_calls() {
    let scene = served().await;
    scene.cloud.delete_balancer(&scene.balancer("web").await.uuid);
    scene.pass(30).await;
    scene.cloud.clear_journal();
    scene.delete("web").await;
    scene.pass(1).await;
    let tally = scene.tally();
    assert!(scene.stage.service("web").await.is_none(), "CS-149 at once");
    assert!(tally.calls <= 8, "L7-808 {tally:?}");
}
