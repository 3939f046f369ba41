//! VPCs and their routes: 6.8 of the contract, and rule 16 of the simulator.

use serde_json::{Value, json};

use crate::fixture::{ask, cloud, get, secs};

#[tokio::test(start_paused = true)]
async fn put_clears_and_patch_keeps_what_is_left_out() {
    let cloud = cloud(|_| {});
    let vpc = cloud.first_vpc();
    let path = format!("/v2/vpcs/{vpc}");
    let entry = json!({"router": "10.240.0.7", "destination": "10.244.3.0/24", "description": "x"});
    let table = [
        ("PATCH", json!({"route_entries": [entry]}), "kube-net", 1),
        ("PATCH", json!({"name": "renamed"}), "renamed", 1),
        ("PATCH", json!({"name": null, "route_entries": null}), "renamed", 1),
        ("PATCH", json!({"route_entries": []}), "renamed", 0),
        (
            "PUT",
            json!({"name": "", "route_entries": [entry, {"router": "10.240.0.8", "destination": "1.2.3.4"}]}),
            "",
            2,
        ),
        ("PUT", json!({"name": "again"}), "again", 0),
    ];
    for (method, body, name, routes) in table {
        let answer = ask(&cloud, method, &path, body.clone()).await;
        let shown = answer.json()["vpc"].clone();
        let count = shown["route_entries"].as_array().map_or(99, Vec::len);
        assert_eq!(
            (answer.status, &shown["name"], count),
            (200, &json!(name), routes),
            "BL-122 BL-124 {body}"
        );
        assert_eq!(cloud.routes(vpc).len(), routes);
        assert_eq!(get(&cloud, &path).await.json()["vpc"], shown);
    }
    let entry = |router: &str, destination: &str, description: String| json!({"route_entries": [{"router": router, "destination": destination, "description": description}]});
    let table = [
        (json!({"name": ""}), "name"),
        (json!({"name": "x".repeat(251)}), "name"),
        (json!({"route_entries": [{}]}), "router"),
        (json!({"route_entries": {}}), "route_entries"),
        (entry("192.0.2.1", "10.244.0.0/24", String::new()), "router"),
        (entry("10.240.0.4", "fd00::/64", String::new()), "destination"),
        (entry("10.240.0.4", "10.244.0.0/24", "x".repeat(251)), "description"),
    ];
    for (body, field) in table {
        let answer = ask(&cloud, "PATCH", &path, body.clone()).await;
        assert!(
            answer.status == 400 && answer.mistakes().contains(&field.to_owned()),
            "BL-147 {body}: {answer:?}"
        );
    }
    assert_eq!(ask(&cloud, "PUT", &path, json!({})).await.mistakes(), ["name"]);
}

#[tokio::test(start_paused = true)]
async fn a_vpc_with_members_cannot_be_deleted() {
    let cloud = cloud(|settings| settings.instances = 2);
    let vpc = cloud.first_vpc();
    let members = get(&cloud, &format!("/v2/vpcs/{vpc}/members")).await.json();
    let first = &members["members"][0];
    let id = cloud.servers()[0].id.to_string();
    assert_eq!((&first["resource_id"], &members["meta"]["total"]), (&json!(id), &json!(2)));
    let other = get(&cloud, &format!("/v2/vpcs/{vpc}/members?resource_type=load-balancer")).await.json();
    assert_eq!(other["meta"]["total"], 0);
    assert_eq!(ask(&cloud, "DELETE", &format!("/v2/vpcs/{vpc}"), Value::Null).await.status, 403);
    let made = ask(&cloud, "POST", "/v2/vpcs", json!({"name": "b", "ip_range": "10.9.0.0/16"})).await.json();
    assert_eq!(made["vpc"]["ip_range"], "10.9.0.0/16");
    let path = format!("/v2/vpcs/{}", made["vpc"]["id"]);
    assert_eq!(ask(&cloud, "DELETE", &path, Value::Null).await.status, 204);
    assert_eq!(get(&cloud, &path).await.status, 404, "BL-118");
    assert_eq!(
        ask(&cloud, "POST", "/v2/vpcs", json!({"name": "b", "ip_range": "all"})).await.mistakes(),
        ["ip_range"]
    );
}

#[tokio::test(start_paused = true)]
async fn a_change_that_takes_its_time_lets_others_read_what_was() {
    let cloud = cloud(|_| {});
    cloud.switch(|switches| switches.vpc_delay = secs(1));
    let path = format!("/v2/vpcs/{}", cloud.first_vpc());
    let entry = json!({"router": "10.240.0.7", "destination": "10.244.3.0/24"});
    let write = ask(&cloud, "PATCH", &path, json!({"route_entries": [entry]}));
    let read = get(&cloud, &path);
    let (written, read) = tokio::join!(write, read);
    assert_eq!(read.json()["vpc"]["route_entries"], json!([]), "BL-121");
    assert_eq!(written.json()["vpc"]["route_entries"].as_array().unwrap().len(), 1, "BL-121");
}
