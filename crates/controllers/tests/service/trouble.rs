//! Clouds and API servers that do not answer, lie late, or refuse; and a planner with a bug.

use std::time::Duration;

use cloudberth_controllers::service::{ServiceController, ServiceSettings};
use cloudberth_core::{Category, ServiceView, lb::Desired};
use cloudberth_fake::Fault;
use embedded_kube::{Fault as ApiFault, Harm};
use serde_json::json;
use testing_kit::{ClusterFixture, Hooks};

use crate::fixture::Fixture;

/// The program writes to the status, people do not.
fn patching(harm: Harm) -> ApiFault {
    ApiFault { subresource: "status".into(), ..ApiFault::new(harm).on("patch", "services") }
}

#[tokio::test(start_paused = true)]
async fn a_creation_whose_answer_is_lost_is_found_and_not_repeated() {
    for (case, fault) in [
        ("L6-143 the answer is lost", Fault::AnswerLost),
        ("L6-144 the request is lost", Fault::RequestLost),
        ("L6-145 it takes effect much later", Fault::Stall(Duration::from_secs(150))),
    ] {
        let scene = Fixture::with(&["alpha"], |settings| settings.lag = Duration::from_secs(20));
        let instance = scene.node("n1").await;
        let mut once = true;
        scene.stage.clouds[0].plan_faults(move |request| {
            (request.operation == "create balancer" && std::mem::take(&mut once)).then_some(fault)
        });
        scene.create("web", json!({})).await;
        scene.pass(600).await;
        scene.assert_served("web", &[80], &[&instance]).await;
        assert_eq!(scene.balancers().len(), 1, "{case}");
        scene.delete("web").await;
        scene.pass(600).await;
        assert!(scene.stage.service("web").await.is_none(), "{case}");
        assert_eq!(scene.balancers(), [], "{case}");
    }
}

#[tokio::test(start_paused = true)]
async fn who_waits_for_an_address_and_who_is_refused_is_counted_while_the_term_lasts() {
    let scene = Fixture::new();
    scene.node("n1").await;
    let metrics = scene.metrics().clone();
    // How many wait, how many are refused, and whether it is known since when.
    let counted = || (metrics.waiting.count.get(), metrics.refused.get(), metrics.waiting.since.get() > 0);
    let algorithm = |name| json!({"fake.cloudberth.dev/algorithm": name});
    scene.create("odd", json!({"metadata": {"annotations": algorithm("fastest")}})).await;
    scene.pass(30).await;
    assert_eq!(counted(), (0, 1, false), "one that is refused does not wait");

    scene.stage.clouds[0].plan_faults(|_| Some(Fault::Refuse(Category::Temporary)));
    scene.create("web", json!({})).await;
    scene.pass(600).await;
    assert_eq!(counted(), (1, 1, true), "the cloud does not answer");
    scene.annotate("odd", algorithm("round-robin")).await;
    scene.pass(600).await;
    assert_eq!(counted(), (1, 1, true), "what held before still does while nothing can be decided");

    scene.stage.clouds[0].plan_faults(|_| None);
    scene.pass(900).await;
    assert_eq!(counted(), (0, 0, false));

    scene.annotate("web", algorithm("fastest")).await;
    scene.pass(30).await;
    assert_eq!(counted(), (0, 1, false), "refused beside a load balancer that runs");
    scene.kill();
    scene.pass(1).await;
    drop(scene);
    assert_eq!(counted(), (0, 0, false), "whoever does not lead counts nothing");
}

#[tokio::test(start_paused = true)]
async fn a_service_that_is_deleted_while_its_creation_is_unknown_leaves_nothing() {
    let scene = Fixture::with(&["alpha"], |settings| settings.lag = Duration::from_secs(20));
    scene.node("n1").await;
    let mut once = true;
    scene.stage.clouds[0].plan_faults(move |request| {
        let hit = request.operation == "create balancer" && std::mem::take(&mut once);
        hit.then_some(Fault::Stall(Duration::from_secs(140)))
    });
    scene.create("web", json!({})).await;
    scene.pass(122).await;
    scene.delete("web").await;
    scene.pass(10).await;
    assert!(scene.stage.service("web").await.is_some(), "L6-146 the intent holds it");
    scene.pass(300).await;
    assert!(scene.stage.service("web").await.is_none());
    assert_eq!(scene.balancers(), [], "L6-147 what came late is gone too");
}

#[tokio::test(start_paused = true)]
async fn a_look_that_began_while_an_intent_pended_is_no_proof_of_absence() {
    let scene = Fixture::with(&["alpha"], |settings| settings.lag = Duration::from_secs(20));
    let instance = scene.node("n1").await;
    scene.create("other", json!({})).await;
    scene.pass(5).await;
    let mut once = true;
    scene.stage.clouds[0].plan_faults(move |request| {
        let hit = request.operation == "create balancer" && std::mem::take(&mut once);
        // Given up after 120 s, seen again 5 s later, held until 185 s; listings show it from 184 s on.
        hit.then_some(Fault::Stall(Duration::from_secs(164)))
    });
    scene.create("web", json!({})).await;
    scene.pass(183).await;
    // The Service itself looked at 180 s; that look is too old for anybody now.
    tokio::time::sleep(Duration::from_millis(500)).await;
    let (surveys, calls) = (scene.surveys(), scene.calls());
    scene.edit("other", json!({"spec": {"ports": [{"port": 81}]}})).await;
    scene.pass(1).await;
    assert_eq!(scene.surveys(), surveys + 1, "somebody looks just before");
    scene.pass(60).await;
    scene.assert_served("web", &[80], &[&instance]).await;
    assert_eq!(scene.balancers().len(), 2, "L6-161 {:?}", scene.mutations(calls));
}

#[tokio::test(start_paused = true)]
async fn listings_that_lag_and_slow_builds_change_nothing_about_the_end() {
    let scene = Fixture::with(&["alpha"], |settings| {
        settings.lag = Duration::from_secs(30);
        settings.build = Duration::from_secs(25);
    });
    let instance = scene.node("n1").await;
    for name in ["a", "b", "c"] {
        scene.create(name, json!({})).await;
    }
    scene.pass(10).await;
    assert!(scene.get("a").await.ingress.is_empty(), "no address before it is built");
    scene.pass(60).await;
    for name in ["a", "b", "c"] {
        scene.assert_served(name, &[80], &[&instance]).await;
    }
    assert_eq!(scene.balancers().len(), 3);
    scene.delete("a").await;
    scene.pass(60).await;
    assert_eq!(scene.balancers().len(), 2);
}

#[tokio::test(start_paused = true)]
async fn a_refused_token_changes_nothing_and_is_got_over() {
    let scene = Fixture::new();
    let instance = scene.node("n1").await;
    scene.create("web", json!({})).await;
    scene.pass(5).await;
    scene.stage.clouds[0].plan_faults(|_| Some(Fault::Refuse(Category::Unauthorised)));
    let calls = scene.calls();
    scene.create("new", json!({})).await;
    scene.edit("web", json!({"spec": {"ports": [{"port": 81}]}})).await;
    scene.delete("web").await;
    scene.pass(300).await;
    assert_eq!(scene.balancers().len(), 1, "L1-140");
    assert!(scene.stage.service("web").await.is_some(), "L5-144 held until it is known to be gone");
    let asked = scene.calls() - calls;
    assert!(asked <= 20, "L12-141 {asked} calls in five minutes");
    assert!(scene.reasons("new").contains(&"SyncLoadBalancerFailed".to_owned()));
    scene.stage.clouds[0].stop_faults();
    scene.pass(90).await;
    scene.assert_served("new", &[80], &[&instance]).await;
    assert!(scene.stage.service("web").await.is_none());
    assert_eq!(scene.balancers().len(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_status_that_cannot_be_written_is_written_later() {
    let scene = Fixture::new();
    let instance = scene.node("n1").await;
    // The first patch puts the finalizer on, the second records the result.
    let mut conflict = patching(Harm::Conflict).times(1);
    conflict.skip = 1;
    scene.stage.api.add_fault(conflict);
    scene.create("web", json!({})).await;
    scene.pass(3).await;
    let last = scene.stage.events("web").pop().unwrap();
    assert!(last.starts_with("Warning SyncLoadBalancerFailed"), "FW-158 {last}");
    assert!(last.contains("failed to update load balancer status"), "FW-158 {last}");
    scene.pass(300).await;
    scene.assert_served("web", &[80], &[&instance]).await;
    assert_eq!(scene.balancers().len(), 1, "L6-150");
}

#[tokio::test(start_paused = true)]
async fn a_status_of_an_object_that_is_gone_needs_no_writing() {
    let scene = Fixture::new();
    scene.node("n1").await;
    scene.create("web", json!({})).await;
    scene.pass(5).await;
    // Every answer to the patch that lets go is "not found", as if somebody had been quicker.
    scene.stage.api.add_fault(patching(Harm::Status { code: 404, retry_after: None }).times(1));
    scene.delete("web").await;
    scene.pass(2).await;
    let reasons = scene.reasons("web");
    assert_eq!(reasons.last().unwrap(), "DeletedLoadBalancer", "FW-159 {reasons:?}");
    assert!(!reasons.contains(&"SyncLoadBalancerFailed".to_owned()), "FW-159 {reasons:?}");
}

#[tokio::test(start_paused = true)]
async fn what_others_write_meanwhile_stays() {
    let scene = Fixture::with(&["alpha"], |settings| settings.latency = Duration::from_secs(1));
    scene.node("n1").await;
    scene.create("web", json!({})).await;
    scene.pass(2).await;
    let edit = json!({"metadata": {"annotations": {"note": "mine"}, "finalizers": ["example.net/hold"]}});
    scene.edit("web", edit).await;
    scene.pass(60).await;
    let service = scene.get("web").await;
    assert_eq!(service.annotations.get("note").map(String::as_str), Some("mine"), "FW-203");
    assert!(service.finalizers.contains(&"example.net/hold".to_owned()), "FW-203 {:?}", service.finalizers);
    assert_eq!(service.ingress.len(), 1, "FW-203 and the status is written");
    assert_eq!(service.finalizers.len(), 2, "L5-145 ours was struck out by that edit, and is back");
}

#[tokio::test(start_paused = true)]
async fn a_mistake_that_only_the_cloud_sees_is_not_tried_until_the_object_changes() {
    let settings = ServiceSettings::default();
    let scene = Fixture::on(ClusterFixture::new(), settings);
    scene.node("n1").await;
    let naming = json!({"metadata": {"annotations": {"fake.cloudberth.dev/floating-address": "192.0.2.99"}}});
    scene.create("web", naming).await;
    scene.pass(5).await;
    let calls = scene.calls();
    scene.pass(1_500).await;
    assert_eq!(scene.mutations(calls), [], "L8-145 neither by retry nor by the look for hand edits");
    scene.stage.clouds[0].add_floating("192.0.2.99");
    scene.annotate("web", json!({"note": "try again"})).await;
    scene.pass(5).await;
    assert!(scene.balancer("web").await.floating.contains("192.0.2.99"));
}

#[tokio::test(start_paused = true)]
async fn any_write_to_kubernetes_may_go_wrong() {
    let harms = [
        Harm::LostAnswer,
        Harm::LostCall,
        Harm::Conflict,
        Harm::Status { code: 500, retry_after: None },
        Harm::Status { code: 429, retry_after: Some(7) },
    ];
    for (skip, harm) in (0..6).flat_map(|skip| harms.iter().map(move |harm| (skip, harm))) {
        let case = format!("{harm:?} after {skip}");
        let scene = Fixture::with(&["alpha"], |settings| settings.lag = Duration::from_secs(10));
        let instance = scene.node("n1").await;
        scene.stage.api.add_fault(ApiFault { skip, ..patching(harm.clone()).times(2) });
        scene.create("web", json!({})).await;
        scene.pass(200).await;
        scene.assert_served("web", &[80], &[&instance]).await;
        assert_eq!(scene.balancers().len(), 1, "L6-158 {case}");
        scene.edit("web", json!({"spec": {"type": "ClusterIP"}})).await;
        scene.pass(100).await;
        scene.edit("web", json!({"spec": {"type": "LoadBalancer"}})).await;
        scene.pass(200).await;
        scene.assert_served("web", &[80], &[&instance]).await;
        scene.delete("web").await;
        scene.pass(200).await;
        assert!(scene.stage.service("web").await.is_none(), "L6-159 {case}");
        assert_eq!(scene.balancers(), [], "L6-160 {case}");
        assert_eq!(scene.metrics().orphans.get(), 0, "{case}");
    }
}

#[tokio::test(start_paused = true)]
async fn whoever_writes_at_the_same_time_costs_no_time_and_no_warning() {
    let scene = Fixture::new();
    let instance = scene.node("n1").await;
    scene.stage.api.add_fault(patching(Harm::Latency { millis: 100 }).times(1));
    scene.create("web", json!({})).await;
    tokio::time::sleep(Duration::from_millis(60)).await;
    scene.edit("web", json!({"metadata": {"labels": {"team": "a"}}})).await;
    scene.pass(2).await;
    scene.assert_served("web", &[80], &[&instance]).await;
    assert_eq!(scene.reasons("web"), ["EnsuringLoadBalancer", "EnsuredLoadBalancer"]);
}

#[tokio::test(start_paused = true)]
async fn a_watch_that_breaks_loses_nothing() {
    let scene = Fixture::new();
    let instance = scene.node("n1").await;
    scene.create("web", json!({})).await;
    scene.create("old", json!({})).await;
    scene.pass(5).await;
    let cut = ApiFault::new(Harm::Status { code: 503, retry_after: None });
    scene.stage.api.add_fault(cut.clone().on("watch", ""));
    scene.stage.api.add_fault(cut.on("list", "services"));
    scene.stage.api.restart();
    scene.pass(1).await;
    scene.edit("web", json!({"spec": {"ports": [{"port": 443}]}})).await;
    scene.delete("old").await;
    scene.create("new", json!({})).await;
    scene.pass(60).await;
    scene.assert_served("web", &[80], &[&instance]).await;
    scene.stage.api.clear_faults();
    scene.stage.api.compact();
    scene.pass(120).await;
    scene.assert_served("web", &[443], &[&instance]).await;
    scene.assert_served("new", &[80], &[&instance]).await;
    assert!(scene.stage.service("old").await.is_none());
    assert_eq!(scene.balancers().len(), 2);
}

/// Bugs that single Services meet.
struct Buggy;

impl Hooks for Buggy {
    fn read(&self, service: &ServiceView) {
        assert_ne!(service.name, "odd", "met where the watch is read");
    }

    fn ended(&self, want: &Desired) {
        assert_ne!(want.service.name, "bad", "the secret is hunter2");
    }
}

#[tokio::test(start_paused = true)]
async fn a_bug_that_one_service_meets_is_its_own() {
    let mut stage = ClusterFixture::new();
    stage.hook(Buggy);
    let scene = Fixture::on(stage, ServiceSettings { workers: 2, drift: None, ..ServiceSettings::default() });
    let instance = scene.node("n1").await;
    for name in ["bad", "odd", "good1", "good2", "good3"] {
        scene.create(name, json!({})).await;
    }
    scene.pass(10).await;
    for name in ["good1", "good2", "good3"] {
        scene.assert_served(name, &[80], &[&instance]).await;
    }
    let controller: &ServiceController = &scene.controller;
    assert!(
        (2..=6).contains(&controller.panics()),
        "L11-140 counted, and backed off: {}",
        controller.panics()
    );
    for name in ["bad", "odd"] {
        let told = scene.stage.events(name).into_iter().find(|line| line.contains("internal error"));
        let told = told.expect("L11-141 told");
        assert!(
            told.starts_with("Warning SyncLoadBalancerFailed: Error syncing load balancer: internal error")
        );
        assert!(!told.contains("hunter2"), "L10-140 {told}");
    }
    scene.delete("good1").await;
    scene.pass(5).await;
    assert!(scene.stage.service("good1").await.is_none(), "L11-142 the others live on");
}
