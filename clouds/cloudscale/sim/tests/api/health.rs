//! Health: members follow their servers, balancers their members, and both can be set.

use serde_json::{Value, json};

use crate::fixture::{ask, balancer_and_pool, cloud, get, member_body, secs};

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
async fn a_balancer_may_show_that_something_below_it_was_changed() {
    let cloud = cloud(|settings| settings.unrest = secs(3));
    let server = cloud.add_server("a", "rma1").uuid;
    let (balancer, pool) = balancer_and_pool(&cloud).await;
    let pools = "/v1/load-balancers/pools".to_owned();
    let members = format!("{pools}/{pool}/members");
    let listeners = "/v1/load-balancers/listeners".to_owned();
    let monitors = "/v1/load-balancers/health-monitors".to_owned();
    let another =
        json!({"name": "x", "load_balancer": balancer, "algorithm": "source_ip", "protocol": "tcp"});
    let kinds = [
        (pools, another, json!({"name": "y"})),
        (members, member_body(&cloud, &server, 80), json!({"enabled": false})),
        (
            listeners,
            json!({"name": "x", "pool": pool, "protocol": "tcp", "protocol_port": 80}),
            json!({"name": "y"}),
        ),
        (monitors, json!({"pool": pool, "type": "tcp"}), json!({"delay_s": 9})),
    ];
    let status = || cloud.status_of(&balancer).unwrap();
    assert_eq!(status(), "changing");
    for (path, body, change) in kinds {
        tokio::time::sleep(secs(3)).await;
        assert_eq!(status(), "running", "{path}: before POST");
        let made = ask(&cloud, "POST", &path, body).await;
        assert_eq!(made.status, 201, "{path}: {made:?}");
        let one = format!("{path}/{}", made.uuid());
        tokio::time::sleep(secs(2)).await;
        assert_eq!(status(), "changing", "{path}: created two seconds ago");
        for (method, body) in [("PATCH", change), ("DELETE", Value::Null)] {
            tokio::time::sleep(secs(3)).await;
            assert_eq!(status(), "running", "{path}: before {method}");
            assert_eq!(ask(&cloud, method, &one, body).await.status, 204, "{method} {one}");
            assert_eq!(status(), "changing", "{path}: after {method}");
        }
    }
    let again = member_body(&cloud, &server, 81);
    let busy = ask(&cloud, "POST", &format!("/v1/load-balancers/pools/{pool}/members"), again).await;
    assert_eq!(busy.status, 201, "which keeps nobody from changing more: {busy:?}");
    tokio::time::sleep(secs(3)).await;
    ask(&cloud, "PATCH", &format!("/v1/load-balancers/{balancer}"), json!({"name": "other"})).await;
    assert_eq!(status(), "running", "a new name of its own is no work");
}

#[tokio::test(start_paused = true)]
async fn disabled_members_do_not_count() {
    let cloud = cloud(|_| {});
    let servers = ["a", "b"].map(|name| cloud.add_server(name, "rma1").uuid);
    let (balancer, pool) = balancer_and_pool(&cloud).await;
    ask(&cloud, "POST", "/v1/load-balancers/health-monitors", json!({"pool": pool, "type": "tcp"})).await;
    let members = format!("/v1/load-balancers/pools/{pool}/members");
    let mut body = member_body(&cloud, &servers[0], 80);
    body["enabled"] = json!(false);
    ask(&cloud, "POST", &members, body).await;
    ask(&cloud, "POST", &members, member_body(&cloud, &servers[1], 80)).await;
    cloud.stop_server(&servers[0]);
    assert_eq!(cloud.status_of(&balancer).unwrap(), "running");
    cloud.stop_server(&servers[1]);
    assert_eq!(cloud.status_of(&balancer).unwrap(), "error", "all that take part are down");
}
