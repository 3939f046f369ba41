//! Routes to the pods of nodes, in the VPC.

use binarylane_sim::{Fault, Harm, NewServer, RouteEntry};
use serde_json::json;

use crate::fixture::{Fixture, Setup};

fn routing() -> Setup {
    Setup { routes: true, ..Setup::default() }
}

async fn node(fixture: &Fixture, number: usize) -> String {
    let name = format!("node-{number:02}");
    let server = fixture.cloud.add_server(&name, "bne");
    pods(fixture, &name, server.id, &[&format!("10.244.{number}.0/24")]).await;
    server.private_address().unwrap().to_string()
}

async fn pods(fixture: &Fixture, name: &str, server: i64, cidrs: &[&str]) {
    let spec =
        json!({"providerID": format!("binarylane://{server}"), "podCIDR": cidrs[0], "podCIDRs": cidrs});
    fixture.cluster.create(&fixture.cluster.nodes(), "Node", name, json!({"spec": spec})).await;
    fixture.cluster.set_ready(name, true).await;
}

fn entry(router: &str, destination: &str, description: &str) -> RouteEntry {
    RouteEntry {
        router: router.to_owned(),
        destination: destination.to_owned(),
        description: Some(description.to_owned()),
    }
}

fn seed(fixture: &Fixture, entries: &[RouteEntry]) {
    let vpc = fixture.cloud.first_vpc();
    fixture.cloud.edit(|all| all.vpcs.get_mut(&vpc).unwrap().route_entries.extend_from_slice(entries));
}

#[tokio::test(start_paused = true)]
async fn without_a_word_no_vpc_is_asked() {
    let fixture = Fixture::new();
    node(&fixture, 1).await;
    fixture.pass(120).await;
    assert!(fixture.cloud.journal().iter().all(|entry| !entry.path.contains("vpcs")), "BL-116 BL-144");
    assert_eq!(fixture.routes(), [], "BL-116");
}

#[tokio::test(start_paused = true)]
async fn nodes_get_their_routes_and_lose_them() {
    let fixture = Fixture::with(routing(), |_| {});
    let office = entry("10.240.9.9", "10.50.0.0/16", "office");
    let inside = entry("10.240.9.9", "10.244.200.0/24", "somebody's");
    seed(&fixture, &[office.clone(), inside.clone()]);
    let router = node(&fixture, 1).await;
    fixture.pass(60).await;
    let ours = entry(&router, "10.244.1.0/24", "cloudberth/test/node-01");
    assert_eq!(fixture.routes(), [office.clone(), inside.clone(), ours], "BL-119 BL-144");
    let patches = fixture.mutations();
    assert_eq!(patches.len(), 1, "BL-119 {patches:?}");
    let body = patches[0].body.clone().unwrap();
    assert_eq!((patches[0].method.as_str(), body.get("name")), ("PATCH", None), "BL-119 BL-122");
    assert!(
        fixture.warned("node-01", "SourceDestinationCheckEnabled"),
        "BL-149 {:?}",
        fixture.cluster.events("node-01")
    );
    fixture.assert_quiet(600, "BL-120").await;
    fixture.cluster.delete(&fixture.cluster.nodes(), "node-01").await;
    fixture.pass(120).await;
    assert_eq!(fixture.routes(), [office, inside], "BL-123 BL-124");
}

#[tokio::test(start_paused = true)]
async fn ten_nodes_are_one_write() {
    let fixture = Fixture::with(routing(), |_| {});
    fixture.killer().abort();
    let mut fixture = fixture;
    for number in 1..=10 {
        node(&fixture, number).await;
    }
    fixture.restart();
    fixture.pass(60).await;
    assert_eq!(fixture.routes().len(), 10, "BL-121");
    assert_eq!(fixture.changes(), ["vpcs.patch"], "BL-121");
    let vpc = fixture.cloud.first_vpc();
    let name = fixture.cloud.vpcs().into_iter().find(|one| one.id == vpc).unwrap().name;
    fixture.cloud.edit(|all| "renamed".clone_into(&mut all.vpcs.get_mut(&vpc).unwrap().name));
    fixture.cluster.delete(&fixture.cluster.nodes(), "node-01").await;
    fixture.pass(120).await;
    let after = fixture.cloud.vpcs().into_iter().find(|one| one.id == vpc).unwrap();
    assert_ne!(name, "renamed");
    assert_eq!((after.name.as_str(), after.route_entries.len()), ("renamed", 9), "BL-122");
}

#[tokio::test(start_paused = true)]
async fn what_the_replaced_program_wrote_is_kept_and_cleaned_up() {
    let fixture = Fixture::with(routing(), |_| {});
    let server = fixture.cloud.add_server("node-01", "bne");
    let router = server.private_address().unwrap().to_string();
    let kept = entry(&router, "10.244.1.0/24", "Kubernetes route for node node-01");
    let stale = entry("10.240.77.77", "10.244.77.0/24", "Kubernetes route for node long-gone");
    let outside = entry("10.240.77.77", "10.99.0.0/24", "Kubernetes route for node long-gone");
    seed(&fixture, &[kept.clone(), stale, outside.clone()]);
    pods(&fixture, "node-01", server.id, &["10.244.1.0/24"]).await;
    fixture.pass(120).await;
    assert_eq!(fixture.routes(), [kept, outside], "BL-117 BL-123 BL-124 BL-145");
}

#[tokio::test(start_paused = true)]
async fn somebody_elses_route_in_the_way_is_named() {
    let fixture = Fixture::with(routing(), |_| {});
    let theirs = entry("10.240.9.9", "10.244.1.0/24", "office");
    seed(&fixture, std::slice::from_ref(&theirs));
    node(&fixture, 1).await;
    node(&fixture, 2).await;
    fixture.pass(120).await;
    assert!(fixture.warned("node-01", "office"), "BL-146 {:?}", fixture.warnings("node-01"));
    assert_eq!(fixture.routes()[0], theirs, "BL-146");
    assert_eq!(fixture.routes().len(), 2, "BL-146 the other one is written");
    let node = fixture.get_node("node-01").await;
    assert_eq!(node.network_unavailable.map(|one| one.status).as_deref(), Some("True"), "BL-146");
}

#[tokio::test(start_paused = true)]
async fn a_server_without_a_vpc_is_an_error_of_its_node_only() {
    let fixture = Fixture::with(routing(), |_| {});
    let server = fixture.cloud.add(&NewServer { in_vpc: false, ..NewServer::new("outside", "bne") });
    pods(&fixture, "outside", server.id, &["10.244.9.0/24"]).await;
    fixture.pass(60).await;
    assert!(fixture.warned("outside", "VPC"), "BL-118 BL-120 {:?}", fixture.warnings("outside"));
    assert_eq!(fixture.changes(), [""; 0], "BL-118");
    node(&fixture, 1).await;
    fixture.pass(60).await;
    assert_eq!(fixture.routes().len(), 1, "BL-120");
}

#[tokio::test(start_paused = true)]
async fn a_vpc_that_is_gone_is_skipped() {
    let fixture = Fixture::with(routing(), |_| {});
    node(&fixture, 1).await;
    fixture.pass(60).await;
    let vpc = fixture.cloud.first_vpc();
    fixture.cloud.edit(|all| all.vpcs.remove(&vpc));
    fixture.cloud.clear_journal();
    fixture.cluster.delete(&fixture.cluster.nodes(), "node-01").await;
    fixture.pass(120).await;
    assert_eq!(fixture.changes(), [""; 0], "BL-118 BL-125");
}

#[tokio::test(start_paused = true)]
async fn only_the_ipv4_network_of_a_node_is_routed() {
    let fixture = Fixture::with(routing(), |_| {});
    let server = fixture.cloud.add_server("dual", "bne");
    pods(&fixture, "dual", server.id, &["10.244.3.0/24", "fd00:1::/64"]).await;
    fixture.pass(60).await;
    assert_eq!(fixture.routes().len(), 1, "BL-148");
    assert!(fixture.warned("dual", "fd00:1::/64"), "BL-148 {:?}", fixture.warnings("dual"));
    let node = fixture.get_node("dual").await;
    assert_eq!(
        node.network_unavailable.map(|one| one.status).as_deref(),
        Some("False"),
        "BL-148 it is none the worse"
    );
}

#[tokio::test(start_paused = true)]
async fn a_write_that_was_lost_is_looked_at_again() {
    for harm in
        [Harm::LostAnswer, Harm::Masked { code: 504, empty: false }, Harm::status(500), Harm::Truncated]
    {
        let fixture = Fixture::with(routing(), |_| {});
        let office = entry("10.240.9.9", "10.50.0.0/16", "office");
        seed(&fixture, std::slice::from_ref(&office));
        let operation = "vpcs.patch".to_owned();
        fixture.cloud.add_fault(Fault { operation, times: Some(1), ..Fault::new(harm.clone()) });
        node(&fixture, 1).await;
        fixture.pass(300).await;
        assert_eq!(fixture.routes().len(), 2, "L6-1603 {harm:?}");
        assert_eq!(fixture.routes()[0], office, "L3-1600 {harm:?}");
        fixture.assert_quiet(300, "L4-1602").await;
    }
}
