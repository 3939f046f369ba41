//! A load balancer follows its Service and its nodes.

use std::time::Duration;

use binarylane_sim::{Fault, Harm};
use serde_json::json;

use crate::fixture::{Fixture, ID, Setup, annotated, ports};

#[tokio::test(start_paused = true)]
async fn nodes_come_and_go_with_one_request_each() {
    let fixture = Fixture::settled().await;
    let new = fixture.node("node-03").await;
    fixture.pass(30).await;
    let sent = fixture.mutations();
    assert_eq!(fixture.changes(), ["load_balancers.add_servers"], "BL-87");
    assert_eq!(sent[0].body, Some(json!({"server_ids": [new]})), "BL-87");
    fixture.cloud.clear_journal();
    fixture.cluster.delete(&fixture.cluster.nodes(), "node-03").await;
    fixture.pass(30).await;
    let sent = fixture.mutations();
    assert_eq!(fixture.changes(), ["load_balancers.remove_servers"], "BL-88");
    assert_eq!(
        (sent[0].method.as_str(), &sent[0].body),
        ("DELETE", &Some(json!({"server_ids": [new]}))),
        "BL-88"
    );
}

#[tokio::test(start_paused = true)]
async fn a_node_is_replaced_without_an_empty_pool() {
    let fixture = Fixture::new();
    fixture.node("old").await;
    fixture.create("web", json!({})).await;
    fixture.pass(30).await;
    fixture.killer().abort();
    let mut fixture = fixture;
    fixture.cluster.delete(&fixture.cluster.nodes(), "old").await;
    fixture.node("new").await;
    fixture.cloud.clear_journal();
    fixture.restart();
    fixture.pass(30).await;
    let want = ["load_balancers.add_servers", "load_balancers.remove_servers"];
    assert_eq!(fixture.changes(), want, "BL-89");
    assert_eq!(fixture.cloud.emptied_pools(), [], "BL-89");
}

#[tokio::test(start_paused = true)]
async fn a_port_or_a_check_is_one_update_of_everything() {
    let fixture = Fixture::settled().await;
    let servers = fixture.pool("web").await;
    fixture.edit("web", ports(&[80, 443])).await;
    fixture.pass(30).await;
    let sent = fixture.mutations();
    let body = json!({"name": "k8s-test-default-web",
                      "forwarding_rules": [{"entry_protocol": "http"}, {"entry_protocol": "https"}],
                      "health_check": {"protocol": "both", "path": "/"}, "server_ids": servers});
    assert_eq!((fixture.changes().len(), &sent[0].body), (1, &Some(body)), "BL-91 {sent:?}");
    fixture.cloud.clear_journal();
    fixture.cloud.switch(|switches| switches.no_update_link = true);
    fixture.edit("web", annotated(&[("health-check-path", json!("/up"))])).await;
    fixture.pass(30).await;
    let sent = fixture.mutations();
    assert_eq!(fixture.changes(), ["load_balancers.update"], "BL-92 BL-103");
    let body = sent[0].body.clone().unwrap();
    assert_eq!(
        (&body["health_check"]["path"], &body["server_ids"]),
        (&json!("/up"), &json!(servers)),
        "BL-92"
    );
    fixture.assert_quiet(300, "BL-92").await;
}

#[tokio::test(start_paused = true)]
async fn what_somebody_changed_by_hand_is_restored() {
    let setup = Setup { drift: Some(Duration::from_secs(120)), ..Setup::default() };
    let fixture = Fixture::with(setup, |_| {});
    let servers = fixture.nodes(2).await;
    fixture.create("web", json!({})).await;
    fixture.pass(30).await;
    let id = fixture.recorded("web").await.unwrap();
    fixture.cloud.edit(|all| all.balancers.get_mut(&id).unwrap().server_ids.pop());
    fixture.pass(400).await;
    assert_eq!(fixture.pool("web").await, servers, "BL-93");
    fixture.cloud.delete_balancer(id);
    fixture.pass(1_200).await;
    let anew = fixture.recorded("web").await.unwrap();
    assert_ne!(anew, id, "BL-94");
    assert_eq!(fixture.cloud.balancers().len(), 1, "BL-94");
    let ip = fixture.cloud.balancer(anew).unwrap().ip.unwrap().to_string();
    assert_eq!(fixture.ingress("web").await, [ip], "BL-94");
    assert!(fixture.cluster.events("web").iter().any(|line| line.contains("EnsuringLoadBalancer")), "BL-94");
}

#[tokio::test(start_paused = true)]
async fn an_id_that_is_lost_or_wrong_is_repaired() {
    let fixture = Fixture::settled().await;
    let (id, ip) = (fixture.recorded("web").await, fixture.ingress("web").await);
    for (case, value) in [("BL-95", json!(null)), ("BL-96", json!("many")), ("BL-96", json!("999999"))] {
        fixture.edit("web", json!({"metadata": {"annotations": {ID: value}}})).await;
        fixture.pass(60).await;
        assert_eq!(fixture.recorded("web").await, id, "{case} {value}");
        assert_eq!(fixture.ingress("web").await, ip, "{case} {value}");
    }
    assert!(fixture.warned("web", "InvalidAnnotation"), "BL-96 {:?}", fixture.warnings("web"));
    assert_eq!(fixture.changes(), [""; 0], "BL-95 BL-96");
}

#[tokio::test(start_paused = true)]
async fn a_region_cannot_be_changed() {
    let fixture = Fixture::settled().await;
    let id = fixture.recorded("web").await;
    fixture.edit("web", annotated(&[("region", json!("syd"))])).await;
    fixture.pass(60).await;
    assert!(fixture.warned("web", "RegionImmutable"), "BL-98 {:?}", fixture.warnings("web"));
    assert_eq!((fixture.recorded("web").await, fixture.changes().len()), (id, 0), "BL-98");
}

#[tokio::test(start_paused = true)]
async fn excluded_nodes_leave_the_pool_and_return() {
    let setup = Setup { drift: Some(Duration::from_secs(120)), ..Setup::default() };
    let fixture = Fixture::with(setup, |_| {});
    let servers = fixture.nodes(2).await;
    fixture.create("web", json!({})).await;
    fixture.pass(30).await;
    let label = "node.kubernetes.io/exclude-from-external-load-balancers";
    let set = |value| json!({"metadata": {"labels": {label: value}}});
    fixture.cluster.merge(&fixture.cluster.nodes(), "node-02", set(json!("true"))).await;
    fixture.pass(60).await;
    assert_eq!(fixture.pool("web").await, servers[..1], "BL-99");
    fixture.cluster.merge(&fixture.cluster.nodes(), "node-02", set(json!(null))).await;
    fixture.pass(60).await;
    assert_eq!(fixture.pool("web").await, servers, "BL-99");
    let taint = json!({"key": "ToBeDeletedByClusterAutoscaler", "effect": "NoSchedule"});
    fixture.cluster.merge(&fixture.cluster.nodes(), "node-02", json!({"spec": {"taints": [taint]}})).await;
    // A taint wakes nobody by itself.
    fixture.pass(300).await;
    assert_eq!(fixture.pool("web").await, servers[..1], "BL-99");
}

#[tokio::test(start_paused = true)]
async fn a_server_that_cannot_be_read_loses_nobody_a_member() {
    let fixture = Fixture::settled().await;
    let servers = fixture.pool("web").await;
    let odd = servers[1];
    fixture.cloud.edit_answers(move |_, body| {
        let listed = body.get_mut("servers").and_then(|all| all.as_array_mut());
        for server in listed.into_iter().flatten().filter(|one| one["id"] == odd) {
            server["networks"] = json!(null);
        }
    });
    fixture.node("node-03").await;
    fixture.pass(60).await;
    assert!(servers.iter().all(|id| fixture.cloud.balancers()[0].server_ids.contains(id)), "BL-100");
    assert_eq!(fixture.pool("web").await.len(), 3, "BL-100 the others are added");
}

#[tokio::test(start_paused = true)]
async fn a_server_that_vanishes_meanwhile_is_left_out() {
    let fixture = Fixture::settled().await;
    let operation = "load_balancers.add_servers".to_owned();
    fixture.cloud.add_fault(Fault {
        operation,
        times: Some(1),
        ..Fault::new(Harm::Latency { millis: 20_000 })
    });
    let (gone, there) = (fixture.node("node-03").await, fixture.node("node-04").await);
    fixture.pass(10).await;
    assert_eq!(fixture.cloud.under_way(), 1, "BL-101 the request is on its way");
    fixture.cloud.delete_server(gone);
    fixture.pass(60).await;
    let pool = fixture.pool("web").await;
    assert!(pool.contains(&there) && !pool.contains(&gone), "BL-101 {:?}", fixture.cluster.events("web"));
    let bodies: Vec<_> =
        fixture.mutations().into_iter().map(|entry| entry.body.unwrap()["server_ids"].clone()).collect();
    assert_eq!(bodies, [json!([gone, there]), json!([there])], "BL-101");
}

#[tokio::test(start_paused = true)]
async fn local_traffic_goes_to_nodes_with_ready_pods() {
    let fixture = Fixture::with_nodes().await;
    let servers: Vec<i64> = fixture.cloud.servers().iter().map(|server| server.id).collect();
    let slice = |node: &str| {
        json!({"apiVersion": "discovery.k8s.io/v1", "metadata": {"labels": {"kubernetes.io/service-name": "web"}}, "addressType": "IPv4",
               "endpoints": [{"addresses": ["10.1.0.1"], "nodeName": node, "conditions": {"ready": true}}]})
    };
    let slices = fixture.cluster.endpoint_slices();
    fixture.cluster.create(&slices, "EndpointSlice", "web-1", slice("node-01")).await;
    fixture.create("web", json!({"spec": {"externalTrafficPolicy": "Local"}})).await;
    fixture.pass(30).await;
    assert_eq!(fixture.pool("web").await, servers[..1], "BL-102");
    let moved = json!({"endpoints": slice("node-02")["endpoints"]});
    fixture.cluster.merge(&slices, "web-1", moved).await;
    fixture.pass(60).await;
    assert_eq!(fixture.pool("web").await, servers[1..], "BL-102");
}

#[tokio::test(start_paused = true)]
async fn what_is_refused_later_stays_as_it_is_and_the_pool_goes_on() {
    let fixture = Fixture::settled().await;
    let ip = fixture.ingress("web").await;
    for (case, spec) in [
        ("BL-104", json!({"ports": [{"port": 8080, "protocol": "TCP"}]})),
        ("BL-136", json!({"sessionAffinity": "ClientIP", "ports": [{"port": 80, "protocol": "TCP"}]})),
    ] {
        fixture.cloud.clear_journal();
        fixture.edit("web", json!({"spec": spec})).await;
        fixture.pass(60).await;
        assert_eq!(fixture.changes(), [""; 0], "{case}");
        let joined = fixture.node(&format!("late-{}", case.to_lowercase())).await;
        fixture.pass(30).await;
        assert_eq!(fixture.changes(), ["load_balancers.add_servers"], "{case}");
        assert!(fixture.pool("web").await.contains(&joined), "{case}");
        let balancer = fixture.balancer("web").await;
        assert_eq!(
            (balancer.rules, balancer.health_check.protocol.as_str()),
            (vec!["http".to_owned()], "http"),
            "{case}"
        );
        assert_eq!(fixture.ingress("web").await, ip, "{case}");
    }
    assert!(
        fixture.warned("web", "8080") && fixture.warned("web", "ClientIP"),
        "{:?}",
        fixture.warnings("web")
    );
    fixture.delete("web").await;
    fixture.pass(60).await;
    assert!(fixture.is_gone("web").await && fixture.cloud.balancers().is_empty(), "BL-136");
}

#[tokio::test(start_paused = true)]
async fn five_settled_services_survive_a_restart_without_a_write() {
    let mut fixture = Fixture::with_nodes().await;
    for number in 1..=5 {
        fixture.create(&format!("web-{number}"), json!({})).await;
    }
    fixture.pass(60).await;
    fixture.cloud.clear_journal();
    fixture.restart();
    fixture.pass(60).await;
    assert_eq!(fixture.changes(), [""; 0], "BL-78");
    let tally = fixture.tally();
    assert!(tally.calls <= 4, "BL-78 {tally:?}");
}

#[tokio::test(start_paused = true)]
async fn an_update_that_fails_is_tried_again() {
    let fixture = Fixture::settled().await;
    let operation = "load_balancers.update".to_owned();
    fixture.cloud.add_fault(Fault {
        operation,
        times: Some(1),
        ..Fault::new(Harm::Masked { code: 504, empty: false })
    });
    fixture.edit("web", ports(&[80, 443])).await;
    fixture.pass(120).await;
    assert_eq!(fixture.changes(), ["load_balancers.update"], "L6-1601 it was carried out");
    assert_eq!(fixture.balancer("web").await.rules.len(), 2);
}
