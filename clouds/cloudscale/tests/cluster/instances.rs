//! Nodes and the servers that they run on.

use cloudberth_core::decide::node::taints::{SHUTDOWN, UNINITIALISED};
use serde_json::json;

use crate::fixture::Fixture;

#[tokio::test(start_paused = true)]
async fn nodes_are_initialised_from_their_servers() {
    let fixture = Fixture::new();
    let by_name = fixture.cloud.add_server("worker-1", "lpg1");
    fixture.join("worker-1").await;
    fixture.pass(10).await;
    let node = fixture.cluster.node("worker-1").await.unwrap();
    assert!(!node.has_taint(UNINITIALISED), "CS-26");
    assert_eq!(node.provider_id, Some(format!("cloudscale://{}", by_name.uuid)), "CS-26 CS-29");
    for (label, value) in [
        ("topology.kubernetes.io/zone", "lpg1"),
        ("topology.kubernetes.io/region", "lpg"),
        ("failure-domain.beta.kubernetes.io/zone", "lpg1"),
        ("node.kubernetes.io/instance-type", by_name.flavor.as_str()),
    ] {
        assert_eq!(node.labels.get(label), Some(value), "CS-23 CS-26 {label}");
    }
    let kinds: Vec<_> = node.addresses.iter().map(|address| address.kind().as_str()).collect();
    assert_eq!(kinds, ["Hostname", "ExternalIP", "ExternalIP", "InternalIP"], "CS-24 CS-26");
}

#[tokio::test(start_paused = true)]
async fn a_name_is_compared_exactly() {
    let fixture = Fixture::new();
    for server in ["solo", "Other", "twin", "twin"] {
        fixture.cloud.add_server(server, "lpg1");
    }
    for (node, case, initialised) in
        [("solo", "CS-29", true), ("other", "CS-36", false), ("twin", "CS-31", false)]
    {
        fixture.join(node).await;
        fixture.pass(10).await;
        let waits = fixture.cluster.node(node).await.unwrap().has_taint(UNINITIALISED);
        assert_eq!(!waits, initialised, "{case} {:?}", fixture.cluster.events(node));
    }
    let told = fixture.cluster.events("twin").join("\n");
    assert_eq!(told.matches("cloudscale://").count(), 2, "CS-31 both are named: {told}");
}

#[tokio::test(start_paused = true)]
async fn a_stopped_server_taints_its_node_and_a_started_one_frees_it() {
    let fixture = Fixture::new();
    let ids = fixture.nodes(3).await;
    fixture.pass(10).await;
    fixture.cloud.stop_server(&ids[1]);
    fixture.cluster.set_ready("node-02", false).await;
    fixture.pass(120).await;
    assert!(fixture.cluster.node("node-02").await.unwrap().has_taint(SHUTDOWN), "CS-20 CS-27");
    assert!(!fixture.cluster.node("node-01").await.unwrap().has_taint(SHUTDOWN), "CS-21");
    fixture.cloud.start_server(&ids[1]);
    fixture.cluster.set_ready("node-02", true).await;
    fixture.pass(120).await;
    assert!(!fixture.cluster.node("node-02").await.unwrap().has_taint(SHUTDOWN), "CS-27");
}

#[tokio::test(start_paused = true)]
async fn a_node_goes_only_with_its_server() {
    let fixture = Fixture::new();
    let ids = fixture.nodes(3).await;
    fixture.cluster.register("nameless", None).await;
    fixture.cluster.register("broken", Some("cloudscale://bad")).await;
    fixture.cloud.add_server("nameless", "rma1");
    fixture.pass(10).await;
    for name in ["node-01", "node-02", "nameless", "broken"] {
        fixture.cluster.set_ready(name, false).await;
    }
    fixture.cloud.delete_server(&ids[0]);
    fixture.pass(300).await;
    let there = async |name: &str| fixture.cluster.node(name).await.is_some();
    assert!(!there("node-01").await, "CS-18 CS-28");
    assert!(there("node-02").await, "CS-17 it exists");
    assert!(there("nameless").await, "CS-16 nothing is judged by its name alone");
    assert!(there("broken").await, "CS-25 nothing is judged by an id that cannot be read");
}

#[tokio::test(start_paused = true)]
async fn an_api_that_fails_takes_no_node() {
    use cloudscale_sim::{Fault, Harm};
    for (case, fault) in [
        ("CS-19", Harm::status(500)),
        ("L1-820 a page from a gateway", Harm::status(502)),
        ("L1-821 a token that expired", Harm::status(401)),
        ("L1-822 an empty listing", Harm::EmptyList),
    ] {
        let fixture = Fixture::new();
        let ids = fixture.nodes(3).await;
        fixture.pass(10).await;
        fixture.cloud.add_fault(Fault { path: "/v1/servers".to_owned(), ..Fault::new(fault) });
        fixture.cloud.stop_server(&ids[0]);
        fixture.cluster.set_ready("node-01", false).await;
        fixture.pass(600).await;
        assert!(fixture.cluster.node("node-01").await.is_some(), "{case}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_token_of_another_project_takes_no_node() {
    use cloudscale_sim::Access;
    for (case, theirs) in [("L1-829 nothing is there", 0), ("L1-860 strangers are there", 3)] {
        let mut fixture = Fixture::new();
        fixture.nodes(3).await;
        fixture.create("web", json!({})).await;
        fixture.pass(30).await;
        fixture.cloud.set_tokens([(crate::under_test::TOKEN, Access::OtherProject)]);
        for number in 0..theirs {
            fixture.cloud.add_server_elsewhere(&format!("stranger-{number}"), "rma1");
        }
        for name in ["node-01", "node-02"] {
            fixture.cluster.set_ready(name, false).await;
        }
        fixture.pass(1200).await;
        fixture.restart();
        fixture.pass(1200).await;
        for name in ["node-01", "node-02", "node-03"] {
            assert!(fixture.cluster.node(name).await.is_some(), "{case}: {name} runs in the right project");
        }
        let said = fixture.cluster.events("node-01");
        assert!(said.iter().any(|line| line.contains("MachineListingDoubtful")), "{case}: {said:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn twins_are_not_chosen_from() {
    let fixture = Fixture::new();
    let twin = fixture.cloud.add_server("twin", "rma1");
    fixture.cloud.add_server("twin", "rma1");
    fixture.join("twin").await;
    fixture.pass(30).await;
    let node = fixture.cluster.node("twin").await.unwrap();
    assert_eq!(node.provider_id, None, "CS-31");
    assert!(node.has_taint(UNINITIALISED), "CS-31");
    // Asked for by its id, each of the twins is found.
    let id = json!({"spec": {"providerID": format!("cloudscale://{}", twin.uuid)}});
    fixture.cluster.merge(&fixture.cluster.nodes(), "twin", id).await;
    fixture.pass(120).await;
    assert!(!fixture.cluster.node("twin").await.unwrap().has_taint(UNINITIALISED), "CS-31 CS-32");
}
