//! Servers: 6.6 of the contract, and rules 13 to 15 of the simulator.

use std::time::Duration;

use binarylane_sim::{Cancellation, Cloud, NewServer};
use serde_json::{Value, json};

use crate::fixture::{ask, cloud, get, pass, secs};

async fn read(cloud: &Cloud, id: i64) -> Value {
    get(cloud, &format!("/v2/servers/{id}")).await.json()["server"].clone()
}

async fn act(cloud: &Cloud, id: i64, body: Value) -> (u16, Value) {
    let answer = ask(cloud, "POST", &format!("/v2/servers/{id}/actions"), body).await;
    (answer.status, answer.json())
}

#[tokio::test(start_paused = true)]
async fn a_server_is_made_with_addresses() {
    let cloud = cloud(|settings| settings.boot = Duration::from_secs(30));
    let vpc = cloud.first_vpc();
    let body = json!({"name": "w1", "size": "std-min", "image": "ubuntu-24.04", "region": "per", "vpc_id": vpc,
        "vpc_ipv4_address": "10.240.7.7", "ipv6": true});
    let made = ask(&cloud, "POST", "/v2/servers", body.clone()).await.json();
    let (id, server) = (made["server"]["id"].as_i64().unwrap(), &made["server"]);
    assert_eq!((&server["status"], &server["networks"]["v4"]), (&json!("new"), &json!([])), "BL-46");
    assert_eq!(made["links"]["actions"][0]["rel"], "create");
    pass(30).await;
    let server = read(&cloud, id).await;
    let addresses = server["networks"]["v4"].as_array().unwrap();
    let facts: Vec<_> = addresses.iter().map(|one| (&one["type"], &one["netmask"])).collect();
    let mask = json!("255.255.0.0");
    assert_eq!(facts, [(&json!("public"), &mask), (&json!("private"), &mask)], "BL-35");
    assert_eq!(addresses[1]["ip_address"], "10.240.7.7");
    assert_eq!(server["networks"]["v6"][0]["netmask"], 64, "BL-35");
    assert_eq!((&server["status"], &server["size_slug"]), (&json!("active"), &json!("std-min")));
    let table = [
        (json!({}), vec!["image", "region", "size"]),
        (json!({"size": "x", "image": 1, "region": "moon"}), vec!["image", "region", "size"]),
        (json!({"size": "std-min", "image": 77, "region": "bne", "name": "a_b"}), vec!["name"]),
        (json!({"size": "std-min", "image": 77, "region": "bne", "vpc_id": 1}), vec!["vpc_id"]),
        (
            json!({"size": "std-min", "image": 77, "region": "bne", "vpc_ipv4_address": "10.240.0.9"}),
            vec!["vpc_ipv4_address"],
        ),
        (body, vec!["vpc_ipv4_address"]),
    ];
    for (body, want) in table {
        let answer = ask(&cloud, "POST", "/v2/servers", body.clone()).await;
        assert_eq!(
            (answer.status, answer.mistakes()),
            (400, want.iter().map(ToString::to_string).collect()),
            "{body}"
        );
    }
    cloud.switch(|switches| switches.full_regions = ["bne".to_owned()].into());
    let full =
        ask(&cloud, "POST", "/v2/servers", json!({"size": "std-min", "image": 77, "region": "bne"})).await;
    assert!(full.text.contains("No suitable host"), "{full:?}");
}

#[tokio::test(start_paused = true)]
async fn servers_have_the_addresses_of_their_networks() {
    let cloud = cloud(|_| {});
    let kinds =
        |server: &binarylane_sim::Server| -> Vec<bool> { server.v4.iter().map(|one| one.public).collect() };
    let alone = NewServer { in_vpc: false, host: Some(String::new()), ..NewServer::new("alone", "bne") };
    let inside = NewServer { public: false, ipv6: false, ..NewServer::new("inside", "bne") };
    assert_eq!(kinds(&cloud.add(&alone)), [true], "BL-27");
    assert_eq!((kinds(&cloud.add(&inside)), cloud.add(&inside).v6.len()), (vec![false], 0), "BL-27");
    cloud.switch(|switches| (switches.phantom_private, switches.provider_private) = (true, true));
    let phantom = cloud.add(&alone);
    assert_eq!((kinds(&phantom), phantom.vpc_id), (vec![true, false], None), "BL-29");
    let usual = cloud.add_server("usual", "bne");
    let private: Vec<_> =
        usual.v4.iter().filter(|one| !one.public).map(|one| one.address.octets()[0]).collect();
    assert_eq!(private, [172, 10], "BL-30");
    let mut all: Vec<_> = cloud.servers().iter().flat_map(|s| s.v4.clone()).map(|one| one.address).collect();
    let count = all.len();
    all.sort_unstable();
    all.dedup();
    assert_eq!(all.len(), count, "no address twice");
}

#[tokio::test(start_paused = true)]
async fn power_and_what_is_said_about_it() {
    let cloud = cloud(|settings| settings.instances = 1);
    let id = cloud.servers()[0].id;
    let probe = async || {
        let (status, asked) = act(&cloud, id, json!({"type": "is_running"})).await;
        assert_eq!((status, &asked["action"]["status"]), (200, &json!("in-progress")));
        let path = format!("/v2/servers/{id}/actions/{}", asked["action"]["id"]);
        get(&cloud, &path).await.json()["action"]["status"].clone()
    };
    assert_eq!(probe().await, "completed", "BL-49");
    act(&cloud, id, json!({"type": "power_off"})).await;
    assert_eq!(
        (read(&cloud, id).await["status"].clone(), probe().await),
        (json!("off"), json!("errored")),
        "BL-44"
    );
    cloud.switch(|switches| switches.off_says_active = true);
    assert_eq!(
        (read(&cloud, id).await["status"].clone(), probe().await),
        (json!("active"), json!("errored")),
        "BL-49"
    );
    act(&cloud, id, json!({"type": "power_on"})).await;
    cloud.switch(|switches| (switches.off_says_active, switches.probe_fails) = (false, true));
    assert_eq!(
        (read(&cloud, id).await["status"].clone(), probe().await),
        (json!("active"), json!("errored"))
    );
    cloud.switch(|switches| switches.silent_actions = ["is_running".to_owned()].into());
    assert_eq!(act(&cloud, id, json!({"type": "is_running"})).await, (202, Value::Null), "BL-50");
    let tally = cloud.tally();
    assert_eq!((tally.mutations, tally.count("servers.is_running")), (2, 5), "asking changes nothing");
    cloud.stop_server(id);
    assert_eq!(read(&cloud, id).await["status"], "off");
    cloud.start_server(id);
    assert_eq!(read(&cloud, id).await["status"], "active");
}

#[tokio::test(start_paused = true)]
async fn servers_are_renamed_and_moved() {
    let cloud = cloud(|settings| settings.instances = 1);
    let server = cloud.servers().remove(0);
    let id = server.id;
    assert_eq!(
        act(&cloud, id, json!({"type": "rename", "name": "new-name"})).await,
        (202, Value::Null),
        "BL-23"
    );
    assert_eq!(read(&cloud, id).await["name"], "new-name", "BL-23");
    let had = server.private_address().unwrap();
    let body =
        json!({"type": "change_vpc_ipv4", "current_ipv4_address": had, "new_ipv4_address": "10.240.9.9"});
    assert_eq!(act(&cloud, id, body).await.0, 200);
    assert_eq!(cloud.servers()[0].private_address().unwrap().to_string(), "10.240.9.9");
    assert_eq!(
        act(&cloud, id, json!({"type": "change_source_and_destination_check", "enabled": false})).await.0,
        200
    );
    assert_eq!(read(&cloud, id).await["networks"]["source_and_destination_check"], false, "BL-149");
    assert_eq!(act(&cloud, id, json!({"type": "change_network", "vpc_id": null})).await.0, 200);
    let moved = read(&cloud, id).await;
    assert_eq!(
        (&moved["vpc_id"], &moved["networks"]["source_and_destination_check"]),
        (&Value::Null, &Value::Null)
    );
    let table = [
        (json!({}), "type"),
        (json!({"type": "explode"}), "type"),
        (json!({"type": "rename"}), "name"),
        (json!({"type": "change_network", "vpc_id": 1}), "vpc_id"),
        (json!({"type": "change_source_and_destination_check", "enabled": true}), "type"),
        (json!({"type": "uncancel"}), "type"),
    ];
    for (body, field) in table {
        let (status, answer) = act(&cloud, id, body.clone()).await;
        assert_eq!((status, answer["errors"][field].is_array()), (400, true), "{body}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_deleted_server_lingers() {
    let table = [
        (Cancellation::Archive, Some("archive"), Some("archive")),
        (Cancellation::ArchiveAfter(secs(10)), Some("active"), Some("archive")),
        (Cancellation::Gone, None, None),
        (Cancellation::GoneAfter(secs(10)), Some("archive"), None),
    ];
    for (cancellation, at_once, later) in table {
        let cloud = cloud(|settings| settings.instances = 1);
        let id = cloud.servers()[0].id;
        let balancer = cloud.add_balancer("web", None, &[id]).unwrap();
        cloud.switch(|switches| switches.cancellation = cancellation);
        let path = format!("/v2/servers/{id}");
        assert_eq!(ask(&cloud, "DELETE", &path, Value::Null).await.status, 204);
        assert_eq!(cloud.balancer(balancer).unwrap().server_ids, [0; 0], "it leaves all pools");
        assert!(cloud.emptied_pools().is_empty(), "and no request took it out");
        assert_eq!(read(&cloud, id).await["status"].as_str(), at_once, "BL-151 {cancellation:?}");
        if at_once.is_some() {
            assert_ne!(read(&cloud, id).await["cancelled_at"], Value::Null, "BL-151 {cancellation:?}");
        }
        let (undone, _) = act(&cloud, id, json!({"type": "uncancel"})).await;
        let early = matches!(cancellation, Cancellation::ArchiveAfter(_));
        assert_eq!(undone == 200, early, "{cancellation:?}");
        if early {
            assert_eq!(read(&cloud, id).await["cancelled_at"], Value::Null);
            cloud.cancel_server(id);
        }
        pass(10).await;
        assert_eq!(read(&cloud, id).await["status"].as_str(), later, "BL-45 {cancellation:?}");
    }
    let cloud = cloud(|settings| settings.instances = 1);
    let id = cloud.servers()[0].id;
    let long = format!("/v2/servers/{id}?reason={}", "x".repeat(251));
    assert_eq!(ask(&cloud, "DELETE", &long, Value::Null).await.mistakes(), ["reason"]);
    cloud.delete_server(id);
    assert_eq!(ask(&cloud, "DELETE", &long, Value::Null).await.status, 404, "BL-42");
}
