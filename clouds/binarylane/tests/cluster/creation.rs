//! A Service gets its load balancer.

use std::time::Duration;

use binarylane_sim::{Fault, Harm};
use cloudberth_core::view::IpMode;
use serde_json::json;

use crate::fixture::{FINALIZER, Fixture, INTENT, Setup, annotated, ports};

#[tokio::test(start_paused = true)]
async fn one_request_and_the_address_when_it_is_there() {
    let fixture = Fixture::with_nodes().await;
    let servers: Vec<i64> = fixture.cloud.servers().iter().map(|server| server.id).collect();
    fixture.create("web", json!({})).await;
    fixture.pass(1).await;
    let id = fixture.recorded("web").await;
    assert_eq!(fixture.ingress("web").await, [""; 0], "BL-71 nothing before it is active");
    fixture.pass(20).await;
    let posts = fixture.mutations();
    let body = json!({"name": "k8s-test-default-web", "forwarding_rules": [{"entry_protocol": "http"}],
                      "health_check": {"protocol": "http", "path": "/"}, "server_ids": servers});
    assert_eq!(posts.len(), 1, "BL-52 {posts:?}");
    assert_eq!(posts[0].body, Some(body), "BL-52 BL-69 BL-7");
    let balancer = fixture.balancer("web").await;
    let service = fixture.get("web").await;
    assert_eq!(id, Some(balancer.id), "BL-52 recorded at once");
    assert_eq!(fixture.ingress("web").await, [balancer.ip.unwrap().to_string()], "BL-52");
    assert_eq!(service.ingress[0].ip_mode, Some(IpMode::Vip));
    assert_eq!(service.annotations.get(INTENT), None);
    assert_eq!(service.finalizers, [FINALIZER]);
    fixture.assert_quiet(600, "BL-86 L4-1601").await;
}

#[tokio::test(start_paused = true)]
async fn both_ports_and_a_region() {
    let fixture = Fixture::with(Setup { file: "region: bne", ..Setup::default() }, |_| {});
    fixture.nodes(2).await;
    let far = fixture.cloud.add_server("far", "syd").id;
    fixture.cluster.register("far", Some(&format!("binarylane://{far}"))).await;
    fixture.pass(10).await;
    fixture.create("web", ports(&[80, 443])).await;
    fixture.pass(20).await;
    let balancer = fixture.balancer("web").await;
    assert_eq!(balancer.rules, ["http", "https"], "BL-54");
    assert_eq!(
        (balancer.health_check.protocol.as_str(), balancer.region.as_deref()),
        ("both", Some("bne")),
        "BL-54 BL-69"
    );
    assert!(!balancer.server_ids.contains(&far) && balancer.server_ids.len() == 2, "BL-70");
    assert!(fixture.warned("web", "NodeRegionMismatch") && fixture.warned("web", "far"), "BL-70");
    fixture.assert_quiet(300, "BL-70 it is said once").await;
}

#[tokio::test(start_paused = true)]
async fn what_cannot_be_forwarded_is_refused_without_a_call() {
    let fixture = Fixture::with_nodes().await;
    for (case, name, spec, words) in [
        (
            "BL-55",
            "odd",
            json!({"ports": [{"port": 8080, "protocol": "TCP"}]}),
            &["spec.ports", "8080", "TCP 443"][..],
        ),
        ("BL-57", "dns", json!({"ports": [{"port": 53, "protocol": "UDP"}]}), &["spec.ports", "53/UDP"]),
        (
            "BL-135",
            "sticky",
            json!({"sessionAffinity": "ClientIP"}),
            &["spec.sessionAffinity", "ClientIP", "60 s"],
        ),
        (
            "BL-84",
            "asks",
            json!({"loadBalancerIP": "192.0.2.7"}),
            &["UnsupportedLoadBalancerIP", "192.0.2.7"],
        ),
    ] {
        fixture.create(name, json!({"spec": spec})).await;
        fixture.pass(60).await;
        let service = fixture.get(name).await;
        assert_eq!(service.finalizers, [""; 0], "{case}");
        assert!(service.annotations.is_empty() && service.ingress.is_empty(), "{case}");
        let warnings = fixture.warnings(name);
        assert_eq!(warnings.len(), 1, "{case} {warnings:?}");
        assert!(words.iter().all(|word| warnings[0].contains(word)), "{case} {warnings:?}");
    }
    let asked =
        fixture.cloud.journal().into_iter().filter(|entry| entry.operation.starts_with("load_balancers"));
    assert_eq!(asked.count(), 0, "BL-55 BL-57 BL-135 BL-84 no call");
    fixture.edit("sticky", json!({"spec": {"sessionAffinity": "None"}})).await;
    fixture.pass(20).await;
    assert_eq!(fixture.ingress("sticky").await.len(), 1, "BL-135 once it is corrected it is served");
}

#[tokio::test(start_paused = true)]
async fn another_class_is_not_ours() {
    let fixture = Fixture::with_nodes().await;
    fixture.create("theirs", json!({"spec": {"loadBalancerClass": "example.net/other"}})).await;
    fixture.pass(60).await;
    assert_eq!(fixture.cluster.events("theirs"), [""; 0], "BL-85");
    assert_eq!(fixture.changes(), [""; 0], "BL-85");
}

#[tokio::test(start_paused = true)]
async fn an_address_that_comes_late_is_waited_for() {
    let fixture = Fixture::with_nodes().await;
    fixture.cloud.switch(|switches| switches.ip_when_active = true);
    fixture.create("web", json!({})).await;
    fixture.pass(1).await;
    assert_eq!(fixture.ingress("web").await, [""; 0], "BL-71");
    fixture.pass(20).await;
    let ip = fixture.balancer("web").await.ip.unwrap().to_string();
    assert_eq!(fixture.ingress("web").await, [ip], "BL-71");
}

#[tokio::test(start_paused = true)]
async fn one_that_cannot_be_built_is_told_of_and_kept() {
    let fixture = Fixture::with_nodes().await;
    fixture.cloud.switch(|switches| switches.build_fails = true);
    fixture.create("web", json!({})).await;
    fixture.pass(900).await;
    assert!(fixture.warned("web", "LoadBalancerErrored"), "BL-72 {:?}", fixture.warnings("web"));
    assert!(!fixture.warned("web", "Creating"), "BL-152 {:?}", fixture.warnings("web"));
    assert_eq!(fixture.changes(), ["load_balancers.create"], "BL-72");
    let tally = fixture.tally();
    assert!(
        tally.count("load_balancers.get") + tally.count("load_balancers.list") < 15,
        "BL-72 slowly {tally:?}"
    );
    fixture.delete("web").await;
    fixture.pass(60).await;
    assert!(fixture.is_gone("web").await && fixture.cloud.balancers().is_empty());
}

#[tokio::test(start_paused = true)]
async fn an_invoice_that_is_not_paid_is_named() {
    let fixture = Fixture::with_nodes().await;
    fixture.cloud.switch(|switches| switches.blocking_invoice = Some(991));
    fixture.create("web", json!({})).await;
    fixture.pass(60).await;
    assert!(fixture.warned("web", "991"), "BL-73 {:?}", fixture.warnings("web"));
    fixture.cloud.clear_journal();
    fixture.pass(600).await;
    assert!(fixture.tally().calls < 20, "BL-73 {:?}", fixture.tally());
    fixture.cloud.unblock();
    fixture.pass(400).await;
    assert_eq!(fixture.ingress("web").await.len(), 1, "BL-73");
}

#[tokio::test(start_paused = true)]
async fn without_nodes_there_is_an_address_all_the_same() {
    let fixture = Fixture::new();
    fixture.create("web", json!({})).await;
    fixture.pass(30).await;
    assert_eq!(fixture.ingress("web").await.len(), 1, "BL-82 {:?}", fixture.cluster.events("web"));
    assert!(fixture.warned("web", "UnAvailableLoadBalancer"), "BL-82 {:?}", fixture.warnings("web"));
    let id = fixture.node("node-01").await;
    fixture.pass(30).await;
    assert_eq!(fixture.pool("web").await, [id], "BL-82");
    assert_eq!(fixture.changes(), ["load_balancers.create", "load_balancers.add_servers"], "BL-82");
}

#[tokio::test(start_paused = true)]
async fn five_at_once_share_a_listing() {
    let fixture = Fixture::with_nodes().await;
    for number in 1..=5 {
        fixture.create(&format!("web-{number}"), json!({})).await;
    }
    fixture.pass(60).await;
    assert_eq!(fixture.cloud.balancers().len(), 5, "BL-79");
    let tally = fixture.tally();
    assert_eq!(tally.count("load_balancers.create"), 5, "BL-79 {tally:?}");
    assert!(tally.count("load_balancers.list") <= 4, "BL-79 {tally:?}");
}

#[tokio::test(start_paused = true)]
async fn a_refusal_of_the_api_is_told_and_not_repeated() {
    let fixture = Fixture::with_nodes().await;
    fixture.create("web", annotated(&[("region", json!("nowhere"))])).await;
    fixture.pass(300).await;
    let warnings = fixture.warnings("web");
    assert!(warnings.iter().any(|line| line.contains("region: ")), "BL-83 BL-142 {warnings:?}");
    assert!(!fixture.warned("web", "validation errors occurred"), "BL-142 {warnings:?}");
    assert_eq!(fixture.changes().len(), 1, "BL-83 {:?}", fixture.changes());
    fixture.edit("web", annotated(&[("region", json!("bne"))])).await;
    fixture.pass(60).await;
    assert_eq!(fixture.ingress("web").await.len(), 1, "BL-83");
}

#[tokio::test(start_paused = true)]
async fn a_bad_token_changes_nothing() {
    let fixture = Fixture::new();
    fixture.cloud.add_fault(Fault::new(Harm::status(401)));
    fixture.nodes(2).await;
    fixture.create("web", json!({})).await;
    fixture.pass(900).await;
    assert!(fixture.cluster.node("node-01").await.is_some(), "BL-11");
    assert_eq!(fixture.ingress("web").await, [""; 0], "BL-11");
    assert!(fixture.tally().calls < 80, "BL-11 {:?}", fixture.tally());
    fixture.cloud.stop_faults();
    fixture.pass(900).await;
    assert_eq!(fixture.ingress("web").await.len(), 1, "BL-11 it goes on by itself");
}

#[tokio::test(start_paused = true)]
async fn a_flood_is_held_back_and_removals_come_through() {
    let fixture = Fixture::with_nodes().await;
    for number in 0..60 {
        fixture.create(&format!("web-{number:02}"), json!({})).await;
    }
    fixture.pass(120).await;
    assert_eq!(fixture.cloud.balancers().len(), 60);
    fixture.cloud.clear_journal();
    for number in 0..60 {
        fixture.delete(&format!("web-{number:02}")).await;
    }
    fixture.pass(60).await;
    let journal = fixture.cloud.journal();
    assert!(journal.len() >= 60);
    for window in journal.windows(31) {
        let took = window[30].sent.since(window[0].sent);
        assert!(took >= Duration::from_millis(900), "BL-133 31 calls in {took:?}");
    }
    assert_eq!(fixture.cloud.balancers().len(), 0, "BL-133 no deletion starves");
}
