//! The life of load balancers: rules 10 to 12 of the simulator, with their switches.

use std::collections::BTreeSet;

use binarylane_sim::{Cloud, Question};
use serde_json::{Value, json};

use crate::fixture::{ask, cloud, get, pass, secs};

async fn create(cloud: &Cloud, body: Value) -> (i64, Value) {
    let made = ask(cloud, "POST", "/v2/load_balancers", body).await.json();
    (made["load_balancer"]["id"].as_i64().unwrap(), made)
}

async fn read(cloud: &Cloud, id: i64) -> Value {
    get(cloud, &format!("/v2/load_balancers/{id}")).await.json()["load_balancer"].clone()
}

#[tokio::test(start_paused = true)]
async fn a_build_can_end_badly_late_or_not_at_all() {
    let cloud = cloud(|_| {});
    cloud.switch(|switches| switches.ip_when_active = true);
    let (id, made) = create(&cloud, json!({"name": "a"})).await;
    assert_eq!(made["load_balancer"]["ip"], "", "BL-71");
    pass(2).await;
    assert_ne!(read(&cloud, id).await["ip"], "", "BL-71");

    cloud.switch(|switches| switches.build_fails = true);
    let (id, made) = create(&cloud, json!({"name": "b"})).await;
    pass(2).await;
    assert_eq!(read(&cloud, id).await["status"], "errored", "BL-72");
    let action = format!("/v2/actions/{}", made["links"]["actions"][0]["id"]);
    assert_eq!(get(&cloud, &action).await.json()["action"]["status"], "errored", "BL-72");

    cloud.switch(|switches| (switches.build_fails, switches.blocking_invoice) = (false, Some(17)));
    let (id, made) = create(&cloud, json!({"name": "c"})).await;
    pass(600).await;
    let action = format!("/v2/actions/{}", made["links"]["actions"][0]["id"]);
    let shown = get(&cloud, &action).await.json()["action"].clone();
    assert_eq!(
        (&shown["status"], &shown["blocking_invoice_id"]),
        (&json!("in-progress"), &json!(17)),
        "BL-73"
    );
    assert_eq!(read(&cloud, id).await["status"], "new", "BL-73");
    cloud.unblock();
    assert_eq!(read(&cloud, id).await["status"], "active", "BL-73");

    cloud.switch(|switches| {
        (switches.blocking_invoice, switches.question) = (None, Some(Question::AllowUncleanPowerOff));
    });
    for (proceed, status) in [(true, "active"), (false, "errored")] {
        let (id, made) = create(&cloud, json!({"name": "d"})).await;
        let path = format!("/v2/actions/{}/proceed", made["links"]["actions"][0]["id"]);
        assert_eq!(ask(&cloud, "POST", &path, json!({})).await.mistakes(), ["proceed"]);
        assert_eq!(ask(&cloud, "POST", &path, json!({"proceed": proceed})).await.status, 204);
        pass(2).await;
        assert_eq!(read(&cloud, id).await["status"], status, "{proceed}");
    }
}

#[tokio::test(start_paused = true)]
async fn lists_may_be_late() {
    let cloud = cloud(|_| {});
    cloud.switch(|switches| {
        (switches.visible_after, switches.listed_after_delete) = (secs(70), secs(5));
    });
    let (id, _) = create(&cloud, json!({"name": "web"})).await;
    let total = async || get(&cloud, "/v2/load_balancers").await.json()["meta"]["total"].clone();
    let path = format!("/v2/load_balancers/{id}");
    assert_eq!((total().await, get(&cloud, &path).await.status), (json!(0), 404), "BL-141 not yet");
    pass(70).await;
    assert_eq!((total().await, get(&cloud, &path).await.status), (json!(1), 200), "BL-141 now");
    assert_eq!(ask(&cloud, "DELETE", &path, Value::Null).await.status, 204);
    assert_eq!((total().await, get(&cloud, &path).await.status), (json!(1), 404), "still listed");
    assert_eq!(ask(&cloud, "DELETE", &path, Value::Null).await.status, 404, "BL-107");
    pass(5).await;
    assert_eq!(total().await, json!(0));
}

#[tokio::test(start_paused = true)]
async fn a_put_replaces_everything() {
    let cloud = cloud(|settings| settings.instances = 2);
    let ids: Vec<_> = cloud.servers().iter().map(|server| server.id).collect();
    let rules = json!([{"entry_protocol": "https"}]);
    let check = json!({"protocol": "https", "path": "/up"});
    let body = json!({"name": "web", "forwarding_rules": rules, "health_check": check, "server_ids": ids, "region": "bne"});
    let (id, _) = create(&cloud, body).await;
    let path = format!("/v2/load_balancers/{id}");
    let changed = ask(&cloud, "PUT", &path, json!({"name": "web2", "region": "syd"})).await.json();
    let shown = &changed["load_balancer"];
    assert_eq!(
        (&shown["server_ids"], &shown["region"]["slug"]),
        (&json!([]), &json!("bne")),
        "the region stays"
    );
    assert_eq!(shown["forwarding_rules"], json!([{"entry_protocol": "http"}]));
    assert_eq!(shown["health_check"], json!({"protocol": "http", "path": "/"}));
    assert_eq!(changed["links"]["actions"][0]["rel"], "update_load_balancer");
    assert_eq!(cloud.emptied_pools().len(), 1, "BL-89 an emptied pool is remembered");
    cloud.switch(|switches| switches.no_update_link = true);
    let again = ask(&cloud, "PUT", &path, json!({"name": "web2"})).await.json();
    assert_eq!(again["links"], Value::Null, "BL-103");
    let answer = ask(&cloud, "PUT", &path, json!({"server_ids": [1]})).await;
    assert_eq!((answer.status, answer.mistakes()), (400, vec!["name".to_owned(), "server_ids".to_owned()]));
    assert_eq!(ask(&cloud, "PUT", "/v2/load_balancers/1", json!({"name": "x"})).await.status, 404);
}

#[tokio::test(start_paused = true)]
async fn servers_and_rules_are_changed_one_by_one() {
    let cloud = cloud(|settings| settings.instances = 3);
    let ids: Vec<_> = cloud.servers().iter().map(|server| server.id).collect();
    let elsewhere = cloud.add_server("far", "syd").id;
    let id = cloud.add_balancer("web", Some("bne"), &ids[..1]).unwrap();
    let change = async |method: &str, what: &str, body: Value| {
        ask(&cloud, method, &format!("/v2/load_balancers/{id}/{what}"), body).await
    };
    let pool = || cloud.balancer(id).unwrap().server_ids;
    assert_eq!(change("POST", "servers", json!({"server_ids": ids})).await.status, 204, "BL-87");
    assert_eq!(pool(), ids, "BL-87 one that is there already stays");
    assert_eq!(change("DELETE", "servers", json!({"server_ids": [ids[0], 99]})).await.status, 204, "BL-88");
    assert_eq!(pool(), ids[1..], "BL-88");
    let table = [
        (json!({"server_ids": [ids[0], 99]}), "server_ids"),
        (json!({"server_ids": [elsewhere]}), "server_ids"),
        (json!({}), "server_ids"),
    ];
    for (body, field) in table {
        let answer = change("POST", "servers", body.clone()).await;
        assert_eq!((answer.status, answer.mistakes()), (400, vec![field.to_owned()]), "BL-101 {body}");
    }
    assert_eq!(pool(), ids[1..], "BL-101 nothing was added");
    cloud.switch(|switches| (switches.strict_members, switches.any_region) = (true, true));
    assert_eq!(change("POST", "servers", json!({"server_ids": [ids[1]]})).await.status, 400);
    assert_eq!(change("DELETE", "servers", json!({"server_ids": [ids[0]]})).await.status, 400);
    assert_eq!(change("POST", "servers", json!({"server_ids": [elsewhere]})).await.status, 204);
    let all: BTreeSet<_> = pool().into_iter().collect();
    assert_eq!(
        change("DELETE", "servers", json!({"server_ids": all})).await.status,
        204,
        "also the last one"
    );

    let (http, https) = (json!([{"entry_protocol": "http"}]), json!([{"entry_protocol": "https"}]));
    let answer = change("POST", "forwarding_rules", json!({"forwarding_rules": https})).await;
    assert_eq!(
        (answer.status, answer.mistakes()),
        (400, vec!["protocol".to_owned()]),
        "the check is http only"
    );
    cloud.edit(|all| all.balancers.get_mut(&id).unwrap().health_check.protocol = "both".to_owned());
    assert_eq!(change("POST", "forwarding_rules", json!({"forwarding_rules": https})).await.status, 204);
    assert_eq!(cloud.balancer(id).unwrap().rules, ["http", "https"]);
    assert_eq!(change("DELETE", "forwarding_rules", json!({"forwarding_rules": http})).await.status, 204);
    assert_eq!(change("DELETE", "forwarding_rules", json!({"forwarding_rules": https})).await.status, 204);
    assert_eq!(cloud.balancer(id).unwrap().rules, Vec::<String>::new());
}
