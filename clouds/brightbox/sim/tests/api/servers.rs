//! Servers: what is shown of them, and how they come and go.

use serde_json::{Value, json};

use crate::fixture::{ask, cloud, delete, get, pass, post, secs, seed_balancer, seed_cloud_ip};

#[tokio::test(start_paused = true)]
async fn a_server_is_shown_alike_alone_and_in_a_list() {
    let cloud = cloud(|settings| settings.instances = 2);
    let list = get(&cloud, "/1.0/servers").await.json();
    assert_eq!(list.as_array().unwrap().len(), 2);
    let one = &list[0];
    let id = one["id"].as_str().unwrap();
    assert_eq!(&get(&cloud, &format!("/1.0/servers/{id}")).await.json(), one);
    assert_eq!(id.len(), 9, "{id}");
    assert!(
        id.starts_with("srv-") && id.chars().skip(4).all(|c| c.is_ascii_lowercase() || c.is_ascii_digit())
    );
    assert_eq!(one["hostname"], one["id"]);
    assert_eq!(one["fqdn"], json!(format!("{id}.gb1.brightbox.com")));
    assert_eq!(one["url"], json!(format!("https://api.example/1.0/servers/{id}")));
    assert_eq!(
        (&one["status"], &one["locked"], &one["resource_type"]),
        (&json!("active"), &json!(false), &json!("server"))
    );
    assert_eq!((&one["zone"]["handle"], &one["server_type"]["handle"]), (&json!("gb1-a"), &json!("2gb.ssd")));
    assert_eq!(one["created_at"], json!("2023-11-14T22:13:20Z"));
    assert_eq!((&one["deleted_at"], &one["cloud_ips"]), (&Value::Null, &json!([])));
    assert_eq!(one["server_groups"][0]["name"], json!("default"));
    assert!(one["interfaces"][0]["ipv4_address"].as_str().unwrap().starts_with("10."));
    assert!(one["interfaces"][0]["ipv6_address"].as_str().unwrap().parse::<std::net::Ipv6Addr>().is_ok());
    assert_ne!(list[0]["interfaces"][0]["ipv4_address"], list[1]["interfaces"][0]["ipv4_address"]);
    let missing = get(&cloud, "/1.0/servers/srv-none0").await;
    assert_eq!((missing.status, &missing.json()["error_name"]), (404, &json!("missing_resource")));
    assert_eq!(get(&cloud, "/1.0/servers/aws:/i-1").await.status, 404);
}

#[tokio::test(start_paused = true)]
async fn servers_stop_start_and_go() {
    let cloud = cloud(|settings| settings.delays.boot = secs(5));
    let id = cloud.add_server("a", "gb1-b").id;
    let path = format!("/1.0/servers/{id}");
    let status = async || get(&cloud, &path).await.json()["status"].as_str().unwrap().to_owned();
    for (word, before, after) in
        [("stop", "active", "inactive"), ("start", "inactive", "active"), ("shutdown", "active", "inactive")]
    {
        let answer = post(&cloud, &format!("{path}/{word}"), Value::Null).await;
        assert_eq!(
            (answer.status, &answer.json()["status"]),
            (202, &json!(before)),
            "{word}: the old status"
        );
        pass(secs(4)).await;
        assert_eq!(status().await, before, "{word}");
        pass(secs(1)).await;
        assert_eq!(status().await, after, "{word}");
        let again = post(&cloud, &format!("{path}/{word}"), Value::Null).await;
        assert_eq!(
            (again.status, &again.json()["error_name"]),
            (409, &json!("resource_conflict")),
            "{word} twice"
        );
    }
    let locked = ask(&cloud, "PUT", &format!("{path}/lock_resource"), Value::Null).await;
    assert_eq!((locked.status, &locked.json()["locked"]), (200, &json!(true)));
    assert_eq!(delete(&cloud, &path).await.status, 409, "locked");
    assert_eq!(ask(&cloud, "PUT", &format!("{path}/unlock_resource"), Value::Null).await.status, 200);
    let answer = delete(&cloud, &path).await;
    assert_eq!((answer.status, &answer.json()["status"]), (202, &json!("deleting")));
    assert_eq!(delete(&cloud, &path).await.status, 409, "on its way already");
    pass(secs(5)).await;
    let gone = get(&cloud, &path).await.json();
    assert_eq!((&gone["status"], &gone["deleted_at"]), (&json!("deleted"), &json!("2023-11-14T22:13:40Z")));
    pass(secs(3_600)).await;
    assert_eq!(get(&cloud, &path).await.status, 404, "it is not shown for ever");
}

#[tokio::test(start_paused = true)]
async fn a_server_that_is_deleted_is_in_nothing_any_more() {
    let cloud = cloud(|settings| settings.delays.boot = secs(5));
    let servers = ["a", "b"].map(|name| cloud.add_server(name, "gb1-a").id);
    let balancer = seed_balancer(&cloud, &[&servers[0], &servers[1]]);
    let members = json!({"servers": [{"server": servers[0]}, {"server": servers[1]}]});
    let group = cloud.seed("server_groups", &json!({"name": "g"})).unwrap();
    post(&cloud, &format!("/1.0/server_groups/{group}/add_servers"), members).await;
    let ip = seed_cloud_ip(&cloud, "n");
    post(&cloud, &format!("/1.0/cloud_ips/{ip}/map"), json!({"destination": servers[0]})).await;
    let shown = get(&cloud, &format!("/1.0/servers/{}", servers[0])).await.json();
    assert_eq!(shown["cloud_ips"][0]["id"], json!(ip));
    cloud.delete_server(&servers[0]);
    assert_eq!(cloud.resources().balancers[&balancer].nodes.len(), 2, "not before it is deleted");
    pass(secs(5)).await;
    let resources = cloud.resources();
    assert_eq!(resources.balancers[&balancer].nodes, [servers[1].clone()]);
    assert_eq!(resources.groups[&group].servers, [servers[1].clone()]);
    assert_eq!(resources.cloud_ips[&ip].status(), "unmapped");
    assert_eq!(cloud.nodes_changes().len(), 1);
    assert!(cloud.emptied_balancers().is_empty());
    cloud.purge_server(&servers[1]);
    assert_eq!(cloud.emptied_balancers().len(), 1, "the last one ran");
    assert_eq!(get(&cloud, &format!("/1.0/servers/{}", servers[1])).await.status, 404);
}

#[tokio::test(start_paused = true)]
async fn zones_types_and_the_account_can_be_read() {
    let cloud = cloud(|settings| settings.default_zone = "gb1s-b".to_owned());
    let zones = get(&cloud, "/1.0/zones").await.json();
    assert_eq!((&zones[0]["handle"], &zones[1]["handle"]), (&json!("gb1s-a"), &json!("gb1s-b")));
    let types = get(&cloud, "/1.0/server_types").await.json();
    assert!(types.as_array().unwrap().iter().any(|t| t["handle"] == "1gb.ssd" && t["status"] == "available"));
    seed_cloud_ip(&cloud, "n");
    let account = get(&cloud, &format!("/1.0/accounts/{}", cloud.account())).await.json();
    assert_eq!((&account["cloud_ips_used"], &account["load_balancers_used"]), (&json!(1), &json!(0)));
    assert_eq!((&account["status"], &account["resource_type"]), (&json!("active"), &json!("account")));
    assert_eq!(post(&cloud, "/1.0/zones", json!({})).await.status, 405);
}
