//! Load balancers: built, changed, deleted, and what their bodies may say.

use serde_json::{Value, json};

use crate::fixture::{
    ask, balancer_body, cloud, delete, get, pass, post, secs, seed_balancer, seed_cloud_ip,
};

#[tokio::test(start_paused = true)]
async fn a_balancer_is_built_and_shown() {
    let cloud = cloud(|settings| settings.delays.build = secs(10));
    let [a, b] = ["a", "b"].map(|name| cloud.add_server(name, "gb1-a").id);
    let made = post(&cloud, "/1.0/load_balancers", balancer_body(&[&b, &a])).await;
    assert_eq!((made.status, &made.json()["status"]), (202, &json!("creating")));
    let path = format!("/1.0/load_balancers/{}", made.id());
    pass(secs(9)).await;
    assert_eq!(get(&cloud, &path).await.json()["status"], json!("creating"));
    pass(secs(1)).await;
    let shown = get(&cloud, &path).await.json();
    assert_eq!(shown["status"], json!("active"));
    let defaults = json!({
        "policy": "least-connections", "buffer_size": 4096, "https_redirect": false, "ssl_minimum_version": "TLSv1.2",
        "locked": false, "certificate": null, "deleted_at": null, "cloud_ips": [],
        "acme": {"certificate": null, "domains": []},
        "listeners": [{"protocol": "tcp", "in": 80, "out": 30_080, "timeout": 50_000, "proxy_protocol": null}],
        "healthcheck": {"type": "tcp", "port": 30_080, "request": "/", "interval": 5_000, "timeout": 5_000,
            "threshold_up": 3, "threshold_down": 3},
    });
    for (field, want) in defaults.as_object().unwrap() {
        assert_eq!(&shown[field], want, "{field}");
    }
    let nodes: Vec<_> = shown["nodes"].as_array().unwrap().iter().map(|node| node["id"].clone()).collect();
    assert_eq!(nodes, [json!(b), json!(a)], "in the order in which they were written");
    assert_eq!(shown["nodes"][0]["hostname"], json!(b));
    let listed = get(&cloud, "/1.0/load_balancers").await.json()[0].clone();
    for field in ["acme", "certificate", "ssl_minimum_version"] {
        assert!(listed.get(field).is_none() && shown.get(field).is_some(), "{field} is in the detail only");
    }
    for field in ["listeners", "healthcheck", "nodes", "cloud_ips", "name", "status"] {
        assert_eq!(listed[field], shown[field], "{field}");
    }
    cloud.change_settings(|settings| settings.acme_in_lists = true);
    assert_eq!(get(&cloud, "/1.0/load_balancers").await.json()[0], shown);
}

#[tokio::test(start_paused = true)]
async fn a_put_replaces_what_it_names() {
    let cloud = cloud(|_| {});
    let [a, b] = ["a", "b"].map(|name| cloud.add_server(name, "gb1-a").id);
    let id = seed_balancer(&cloud, &[&a]);
    let path = format!("/1.0/load_balancers/{id}");
    let before = get(&cloud, &path).await.json();
    let changes = [
        ("name", json!("other"), json!("other")),
        ("policy", json!("round-robin"), json!("round-robin")),
        ("https_redirect", json!(true), json!(true)),
        (
            "listeners",
            json!([{"protocol": "http", "in": 8080, "out": 31000, "timeout": 60000, "proxy_protocol": "v2"}]),
            json!([{"protocol": "http", "in": 8080, "out": 31000, "timeout": 60000, "proxy_protocol": "v2"}]),
        ),
        (
            "healthcheck",
            json!({"type": "http", "port": 31000, "request": "/healthz", "threshold_up": 4}),
            json!({"type": "http", "port": 31000, "request": "/healthz", "interval": 5000, "timeout": 5000,
                "threshold_up": 4, "threshold_down": 3}),
        ),
    ];
    let mut want = before.clone();
    for (field, given, shown) in changes {
        let answer = ask(&cloud, "PUT", &path, json!({field: given})).await;
        assert_eq!(answer.status, 202, "{field}: {answer:?}");
        want[field] = shown;
        assert_eq!(answer.json(), want, "{field}, and nothing else");
    }
    let nodes = ask(&cloud, "PUT", &path, json!({"nodes": [{"node": b}]})).await.json();
    assert_eq!((nodes["nodes"].as_array().unwrap().len(), &nodes["nodes"][0]["id"]), (1, &json!(b)));
    let emptied = ask(&cloud, "PUT", &path, json!({"nodes": []})).await;
    assert_eq!((emptied.status, &emptied.json()["nodes"]), (202, &json!([])));
    assert_eq!((cloud.nodes_changes().len(), cloud.emptied_balancers().len()), (2, 1));
    assert_eq!(ask(&cloud, "PUT", "/1.0/load_balancers/lba-none0", json!({})).await.status, 404);
}

#[tokio::test(start_paused = true)]
async fn bodies_are_checked_and_all_mistakes_told() {
    let cloud = cloud(|settings| settings.instances = 1);
    let listener = |field: &str, value: Value| {
        let mut listener = json!({"protocol": "tcp", "in": 80, "out": 30_080});
        listener[field] = value;
        json!({"listeners": [listener]})
    };
    let check = |field: &str, value: Value| {
        let mut check = json!({"type": "http", "port": 80});
        check[field] = value;
        json!({"healthcheck": check})
    };
    let table = [
        (json!({"listeners": null}), "listeners can't be blank"),
        (json!({"listeners": []}), "listeners can't be empty"),
        (json!({"listeners": [1]}), "listener 1 must be an object"),
        (json!({"healthcheck": null}), "healthcheck can't be blank"),
        (json!({"healthcheck": []}), "healthcheck must be an object"),
        (listener("protocol", json!("gopher")), "listener 1 protocol must be one of"),
        (listener("protocol", json!("https")), "need domains or a certificate"),
        (listener("in", json!(0)), "listener 1 in must be"),
        (listener("out", Value::Null), "listener 1 out can't be blank"),
        (listener("timeout", json!(4_999)), "listener 1 timeout must be"),
        (listener("timeout", json!(86_400_001)), "listener 1 timeout must be"),
        (listener("proxy_protocol", json!("v1-ssl")), "listener 1 proxy_protocol must be"),
        (
            json!({"listeners": [{"protocol": "tcp", "in": 1, "out": 2}, {"protocol": "http", "in": 1, "out": 3}]}),
            "port 1 twice",
        ),
        (check("type", json!("https")), "healthcheck type must be"),
        (check("port", json!(65_536)), "healthcheck port must be"),
        (check("interval", json!("x")), "healthcheck interval must be"),
        (json!({"policy": "magic"}), "policy must be"),
        (json!({"nodes": [{"node": "srv-none0"}]}), "node srv-none0 does not exist"),
        (json!({"nodes": ["srv-none0"]}), "nodes must be a list"),
        (json!({"domains": [""]}), "domains must be"),
        (json!({"https_redirect": "yes"}), "https_redirect must be"),
        (json!({"certificate_pem": "x"}), "go together"),
        (json!({"name": "n".repeat(256)}), "name is too long"),
    ];
    for (changes, why) in table {
        let mut body = balancer_body(&[]);
        body.as_object_mut().unwrap().extend(changes.as_object().unwrap().clone());
        let answer = post(&cloud, "/1.0/load_balancers", body).await;
        assert_eq!(
            (answer.status, &answer.json()["error_name"]),
            (422, &json!("unprocessable_entity")),
            "{changes}"
        );
        assert!(answer.errors().contains(why), "{changes}: {answer:?}");
    }
    let several = post(&cloud, "/1.0/load_balancers", json!({"policy": "x", "nodes": 3})).await;
    assert!(several.json()["errors"].as_array().unwrap().len() >= 4, "{several:?}");
    for (body, status) in [("{", 400), ("[]", 400)] {
        let answer = cloud.back_door("POST", "/1.0/load_balancers", &json!(body));
        assert_eq!(answer.unwrap_err().0, status, "{body}");
    }
    assert!(cloud.balancers().is_empty());
    let body = json!({"certificate_pem": "pem", "certificate_private_key": "key",
        "listeners": [{"protocol": "https", "in": 443, "out": 1}], "healthcheck": {"type": "tcp", "port": 1}});
    let own = post(&cloud, "/1.0/load_balancers", body).await;
    assert_eq!(own.status, 202, "a certificate of one's own will do: {own:?}");
    assert!(own.json()["certificate"].is_object());
}

#[tokio::test(start_paused = true)]
async fn deletion_takes_its_time_and_unmaps() {
    let cloud = cloud(|settings| settings.delays.removal = secs(30));
    let id = seed_balancer(&cloud, &[]);
    let ip = seed_cloud_ip(&cloud, "n");
    post(&cloud, &format!("/1.0/cloud_ips/{ip}/map"), json!({"destination": id})).await;
    let path = format!("/1.0/load_balancers/{id}");
    assert_eq!(
        ask(&cloud, "PUT", &format!("{path}/lock_resource"), Value::Null).await.json()["locked"],
        json!(true)
    );
    assert_eq!(delete(&cloud, &path).await.status, 409, "locked");
    ask(&cloud, "PUT", &format!("{path}/unlock_resource"), Value::Null).await;
    let answer = delete(&cloud, &path).await;
    assert_eq!((answer.status, &answer.json()["status"]), (202, &json!("deleting")));
    assert_eq!(delete(&cloud, &path).await.status, 409, "on its way");
    assert_eq!(ask(&cloud, "PUT", &path, json!({"name": "x"})).await.status, 409, "not changed any more");
    pass(secs(29)).await;
    assert_eq!(get(&cloud, &path).await.json()["cloud_ips"][0]["id"], json!(ip));
    assert_eq!(delete(&cloud, &format!("/1.0/cloud_ips/{ip}")).await.status, 409);
    pass(secs(1)).await;
    let gone = get(&cloud, &path).await.json();
    assert_eq!((&gone["status"], &gone["cloud_ips"]), (&json!("deleted"), &json!([])));
    assert_eq!(gone["deleted_at"], json!("2023-11-14T22:13:50Z"));
    assert_eq!(delete(&cloud, &format!("/1.0/cloud_ips/{ip}")).await.status, 200);
    assert_eq!(
        get(&cloud, "/1.0/load_balancers").await.json()[0]["status"],
        json!("deleted"),
        "listed for a while"
    );
    pass(secs(3_600)).await;
    assert_eq!((get(&cloud, &path).await.status, cloud.balancers().len()), (404, 0));
}

#[tokio::test(start_paused = true)]
async fn nodes_and_listeners_can_be_changed_one_by_one() {
    let cloud = cloud(|_| {});
    let [a, b] = ["a", "b"].map(|name| cloud.add_server(name, "gb1-a").id);
    let id = seed_balancer(&cloud, &[&a]);
    let path = format!("/1.0/load_balancers/{id}");
    let (one, two) = (json!([{"node": a}]), json!([{"node": b}]));
    let table = [
        ("add_nodes", two.clone(), 202, 2),
        ("add_nodes", json!({"nodes": two}), 202, 2),
        ("remove_nodes", json!({"nodes": one}), 202, 1),
        ("remove_nodes", two, 422, 1),
        ("add_nodes", json!([{"node": "srv-none0"}]), 422, 1),
        ("add_nodes", Value::Null, 422, 1),
    ];
    for (word, body, status, count) in table {
        let answer = post(&cloud, &format!("{path}/{word}"), body.clone()).await;
        assert_eq!(answer.status, status, "{word} {body}: {answer:?}");
        assert_eq!(cloud.balancers()[0].nodes.len(), count, "{word} {body}");
    }
    let other = json!({"protocol": "http", "in": 8080, "out": 30_081});
    let table = [
        ("add_listeners", json!([other]), 202, 2),
        ("add_listeners", json!({"listeners": [other]}), 422, 2),
        ("remove_listeners", json!({"listeners": [other]}), 202, 1),
        ("remove_listeners", json!([{"protocol": "tcp", "in": 80, "out": 30_080}]), 422, 1),
        ("add_listeners", json!({}), 422, 1),
    ];
    for (word, body, status, count) in table {
        let answer = post(&cloud, &format!("{path}/{word}"), body.clone()).await;
        assert_eq!(answer.status, status, "{word} {body}: {answer:?}");
        assert_eq!(cloud.balancers()[0].listeners.len(), count, "{word} {body}");
    }
}

#[tokio::test(start_paused = true)]
async fn builds_can_fail_and_the_account_has_a_limit() {
    let cloud = cloud(|settings| {
        settings.builds_end_in = "failed".to_owned();
        settings.limits.balancers = 1;
    });
    let id = post(&cloud, "/1.0/load_balancers", balancer_body(&[])).await.id();
    let path = format!("/1.0/load_balancers/{id}");
    assert_eq!(get(&cloud, &path).await.json()["status"], json!("failed"));
    assert_eq!(ask(&cloud, "PUT", &path, json!({"name": "x"})).await.status, 409);
    let refused = post(&cloud, "/1.0/load_balancers", balancer_body(&[])).await;
    assert_eq!((refused.status, &refused.json()["error_name"]), (403, &json!("account_limit_reached")));
    assert_eq!(delete(&cloud, &path).await.status, 202, "a failed one can be deleted");
    assert_eq!(
        post(&cloud, "/1.0/load_balancers", balancer_body(&[])).await.status,
        202,
        "deleted ones do not count"
    );
}
