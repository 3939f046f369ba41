//! A machine that cannot be asked about stays behind its load balancers (law 1).

use std::time::Duration;

use serde_json::json;
use sim_kit::Harm;
use testing_kit::{checks::CloudFixture, seeded::SeededCloud as _};

use crate::{
    seeded::ports,
    under_test::{Lycke, set_latency},
};

const WEB: &str = "c2/default/web";

type Fixture = CloudFixture<Lycke>;

fn backends(fixture: &Fixture) -> usize {
    fixture.cloud.balancer(WEB).unwrap().balancer.spec.backends.len()
}

/// A Service in front of some nodes; the machine of the last one is then not listed any more.
async fn one_is_not_listed(nodes: usize) -> Fixture {
    let fixture = Fixture::with_nodes(nodes).await;
    fixture.pass(10).await;
    fixture.create("web", json!({})).await;
    fixture.pass(30).await;
    assert_eq!(backends(&fixture), nodes);
    fixture
}

#[tokio::test(start_paused = true)]
async fn a_page_in_place_of_the_service_proves_nothing() {
    let fixture = one_is_not_listed(2).await;
    let page = |code| Harm::Masked { code, empty: false };
    for (case, operation, harm) in [
        ("L1-1810 a page that says 404", "machines.get", page(404)),
        ("L1-1811 no answer at all", "machines.get", Harm::LostCall),
        ("L1-1812 a page in place of the clusters", "clusters.list", page(404)),
    ] {
        fixture
            .cloud
            .plan_faults(Box::new(move |request| (request.operation == operation).then(|| harm.clone())));
        fixture.cloud.remove_instance("cloudlycke://c2-node-2");
        fixture.edit("web", ports(&[80, 443])).await;
        fixture.pass(600).await;
        assert_eq!(backends(&fixture), 2, "{case}: {:?}", fixture.warnings("web"));
    }
    fixture.cloud.stop_faults();
    fixture.pass(600).await;
    assert_eq!(backends(&fixture), 1, "the service says so itself");
}

#[tokio::test(start_paused = true)]
async fn a_cluster_that_vanished_is_not_a_machine_of_another_cluster() {
    let fixture = one_is_not_listed(2).await;
    // The inventory calls the cluster by another key: its machines are those of another one.
    fixture.cloud.front.edit_answers(|request, body| {
        if request.operation == "machines.get" {
            body["cluster"] = json!("c3");
        }
        if request.operation == "clusters.list" {
            body["items"] = json!([{"key": "c3", "kubernetesName": "other", "managed": true}]);
        }
        if request.operation == "machines.list" {
            body["items"].as_array_mut().unwrap().retain(|one| one["id"] != "c2-node-2");
        }
    });
    fixture.edit("web", ports(&[80, 443])).await;
    fixture.pass(600).await;
    assert_eq!(backends(&fixture), 2, "L1-1813 {:?}", fixture.warnings("web"));
    // With the cluster there, the machine is somebody else's.
    fixture.cloud.front.edit_answers(|request, body| {
        if request.operation == "machines.get" {
            body["cluster"] = json!("c1");
        }
        if request.operation == "machines.list" {
            body["items"].as_array_mut().unwrap().retain(|one| one["id"] != "c2-node-2");
        }
    });
    fixture.pass(300).await;
    assert_eq!(backends(&fixture), 1, "CL-15 {:?}", fixture.warnings("web"));
    let warnings = fixture.warnings("web");
    assert!(warnings.iter().any(|text| text.contains("in cluster \"c1\"")), "CL-15 {warnings:?}");
}

#[tokio::test(start_paused = true)]
async fn machines_are_asked_about_side_by_side() {
    let fixture = one_is_not_listed(10).await;
    set_latency(&fixture.cloud, Duration::from_millis(500));
    for number in 3..=10 {
        fixture.cloud.remove_instance(&format!("cloudlycke://c2-node-{number}"));
    }
    fixture.cloud.front.clear_journal();
    fixture.edit("web", ports(&[443])).await;
    fixture.pass(600).await;
    assert_eq!(backends(&fixture), 2);
    let journal = fixture.cloud.front.journal();
    let asked: Vec<_> = journal.iter().filter(|entry| entry.operation == "machines.get").collect();
    assert!(asked.len() >= 8, "each was asked about: {}", asked.len());
    let side_by_side = asked.iter().take(8).map(|entry| entry.sent).max().unwrap();
    let took = side_by_side.since(asked[0].sent);
    assert!(took < Duration::from_secs(2), "eight questions, and none waits for another: {took:?}");
}
