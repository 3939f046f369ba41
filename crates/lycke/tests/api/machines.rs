//! Clusters and machines.

use std::path::Path;

use cloudberth_lycke::inventory;
use serde_json::json;

use crate::fixture::{demo, service, service_with};

#[tokio::test(start_paused = true)]
async fn machines_are_listed_as_the_contract_says() {
    let it = service().await;
    let clusters = it.get("/v1/clusters").await;
    assert_eq!(
        clusters.json(),
        json!({"items": [
            {"key": "c1", "kubernetesName": "kubernetes-1", "managed": true},
            {"key": "c2", "kubernetesName": "kubernetes-2", "managed": true},
        ]})
    );
    let all = it.get("/v1/machines").await.json();
    let ids: Vec<_> =
        all["items"].as_array().unwrap().iter().map(|m| m["id"].as_str().unwrap().to_owned()).collect();
    assert_eq!(ids, ["m-c1-1", "m-c2-1", "n-c1-1", "n-c1-2", "n-c2-1", "n-c2-2"]);
    let one = it.get("/v1/machines?cluster=c2&name=node-c2-1").await.json();
    let want = json!({
        "id": "n-c2-1", "providerID": "cloudlycke://n-c2-1", "name": "node-c2-1", "cluster": "c2",
        "type": "vbox.vm.1g.2cpu", "region": "virtualbox", "zone": "virtualbox",
        "internal": ["127.0.20.11"], "external": ["127.0.20.11"], "backend": "127.0.20.11",
        "state": "running", "labels": {}, "source": "file",
    });
    assert_eq!(one["items"], json!([want]));
    assert_eq!(it.get("/v1/machines/n-c2-1").await.json(), want);
    let c1 = it.get("/v1/machines?cluster=c1").await.json();
    assert_eq!(c1["items"].as_array().unwrap().len(), 3, "CL-14");
    assert_eq!(it.get("/v1/machines/nope").await.code(), (404, "machine_not_found".into()));
    let unknown = it.get("/v1/machines?cluster=c9").await;
    assert_eq!(unknown.code(), (404, "cluster_not_found".into()), "CL-81");
    assert!(unknown.message().contains("c1, c2"), "CL-81");
}

#[tokio::test(start_paused = true)]
async fn a_tag_saves_the_body_until_something_changes() {
    let it = service().await;
    it.put_demo().await;
    for path in [
        "/v1/machines",
        "/v1/machines/n-c2-1",
        "/v1/clusters",
        "/v1/loadbalancers",
        "/v1/loadbalancers/c2/default/web",
    ] {
        let first = it.get(path).await;
        let tag = first.tag();
        assert!(tag.starts_with('"') && tag.ends_with('"'), "CL-71 strong and quoted: {tag}");
        for sent in [tag.clone(), format!("\"x\", {tag}"), "*".to_owned()] {
            let again = it.send("GET", path, &[("if-none-match", &sent)], Vec::new()).await;
            assert_eq!(
                (again.status, again.text.as_str(), again.tag()),
                (304, "", tag.clone()),
                "CL-71 {path} {sent}"
            );
        }
        let other = it.send("GET", path, &[("if-none-match", "\"x\"")], Vec::new()).await;
        assert_eq!((other.status, other.text == first.text), (200, true), "CL-71");
    }
    let before = it.get("/v1/machines").await.tag();
    it.send_json("PATCH", "/v1/machines/n-c2-1", &json!({"state": "stopped"})).await;
    let changed = it.send("GET", "/v1/machines", &[("if-none-match", &before)], Vec::new()).await;
    assert_eq!(changed.status, 200, "CL-71 something has changed");
    it.send_json("PATCH", "/v1/machines/n-c2-1", &json!({"state": "running"})).await;
    assert_eq!(it.get("/v1/machines").await.tag(), before, "CL-71 and changed back");
    for path in ["/v1/loadbalancers/c2/default/web/stats", "/v1/events?since=0", "/v1/machines/nope"] {
        assert!(!it.get(path).await.headers.contains_key("etag"), "CL-71 {path}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_state_can_be_set_until_the_next_reload() {
    let it = service().await;
    let stopped = it.send_json("PATCH", "/v1/machines/n-c2-1", &json!({"state": "stopped"})).await;
    assert_eq!((stopped.status, &stopped.json()["state"]), (200, &json!("stopped")), "CL-30");
    assert_eq!(it.get("/v1/machines/n-c2-1").await.json()["state"], "stopped", "CL-30");
    it.send_json("PATCH", "/v1/machines/n-c2-2", &json!({"state": "gone"})).await;
    assert_eq!(
        it.get("/v1/machines/n-c2-2").await.json()["state"],
        "gone",
        "one that is gone is still there"
    );
    for bad in [
        json!({"state": "unknown"}),
        json!({"state": 1}),
        json!({}),
        json!({"state": "stopped", "name": "x"}),
        json!([]),
    ] {
        let refused = it.send_json("PATCH", "/v1/machines/n-c2-1", &bad).await;
        assert_eq!(refused.code(), (400, "invalid_spec".into()), "{bad}");
    }
    let nobody = it.send_json("PATCH", "/v1/machines/nope", &json!({"state": "stopped"})).await;
    assert_eq!(nobody.code(), (404, "machine_not_found".into()));
    it.control.take_inventory(inventory::read(&demo(), Path::new("inv.yaml"))).await.unwrap();
    assert_eq!(it.get("/v1/machines/n-c2-1").await.json()["state"], "running", "CL-30");
}

#[tokio::test(start_paused = true)]
async fn machines_are_added_and_deleted() {
    let it = service().await;
    let body = json!({"id": "x", "name": "extra", "cluster": "c2", "type": "vbox.vm.1g.2cpu", "internal": ["127.0.20.77"],
        "nodeProviderID": "kind://docker/kind/kind-worker"});
    let added = it.send_json("POST", "/v1/machines", &body).await;
    assert_eq!((added.status, &added.json()["source"]), (201, &json!("runtime")), "CL-93");
    assert_eq!(added.json()["nodeProviderID"], "kind://docker/kind/kind-worker");
    assert_eq!(it.get("/v1/machines/x").await.json(), added.json(), "CL-93");
    assert_eq!(it.send_json("POST", "/v1/machines", &body).await.code(), (409, "machine_exists".into()));
    let bad = it.send_json("POST", "/v1/machines", &json!({"id": "y", "cluster": "c9"})).await;
    assert_eq!(bad.code(), (400, "invalid_spec".into()));
    for part in ["cluster: \"c9\"", "name: it is missing", "type: it is missing"] {
        assert!(bad.message().contains(part), "{part} in {}", bad.message());
    }
    assert_eq!(it.delete("/v1/machines/x").await.json(), json!({"deleted": true}));
    let again = it.delete("/v1/machines/x").await;
    assert_eq!((again.status, again.json()), (200, json!({"deleted": false})));
}

#[tokio::test(start_paused = true)]
async fn a_new_limit_of_the_process_counts_at_once() {
    let it = service().await;
    let with = |most: &str| format!("{}loadBalancers: {{ maxConnectionsTotal: {most} }}\n", demo());
    let file = Path::new("inv.yaml");
    it.control.take_inventory(inventory::read(&with("7"), file)).await.unwrap();
    assert_eq!(it.plane.most_connections(), Some(7), "CL-66");
    it.control.take_inventory(inventory::read(&with("many"), file)).await.unwrap_err();
    assert_eq!(it.plane.most_connections(), Some(7), "CL-66 a broken file changes nothing");
    it.control.take_inventory(inventory::read(&demo(), file)).await.unwrap();
    assert_eq!(it.plane.most_connections(), Some(0), "CL-66 withdrawn");
}

#[tokio::test(start_paused = true)]
async fn a_broken_file_leaves_the_old_inventory_and_turns_readiness_red() {
    let it = service().await;
    assert_eq!(it.get("/readyz").await.status, 200);
    let before = it.get("/v1/machines").await.text;
    let broken = demo().replace("id: n-c2-1", "id: m-c2-1");
    it.control.take_inventory(inventory::read(&broken, Path::new("inv.yaml"))).await.unwrap_err();
    let red = it.get("/readyz").await;
    assert_eq!(red.code(), (503, "inventory_invalid".into()), "CL-23");
    let line = demo().lines().position(|line| line.contains("n-c2-1")).unwrap() + 1;
    assert!(
        red.message().starts_with(&format!("inv.yaml:{line}: machines[4].id: \"m-c2-1\" is already on line")),
        "CL-23 {}",
        red.message()
    );
    let list = it.get("/v1/machines").await;
    assert_eq!((list.status, list.text == before), (200, true), "CL-23");
    assert!(it.get("/metrics").await.text.contains("cloudlycke_inventory_valid 0"), "CL-23");
    let items = it.events(0).await["items"].clone();
    assert!(items.as_array().unwrap().iter().any(|event| event["kind"] == "InventoryInvalid"), "CL-23");
    it.control.take_inventory(inventory::read(&demo(), Path::new("inv.yaml"))).await.unwrap();
    assert_eq!(it.get("/readyz").await.status, 200, "CL-23");
}

#[tokio::test(start_paused = true)]
async fn two_machines_of_one_name_are_told_apart_by_their_clusters() {
    let text = demo().replace("name: node-c1-1", "name: worker").replace("name: node-c2-1", "name: worker");
    let it = service_with(&text, None).await;
    for (cluster, id) in [("c1", "n-c1-1"), ("c2", "n-c2-1")] {
        let found = it.get(&format!("/v1/machines?cluster={cluster}&name=worker")).await.json();
        assert_eq!(found["items"].as_array().unwrap().len(), 1, "CL-16");
        assert_eq!(found["items"][0]["id"], id, "CL-16");
    }
}

#[tokio::test(start_paused = true)]
async fn a_client_that_goes_away_leaves_nothing_half_done() {
    let it = service().await;
    it.put_demo().await;
    let body = json!({"state": "stopped"});
    let path = "/v1/machines/n-c2-1";
    {
        let mut asking = std::pin::pin!(it.send_json("PATCH", path, &body));
        // It is polled once, and then the connection is gone.
        std::future::poll_fn(|context| {
            let _ = asking.as_mut().poll(context);
            std::task::Poll::Ready(())
        })
        .await;
    }
    tokio::time::sleep(std::time::Duration::from_secs(1)).await;
    let down = it.plane.config(&crate::fixture::key("web")).unwrap().backends[0].down.clone();
    assert_eq!(down.as_deref(), Some("machine stopped"), "CL-82");
}
