//! Health: members follow their servers, balancers their members, and both can be set.

use serde_json::{Value, json};

use crate::stage::{ask, balancer_and_pool, cloud, get, member_body, secs};

#[tokio::test(start_paused = true)]
async fn a_server_that_stops_takes_its_member_down_and_the_balancer_shows_it() {
    let cloud = cloud(|_| {});
    let servers = ["a", "b"].map(|name| cloud.add_server(name, "rma1").uuid);
    let (balancer, pool) = balancer_and_pool(&cloud).await;
    let members = format!("/v1/load-balancers/pools/{pool}/members");
    for server in &servers {
        ask(&cloud, "POST", &members, member_body(&cloud, server, 80)).await;
    }
    cloud.stop_server(&servers[0]);
    let healths = async || {
        let list = get(&cloud, &members).await.json();
        let mut all: Vec<_> = list.as_array().unwrap().iter().map(|m| m["monitor_status"].clone()).collect();
        all.sort_by_key(Value::to_string);
        all
    };
    assert_eq!(healths().await, ["no_monitor", "no_monitor"]);
    assert_eq!(cloud.status_of(&balancer).unwrap(), "running", "nobody looks, nobody knows");
    ask(&cloud, "POST", "/v1/load-balancers/health-monitors", json!({"pool": pool, "type": "tcp"})).await;
    assert_eq!(
        (healths().await, cloud.status_of(&balancer).unwrap()),
        (vec![json!("down"), json!("up")], "degraded".into())
    );
    cloud.delete_server(&servers[1]);
    assert_eq!(
        (healths().await, cloud.status_of(&balancer).unwrap()),
        (vec![json!("down"), json!("down")], "error".into())
    );
    cloud.start_server(&servers[0]);
    assert_eq!(cloud.status_of(&balancer).unwrap(), "degraded");
    for member in cloud.members() {
        cloud.set_health(&member.uuid, Some("up"));
    }
    assert_eq!(cloud.status_of(&balancer).unwrap(), "running", "health can be set");
    cloud.set_status(&balancer, Some("stopped"));
    assert_eq!(get(&cloud, &format!("/v1/load-balancers/{balancer}")).await.json()["status"], "stopped");
}

#[tokio::test(start_paused = true)]
async fn a_balancer_may_show_that_it_is_being_changed() {
    let cloud = cloud(|manners| manners.unrest = secs(3));
    let server = cloud.add_server("a", "rma1").uuid;
    let (balancer, pool) = balancer_and_pool(&cloud).await;
    let members = format!("/v1/load-balancers/pools/{pool}/members");
    assert_eq!(cloud.status_of(&balancer).unwrap(), "changing");
    let during = ask(&cloud, "POST", &members, member_body(&cloud, &server, 80)).await;
    assert_eq!(during.status, 201, "which keeps nobody from changing more");
    tokio::time::sleep(secs(3)).await;
    assert_eq!(cloud.status_of(&balancer).unwrap(), "running");
    ask(&cloud, "DELETE", &format!("{members}/{}", during.uuid()), Value::Null).await;
    assert_eq!(cloud.status_of(&balancer).unwrap(), "changing");
}
