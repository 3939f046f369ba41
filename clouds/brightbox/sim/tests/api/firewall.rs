//! Firewall policies and their rules.

use serde_json::{Value, json};

use crate::fixture::{ask, cloud, delete, get, post, seed_balancer};

#[tokio::test(start_paused = true)]
async fn a_policy_has_one_group_and_a_group_one_policy() {
    let cloud = cloud(|_| {});
    let [one, two] = ["one", "two"].map(|name| cloud.seed("server_groups", &json!({"name": name})).unwrap());
    let made = post(&cloud, "/1.0/firewall_policies", json!({"name": "p", "server_group": one})).await;
    assert_eq!(
        (made.status, &made.json()["server_group"]["id"], &made.json()["rules"]),
        (201, &json!(one), &json!([]))
    );
    let second = post(&cloud, "/1.0/firewall_policies", json!({"name": "p", "server_group": one})).await;
    assert_eq!((second.status, &second.json()["error_name"]), (409, &json!("resource_conflict")));
    let nowhere =
        post(&cloud, "/1.0/firewall_policies", json!({"name": "p", "server_group": "grp-none0"})).await;
    assert_eq!(nowhere.status, 422, "{nowhere:?}");
    let spare = post(&cloud, "/1.0/firewall_policies", json!({"name": "spare"})).await.id();
    let policy = made.id();
    let table = [
        (&spare, "apply_to", json!(one), 409, "the group has a policy"),
        (&policy, "apply_to", json!(two), 409, "the policy has a group"),
        (&policy, "remove", json!(two), 409, "it is not there"),
        (&policy, "remove", json!("grp-none0"), 422, "no such group"),
        (&policy, "remove", Value::Null, 422, "no group"),
        (&policy, "remove", json!(one), 202, "off"),
        (&policy, "apply_to", json!(two), 202, "on"),
        (&spare, "apply_to", json!(one), 202, "free now"),
    ];
    for (policy, word, group, status, case) in table {
        let body = json!({"server_group": group});
        let answer = post(&cloud, &format!("/1.0/firewall_policies/{policy}/{word}"), body).await;
        assert_eq!(answer.status, status, "{case}: {answer:?}");
    }
    assert_eq!(cloud.resources().policies[&policy].group, Some(two));
    let gone = delete(&cloud, &format!("/1.0/firewall_policies/{policy}")).await;
    assert_eq!((gone.status, &gone.json()["id"]), (202, &json!(policy)), "attached or not");
    assert_eq!(get(&cloud, &format!("/1.0/firewall_policies/{policy}")).await.status, 404);
}

#[tokio::test(start_paused = true)]
async fn rules_are_kept_as_they_were_written() {
    let cloud = cloud(|_| {});
    let policy = cloud.seed("firewall_policies", &json!({"name": "p"})).unwrap();
    let rule = json!({
        "firewall_policy": policy, "protocol": "tcp", "source": "10.0.0.0/8", "destination_port": "31347,31348,8080",
        "description": "web.shop.prod",
    });
    let made = post(&cloud, "/1.0/firewall_rules", rule.clone()).await;
    assert_eq!(made.status, 202, "{made:?}");
    for field in ["protocol", "source", "destination_port", "description"] {
        assert_eq!(made.json()[field], rule[field], "{field}");
    }
    assert_eq!(made.json()["firewall_policy"]["id"], json!(policy));
    let path = format!("/1.0/firewall_rules/{}", made.id());
    let changed = ask(&cloud, "PUT", &path, json!({"destination_port": "1-2", "description": null})).await;
    assert_eq!((changed.status, &changed.json()["destination_port"]), (202, &json!("1-2")));
    assert_eq!(
        (&changed.json()["source"], &changed.json()["description"]),
        (&json!("10.0.0.0/8"), &Value::Null)
    );
    post(&cloud, "/1.0/firewall_rules", rule).await;
    let listed = get(&cloud, "/1.0/firewall_policies").await.json();
    let listed =
        listed.as_array().unwrap().iter().find(|shown| shown["id"] == json!(policy)).unwrap().clone();
    assert_eq!(
        (&listed["rules"][0]["id"], listed["rules"].as_array().unwrap().len()),
        (&json!(made.id()), 2)
    );
    assert_eq!(
        listed,
        get(&cloud, &format!("/1.0/firewall_policies/{policy}")).await.json(),
        "list and detail agree"
    );
    assert_eq!(get(&cloud, &path).await.status, 200);
    let gone = delete(&cloud, &path).await;
    assert_eq!((gone.status, gone.id()), (202, made.id()));
    assert_eq!(delete(&cloud, &path).await.status, 404);
    assert_eq!(cloud.resources().policies[&policy].rules.len(), 1);
}

#[tokio::test(start_paused = true)]
async fn rules_are_checked() {
    let cloud = cloud(|settings| settings.instances = 1);
    let policy = cloud.seed("firewall_policies", &json!({"name": "p"})).unwrap();
    let server = cloud.servers()[0].id.clone();
    let balancer = seed_balancer(&cloud, &[]);
    let group = cloud.groups()[0].id.clone();
    let many = |count: usize| (0..count).map(|n| (30_000 + n).to_string()).collect::<Vec<_>>().join(",");
    let table = [
        (json!({"source": "any"}), 202, ""),
        (json!({"source": "2a02:1348:140::/42"}), 202, ""),
        (json!({"destination": "10.1.2.3"}), 202, ""),
        (json!({"source": server}), 202, ""),
        (json!({"source": group}), 202, ""),
        (json!({"source": balancer}), 202, ""),
        (json!({"source": "any", "protocol": "tcp", "destination_port": many(15)}), 202, ""),
        (json!({"source": "any", "protocol": "icmp", "icmp_type_name": "echo-request"}), 202, ""),
        (json!({}), 422, "exactly one"),
        (json!({"source": "any", "destination": "any"}), 422, "exactly one"),
        (json!({"source": "lba-none0"}), 422, "source must be"),
        (json!({"source": "10.0.0.0/33"}), 422, "source must be"),
        (json!({"source": "any", "destination_port": "80"}), 422, "only for tcp and udp"),
        (json!({"source": "any", "protocol": "icmp", "source_port": "80"}), 422, "only for tcp and udp"),
        (json!({"source": "any", "protocol": "tcp", "destination_port": many(16)}), 422, "16 entries"),
        (json!({"source": "any", "protocol": "tcp", "destination_port": "0"}), 422, "must be a port"),
        (json!({"source": "any", "protocol": "tcp", "destination_port": "1".repeat(256)}), 422, "too long"),
        (json!({"source": "any", "protocol": "gopher"}), 422, "protocol must be"),
        (json!({"source": "any", "icmp_type_name": "any"}), 422, "only for icmp"),
        (json!({"source": "any", "firewall_policy": "fwp-none0"}), 422, "does not exist"),
    ];
    for (mut body, status, why) in table {
        if body["firewall_policy"].is_null() {
            body["firewall_policy"] = json!(policy);
        }
        let answer = post(&cloud, "/1.0/firewall_rules", body.clone()).await;
        assert_eq!(answer.status, status, "{body}: {answer:?}");
        assert!(status == 202 || answer.errors().contains(why), "{body}: {answer:?}");
    }
    let rule =
        post(&cloud, "/1.0/firewall_rules", json!({"firewall_policy": policy, "source": "any"})).await.id();
    let moved =
        ask(&cloud, "PUT", &format!("/1.0/firewall_rules/{rule}"), json!({"firewall_policy": "fwp-x"})).await;
    assert_eq!(moved.status, 422, "{moved:?}");
}
