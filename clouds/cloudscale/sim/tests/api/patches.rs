//! PATCH: one attribute, and only those that can be changed.

use serde_json::{Value, json};

use crate::fixture::{ask, balancer_and_pool, cloud, get, member_body};

#[tokio::test(start_paused = true)]
async fn each_attribute_is_changed_alone_or_not_at_all() {
    let cloud = cloud(|_| {});
    let server = cloud.add_server("a", "rma1");
    let (balancer, pool) = balancer_and_pool(&cloud).await;
    let members = format!("/v1/load-balancers/pools/{pool}/members");
    let member = ask(&cloud, "POST", &members, member_body(&cloud, &server.uuid, 1)).await.uuid();
    let listener = json!({"name": "tcp/80", "pool": pool, "protocol": "tcp", "protocol_port": 80});
    let listener = ask(&cloud, "POST", "/v1/load-balancers/listeners", listener).await.uuid();
    let balancer = format!("/v1/load-balancers/{balancer}");
    let pool = format!("/v1/load-balancers/pools/{pool}");
    let member = format!("{members}/{member}");
    let listener = format!("/v1/load-balancers/listeners/{listener}");
    let server = format!("/v1/servers/{}", server.uuid);
    let changed = |key: &'static str, value: Value| (key, value, 204);
    let fixed = |key: &'static str, value: Value| (key, value, 400);
    let table = [
        (&balancer, changed("name", json!("other"))),
        (&balancer, changed("tags", json!({"a": "b"}))),
        (&balancer, fixed("name", json!(""))),
        (&balancer, fixed("flavor", json!("lb-standard"))),
        (&balancer, fixed("zone", json!("lpg1"))),
        (&balancer, fixed("vip_addresses", json!([]))),
        (&pool, changed("name", json!("other"))),
        (&pool, changed("tags", json!({}))),
        (&pool, fixed("algorithm", json!("source_ip"))),
        (&pool, fixed("protocol", json!("udp"))),
        (&member, changed("name", json!("other"))),
        (&member, changed("enabled", json!(false))),
        (&member, fixed("enabled", json!("no"))),
        (&member, fixed("protocol_port", json!(2))),
        (&member, fixed("monitor_port", json!(2))),
        (&member, fixed("address", json!("10.0.0.99"))),
        (&member, fixed("subnet", json!("x"))),
        (&listener, changed("name", json!("other"))),
        (&listener, changed("allowed_cidrs", json!(["10.0.0.0/8"]))),
        (&listener, changed("allowed_cidrs", json!([]))),
        (&listener, fixed("allowed_cidrs", json!(["10.0.0.1"]))),
        (&listener, changed("timeout_client_data_ms", json!(1))),
        (&listener, changed("timeout_member_connect_ms", json!(2))),
        (&listener, changed("timeout_member_data_ms", json!(3))),
        (&listener, fixed("timeout_member_data_ms", json!(-1))),
        (&listener, fixed("protocol", json!("udp"))),
        (&listener, fixed("protocol_port", json!(81))),
        (&listener, fixed("pool", json!("x"))),
        (&server, changed("name", json!("b"))),
        (&server, fixed("zone", json!("lpg1"))),
    ];
    for (path, (key, value, status)) in table {
        let before = get(&cloud, path).await.json();
        let answer = ask(&cloud, "PATCH", path, json!({key: value})).await;
        assert_eq!(answer.status, status, "{path} {key}: {answer:?}");
        let mut want = before;
        if status == 204 {
            assert_eq!(answer.text, "", "{path} {key}");
            want[key] = value;
        }
        assert_eq!(get(&cloud, path).await.json(), want, "{path} {key}: nothing else changes");
    }
    for path in [&balancer, &pool, &member, &listener, &server] {
        let before = get(&cloud, path).await.json();
        let two = ask(&cloud, "PATCH", path, json!({"name": "two", "tags": {"x": "y"}})).await;
        assert!(two.status == 400 && two.text.contains("To keep changes atomic"), "{path}: {two:?}");
        assert_eq!(ask(&cloud, "PATCH", path, json!({})).await.status, 204, "{path}: nothing to change");
        assert_eq!(get(&cloud, path).await.json(), before, "{path}");
    }
}
