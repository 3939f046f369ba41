//! Options that change what is there, turned on and off while it runs.

use serde_json::json;

use crate::under_test::Fixture;

async fn served(more: serde_json::Value) -> Fixture {
    let fixture = Fixture::with_nodes(2).await;
    fixture.create("web", more).await;
    fixture.pass(60).await;
    fixture.cloud.cloud.clear_journal();
    fixture
}

fn rule(fixture: &Fixture) -> (String, String) {
    let policies = fixture.cloud.cloud.policies();
    let policy = policies.into_iter().find(|policy| !policy.default).unwrap();
    let [rule] = policy.rules.as_slice() else { panic!("{:?}", policy.rules) };
    (rule.source.clone().unwrap(), rule.destination_port.clone().unwrap())
}

#[tokio::test(start_paused = true)]
async fn the_firewall_is_narrowed_and_widened_by_one_request() {
    let mut fixture = served(json!({})).await;
    let id = fixture.cloud.alive()[0].id.clone();
    for (switch, source) in [("on", id.as_str()), ("off", "10.0.0.0/8")] {
        fixture.killer().abort();
        fixture.cloud.variables.lock().unwrap().insert("BRIGHTBOX_NARROW_FIREWALL", switch);
        fixture.cloud.cloud.clear_journal();
        fixture.restart();
        fixture.pass(60).await;
        assert_eq!(fixture.cloud.changes(), ["firewall_rules.update"], "F17 {switch}");
        assert_eq!(rule(&fixture).0, source, "F17 {switch}");
    }
    fixture.cloud.variables.lock().unwrap().insert("BRIGHTBOX_NARROW_FIREWALL", "on");
    fixture.killer().abort();
    fixture.restart();
    fixture.create("new", json!({})).await;
    fixture.pass(60).await;
    assert!(!fixture.ingress("new").await.is_empty(), "F17 {:?}", fixture.cluster.events("new"));
    fixture.assert_quiet(300, "F17 L4-1609").await;
}

#[tokio::test(start_paused = true)]
async fn kube_proxy_can_answer_the_checks() {
    let fixture = served(json!({})).await;
    let said = fixture.cluster.events("web");
    assert!(said.iter().any(|line| line.starts_with("Normal ChecksAskWorkload")), "F26 {said:?}");
    let key = "cloudberth.dev/brightbox-healthcheck-target";
    fixture.annotate("web", key, json!("kube-proxy")).await;
    fixture.pass(60).await;
    let changes = fixture.cloud.changes();
    assert_eq!(changes, ["firewall_rules.update", "load_balancers.update"], "F26 the port is open first");
    assert_eq!(fixture.cloud.alive()[0].healthcheck.port, 10_256, "F26");
    assert!(rule(&fixture).1.ends_with(",10256"), "F26 {:?}", rule(&fixture));
    fixture.assert_quiet(300, "F26 L4-1610").await;
}
