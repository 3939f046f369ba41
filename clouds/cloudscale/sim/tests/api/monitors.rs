//! Health monitors: kinds, pace and the HTTP options.

use serde_json::{Value, json};

use crate::fixture::{ask, balancer_and_pool, cloud, get};

const PATH: &str = "/v1/load-balancers/health-monitors";

#[tokio::test(start_paused = true)]
async fn a_new_monitor_is_validated() {
    let cloud = cloud(|_| {});
    let (_, pool) = balancer_and_pool(&cloud).await;
    let http = |options: Value| json!({"type": "http", "http": options});
    let table = [
        ("no type", json!({}), 400, "This field is required"),
        ("unknown type", json!({"type": "telnet"}), 400, "Expect one of"),
        ("unknown pool", json!({"pool": "x", "type": "tcp"}), 400, "does not exist"),
        ("delay 0", json!({"type": "tcp", "delay_s": 0}), 400, "delay_s"),
        ("down threshold 0", json!({"type": "tcp", "down_threshold": 0}), 400, "down_threshold"),
        ("timeout above delay", json!({"type": "tcp", "delay_s": 2, "timeout_s": 3}), 400, "timeout_s"),
        ("timeout equal to delay", json!({"type": "tcp", "delay_s": 2, "timeout_s": 2}), 201, ""),
        ("udp-connect with the defaults", json!({"type": "udp-connect"}), 400, "delay_s"),
        ("udp-connect slowly enough", json!({"type": "udp-connect", "delay_s": 3, "timeout_s": 2}), 201, ""),
        ("no HTTP, empty options", json!({"type": "tcp", "http": {}}), 201, r#""http":null"#),
        ("no HTTP, null options", json!({"type": "ping", "http": null}), 201, r#""http":null"#),
        ("no HTTP, options", json!({"type": "tls-hello", "http": {"method": "GET"}}), 400, "http"),
        ("HTTP, nothing said", json!({"type": "https"}), 201, r#""version":"1.1""#),
        ("HTTP, empty options", http(json!({})), 201, r#""url_path":"/""#),
        ("unknown method", http(json!({"method": "BREW"})), 400, "Expect one of"),
        ("a path without a slash", http(json!({"url_path": "livez"})), 400, "slash"),
        ("unknown version", http(json!({"version": "2"})), 400, "version"),
        (
            "a host for 1.0",
            http(json!({"host": "a", "version": "1.0"})),
            400,
            "The host argument can not be used with HTTP version 1.0",
        ),
        ("no host for 1.0", http(json!({"host": "", "version": "1.0"})), 201, r#""host":null"#),
        ("a host for 1.1", http(json!({"host": "a"})), 201, r#""host":"a""#),
        ("codes", http(json!({"expected_codes": ["204", "200"]})), 201, r#"["204","200"]"#),
        ("one range of codes", http(json!({"expected_codes": ["200-204"]})), 201, r#"["200-204"]"#),
        ("a range among codes", http(json!({"expected_codes": ["200-204", "301"]})), 400, "expected_codes"),
        ("no codes", http(json!({"expected_codes": []})), 400, "expected_codes"),
        ("codes that are numbers", http(json!({"expected_codes": [200]})), 400, "expected_codes"),
    ];
    for (case, mut body, status, fragment) in table {
        if body.get("pool").is_none() {
            body["pool"] = json!(pool);
        }
        let answer = ask(&cloud, "POST", PATH, body).await;
        assert_eq!(answer.status, status, "{case}: {answer:?}");
        assert!(answer.text.contains(fragment), "{case}: {answer:?}");
        cloud.edit(|resources| resources.monitors.clear());
    }
}

#[tokio::test(start_paused = true)]
async fn a_pool_has_one_monitor_with_sensible_defaults() {
    let cloud = cloud(|_| {});
    let (_, pool) = balancer_and_pool(&cloud).await;
    let made = ask(&cloud, "POST", PATH, json!({"pool": pool, "type": "http"})).await.json();
    let numbers = ["delay_s", "timeout_s", "up_threshold", "down_threshold"].map(|key| made[key].clone());
    assert_eq!(numbers, [2, 1, 2, 3]);
    let http =
        json!({"expected_codes": ["200"], "method": "GET", "url_path": "/", "version": "1.1", "host": null});
    assert_eq!(made["http"], http);
    let second = ask(&cloud, "POST", PATH, json!({"pool": pool, "type": "tcp"})).await;
    assert!(second.status == 400 && second.text.contains("already"), "{second:?}");
}

#[tokio::test(start_paused = true)]
async fn only_some_attributes_can_be_changed() {
    let cloud = cloud(|_| {});
    let (_, pool) = balancer_and_pool(&cloud).await;
    let made = ask(&cloud, "POST", PATH, json!({"pool": pool, "type": "http"})).await;
    let path = format!("{PATH}/{}", made.uuid());
    let table = [
        ("timeout above delay", json!({"timeout_s": 5}), 400),
        ("delay first", json!({"delay_s": 10}), 204),
        ("then timeout", json!({"timeout_s": 5}), 204),
        ("up", json!({"up_threshold": 4}), 204),
        ("down", json!({"down_threshold": 5}), 204),
        ("method", json!({"http": {"method": "HEAD"}}), 204),
        ("path", json!({"http": {"url_path": "/x"}}), 204),
        ("codes", json!({"http": {"expected_codes": ["200-299"]}}), 204),
        ("host", json!({"http": {"host": "h"}}), 204),
        ("two at once", json!({"delay_s": 11, "timeout_s": 6}), 400),
        ("two options at once", json!({"http": {"method": "GET", "host": "g"}}), 400),
        ("version", json!({"http": {"version": "1.0"}}), 400),
        ("type", json!({"type": "tcp"}), 400),
        ("pool", json!({"pool": pool}), 400),
        ("nothing", json!({}), 204),
        ("no option", json!({"http": {}}), 204),
        ("a bad number", json!({"delay_s": 0}), 400),
    ];
    for (case, body, status) in table {
        assert_eq!(ask(&cloud, "PATCH", &path, body).await.status, status, "{case}");
    }
    let now = get(&cloud, &path).await.json();
    let numbers = ["delay_s", "timeout_s", "up_threshold", "down_threshold"].map(|key| now[key].clone());
    assert_eq!(numbers, [10, 5, 4, 5]);
    let http = json!({"expected_codes": ["200-299"], "method": "HEAD", "url_path": "/x", "version": "1.1", "host": "h"});
    assert_eq!(now["http"], http, "what a PATCH does not name stays");
    assert_eq!(ask(&cloud, "PATCH", &path, json!({"http": {"host": ""}})).await.status, 204);
    assert_eq!(get(&cloud, &path).await.json()["http"]["host"], Value::Null);
}
