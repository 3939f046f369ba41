//! The life of a load balancer, from its creation to the end of everything below it.

use serde_json::json;

use crate::fixture::{ask, balancer_and_pool, cloud, get, member_body, secs};

#[tokio::test(start_paused = true)]
async fn a_balancer_is_created_filled_and_deleted() {
    let cloud = cloud(|settings| settings.build = secs(30));
    let server = cloud.add_server("node-1", "rma1");
    let body = json!({"name": "web", "flavor": "lb-standard", "zone": "rma1", "vip_addresses": []});
    let made = ask(&cloud, "POST", "/v1/load-balancers", body).await;
    assert_eq!((made.status, &made.json()["status"]), (201, &json!("changing")));
    assert_eq!(made.headers["content-type"], "application/json");
    let vips: Vec<_> =
        made.json()["vip_addresses"].as_array().unwrap().iter().map(|v| v["version"].clone()).collect();
    assert_eq!(vips, [4, 6], "addresses are known from the start");
    let balancer = made.uuid();
    let pool =
        json!({"name": "tcp", "load_balancer": balancer, "algorithm": "round_robin", "protocol": "tcp"});
    let early = ask(&cloud, "POST", "/v1/load-balancers/pools", pool.clone()).await;
    assert_eq!(early.status, 400, "no children before it is built: {early:?}");
    tokio::time::sleep(secs(30)).await;
    assert_eq!(get(&cloud, &format!("/v1/load-balancers/{balancer}")).await.json()["status"], "running");

    let pool = ask(&cloud, "POST", "/v1/load-balancers/pools", pool).await.uuid();
    let members = format!("/v1/load-balancers/pools/{pool}/members");
    let member = ask(&cloud, "POST", &members, member_body(&cloud, &server.uuid, 30_080)).await;
    assert_eq!((member.status, &member.json()["monitor_status"]), (201, &json!("no_monitor")));
    let listener =
        json!({"name": "tcp/80", "pool": pool, "protocol": "tcp", "protocol_port": 80, "allowed_cidrs": []});
    assert_eq!(ask(&cloud, "POST", "/v1/load-balancers/listeners", listener).await.status, 201);
    let monitor = json!({"pool": pool, "type": "tcp", "http": {}});
    assert_eq!(ask(&cloud, "POST", "/v1/load-balancers/health-monitors", monitor).await.status, 201);
    assert_eq!(get(&cloud, &members).await.json()[0]["monitor_status"], "up");

    let gone = ask(&cloud, "DELETE", &format!("/v1/load-balancers/{balancer}"), json!(null)).await;
    assert_eq!((gone.status, gone.text.as_str()), (204, ""));
    let left = cloud.resources();
    assert!(left.balancers.is_empty() && left.pools.is_empty() && left.members.is_empty());
    assert!(left.listeners.is_empty() && left.monitors.is_empty());
    assert_eq!(get(&cloud, &members).await.status, 404);
}

#[tokio::test(start_paused = true)]
async fn links_begin_with_the_clients_base_and_stubs_are_alike() {
    let cloud = cloud(|_| {});
    let server = cloud.add_server("node-1", "lpg1");
    let (balancer, pool) = balancer_and_pool(&cloud).await;
    let members = format!("/v1/load-balancers/pools/{pool}/members");
    let member = ask(&cloud, "POST", &members, member_body(&cloud, &server.uuid, 30_080)).await.json();
    assert_eq!(member["href"], format!("https://api.example{members}/{}", member["uuid"].as_str().unwrap()));
    let shown = get(&cloud, &format!("/v1/servers/{}", server.uuid)).await.json();
    assert_eq!(shown["interfaces"][1]["addresses"][0]["subnet"], member["subnet"]);
    let stub = json!({"href": format!("https://api.example/v1/load-balancers/{balancer}"), "uuid": balancer, "name": "web"});
    assert_eq!(member["load_balancer"], stub);
    assert_eq!(get(&cloud, "/v1/load-balancers/pools").await.json()[0]["load_balancer"], stub);
}
