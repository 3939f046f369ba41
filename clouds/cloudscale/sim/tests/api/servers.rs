//! Servers: what they look like, and how they are switched on and off.

use serde_json::{Value, json};

use crate::fixture::{ask, cloud, get, secs};

#[tokio::test(start_paused = true)]
async fn starting_and_stopping_pass_through_changing() {
    let cloud = cloud(|settings| settings.boot = secs(10));
    let server = format!("/v1/servers/{}", cloud.add_server("a", "rma1").uuid);
    let status = async || get(&cloud, &server).await.json()["status"].clone();
    assert_eq!(status().await, "running");
    for (word, settled) in [("stop", "stopped"), ("start", "running"), ("reboot", "running")] {
        let answer = ask(&cloud, "POST", &format!("{server}/{word}"), Value::Null).await;
        assert_eq!((answer.status, answer.text.as_str()), (204, ""), "{word}");
        assert_eq!(status().await, "changing", "{word}");
        tokio::time::sleep(secs(10)).await;
        assert_eq!(status().await, settled, "{word}");
    }
    assert_eq!(ask(&cloud, "POST", "/v1/servers/x/stop", Value::Null).await.status, 404);
    assert_eq!(ask(&cloud, "POST", &format!("{server}/start"), Value::Null).await.status, 204);
    assert_eq!(status().await, "running", "what runs already is not disturbed");
    assert_eq!(ask(&cloud, "DELETE", &server, Value::Null).await.status, 204);
    assert_eq!(get(&cloud, &server).await.status, 404);
}

#[tokio::test(start_paused = true)]
async fn servers_have_public_and_private_addresses() {
    let cloud = cloud(|_| {});
    let subnet = cloud.add_private_network("db", "lpg1", "10.9.0.0/24".parse().unwrap());
    let server = cloud.add_server("a", "lpg1");
    let second = cloud.attach(&server.uuid, &subnet).unwrap();
    let shown = get(&cloud, &format!("/v1/servers/{}", server.uuid)).await.json();
    let kinds: Vec<_> = shown["interfaces"].as_array().unwrap().iter().map(|i| i["type"].clone()).collect();
    assert_eq!(kinds, ["public", "private", "private"]);
    let public = &shown["interfaces"][0]["addresses"];
    assert_eq!((&public[0]["version"], &public[1]["version"]), (&json!(4), &json!(6)));
    let last = &shown["interfaces"][2]["addresses"][0];
    assert_eq!((&last["address"], &last["subnet"]["uuid"]), (&json!(second), &json!(subnet)));
    assert_eq!((&last["subnet"]["cidr"], &last["prefix_length"]), (&json!("10.9.0.0/24"), &json!(24)));
    assert_eq!((&shown["zone"]["slug"], &shown["flavor"]["slug"]), (&json!("lpg1"), &json!("flex-4-2")));
    cloud.edit(|resources| {
        resources.servers.get_mut(&server.uuid).unwrap().interfaces[2].addresses[0].subnet = None;
    });
    let shown = get(&cloud, &format!("/v1/servers/{}", server.uuid)).await.json();
    assert_eq!(
        shown["interfaces"][2]["addresses"][0]["subnet"],
        Value::Null,
        "an address may have no subnet"
    );
    let only = cloud.add_private_server("b", "lpg1", &[&subnet]);
    assert_eq!((only.interfaces.len(), only.interfaces[0].public), (1, false));
    assert!(cloud.attach("nobody", &subnet).is_none());
}

#[tokio::test(start_paused = true)]
async fn interfaces_are_asked_for_in_several_ways() {
    let cloud = cloud(|_| {});
    let subnet = cloud.add_private_network("db", "rma1", "10.9.0.0/24".parse().unwrap());
    let network = cloud.resources().subnets[&subnet].network.clone();
    let table = [
        ("the public network", json!([{"network": "public"}]), Ok(vec!["198.18.0.10", "2001:db8:1::a"])),
        ("a network", json!([{"network": network}]), Ok(vec!["10.9.0.10"])),
        ("a network without an address", json!([{"network": network, "addresses": []}]), Ok(vec![])),
        ("a subnet", json!([{"addresses": [{"subnet": subnet}]}]), Ok(vec!["10.9.0.11"])),
        (
            "an address",
            json!([{"addresses": [{"subnet": subnet, "address": "10.9.0.242"}]}]),
            Ok(vec!["10.9.0.242"]),
        ),
        (
            "two",
            json!([{"network": network}, {"network": "public"}]),
            Ok(vec!["10.9.0.12", "198.18.0.11", "2001:db8:1::b"]),
        ),
        ("nothing", json!([{}]), Err("This field is required")),
        ("no list", json!("public"), Err("list of items")),
        ("unknown network", json!([{"network": "x"}]), Err("does not exist")),
        ("unknown subnet", json!([{"addresses": [{"subnet": "x"}]}]), Err("does not exist")),
        (
            "an address from elsewhere",
            json!([{"addresses": [{"subnet": subnet, "address": "10.8.0.1"}]}]),
            Err("valid IP"),
        ),
    ];
    for (case, interfaces, want) in table {
        let body = json!({"name": "a", "flavor": "flex-4-2", "image": "debian-13", "interfaces": interfaces});
        let answer = ask(&cloud, "POST", "/v1/servers", body).await;
        match want {
            Ok(want) => {
                let server = &cloud.resources().servers[&answer.uuid()];
                let got: Vec<_> = server.addresses().map(|address| address.address.to_string()).collect();
                assert_eq!(got, want, "{case}");
            }
            Err(fragment) => {
                assert!(answer.status == 400 && answer.text.contains(fragment), "{case}: {answer:?}");
            }
        }
    }
    let server = cloud.add_server("b", "rma1");
    let path = format!("/v1/servers/{}", server.uuid);
    let more = json!({"interfaces": [{"network": "public"}, {"addresses": [{"subnet": subnet}]}]});
    assert_eq!(ask(&cloud, "PATCH", &path, more).await.status, 204);
    let now = &cloud.resources().servers[&server.uuid];
    assert_eq!(now.interfaces[0], server.interfaces[0], "what is asked for again stays as it was");
    assert_eq!(now.interfaces[1].addresses[0].subnet, Some(subnet));
}

#[tokio::test(start_paused = true)]
async fn servers_and_networks_can_be_created_through_the_api() {
    let cloud = cloud(|_| {});
    let network = json!({"name": "db", "zone": "rma1", "auto_create_ipv4_subnet": false});
    let network = ask(&cloud, "POST", "/v1/networks", network).await;
    let subnet =
        ask(&cloud, "POST", "/v1/subnets", json!({"cidr": "10.9.0.0/24", "network": network.uuid()})).await;
    assert_eq!((network.status, subnet.status), (201, 201), "{network:?} {subnet:?}");
    let body = json!({
        "name": "a", "flavor": "flex-8-2", "image": "debian-13", "zone": "rma1",
        "interfaces": [{"network": "public"}, {"network": network.uuid()}],
    });
    let made = ask(&cloud, "POST", "/v1/servers", body.clone()).await;
    assert_eq!(made.status, 201, "{made:?}");
    assert_eq!(made.json()["interfaces"][1]["addresses"][0]["subnet"]["uuid"], subnet.uuid());
    let table = [
        ("no flavor", json!({"name": "a", "image": "x"}), "flavor"),
        ("unknown flavor", json!({"name": "a", "image": "x", "flavor": "flex-1-1"}), "is not a valid choice"),
        ("no image", json!({"name": "a", "flavor": "flex-4-1"}), "image"),
        (
            "unknown network",
            json!({"name": "a", "flavor": "flex-4-1", "image": "x", "interfaces": [{"network": "y"}]}),
            "does not exist",
        ),
    ];
    for (case, body, fragment) in table {
        let answer = ask(&cloud, "POST", "/v1/servers", body).await;
        assert!(answer.status == 400 && answer.text.contains(fragment), "{case}: {answer:?}");
    }
    let used = ask(&cloud, "DELETE", &format!("/v1/networks/{}", network.uuid()), Value::Null).await;
    assert!(used.status == 400 && used.text.contains("in use"), "{used:?}");
    for (path, change, status) in [
        (format!("/v1/networks/{}", network.uuid()), json!({"mtu": 1500}), 204),
        (format!("/v1/networks/{}", network.uuid()), json!({"zone": "lpg1"}), 400),
        (format!("/v1/subnets/{}", subnet.uuid()), json!({"gateway_address": "10.9.0.1"}), 204),
        (format!("/v1/subnets/{}", subnet.uuid()), json!({"gateway_address": "x"}), 400),
        (format!("/v1/subnets/{}", subnet.uuid()), json!({"dns_servers": ["192.0.2.53"]}), 204),
        (format!("/v1/subnets/{}", subnet.uuid()), json!({"dns_servers": ["0.0.0.0"]}), 400),
        (format!("/v1/subnets/{}", subnet.uuid()), json!({"cidr": "10.1.0.0/24"}), 400),
    ] {
        let answer = ask(&cloud, "PATCH", &path, change.clone()).await;
        assert_eq!(answer.status, status, "{path} {change}: {answer:?}");
    }
    let shown = get(&cloud, &format!("/v1/subnets/{}", subnet.uuid())).await.json();
    assert_eq!(
        (&shown["gateway_address"], &shown["dns_servers"]),
        (&json!("10.9.0.1"), &json!(["192.0.2.53"]))
    );
    let resize = json!({"flavor": "flex-16-4"});
    let path = format!("/v1/servers/{}", made.uuid());
    assert_eq!(ask(&cloud, "PATCH", &path, resize.clone()).await.status, 400, "not while it runs");
    cloud.stop_server(&made.uuid());
    assert_eq!(ask(&cloud, "PATCH", &path, resize).await.status, 204);
    cloud.delete_server(&made.uuid());
    let gone = ask(&cloud, "DELETE", &format!("/v1/networks/{}", network.uuid()), Value::Null).await;
    assert_eq!(gone.status, 204);
    assert!(!cloud.resources().subnets.contains_key(&subnet.uuid()), "a network takes its subnets along");
    let slugs = |list: Value| list.as_array().unwrap().iter().map(|e| e["slug"].clone()).collect::<Vec<_>>();
    assert_eq!(slugs(get(&cloud, "/v1/regions").await.json()), ["rma", "lpg"]);
    assert!(slugs(get(&cloud, "/v1/flavors").await.json()).contains(&json!("flex-4-2")));
}
