//! Floating IPs: where they can lead, and what becomes of them.

use cloudscale_sim::Target;
use serde_json::{Value, json};

use crate::fixture::{ask, cloud, get};

const PATH: &str = "/v1/floating-ips";

#[tokio::test(start_paused = true)]
async fn a_new_floating_ip_is_validated() {
    let cloud = cloud(|_| {});
    let server = cloud.add_server("a", "rma1").uuid;
    let table = [
        ("no version", json!({}), 400, "This field is required"),
        ("version 5", json!({"ip_version": 5}), 400, "Expect one of"),
        ("unknown type", json!({"ip_version": 4, "type": "lunar"}), 400, "Expect one of"),
        ("unknown region", json!({"ip_version": 4, "region": "mars"}), 400, "is not a valid choice"),
        ("a prefix of IPv4", json!({"ip_version": 4, "prefix_length": 24}), 400, "prefix_length"),
        ("another prefix of IPv6", json!({"ip_version": 6, "prefix_length": 64}), 400, "prefix_length"),
        ("two targets", json!({"ip_version": 4, "server": server, "load_balancer": "x"}), 400, "Only one"),
        ("unknown server", json!({"ip_version": 4, "server": "x"}), 400, "does not exist"),
        ("unknown balancer", json!({"ip_version": 4, "load_balancer": "x"}), 400, "does not exist"),
        ("a server elsewhere", json!({"ip_version": 4, "region": "lpg", "server": server}), 400, "region"),
        ("regional", json!({"ip_version": 4}), 201, r#""region":{"slug":"rma"}"#),
        ("global", json!({"ip_version": 4, "type": "global", "server": server}), 201, r#""region":null"#),
        ("IPv6", json!({"ip_version": 6, "server": server}), 201, "/128"),
        ("a network", json!({"ip_version": 6, "prefix_length": 56}), 201, "::/56"),
    ];
    for (case, body, status, fragment) in table {
        let answer = ask(&cloud, "POST", PATH, body).await;
        assert_eq!(answer.status, status, "{case}: {answer:?}");
        assert!(answer.text.contains(fragment), "{case}: {answer:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn floating_ips_can_be_moved_but_not_detached() {
    let cloud = cloud(|_| {});
    let server = cloud.add_server("a", "lpg1");
    let subnet = cloud.add_private_network("db", "lpg1", "10.9.0.0/24".parse().unwrap());
    let mut balancers = Vec::new();
    for (zone, vips) in [("lpg1", json!([])), ("rma1", json!([])), ("lpg1", json!([{"subnet": subnet}]))] {
        let body = json!({"name": "web", "flavor": "lb-standard", "zone": zone, "vip_addresses": vips});
        balancers.push(ask(&cloud, "POST", "/v1/load-balancers", body).await.json());
    }
    let ids: Vec<_> = balancers.iter().map(|balancer| balancer["uuid"].as_str().unwrap()).collect();
    let (near, far, private) = (ids[0], ids[1], ids[2]);
    cloud.add_floating_ip("192.0.2.7/32".parse().unwrap(), Some("lpg"));
    cloud.add_floating_ip("2001:db8:9::7/128".parse().unwrap(), None);
    let (v4, v6) = (format!("{PATH}/192.0.2.7"), format!("{PATH}/2001:db8:9::7"));
    let table = [
        ("to a server", &v4, json!({"server": server.uuid}), 204),
        ("to a balancer", &v4, json!({"load_balancer": near}), 204),
        ("to a balancer in another region", &v4, json!({"load_balancer": far}), 400),
        ("to a balancer with a private address", &v4, json!({"load_balancer": private}), 400),
        ("to nobody", &v4, json!({"load_balancer": null}), 400),
        ("to a balancer that is not there", &v4, json!({"load_balancer": "x"}), 400),
        ("to two", &v4, json!({"load_balancer": near, "server": server.uuid}), 400),
        ("another name", &v4, json!({"reverse_ptr": "www.example.net"}), 204),
        ("another region", &v4, json!({"region": "rma"}), 400),
        ("a global one, anywhere", &v6, json!({"load_balancer": far}), 204),
        ("none that is there", &format!("{PATH}/192.0.2.8"), json!({"load_balancer": near}), 404),
    ];
    for (case, path, body, status) in table {
        let answer = ask(&cloud, "PATCH", path, body).await;
        assert_eq!(answer.status, status, "{case}: {answer:?}");
    }
    let shown = get(&cloud, &v4).await.json();
    assert_eq!((&shown["load_balancer"]["uuid"], &shown["server"]), (&json!(near), &Value::Null));
    assert_eq!(shown["next_hop"], balancers[0]["vip_addresses"][0]["address"], "of the same family");
    assert_eq!(shown["network"], "192.0.2.7/32");
    assert_eq!(shown["reverse_ptr"], "www.example.net");
    let encoded = get(&cloud, &format!("{PATH}/2001%3Adb8%3A9%3A%3A7")).await.json();
    assert_eq!(encoded["next_hop"], balancers[1]["vip_addresses"][1]["address"]);
    assert_eq!((&encoded["type"], &encoded["region"]), (&json!("global"), &Value::Null));

    ask(&cloud, "DELETE", &format!("/v1/load-balancers/{near}"), Value::Null).await;
    let left = get(&cloud, &v4).await.json();
    assert_eq!(
        (&left["load_balancer"], &left["next_hop"]),
        (&Value::Null, &Value::Null),
        "it outlives its target"
    );
    assert_eq!(cloud.target_of("2001:db8:9::7".parse().unwrap()), Some(Target::Balancer(far.to_owned())));
    ask(&cloud, "PATCH", &v4, json!({"server": server.uuid})).await;
    cloud.delete_server(&server.uuid);
    assert_eq!(get(&cloud, &v4).await.json()["server"], Value::Null);
    assert_eq!(ask(&cloud, "DELETE", &v4, Value::Null).await.status, 204);
    assert_eq!(get(&cloud, &v4).await.status, 404);
}
