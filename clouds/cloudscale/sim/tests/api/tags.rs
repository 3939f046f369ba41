//! The tag filter, on every listing.

use serde_json::json;

use crate::fixture::{ask, balancer_and_pool, cloud, get, member_body};

#[tokio::test(start_paused = true)]
async fn every_listing_can_be_narrowed_down() {
    let cloud = cloud(|_| {});
    let server = cloud.add_server("a", "rma1");
    cloud.add_floating_ip("192.0.2.7/32".parse().unwrap(), None);
    let (_, pool) = balancer_and_pool(&cloud).await;
    let members = format!("/v1/load-balancers/pools/{pool}/members");
    ask(&cloud, "POST", &members, member_body(&cloud, &server.uuid, 1)).await;
    let listener = json!({"name": "tcp/80", "pool": pool, "protocol": "tcp", "protocol_port": 80});
    ask(&cloud, "POST", "/v1/load-balancers/listeners", listener).await;
    ask(&cloud, "POST", "/v1/load-balancers/health-monitors", json!({"pool": pool, "type": "tcp"})).await;
    let paths = [
        "/v1/servers",
        "/v1/load-balancers",
        "/v1/load-balancers/pools",
        &members,
        "/v1/load-balancers/listeners",
        "/v1/load-balancers/health-monitors",
        "/v1/floating-ips",
        "/v1/networks",
        "/v1/subnets",
    ];
    for path in paths {
        let all = get(&cloud, path).await.json();
        let first = all[0]["href"].as_str().unwrap().strip_prefix("https://api.example").unwrap().to_owned();
        let tags = json!({"team": "a", "stage": "test"});
        assert_eq!(ask(&cloud, "PATCH", &first, json!({"tags": tags})).await.status, 204, "{first}");
        let table = [
            ("CS-115 this value", "tag:team=a", 1),
            ("CS-115 another value", "tag:team=b", 0),
            ("CS-115 any value", "tag:team", 1),
            ("CS-115 an encoded colon", "tag%3Ateam=a", 1),
            ("CS-115 both must fit", "tag:team=a&tag:stage=prod", 0),
            ("CS-115 both fit", "tag:team=a&tag:stage", 1),
        ];
        for (case, query, want) in table {
            let found = get(&cloud, &format!("{path}?{query}")).await.json();
            assert_eq!(found.as_array().unwrap().len(), want, "{case}: {path}");
        }
        ask(&cloud, "PATCH", &first, json!({"tags": {"other": "x"}})).await;
        let found = get(&cloud, &format!("{path}?tag:team")).await.json();
        assert_eq!(found, json!([]), "{path}: a PATCH replaces all tags");
    }
}
