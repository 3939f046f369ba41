//! Load balancers: 6.7 of the contract, and rules 8 to 12 of the simulator.

use serde_json::{Value, json};

use crate::fixture::{ask, cloud, get, pass};

#[tokio::test(start_paused = true)]
async fn what_is_wrong_with_a_balancer_is_told_by_field() {
    let cloud = cloud(|_| {});
    let (here, there) = (cloud.add_server("a", "bne").id, cloud.add_server("b", "syd").id);
    let both = json!([{"entry_protocol": "http"}, {"entry_protocol": "https"}]);
    let table = [
        (json!({}), vec!["name"]),
        (json!({"name": ""}), vec!["name"]),
        (json!({"name": null}), vec!["name"]),
        (json!({"name": 7}), vec!["name"]),
        (json!({"name": "a_b"}), vec!["name"]),
        (json!({"name": "a b"}), vec!["name"]),
        (json!({"name": "x", "forwarding_rules": [{"entry_protocol": "tcp"}]}), vec!["entry_protocol"]),
        (json!({"name": "x", "forwarding_rules": [{"entry_protocol": 80}]}), vec!["entry_protocol"]),
        (json!({"name": "x", "forwarding_rules": [{}]}), vec!["entry_protocol"]),
        (json!({"name": "x", "forwarding_rules": "http"}), vec!["forwarding_rules"]),
        (json!({"name": "x", "health_check": {"protocol": "tcp"}}), vec!["protocol"]),
        (json!({"name": "x", "health_check": {"path": "health"}}), vec!["path"]),
        (json!({"name": "x", "health_check": {"path": "/a b"}}), vec!["path"]),
        (json!({"name": "x", "health_check": {"path": 7}}), vec!["path"]),
        (json!({"name": "x", "health_check": []}), vec!["health_check"]),
        (
            json!({"name": "x", "forwarding_rules": both, "health_check": {"protocol": "http"}}),
            vec!["protocol"],
        ),
        (json!({"name": "x", "forwarding_rules": both, "health_check": {}}), vec!["protocol"]),
        (json!({"name": "x", "server_ids": [here, 99]}), vec!["server_ids"]),
        (json!({"name": "x", "server_ids": ["1"]}), vec!["server_ids"]),
        (json!({"name": "x", "server_ids": [here, there], "region": "bne"}), vec!["server_ids"]),
        (json!({"name": "x", "region": "default"}), vec!["region"]),
        (json!({"name": "a_b", "region": "moon", "server_ids": [99]}), vec!["name", "region", "server_ids"]),
    ];
    for (body, want) in table {
        let answer = ask(&cloud, "POST", "/v2/load_balancers", body.clone()).await;
        assert_eq!(
            (answer.status, answer.mistakes()),
            (400, want.iter().map(ToString::to_string).collect()),
            "{body}"
        );
        assert_eq!(answer.json()["title"], "One or more validation errors occurred.", "BL-142 {body}");
    }
    assert!(cloud.balancers().is_empty());
    for body in [Value::Null, json!([]), json!("x")] {
        assert_eq!(ask(&cloud, "POST", "/v2/load_balancers", body).await.status, 400);
    }
}

#[tokio::test(start_paused = true)]
async fn what_is_left_out_has_a_default() {
    let cloud = cloud(|_| {});
    let (http, https) = (json!({"entry_protocol": "http"}), json!({"entry_protocol": "https"}));
    let table = [
        (json!({"name": "x"}), json!([http]), json!({"protocol": "http", "path": "/"})),
        (
            json!({"name": "x", "forwarding_rules": null, "health_check": null, "server_ids": null, "region": null}),
            json!([http]),
            json!({"protocol": "http", "path": "/"}),
        ),
        (
            json!({"name": "x", "forwarding_rules": [https]}),
            json!([https]),
            json!({"protocol": "https", "path": "/"}),
        ),
        (
            json!({"name": "x", "forwarding_rules": [https, http, https], "unknown": 1}),
            json!([https, http]),
            json!({"protocol": "both", "path": "/"}),
        ),
        (
            json!({"name": "x", "forwarding_rules": [https], "health_check": {"path": "/up"}}),
            json!([https]),
            json!({"protocol": "http", "path": "/up"}),
        ),
    ];
    for (body, rules, check) in table {
        let made = ask(&cloud, "POST", "/v2/load_balancers", body.clone()).await;
        assert_eq!(made.status, 200, "{body}: {made:?}");
        let made = made.json()["load_balancer"].clone();
        let got = (&made["forwarding_rules"], &made["health_check"], &made["server_ids"], &made["region"]);
        assert_eq!(got, (&rules, &check, &json!([]), &Value::Null), "{body}");
    }
    assert_eq!(cloud.balancers().len(), 5, "names are not unique");
}

#[tokio::test(start_paused = true)]
async fn a_balancer_is_new_before_it_is_active() {
    let cloud = cloud(|_| {});
    let server = cloud.add_server("a", "bne").id;
    let body = json!({"name": "web", "region": "bne", "server_ids": [server, server]});
    let made = ask(&cloud, "POST", "/v2/load_balancers", body).await.json();
    let balancer = &made["load_balancer"];
    assert_eq!((&balancer["status"], &balancer["server_ids"]), (&json!("new"), &json!([server])));
    assert_eq!(balancer["region"]["slug"], "bne");
    let link = &made["links"]["actions"][0];
    assert_eq!(link["rel"], "create_load_balancer");
    let href = link["href"].as_str().unwrap().strip_prefix("https://api.example").unwrap().to_owned();
    let action = get(&cloud, &href).await.json()["action"].clone();
    assert_eq!((&action["status"], &action["completed_at"]), (&json!("in-progress"), &Value::Null));
    pass(2).await;
    let action = get(&cloud, &href).await.json()["action"].clone();
    assert_eq!(
        (&action["status"], &action["completed_at"]),
        (&json!("completed"), &json!("2023-11-14T22:13:22+00:00"))
    );
    let path = format!("/v2/load_balancers/{}", balancer["id"]);
    let now = get(&cloud, &path).await.json()["load_balancer"].clone();
    assert_eq!((&now["status"], &now["ip"]), (&json!("active"), &balancer["ip"]));
}
