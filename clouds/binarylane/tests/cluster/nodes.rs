//! Nodes: found, described, and hard to lose.

use std::time::Duration;

use binarylane_sim::{Access, Cancellation, Fault, Harm, NewServer};
use serde_json::json;

use testing_kit::TokenFile;

use crate::fixture::{Fixture, Setup};

const SHUTDOWN: &str = "node.cloudprovider.kubernetes.io/shutdown";

async fn addresses(fixture: &Fixture, node: &str) -> Vec<String> {
    fixture.get_node(node).await.addresses.iter().map(ToString::to_string).collect()
}

#[tokio::test(start_paused = true)]
async fn a_node_is_bound_to_the_server_of_its_name() {
    let fixture = Fixture::new();
    let server = fixture.cloud.add_server("Kube-W1", "bne");
    fixture.cloud.switch(|switches| switches.ignore_hostname = true);
    fixture.cloud.add_server("another", "bne");
    fixture.join("kube-w1", json!({})).await;
    fixture.pass(30).await;
    let node = fixture.get_node("kube-w1").await;
    assert_eq!(node.provider_id, Some(format!("binarylane://{}", server.id)), "BL-17 BL-18 BL-20");
    let label = |key: &str| node.labels.get(key).map(str::to_owned);
    assert_eq!(label("topology.kubernetes.io/region").as_deref(), Some("bne"), "BL-26");
    assert_eq!(label("topology.kubernetes.io/zone").as_deref(), Some("bne"), "BL-26");
    assert_eq!(label("node.kubernetes.io/instance-type").as_deref(), Some("std-2vcpu"), "BL-26");
    assert_eq!(label("binarylane.com/host"), Some(server.host.clone()), "BL-26");
    let want = [
        "Hostname Kube-W1".to_owned(),
        format!("ExternalIP {}", server.public_address().unwrap()),
        format!("InternalIP {}", server.private_address().unwrap()),
        format!("ExternalIP {}", server.v6[0]),
    ];
    assert_eq!(addresses(&fixture, "kube-w1").await, want, "BL-26 BL-33");
    fixture.assert_quiet(900, "BL-39").await;
}

#[tokio::test(start_paused = true)]
async fn both_spellings_of_an_id_are_understood_and_kept() {
    let fixture = Fixture::new();
    let ids: Vec<i64> = ["two", "three"].map(|name| fixture.cloud.add_server(name, "bne").id).to_vec();
    fixture.join("two", json!({"spec": {"providerID": format!("binarylane://{}", ids[0])}})).await;
    fixture.join("three", json!({"spec": {"providerID": format!("binarylane:///{}", ids[1])}})).await;
    fixture.pass(30).await;
    for (case, node, id) in [
        ("BL-12", "two", format!("binarylane://{}", ids[0])),
        ("BL-13", "three", format!("binarylane:///{}", ids[1])),
    ] {
        assert!(fixture.is_initialised(node).await, "{case} {:?}", fixture.cluster.events(node));
        assert_eq!(fixture.get_node(node).await.provider_id, Some(id), "{case}");
    }
    fixture.cloud.edit(|all| "renamed".clone_into(&mut all.servers.get_mut(&ids[0]).unwrap().name));
    fixture.pass(700).await;
    assert!(addresses(&fixture, "two").await.contains(&"Hostname renamed".to_owned()), "BL-23");
}

#[tokio::test(start_paused = true)]
async fn foreign_and_malformed_ids_lose_no_node() {
    let fixture = Fixture::new();
    fixture.nodes(3).await;
    for (name, id) in [("foreign", "invalid://123"), ("odd", "binarylane://abc"), ("none", "binarylane://")] {
        fixture.cluster.register(name, Some(id)).await;
        fixture.cluster.set_ready(name, false).await;
    }
    fixture.pass(1_800).await;
    for (case, name) in [("BL-14", "foreign"), ("BL-15", "odd"), ("BL-15", "none")] {
        let node = fixture.get_node(name).await;
        assert!(!node.has_taint(SHUTDOWN), "{case} {name}");
    }
    assert_eq!(fixture.cluster.events("foreign"), [""; 0], "BL-14");
    let asked = fixture.cloud.journal().into_iter().filter(|entry| entry.path.contains("123"));
    assert_eq!(asked.count(), 0, "BL-14");
}

#[tokio::test(start_paused = true)]
async fn a_node_without_a_server_stays_and_waits() {
    let fixture = Fixture::new();
    fixture.nodes(2).await;
    fixture.join("lost", json!({})).await;
    fixture.cluster.set_ready("lost", false).await;
    fixture.pass(1_800).await;
    assert!(!fixture.is_initialised("lost").await, "BL-19");
    fixture.cloud.add_server("lost", "bne");
    fixture.pass(900).await;
    assert!(fixture.is_initialised("lost").await, "BL-19");
}

#[tokio::test(start_paused = true)]
async fn of_two_servers_of_a_name_the_one_with_the_kubelets_address_is_chosen() {
    let fixture = Fixture::new();
    let twins: Vec<_> = (0..2).map(|_| fixture.cloud.add_server("twin", "bne")).collect();
    fixture.join("twin", json!({})).await;
    fixture.pass(60).await;
    assert!(!fixture.is_initialised("twin").await, "BL-21");
    assert!(fixture.warned("twin", "several"), "BL-21 {:?}", fixture.warnings("twin"));
    let ip = twins[1].private_address().unwrap().to_string();
    let told = json!({"metadata": {"annotations": {"alpha.kubernetes.io/provided-node-ip": ip}}});
    fixture.cluster.merge(&fixture.cluster.nodes(), "twin", told).await;
    fixture.pass(600).await;
    assert_eq!(
        fixture.get_node("twin").await.provider_id,
        Some(format!("binarylane://{}", twins[1].id)),
        "BL-21"
    );
}

#[tokio::test(start_paused = true)]
async fn servers_on_later_pages_are_found() {
    let fixture = Fixture::with(Setup::default(), |settings| settings.switches.page_cap = Some(20));
    let ids: Vec<i64> =
        (0..57).map(|number| fixture.cloud.add_server(&format!("s{number}"), "bne").id).collect();
    fixture.join("s45", json!({})).await;
    fixture.pass(30).await;
    assert_eq!(fixture.get_node("s45").await.provider_id, Some(format!("binarylane://{}", ids[45])), "BL-22");
}

#[tokio::test(start_paused = true)]
async fn addresses_that_do_not_work_are_withheld_unless_the_kubelet_uses_one() {
    let fixture = Fixture::new();
    fixture.cloud.switch(|switches| {
        switches.phantom_private = true;
        switches.provider_private = true;
    });
    let outside = NewServer { in_vpc: false, ..NewServer::new("outside", "bne") };
    let outside = fixture.cloud.add(&outside);
    let told = fixture.cloud.add(&NewServer { in_vpc: false, ..NewServer::new("told", "bne") });
    let inside = fixture.cloud.add_server("inside", "bne");
    let listed = |id: i64| {
        let body = fixture.cloud.back_door("GET", &format!("/v2/servers/{id}"), &json!(null)).unwrap();
        let all = body["server"]["networks"]["v4"].as_array().unwrap().clone();
        let private = all.into_iter().filter(|one| one["type"] == "private");
        private.map(|one| one["ip_address"].as_str().unwrap().to_owned()).collect::<Vec<_>>()
    };
    let phantom = listed(told.id)[0].clone();
    assert!(!listed(outside.id).is_empty() && listed(inside.id).len() == 2, "the switches work");
    fixture.join("outside", json!({})).await;
    fixture.join("inside", json!({})).await;
    let ip = json!({"metadata": {"annotations": {"alpha.kubernetes.io/provided-node-ip": phantom}}});
    fixture.join("told", ip).await;
    let wrong = json!({"metadata": {"annotations": {"alpha.kubernetes.io/provided-node-ip": "192.0.2.99"}}});
    fixture.cloud.add_server("wrong", "bne");
    fixture.join("wrong", wrong).await;
    fixture.pass(60).await;
    let internal = async |node: &str| {
        let all = addresses(&fixture, node).await;
        all.into_iter()
            .filter_map(|line| line.strip_prefix("InternalIP ").map(str::to_owned))
            .collect::<Vec<_>>()
    };
    assert_eq!(internal("outside").await, [""; 0], "BL-29");
    assert_eq!(internal("inside").await, listed(inside.id)[1..], "BL-30");
    assert!(fixture.is_initialised("told").await, "BL-31 {:?}", fixture.cluster.events("told"));
    assert_eq!(internal("told").await, [phantom], "BL-31");
    assert!(!fixture.is_initialised("wrong").await && fixture.warned("wrong", "192.0.2.99"), "BL-32");
}

#[tokio::test(start_paused = true)]
async fn a_resize_is_noticed() {
    let fixture = Fixture::new();
    let id = fixture.cloud.add_server("node-01", "bne").id;
    fixture.join("node-01", json!({})).await;
    fixture.pass(30).await;
    fixture.cloud.edit(|all| "std-4vcpu".clone_into(&mut all.servers.get_mut(&id).unwrap().size));
    fixture.pass(900).await;
    let node = fixture.get_node("node-01").await;
    assert_eq!(node.labels.get("node.kubernetes.io/instance-type"), Some("std-4vcpu"), "BL-38");
}

#[tokio::test(start_paused = true)]
async fn a_hundred_nodes_share_a_listing() {
    let fixture = Fixture::new();
    for number in 0..120 {
        fixture.cloud.add_server(&format!("node-{number}"), "bne");
    }
    for number in 0..100 {
        fixture.join(&format!("node-{number}"), json!({})).await;
    }
    fixture.pass(60).await;
    let tally = fixture.tally();
    assert!(tally.calls <= 4 && tally.count("servers.get") == 0, "BL-40 {tally:?}");
    fixture.cloud.clear_journal();
    fixture.pass(300).await;
    assert!(fixture.tally().calls <= 2, "BL-41 {:?}", fixture.tally());
}

#[tokio::test(start_paused = true)]
async fn a_node_goes_with_its_server_and_not_otherwise() {
    let fixture = Fixture::new();
    let ids = fixture.nodes(6).await;
    fixture.pass(30).await;
    let node = |number: usize| format!("node-{number:02}");
    fixture.cloud.delete_server(ids[0]);
    fixture.cloud.delete_server(ids[1]);
    fixture.cloud.edit(|all| "new".clone_into(&mut all.servers.get_mut(&ids[2]).unwrap().status));
    fixture.cloud.switch(|switches| switches.hidden.extend([ids[3]]));
    for number in [1, 3, 4] {
        fixture.cluster.set_ready(&node(number), false).await;
    }
    fixture.pass(2_400).await;
    assert!(fixture.cluster.node(&node(2)).await.is_some(), "BL-43 a Ready node stays");
    let building = fixture.get_node(&node(3)).await;
    assert!(!building.has_taint(SHUTDOWN), "BL-46");
    assert!(
        fixture.cluster.node(&node(4)).await.is_some(),
        "BL-51 BL-150 the listing lacks it, and it is there"
    );
    assert!(
        fixture.cluster.node(&node(1)).await.is_some(),
        "BL-150 while the listing is short nothing is concluded"
    );
    fixture.cloud.switch(|switches| switches.hidden.clear());
    fixture.pass(2_400).await;
    assert!(fixture.cluster.node(&node(1)).await.is_none(), "BL-42 law 2");
    assert!(fixture.cluster.events(&node(1)).iter().any(|line| line.contains("DeletingNode")), "BL-42");
    assert!(fixture.cluster.node(&node(4)).await.is_some(), "BL-51");
}

#[tokio::test(start_paused = true)]
async fn a_server_that_is_off_taints_its_node() {
    let fixture = Fixture::new();
    let ids = fixture.nodes(3).await;
    fixture.pass(30).await;
    fixture.cloud.stop_server(ids[0]);
    fixture.cloud.cancel_server(ids[1]);
    for number in 1..=2 {
        fixture.cluster.set_ready(&format!("node-{number:02}"), false).await;
    }
    fixture.pass(300).await;
    assert!(fixture.get_node("node-01").await.has_taint(SHUTDOWN), "BL-44");
    assert!(fixture.get_node("node-02").await.has_taint(SHUTDOWN), "BL-45 it is kept");
    fixture.cloud.start_server(ids[0]);
    fixture.cluster.set_ready("node-01", true).await;
    fixture.pass(60).await;
    assert!(!fixture.get_node("node-01").await.has_taint(SHUTDOWN), "BL-44");
}

#[tokio::test(start_paused = true)]
async fn a_cancelled_server_is_gone_if_somebody_says_so() {
    let fixture = Fixture::with(Setup { file: "nodes: {cancelledIsGone: true}", ..Setup::default() }, |_| {});
    let ids = fixture.nodes(3).await;
    fixture.pass(30).await;
    let later = Cancellation::ArchiveAfter(Duration::from_secs(600));
    fixture.cloud.switch(|switches| switches.cancellation = later);
    fixture.cloud.cancel_server(ids[0]);
    fixture.cluster.set_ready("node-01", false).await;
    fixture.pass(300).await;
    let node = fixture.get_node("node-01").await;
    assert!(!node.has_taint(SHUTDOWN), "BL-151 it still runs");
    fixture.pass(2_400).await;
    assert!(fixture.cluster.node("node-01").await.is_none(), "BL-45 BL-151");
}

#[tokio::test(start_paused = true)]
async fn trouble_with_the_api_loses_no_node() {
    for (case, harm) in [
        ("BL-47", Harm::status(500)),
        ("BL-47", Harm::Masked { code: 504, empty: false }),
        ("BL-47", Harm::LostAnswer),
        ("BL-24", Harm::Masked { code: 200, empty: false }),
        ("BL-150", Harm::ShortList),
    ] {
        let fixture = Fixture::new();
        let ids = fixture.nodes(4).await;
        fixture.pass(30).await;
        fixture.cloud.stop_server(ids[0]);
        fixture.cloud.add_fault(Fault { mutation: Some(false), ..Fault::new(harm.clone()) });
        fixture.cluster.set_ready("node-01", false).await;
        fixture.cluster.set_ready("node-04", false).await;
        fixture.pass(1_800).await;
        for number in 1..=4 {
            assert!(fixture.cluster.node(&format!("node-{number:02}")).await.is_some(), "{case} {harm:?}");
        }
        assert!(!fixture.get_node("node-04").await.has_taint(SHUTDOWN), "{case} {harm:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_token_of_another_account_loses_no_node() {
    let fixture = Fixture::new();
    fixture.nodes(3).await;
    fixture.pass(30).await;
    fixture.cloud.set_tokens([(TokenFile::OWN, Access::OtherAccount)]);
    for number in 1..=3 {
        fixture.cluster.set_ready(&format!("node-{number:02}"), false).await;
    }
    fixture.pass(3_600).await;
    for number in 1..=3 {
        assert!(fixture.cluster.node(&format!("node-{number:02}")).await.is_some(), "BL-48");
    }
    assert!(fixture.warned("node-01", "MachineListingDoubtful"), "BL-48 {:?}", fixture.warnings("node-01"));
}

#[tokio::test(start_paused = true)]
async fn a_server_that_says_active_and_is_off_is_asked() {
    let fixture =
        Fixture::with(Setup { file: "nodes: {askWhetherRunning: true}", ..Setup::default() }, |settings| {
            settings.switches.off_says_active = true;
        });
    let ids = fixture.nodes(3).await;
    fixture.pass(30).await;
    fixture.cloud.stop_server(ids[0]);
    for number in 1..=2 {
        fixture.cluster.set_ready(&format!("node-{number:02}"), false).await;
    }
    fixture.cloud.clear_journal();
    fixture.pass(590).await;
    assert!(fixture.get_node("node-01").await.has_taint(SHUTDOWN), "BL-49");
    assert!(!fixture.get_node("node-02").await.has_taint(SHUTDOWN), "BL-49 it runs");
    let asked = |id: i64| {
        let path = format!("/v2/servers/{id}/actions");
        fixture
            .cloud
            .journal()
            .into_iter()
            .filter(|entry| entry.path == path && entry.method == "POST")
            .count()
    };
    assert!(
        (1..=2).contains(&asked(ids[0])) && (1..=2).contains(&asked(ids[1])),
        "BL-49 at most once in five minutes"
    );
    fixture.cloud.switch(|switches| switches.silent_actions.extend(["is_running".to_owned()]));
    fixture.cluster.set_ready("node-03", false).await;
    fixture.pass(400).await;
    assert!(!fixture.get_node("node-03").await.has_taint(SHUTDOWN), "BL-50");
}
