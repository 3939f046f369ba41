//! Things that happen, in order and out of order.

use std::time::Duration;

use brightbox_sim::{Fault, Harm, replaced::PREFIX};
use serde_json::json;
use testing_kit::checks::CloudUnderTest;

use crate::under_test::{Fixture, annotated};

async fn served(more: serde_json::Value) -> Fixture {
    let fixture = Fixture::with_nodes(2).await;
    fixture.create("web", more).await;
    fixture.pass(60).await;
    assert!(!fixture.ingress("web").await.is_empty(), "{:?}", fixture.cluster.events("web"));
    fixture.cloud.cloud.clear_journal();
    fixture
}

fn fault(operation: &str, harm: Harm) -> Fault {
    Fault { operation: operation.to_owned(), ..Fault::new(harm) }
}

#[tokio::test(start_paused = true)]
async fn a_slow_deletion_is_waited_for_and_leaks_nothing() {
    let mut fixture = served(json!({})).await;
    fixture.cloud.cloud.change_settings(|settings| settings.delays.removal = Duration::from_secs(30));
    fixture.delete("web").await;
    fixture.pass(10).await;
    assert!(fixture.service("web").await.is_some(), "BB-148 BB-144 BB-178 the Service is held");
    fixture.killer().abort();
    fixture.restart();
    fixture.pass(120).await;
    assert!(fixture.service("web").await.is_none(), "BB-148");
    assert_eq!(fixture.cloud.counts(), [0, 0, 0, 0], "BB-148");
}

#[tokio::test(start_paused = true)]
async fn what_a_refused_creation_left_goes_with_the_service() {
    let fixture = Fixture::with_nodes(2).await;
    fixture.cloud.cloud.add_fault(fault("load_balancers.create", Harm::status(422)));
    fixture.create("web", json!({})).await;
    fixture.pass(60).await;
    assert_eq!(fixture.cloud.counts(), [0, 1, 1, 1], "BB-149");
    fixture.delete("web").await;
    fixture.pass(120).await;
    assert!(fixture.service("web").await.is_none(), "BB-149");
    assert_eq!(fixture.cloud.counts(), [0, 0, 0, 0], "BB-149");
}

#[tokio::test(start_paused = true)]
async fn deletions_that_fail_are_told_and_tried_again() {
    for operation in [
        "server_groups.remove_servers",
        "server_groups.delete",
        "firewall_policies.delete",
        "load_balancers.delete",
        "cloud_ips.delete",
    ] {
        let fixture = served(json!({})).await;
        fixture.cloud.cloud.add_fault(Fault { times: Some(2), ..fault(operation, Harm::status(409)) });
        fixture.delete("web").await;
        fixture.pass(300).await;
        let said = fixture.warnings("web");
        assert!(said.iter().any(|line| line.contains("409")), "BB-145 BB-151 {operation}: {said:?}");
        assert_eq!(fixture.cloud.counts(), [0, 0, 0, 0], "BB-145 BB-151 {operation}");
        assert!(fixture.service("web").await.is_none(), "BB-145 {operation}");
    }
}

#[tokio::test(start_paused = true)]
async fn what_somebody_else_deleted_is_done() {
    for operation in ["server_groups.delete", "firewall_policies.delete", "cloud_ips.delete"] {
        let fixture = served(json!({})).await;
        fixture.cloud.cloud.add_fault(Fault { times: Some(1), ..fault(operation, Harm::NotFound) });
        fixture.delete("web").await;
        fixture.pass(300).await;
        assert_eq!(fixture.cloud.counts(), [0, 0, 0, 0], "BB-150 {operation}");
        assert!(fixture.service("web").await.is_none(), "BB-150 {operation}");
        assert_eq!(fixture.warnings("web"), [""; 0], "BB-150 {operation}: it is no failure");
    }
}

#[tokio::test(start_paused = true)]
async fn another_type_cleans_up() {
    let fixture = served(json!({})).await;
    fixture.edit("web", json!({"spec": {"type": "ClusterIP"}})).await;
    fixture.pass(60).await;
    assert_eq!(fixture.cloud.counts(), [0, 0, 0, 0], "BB-152");
    let service = fixture.service("web").await.unwrap();
    assert!(service.ingress.is_empty() && service.finalizers.is_empty(), "BB-152 {service:?}");
}

#[tokio::test(start_paused = true)]
async fn a_cloud_ip_that_is_given_is_used_and_survives() {
    let fixture = Fixture::with_nodes(2).await;
    let given = fixture.cloud.cloud.seed("cloud_ips", &json!({"name": "theirs"})).unwrap();
    fixture.create("web", annotated(&[("cloudip-allocations", &given)])).await;
    fixture.pass(60).await;
    assert!(
        fixture.ingress("web").await.iter().any(|name| name.contains(&given)),
        "{:?}",
        fixture.cluster.events("web")
    );
    assert_eq!(fixture.cloud.counts()[1], 1, "none is allocated");
    // Back to one of its own, and to the given one again.
    fixture.annotate("web", &format!("{PREFIX}cloudip-allocations"), json!(null)).await;
    fixture.pass(60).await;
    assert!(fixture.ingress("web").await.iter().any(|name| name.contains(&given)), "BB-173 it stays");
    fixture.delete("web").await;
    fixture.pass(60).await;
    assert_eq!(fixture.cloud.counts(), [0, 1, 0, 0], "BB-147 L5-1604 what is given is never deleted");
}

#[tokio::test(start_paused = true)]
async fn a_service_moves_to_another_cloud_ip() {
    let secure = json!({"spec": {"ports": [{"name": "s", "port": 443, "protocol": "TCP"}]}});
    let fixture = served(secure).await;
    let other = fixture.cloud.cloud.seed("cloud_ips", &json!({"name": "theirs"})).unwrap();
    fixture.annotate("web", &format!("{PREFIX}cloudip-allocations"), json!(other)).await;
    fixture.pass(120).await;
    let changes = fixture.cloud.changes();
    assert_eq!(
        changes,
        ["load_balancers.update", "cloud_ips.map", "cloud_ips.unmap", "cloud_ips.delete"],
        "BB-174 {:?}",
        fixture.cluster.events("web")
    );
    let shown = fixture.ingress("web").await;
    assert!(shown.iter().any(|name| name.contains(&other)) && shown.len() == 2, "BB-174 BB-175 {shown:?}");
}

#[tokio::test(start_paused = true)]
async fn two_services_do_not_fight_over_a_cloud_ip() {
    let fixture = Fixture::with_nodes(2).await;
    let given = fixture.cloud.cloud.seed("cloud_ips", &json!({"name": "theirs"})).unwrap();
    let address = fixture.cloud.cloud.cloud_ips()[0].public_ipv4.clone().unwrap();
    fixture.create("one", annotated(&[("cloudip-allocations", &given)])).await;
    fixture.pass(60).await;
    fixture.create("two", json!({"spec": {"loadBalancerIP": address}})).await;
    fixture.pass(60).await;
    assert!(!fixture.ingress("one").await.is_empty() && fixture.ingress("two").await.is_empty(), "L3-1603");
    let said = fixture.warnings("two");
    assert!(said.iter().any(|line| line.contains(&given) && line.contains("mapped to")), "L3-1603 {said:?}");
    fixture.assert_quiet(300, "L3-1603 nobody fights").await;
}

#[tokio::test(start_paused = true)]
async fn a_certificate_is_waited_for_beside_a_published_address() {
    let fixture = Fixture::with_nodes(2).await;
    fixture.cloud.cloud.change_settings(|settings| settings.delays.acme = Duration::from_secs(60));
    let mut body = annotated(&[("ssl-domains", "shop.example.org")]);
    body["spec"] = json!({"ports": [{"name": "s", "port": 443, "protocol": "TCP"}]});
    fixture.create("web", body).await;
    fixture.pass(30).await;
    assert!(!fixture.ingress("web").await.is_empty(), "BB-142 early {:?}", fixture.cluster.events("web"));
    let said = fixture.warnings("web");
    assert!(
        said.iter().any(|line| line.contains("CertificatePending") || line.contains("certificate")),
        "BB-142 {said:?}"
    );
    let address = fixture.cloud.cloud.cloud_ips()[0].public_ipv4.clone().unwrap();
    assert!(
        said.iter().any(|line| line.contains("shop.example.org") && line.contains(&address)),
        "BB-99 {said:?}"
    );
    fixture.cloud.cloud.set_domain("shop.example.org", &[address.parse().unwrap()]);
    fixture.pass(300).await;
    let domains = fixture.cloud.alive()[0].domains.clone();
    assert!(domains.len() == 3 && domains.iter().all(|domain| domain.status == "valid"), "{domains:?}");
    fixture.assert_quiet(300, "L4-1606").await;
}

#[tokio::test(start_paused = true)]
async fn a_mapping_that_takes_its_time_is_waited_for() {
    let fixture = Fixture::with_nodes(2).await;
    fixture.cloud.cloud.change_settings(|settings| settings.delays.map = Duration::from_secs(5));
    fixture.create("web", json!({})).await;
    fixture.pass(3).await;
    assert!(fixture.ingress("web").await.is_empty(), "BB-139 not before it is mapped");
    fixture.pass(30).await;
    assert!(!fixture.ingress("web").await.is_empty(), "BB-139 {:?}", fixture.cluster.events("web"));
    assert_eq!(fixture.cloud.counts(), [1, 1, 1, 1], "BB-139");
}

#[tokio::test(start_paused = true)]
async fn one_that_failed_is_replaced() {
    let fixture = Fixture::with_nodes(2).await;
    fixture.cloud.cloud.change_settings(|settings| settings.builds_end_in = "failed".to_owned());
    fixture.create("web", json!({})).await;
    fixture.pass(5).await;
    fixture.cloud.cloud.change_settings(|settings| settings.builds_end_in = "active".to_owned());
    fixture.pass(120).await;
    let said = fixture.warnings("web");
    assert!(said.iter().any(|line| line.contains("failed")), "BB-141 {said:?}");
    assert!(!fixture.ingress("web").await.is_empty(), "BB-141");
    assert_eq!(fixture.cloud.counts(), [1, 1, 1, 1], "BB-141 F3");
}

#[tokio::test(start_paused = true)]
async fn a_deleted_service_is_not_brought_back_by_a_node() {
    let fixture = served(json!({})).await;
    fixture.cloud.cloud.change_settings(|settings| settings.delays.removal = Duration::from_secs(20));
    fixture.delete("web").await;
    fixture.pass(2).await;
    fixture.node("node-9").await;
    fixture.pass(120).await;
    assert_eq!(fixture.cloud.counts(), [0, 0, 0, 0], "F44 L6-1605");
    assert!(!fixture.cloud.changes().iter().any(|change| change.ends_with(".create")), "F44");
}

#[tokio::test(start_paused = true)]
async fn the_generated_name_is_the_replaced_programs() {
    let fixture = served(json!({})).await;
    let name = fixture.cloud.generated_name(&fixture.service("web").await.unwrap());
    assert_eq!(name, "web.default.test", "BB-54");
    let all = fixture.cloud.cloud.resources();
    let own: Vec<_> = all
        .balancers
        .values()
        .map(|one| one.name.clone())
        .chain(all.cloud_ips.values().map(|one| one.name.clone()))
        .collect();
    assert_eq!(own, [Some(name.clone()), Some(name.clone())], "BB-54");
    assert!(
        all.policies
            .values()
            .any(|one| one.name.as_ref() == Some(&name) && one.rules[0].description.as_ref() == Some(&name)),
        "BB-132"
    );
}

/// The balancer takes its time to go, and what is left then is only what somebody else owns: the last turn has nothing to
/// do, and the Service is let go all the same.
#[tokio::test(start_paused = true)]
async fn a_service_that_moves_to_another_class_is_let_go_beside_a_cloud_ip_that_stays() {
    for killed in [false, true] {
        let mut fixture = Fixture::with_nodes(2).await;
        let given = fixture.cloud.cloud.seed("cloud_ips", &json!({"name": "theirs"})).unwrap();
        fixture.create("web", annotated(&[("cloudip-allocations", &given)])).await;
        fixture.pass(60).await;
        fixture.cloud.cloud.change_settings(|settings| settings.delays.removal = Duration::from_secs(10));
        fixture.killer().abort();
        fixture.edit("web", json!({"spec": {"type": "ClusterIP"}})).await;
        let moved = json!({"spec": {"type": "LoadBalancer", "loadBalancerClass": "theirs.example/lb"}});
        fixture.edit("web", moved).await;
        fixture.restart();
        if killed {
            fixture.pass(5).await;
            fixture.killer().abort();
            fixture.pass(60).await;
            fixture.restart();
        }
        fixture.pass(120).await;
        assert_eq!(fixture.cloud.counts(), [0, 1, 0, 0], "L3-1604 killed: {killed}");
        let service = fixture.service("web").await.unwrap();
        assert_eq!(service.finalizers, [""; 0], "L3-1604 killed: {killed}: it is let go");
    }
}

/// Somebody deletes a Service and makes another one of its name for another controller: that one's finalizer is not ours.
#[tokio::test(start_paused = true)]
async fn a_new_service_of_another_class_is_not_let_go_because_of_the_old_one() {
    let fixture = served(json!({})).await;
    fixture.delete("web").await;
    fixture.pass(60).await;
    assert_eq!(fixture.cloud.cloud.balancers().len(), 1, "what was deleted is listed for a while");
    let finalizer = "service.kubernetes.io/load-balancer-cleanup";
    let theirs = json!({"metadata": {"finalizers": [finalizer], "annotations": {"cloudberth.dev/brightbox-load-balancer": "lba-00000"}},
        "spec": {"loadBalancerClass": "theirs.example/lb"}});
    fixture.create("web", theirs).await;
    fixture.assert_quiet(300, "L3-1605").await;
    assert_eq!(fixture.service("web").await.unwrap().finalizers, [finalizer], "L3-1605");
}

/// A server may go between the listing and the request that names it. Nobody has to edit the Service for that.
#[tokio::test(start_paused = true)]
async fn what_the_cloud_finds_wrong_is_tried_again() {
    for operation in ["server_groups.add_servers", "server_groups.remove_servers", "load_balancers.update"] {
        let fixture = served(json!({})).await;
        fixture.cloud.cloud.add_fault(Fault { times: Some(1), ..fault(operation, Harm::status(422)) });
        fixture.node("node-3").await;
        fixture.cluster.delete(&fixture.cluster.nodes(), "node-2").await;
        fixture.pass(60).await;
        let said = fixture.warnings("web");
        assert!(said.iter().any(|line| line.contains("422")), "L1-1601 {operation}: {said:?}");
        assert_eq!(fixture.cloud.alive()[0].nodes, ["node-1", "node-3"], "L1-1601 {operation}");
    }
}
