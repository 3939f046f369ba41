//! Whose a load balancer is: names that are not unique, ids that were copied, other clusters.

use binarylane_sim::NewServer;
use serde_json::json;

use crate::fixture::{FINALIZER, Fixture, ID, Setup};

const NAME: &str = "k8s-test-default-web";

/// Servers of another cluster.
fn others(fixture: &Fixture) -> Vec<i64> {
    (0..2).map(|number| fixture.cloud.add(&NewServer::new(&format!("other-{number}"), "bne")).id).collect()
}

fn own(fixture: &Fixture) -> Vec<i64> {
    let servers = fixture.cloud.servers();
    servers.iter().filter(|server| server.name.starts_with("node-")).map(|server| server.id).collect()
}

/// A Service that the replaced program served: its address is shown, and nothing is recorded.
async fn left_behind(fixture: &Fixture, ip: &str) {
    fixture.create("web", json!({"metadata": {"finalizers": [FINALIZER]}})).await;
    let status = json!({"status": {"loadBalancer": {"ingress": [{"ip": ip}]}}});
    fixture.cluster.merge_status(&fixture.cluster.services(), "web", status).await;
}

fn ip(fixture: &Fixture, id: i64) -> String {
    fixture.cloud.balancer(id).unwrap().ip.unwrap().to_string()
}

#[tokio::test(start_paused = true)]
async fn one_on_the_second_page_is_found() {
    for version in [(0, 34, 0), (0, 40, 0)] {
        let fixture = Fixture::with(Setup::default(), |settings| {
            settings.switches.page_cap = Some(20);
            settings.api_version = version;
        });
        fixture.nodes(2).await;
        for number in 0..24 {
            fixture.cloud.add_balancer(&format!("other-{number}"), None, &[]).unwrap();
        }
        let id = fixture.cloud.add_balancer(NAME, None, &own(&fixture)).unwrap();
        fixture.pass(10).await;
        fixture.cloud.clear_journal();
        fixture.create("web", json!({})).await;
        fixture.pass(30).await;
        assert_eq!(fixture.recorded("web").await, Some(id), "BL-80 BL-81");
        assert_eq!(fixture.changes(), [""; 0], "BL-80 BL-81");
        assert!(fixture.cloud.journal().iter().all(|entry| !entry.path.contains("name=")), "BL-81");
    }
}

#[tokio::test(start_paused = true)]
async fn another_clusters_is_neither_taken_nor_deleted() {
    let fixture = Fixture::with_nodes().await;
    let theirs = fixture.cloud.add_balancer(NAME, None, &others(&fixture)).unwrap();
    let before = fixture.cloud.balancer(theirs);
    fixture.create("web", json!({})).await;
    fixture.pass(60).await;
    let ours = fixture.recorded("web").await.unwrap();
    assert_ne!(ours, theirs, "BL-138");
    assert!(fixture.warned("web", "LoadBalancerNameTaken"), "BL-138 {:?}", fixture.warnings("web"));
    assert_eq!(fixture.pool("web").await, own(&fixture), "BL-138");
    fixture.assert_quiet(300, "BL-138").await;
    fixture.delete("web").await;
    fixture.pass(60).await;
    assert!(fixture.is_gone("web").await);
    assert_eq!(fixture.cloud.balancers().len(), 1, "BL-138 only ours goes");
    assert_eq!(fixture.cloud.balancer(theirs), before, "BL-138");
}

#[tokio::test(start_paused = true)]
async fn what_the_replaced_program_called_otherwise_is_found() {
    // The cluster's name has capital letters there.
    let mut fixture = Fixture::with_nodes().await;
    fixture.killer().abort();
    let id = fixture.cloud.add_balancer("k8s-Test-default-web", None, &own(&fixture)).unwrap();
    left_behind(&fixture, &ip(&fixture, id)).await;
    fixture.restart();
    fixture.pass(60).await;
    assert_eq!(fixture.recorded("web").await, Some(id), "BL-139");
    assert_eq!(fixture.changes(), [""; 0], "BL-139 {:?}", fixture.cluster.events("web"));
}

#[tokio::test(start_paused = true)]
async fn of_two_the_published_one_is_kept() {
    let mut fixture = Fixture::with_nodes().await;
    fixture.killer().abort();
    let servers = own(&fixture);
    let surplus = fixture.cloud.add_balancer(NAME, None, &servers).unwrap();
    let kept = fixture.cloud.add_balancer(NAME, None, &servers).unwrap();
    let named = fixture.cloud.add_balancer("k8s-TEST-default-web", None, &servers).unwrap();
    left_behind(&fixture, &ip(&fixture, kept)).await;
    fixture.restart();
    fixture.pass(60).await;
    assert_eq!(fixture.recorded("web").await, Some(kept), "BL-105");
    assert!(fixture.warned("web", "DuplicateLoadBalancer"), "BL-105 {:?}", fixture.warnings("web"));
    assert!(fixture.warned("web", &surplus.to_string()), "BL-105");
    assert_eq!(fixture.changes(), ["load_balancers.delete"], "BL-105");
    assert!(fixture.cloud.balancer(surplus).is_none(), "BL-105");
    assert!(fixture.cloud.balancer(named).is_some(), "BL-105 not exactly our name");
}

#[tokio::test(start_paused = true)]
async fn a_copied_id_leads_to_a_load_balancer_of_its_own() {
    let fixture = Fixture::settled().await;
    let first = fixture.recorded("web").await.unwrap();
    let before = fixture.cloud.balancer(first);
    fixture.create("copy", json!({"metadata": {"annotations": {ID: first.to_string()}}})).await;
    fixture.pass(120).await;
    let second = fixture.recorded("copy").await.unwrap();
    assert_ne!(second, first, "BL-97 {:?}", fixture.cluster.events("copy"));
    assert!(fixture.warned("copy", "LoadBalancerClaimed"), "BL-97 {:?}", fixture.warnings("copy"));
    assert_eq!(fixture.recorded("web").await, Some(first), "BL-97");
    assert_eq!(fixture.cloud.balancer(first), before, "BL-97");
    fixture.delete("copy").await;
    fixture.pass(60).await;
    assert_eq!(fixture.cloud.balancer(first), before, "BL-97");
}

/// Two Services that give one name: `a-b`/`c` and `a`/`b-c`.
async fn twins(fixture: &Fixture) {
    for namespace in ["a", "a-b"] {
        let namespaces = fixture.cluster.objects("Namespace", "namespaces", "");
        fixture.cluster.create(&namespaces, "Namespace", namespace, json!({})).await;
    }
}

async fn twin(fixture: &Fixture, namespace: &str, name: &str) {
    let services = fixture.cluster.objects("Service", "services", namespace);
    let body = json!({"spec": {"type": "LoadBalancer", "ports": [{"port": 80, "protocol": "TCP"}]}});
    fixture.cluster.create(&services, "Service", name, body).await;
}

#[tokio::test(start_paused = true)]
async fn two_services_of_one_name_have_two_load_balancers() {
    let fixture = Fixture::with_nodes().await;
    twins(&fixture).await;
    twin(&fixture, "a-b", "c").await;
    twin(&fixture, "a", "b-c").await;
    fixture.pass(60).await;
    let mut names: Vec<_> = fixture.cloud.balancers().into_iter().map(|one| one.name).collect();
    names.sort();
    names.dedup();
    assert_eq!(names.len(), 2, "BL-68 {names:?}");
    fixture.assert_quiet(300, "BL-68").await;
}

#[tokio::test(start_paused = true)]
async fn a_collision_that_comes_later_loses_nothing() {
    for version in [(0, 34, 0), (0, 40, 0)] {
        let mut fixture = Fixture::with(Setup::default(), |settings| settings.api_version = version);
        fixture.nodes(2).await;
        twins(&fixture).await;
        twin(&fixture, "a-b", "c").await;
        fixture.pass(30).await;
        let first = fixture.cloud.balancers()[0].clone();
        assert_eq!(first.name, "k8s-test-a-b-c", "BL-140");
        twin(&fixture, "a", "b-c").await;
        fixture.pass(30).await;
        assert_eq!(fixture.cloud.balancers().len(), 2, "BL-140");
        fixture.killer().abort();
        let services = fixture.cluster.objects("Service", "services", "a-b");
        fixture.cluster.merge(&services, "c", json!({"metadata": {"annotations": {ID: null}}})).await;
        fixture.restart();
        fixture.pass(60).await;
        let service = services.get("c").await.unwrap();
        let recorded = service.metadata.annotations.unwrap()[ID].clone();
        assert_eq!(recorded, first.id.to_string(), "BL-140");
        assert_eq!(fixture.cloud.balancers().len(), 2, "BL-140");
    }
}
