//! Server groups: members, deletion, the default one.

use serde_json::{Value, json};

use crate::fixture::{ask, cloud, delete, get, post};

#[tokio::test(start_paused = true)]
async fn members_come_and_go() {
    let cloud = cloud(|_| {});
    let [a, b] = ["a", "b"].map(|name| cloud.add_server(name, "gb1-a").id);
    let made = post(&cloud, "/1.0/server_groups", json!({"name": "web.shop.prod"})).await;
    assert_eq!(
        (made.status, &made.json()["name"], &made.json()["servers"]),
        (202, &json!("web.shop.prod"), &json!([]))
    );
    let path = format!("/1.0/server_groups/{}", made.id());
    let members =
        |ids: &[&String]| json!({"servers": ids.iter().map(|id| json!({"server": id})).collect::<Vec<_>>()});
    let table = [
        ("add_servers", members(&[&a]), vec![&a]),
        ("add_servers", members(&[&b, &a]), vec![&a, &b]),
        ("remove_servers", members(&[&a]), vec![&b]),
        ("remove_servers", members(&[&a]), vec![&b]),
        ("remove_servers", members(&[&b]), vec![]),
    ];
    for (word, body, want) in table {
        let answer = post(&cloud, &format!("{path}/{word}"), body.clone()).await;
        assert_eq!(answer.status, 202, "{word} {body}: {answer:?}");
        let shown = answer.json();
        let ids: Vec<_> =
            shown["servers"].as_array().unwrap().iter().map(|s| s["id"].as_str().unwrap()).collect();
        assert_eq!(ids, want, "{word} {body}");
        assert_eq!(shown, get(&cloud, &path).await.json(), "{word} {body}");
    }
    for body in
        [members(&[&"srv-none0".to_owned()]), json!({}), json!({"servers": "x"}), json!({"servers": [{}]})]
    {
        let answer = post(&cloud, &format!("{path}/add_servers"), body.clone()).await;
        assert_eq!(
            (answer.status, &answer.json()["error_name"]),
            (422, &json!("unprocessable_entity")),
            "{body}"
        );
    }
    cloud.delete_server(&a);
    assert_eq!(post(&cloud, &format!("{path}/add_servers"), members(&[&a])).await.status, 422, "it is gone");
    assert_eq!(post(&cloud, "/1.0/server_groups/grp-none0/add_servers", members(&[&b])).await.status, 404);
}

#[tokio::test(start_paused = true)]
async fn a_group_goes_when_it_is_empty() {
    let cloud = cloud(|settings| settings.instances = 1);
    let server = cloud.servers()[0].id.clone();
    let group = cloud.seed("server_groups", &json!({"name": "g", "servers": [{"server": server}]})).unwrap();
    let policy = cloud.seed("firewall_policies", &json!({"name": "p", "server_group": group})).unwrap();
    let path = format!("/1.0/server_groups/{group}");
    assert_eq!(get(&cloud, &path).await.json()["firewall_policy"]["id"], json!(policy));
    let full = delete(&cloud, &path).await;
    assert_eq!((full.status, &full.json()["error_name"]), (409, &json!("resource_conflict")));
    post(&cloud, &format!("{path}/remove_servers"), json!({"servers": [{"server": server}]})).await;
    let gone = delete(&cloud, &path).await;
    assert_eq!((gone.status, &gone.json()["id"]), (202, &json!(group)), "the answer has the object");
    assert_eq!(get(&cloud, &path).await.status, 404);
    assert_eq!(delete(&cloud, &path).await.status, 404);
    assert_eq!(
        get(&cloud, &format!("/1.0/firewall_policies/{policy}")).await.json()["server_group"],
        Value::Null
    );
}

#[tokio::test(start_paused = true)]
async fn the_default_group_and_policy_stay() {
    let cloud = cloud(|_| {});
    for (collection, kind) in [("server_groups", "server_group"), ("firewall_policies", "firewall_policy")] {
        let list = get(&cloud, &format!("/1.0/{collection}")).await.json();
        assert_eq!((list.as_array().unwrap().len(), &list[0]["default"]), (1, &json!(true)), "{collection}");
        assert_eq!(list[0]["resource_type"], json!(kind));
        let path = format!("/1.0/{collection}/{}", list[0]["id"].as_str().unwrap());
        assert_eq!(delete(&cloud, &path).await.status, 409, "{collection}");
        assert_eq!(ask(&cloud, "PUT", &path, json!({"name": "mine"})).await.status, 409, "{collection}");
        let described = ask(&cloud, "PUT", &path, json!({"description": "d"})).await;
        assert_eq!((described.status, &described.json()["description"]), (202, &json!("d")), "{collection}");
        let made = post(&cloud, &format!("/1.0/{collection}"), json!({"name": "x"})).await.id();
        let renamed = ask(&cloud, "PUT", &format!("/1.0/{collection}/{made}"), json!({"name": "y"})).await;
        assert_eq!((&renamed.json()["name"], renamed.status), (&json!("y"), 202), "{collection}");
    }
}
