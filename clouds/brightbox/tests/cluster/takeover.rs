//! What the replaced program has brought to rest stays exactly as it is, and it would find nothing to write afterwards.

use brightbox_sim::replaced::{PREFIX, Variant, annotated, plain, variants, would_write};
use serde_json::{Value, json};
use sim_kit::LeftBehind;
use testing_kit::takeover;

use crate::under_test::{APPLIED, Brightbox, Fixture};

#[tokio::test(start_paused = true)]
async fn nothing_is_changed_by_the_switch() {
    let ways = takeover::nothing_is_changed_by_the_switch::<Brightbox>("BB-181").await;
    println!("{ways} variants");
    assert!(ways >= 20, "BB-181 {ways}");
}

#[tokio::test(start_paused = true)]
async fn what_was_taken_over_is_looked_after() {
    takeover::what_was_taken_over_is_looked_after::<Brightbox>("BB-181").await;
}

#[tokio::test(start_paused = true)]
async fn what_we_build_is_what_was_built_before() {
    let ways = takeover::what_we_build_is_what_was_built_before::<Brightbox>("BB-184").await;
    assert!(ways >= 15, "BB-184 {ways}");
}

/// A Service as the API server shows it.
async fn shown(fixture: &Fixture) -> Value {
    serde_json::to_value(fixture.cluster.services().get("web").await.unwrap()).unwrap()
}

/// What the replaced program would write for the Service now.
async fn way_back(fixture: &Fixture) -> Vec<String> {
    let cloud_ips = fixture.cloud.cloud.cloud_ips();
    would_write(&fixture.cloud.cloud, &shown(fixture).await, &cloud_ips[0])
}

#[tokio::test(start_paused = true)]
async fn the_replaced_program_finds_nothing_to_write() {
    let usual = variants().into_iter().filter(LeftBehind::is_usual);
    let table: Vec<_> = usual.map(|variant| variant.on_one_node().with_domains_listed()).collect();
    assert!(table.len() >= 15, "BB-184");
    for variant in table {
        let (fixture, case) = (Fixture::new(), variant.case);
        for (name, node) in variant.nodes(&fixture.cloud.cloud) {
            let id = node["spec"]["providerID"].as_str().unwrap();
            fixture.cluster.register(&name, Some(id)).await;
        }
        fixture.create("web", variant.service(&fixture.cloud.cloud)).await;
        fixture.pass(60).await;
        assert_eq!(way_back(&fixture).await, [""; 0], "BB-184 {case}: {:?}", fixture.cluster.events("web"));
        let mut ports = shown(&fixture).await["spec"]["ports"].clone();
        ports.as_array_mut().unwrap().reverse();
        fixture.edit("web", json!({"spec": {"ports": ports}})).await;
        fixture.pass(60).await;
        assert_eq!(way_back(&fixture).await, [""; 0], "BB-184 {case}, with its ports in another order");
    }
}

/// What a variant left behind, with a program that looks after it.
async fn taken_over(variant: &Variant) -> Fixture {
    let mut fixture: Fixture = takeover::left_behind(variant).await;
    fixture.restart();
    fixture.pass(60).await;
    assert_eq!(fixture.cloud.changes(), [""; 0], "{}", variant.case);
    fixture
}

fn edited_without_effect() -> Variant {
    variants().into_iter().find(|variant| variant.case.starts_with("BB-182")).unwrap()
}

#[tokio::test(start_paused = true)]
async fn settings_that_were_never_written_go_with_the_next_edit() {
    let fixture = taken_over(&edited_without_effect()).await;
    let said = fixture.warnings("web");
    assert!(said.iter().any(|line| line.contains("policy")), "BB-182 it is reported {said:?}");
    fixture.annotate("web", &format!("{PREFIX}healthcheck-timeout"), json!("4000")).await;
    fixture.pass(60).await;
    assert_eq!(fixture.cloud.changes(), ["load_balancers.update"], "BB-182 one PUT carries it");
    let balancer = fixture.cloud.alive()[0].clone();
    assert_eq!((balancer.policy.as_str(), balancer.healthcheck.timeout), ("round-robin", 4_000), "BB-182");
    let service = fixture.service("web").await.unwrap();
    assert!(service.annotations.contains_key(APPLIED), "BB-182 and it is recorded");
    fixture.delete("web").await;
    fixture.pass(60).await;
    assert_eq!(fixture.cloud.counts(), [0, 0, 0, 0], "BB-181");
}

#[tokio::test(start_paused = true)]
async fn an_edit_is_not_lost_with_the_program_that_saw_it() {
    let mut fixture = taken_over(&plain("an edit that the program does not survive")).await;
    let killer = fixture.killer();
    fixture.cloud.cloud.plan_faults(move |request| {
        let puts = request.operation == "load_balancers.update";
        puts.then(|| {
            killer.abort();
            brightbox_sim::Harm::LostCall
        })
    });
    fixture.edit("web", annotated(&[("policy", json!("round-robin"))])).await;
    fixture.pass(60).await;
    assert!(fixture.killer().is_finished(), "BB-126 it died before the PUT");
    fixture.cloud.cloud.stop_faults();
    fixture.restart();
    fixture.pass(60).await;
    assert_eq!(fixture.cloud.alive()[0].policy, "round-robin", "BB-126 L6-1610 the next one writes it");
    fixture.assert_quiet(300, "L4-1608").await;
}

#[tokio::test(start_paused = true)]
async fn a_setting_that_was_refused_before_the_switch_is_written_once_it_is_mended() {
    let fixture: Fixture = takeover::left_behind(&plain("a policy that nobody knows")).await;
    fixture.edit("web", annotated(&[("policy", json!("magic-routing"))])).await;
    let mut fixture = fixture;
    fixture.restart();
    fixture.pass(60).await;
    assert_eq!(fixture.cloud.changes(), [""; 0], "BB-65 it is refused");
    fixture.edit("web", annotated(&[("policy", json!("round-robin"))])).await;
    fixture.pass(60).await;
    assert_eq!(fixture.cloud.alive()[0].policy, "round-robin", "BB-126 an edit that was seen is written");
}
