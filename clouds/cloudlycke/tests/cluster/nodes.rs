//! Nodes and their machines.

use cloudberth_core::{NodeView, decide::node::taints::UNINITIALISED};
use cloudberth_lycke::inventory::MachineState;
use serde_json::{Value, json};
use testing_kit::checks::{CloudFixture, CloudUnderTest as _};

use crate::under_test::Lycke;

const SHUTDOWN: &str = "node.cloudprovider.kubernetes.io/shutdown";
const CONTROL_PLANE: &str = "node-role.kubernetes.io/control-plane";

type Fixture = CloudFixture<Lycke>;

async fn node(fixture: &Fixture, name: &str) -> NodeView {
    fixture.cluster.node(name).await.unwrap()
}

/// The kubelet registers a node that waits for its cloud.
async fn register(fixture: &Fixture, name: &str, id: Option<&str>, taints: &[Value]) {
    let waits = json!({"key": UNINITIALISED, "value": "true", "effect": "NoSchedule"});
    let taints: Vec<_> = [waits].into_iter().chain(taints.iter().cloned()).collect();
    let mut spec = json!({"taints": taints});
    if let Some(id) = id {
        spec["providerID"] = json!(id);
    }
    fixture.cluster.create(&fixture.cluster.nodes(), "Node", name, json!({"spec": spec})).await;
    fixture.cluster.set_ready(name, true).await;
}

fn demo(kind: &str, address: &str) -> Value {
    json!({"type": kind, "internal": [address], "external": [address]})
}

fn shown(node: &NodeView) -> Vec<String> {
    node.addresses.iter().map(|one| format!("{} {}", one.kind(), one.address())).collect()
}

#[tokio::test(start_paused = true)]
async fn the_nodes_of_the_demonstration_get_their_labels_and_addresses() {
    let fixture = Fixture::new();
    let worker = demo("vbox.vm.1g.2cpu", "192.168.20.11");
    let master = demo("vbox.vm.512mb.1cpu", "192.168.20.10");
    fixture.cloud.add_machine("c2", "node-c2-1", &worker);
    fixture.cloud.add_machine("c2", "master-c2-1", &master);
    register(&fixture, "node-c2-1", Some("cloudlycke://c2-node-c2-1"), &[]).await;
    let own = json!({"key": CONTROL_PLANE, "effect": "NoSchedule"});
    register(&fixture, "master-c2-1", None, &[own]).await;
    fixture.pass(30).await;
    for (case, name, kind, address) in [
        ("CL-1", "node-c2-1", "vbox.vm.1g.2cpu", "192.168.20.11"),
        ("CL-2", "master-c2-1", "vbox.vm.512mb.1cpu", "192.168.20.10"),
    ] {
        let node = node(&fixture, name).await;
        assert!(!node.has_taint(UNINITIALISED), "{case} the taint is gone");
        for (label, value) in [
            ("node.kubernetes.io/instance-type", kind),
            ("beta.kubernetes.io/instance-type", kind),
            ("topology.kubernetes.io/region", "virtualbox"),
            ("failure-domain.beta.kubernetes.io/region", "virtualbox"),
            ("topology.kubernetes.io/zone", "virtualbox"),
            ("failure-domain.beta.kubernetes.io/zone", "virtualbox"),
        ] {
            assert_eq!(node.labels.get(label), Some(value), "{case} CL-3 {label}");
        }
        let want =
            [format!("InternalIP {address}"), format!("ExternalIP {address}"), format!("Hostname {name}")];
        assert_eq!(shown(&node), want, "{case}");
        let id = format!("cloudlycke://c2-{name}");
        assert_eq!(
            node.provider_id.as_deref(),
            Some(id.as_str()),
            "CL-4 {case}: the scheme stands there once"
        );
    }
    assert!(node(&fixture, "master-c2-1").await.has_taint(CONTROL_PLANE), "CL-2 its own taint stays");
}

#[tokio::test(start_paused = true)]
async fn a_node_that_the_inventory_lacks_waits_and_its_event_says_so() {
    let fixture = Fixture::new();
    fixture.cloud.add_instance("node-1");
    register(&fixture, "stranger", None, &[]).await;
    register(&fixture, "mistyped", Some("cloudlycke://nope"), &[]).await;
    fixture.pass(120).await;
    assert!(node(&fixture, "stranger").await.has_taint(UNINITIALISED), "CL-5 the taint stays");
    let events = fixture.cluster.events("stranger");
    assert!(events.iter().any(|event| event.contains("not in the inventory")), "CL-5 {events:?}");
    assert!(node(&fixture, "mistyped").await.has_taint(UNINITIALISED), "CL-6");
    let events = fixture.cluster.events("mistyped");
    assert!(events.iter().any(|event| event.contains("cloudlycke://nope")), "CL-6 {events:?}");
    fixture.cluster.set_ready("mistyped", false).await;
    fixture.pass(900).await;
    assert!(
        fixture.cluster.node("mistyped").await.is_some(),
        "CL-6 L2-1801 a node that waits is not deleted"
    );
}

#[tokio::test(start_paused = true)]
async fn a_node_of_another_program_is_left_alone() {
    let fixture = Fixture::new();
    fixture.cloud.add_machine(
        "c2",
        "kind-worker",
        &json!({"nodeProviderID": "kind://docker/kind/kind-worker"}),
    );
    for (name, id) in [("kind-worker", "kind://docker/kind/kind-worker"), ("other", "kind://x")] {
        fixture.cluster.register_with(name, json!({"providerID": id})).await;
        fixture.cluster.set_ready(name, false).await;
    }
    let before = fixture.kube_calls();
    fixture.pass(900).await;
    for name in ["kind-worker", "other"] {
        let node = node(&fixture, name).await;
        assert!(node.labels.get("topology.kubernetes.io/zone").is_none(), "CL-7 {name} is not labelled");
        assert!(!node.has_taint(SHUTDOWN), "CL-7 {name} is not tainted");
        assert_eq!(fixture.cluster.events(name), [""; 0], "CL-7 nobody calls it an error");
    }
    assert_eq!(fixture.cluster.writes(before), [], "CL-7 L3-1802 nothing is written on them");
}

#[tokio::test(start_paused = true)]
async fn a_machine_is_stopped_started_and_destroyed() {
    let fixture = Fixture::with_nodes(3).await;
    fixture.pass(10).await;
    let id = node(&fixture, "node-1").await.provider_id.unwrap();
    fixture.cluster.set_ready("node-1", false).await;
    fixture.pass(120).await;
    assert!(
        !node(&fixture, "node-1").await.has_taint(SHUTDOWN),
        "CL-8 it runs, so it is not said to be shut down"
    );
    fixture.cloud.set_state(&id, MachineState::Stopped);
    fixture.pass(120).await;
    assert!(node(&fixture, "node-1").await.has_taint(SHUTDOWN), "CL-9");
    fixture.cloud.set_state(&id, MachineState::Running);
    fixture.cluster.set_ready("node-1", true).await;
    fixture.pass(120).await;
    assert!(!node(&fixture, "node-1").await.has_taint(SHUTDOWN), "CL-10");
    fixture.cluster.set_ready("node-1", false).await;
    fixture.cloud.set_state(&id, MachineState::Gone);
    fixture.pass(300).await;
    assert!(fixture.cluster.node("node-1").await.is_none(), "CL-11 {:?}", fixture.cluster.events("node-1"));
    assert!(fixture.cluster.events("node-1").iter().any(|event| event.contains("Delet")), "CL-11 it is told");
}

#[tokio::test(start_paused = true)]
async fn a_service_that_is_away_or_does_not_know_changes_nothing() {
    let fixture = Fixture::with_nodes(3).await;
    fixture.pass(10).await;
    let id = node(&fixture, "node-1").await.provider_id.unwrap();
    fixture.cluster.set_ready("node-1", false).await;
    fixture.cloud.set_state(&id, MachineState::Unknown);
    fixture.pass(900).await;
    let waiting = node(&fixture, "node-1").await;
    assert!(!waiting.has_taint(SHUTDOWN), "CL-12 CL-28 CL-99 nobody knows, so nothing happens");
    fixture.cloud.door.shut(true);
    fixture.cloud.set_state(&id, MachineState::Gone);
    fixture.pass(900).await;
    assert!(fixture.cluster.node("node-1").await.is_some(), "CL-13 the service is down");
    fixture.cloud.door.shut(false);
    fixture.pass(300).await;
    assert!(fixture.cluster.node("node-1").await.is_none(), "CL-13 it is back, and the machine is gone");
}

#[tokio::test(start_paused = true)]
async fn machines_of_other_clusters_are_others() {
    let fixture = Fixture::new();
    let theirs = fixture.cloud.add_machine("c1", "twin", &json!({}));
    let ours = fixture.cloud.add_machine("c2", "twin", &json!({}));
    register(&fixture, "twin", None, &[]).await;
    register(&fixture, "lost", Some(&theirs), &[]).await;
    fixture.pass(60).await;
    assert_eq!(node(&fixture, "twin").await.provider_id.as_deref(), Some(ours.as_str()), "CL-16");
    assert!(node(&fixture, "lost").await.has_taint(UNINITIALISED), "CL-15 it is not found here");
    let events = fixture.cluster.events("lost");
    let told = |event: &String| event.starts_with("Warning") && event.contains("in cluster \"c1\"");
    assert!(events.iter().any(told), "CL-15 {events:?}");

    // With the key of the other cluster the other machine is the one.
    let clock = std::sync::Arc::clone(&fixture.cluster.clock);
    let other = fixture.cloud.provider_with(&clock, &[("CLOUDLYCKE_CLUSTER", "c1")]);
    let call = cloudberth_core::Call::new(
        clock.now() + std::time::Duration::from_secs(30),
        std::sync::Arc::new(cloudberth_core::call::Unguarded),
    );
    let listed = cloudberth_core::Instances::list(&other, &call).await.unwrap();
    let ids: Vec<_> = listed.items.iter().map(|instance| instance.id.to_string()).collect();
    assert_eq!(ids, [theirs], "CL-14 CL-16");
}

#[tokio::test(start_paused = true)]
async fn what_changes_in_the_inventory_shows_on_nodes() {
    let fixture = Fixture::with_nodes(2).await;
    let id = fixture.cloud.add_machine("c2", "node-9", &json!({"labels": {"rack": "shelf"}}));
    register(&fixture, "node-9", None, &[]).await;
    fixture.pass(30).await;
    assert_eq!(node(&fixture, "node-9").await.labels.get("rack"), Some("shelf"), "CL-19");
    testing_kit::seeded::SeededCloud::remove_instance(&fixture.cloud, &id);
    let moved = json!({"internal": ["10.9.9.9"], "external": [], "type": "vbox.vm.512mb.1cpu"});
    fixture.cloud.add_machine("c2", "node-9", &moved);
    fixture.pass(600).await;
    let node = node(&fixture, "node-9").await;
    assert!(shown(&node).contains(&"InternalIP 10.9.9.9".to_owned()), "CL-18 {:?}", shown(&node));
}
