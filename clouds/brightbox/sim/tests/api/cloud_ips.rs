//! Cloud IPs: allocated, mapped, unmapped, released.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use serde_json::{Value, json};

use crate::fixture::{ask, cloud, delete, get, pass, post, secs, seed_balancer, seed_cloud_ip};

#[tokio::test(start_paused = true)]
async fn a_cloud_ip_has_addresses_and_names() {
    let cloud = cloud(|_| {});
    let made = post(&cloud, "/1.0/cloud_ips", json!({"name": "web.shop.prod"})).await;
    assert_eq!(made.status, 201);
    let ip = made.json();
    let v4: Ipv4Addr = ip["public_ipv4"].as_str().unwrap().parse().unwrap();
    let v6: Ipv6Addr = ip["public_ipv6"].as_str().unwrap().parse().unwrap();
    assert_eq!(v6.octets()[..8], [0x2a, 0x02, 0x13, 0x48, 0xff, 0xff, 0xff, 0xff]);
    assert_eq!(v6.octets()[12..], v4.octets(), "the IPv6 address ends in the IPv4 one");
    assert_eq!(
        (&ip["public_ip"], &ip["status"], &ip["mode"]),
        (&ip["public_ipv4"], &json!("unmapped"), &json!("nat"))
    );
    assert_eq!(ip["fqdn"], json!(format!("{}.gb1.brightbox.com", made.id())));
    let dashed = v4.to_string().replace('.', "-");
    assert_eq!(ip["reverse_dns"], json!(format!("cip-{dashed}.gb1.brightbox.com")));
    assert_eq!(
        (&ip["server"], &ip["load_balancer"], &ip["port_translators"]),
        (&Value::Null, &Value::Null, &json!([]))
    );
    for name in ["fqdn", "reverse_dns"] {
        assert_eq!(cloud.resolve(ip[name].as_str().unwrap()), [IpAddr::V4(v4), IpAddr::V6(v6)], "{name}");
    }
    assert_eq!(get(&cloud, "/1.0/cloud_ips").await.json(), json!([ip]));
    let nameless = post(&cloud, "/1.0/cloud_ips", Value::Null).await;
    assert_eq!((nameless.status, &nameless.json()["name"]), (201, &Value::Null));
    assert_eq!(post(&cloud, "/1.0/cloud_ips", json!({"name": 7})).await.status, 422);
    let gone = delete(&cloud, &format!("/1.0/cloud_ips/{}", made.id())).await;
    assert_eq!((gone.status, gone.id()), (200, made.id()), "the answer has the object");
    assert_eq!(delete(&cloud, &format!("/1.0/cloud_ips/{}", made.id())).await.status, 404);
}

#[tokio::test(start_paused = true)]
async fn mapping_takes_its_time_and_the_answer_has_the_old_status() {
    let cloud = cloud(|settings| (settings.delays.map, settings.delays.unmap) = (secs(3), secs(2)));
    let (balancer, other) = (seed_balancer(&cloud, &[]), seed_balancer(&cloud, &[]));
    let ip = seed_cloud_ip(&cloud, "n");
    let path = format!("/1.0/cloud_ips/{ip}");
    let status = async || get(&cloud, &path).await.json()["status"].as_str().unwrap().to_owned();
    let map = async |to: &str| post(&cloud, &format!("{path}/map"), json!({"destination": to})).await;
    let answer = map(&balancer).await;
    assert_eq!((answer.status, &answer.json()["status"]), (202, &json!("unmapped")));
    pass(secs(2)).await;
    assert_eq!(map(&balancer).await.status, 202, "asking again changes nothing");
    assert_eq!(map(&other).await.status, 409, "it is on its way elsewhere");
    assert_eq!(status().await, "unmapped");
    pass(secs(1)).await;
    assert_eq!(status().await, "mapped", "three seconds after it was first asked for");
    let shown = get(&cloud, &path).await.json();
    assert_eq!(shown["load_balancer"]["id"], json!(balancer));
    let shown = get(&cloud, &format!("/1.0/load_balancers/{balancer}")).await.json();
    assert_eq!(
        (&shown["cloud_ips"][0]["id"], &shown["cloud_ips"][0]["status"]),
        (&json!(ip), &json!("mapped"))
    );
    assert_eq!(map(&balancer).await.status, 409, "mapped already");
    assert_eq!(delete(&cloud, &path).await.status, 409, "mapped ones are not released");
    let answer = post(&cloud, &format!("{path}/unmap"), Value::Null).await;
    assert_eq!((answer.status, &answer.json()["status"]), (202, &json!("mapped")));
    pass(secs(1)).await;
    assert_eq!(post(&cloud, &format!("{path}/unmap"), Value::Null).await.status, 202, "asked again");
    pass(secs(1)).await;
    assert_eq!(status().await, "unmapped");
    assert_eq!(post(&cloud, &format!("{path}/unmap"), Value::Null).await.status, 409, "not mapped");
    assert_eq!(delete(&cloud, &path).await.status, 200);
}

#[tokio::test(start_paused = true)]
async fn destinations_are_balancers_servers_interfaces_and_groups() {
    let cloud = cloud(|settings| settings.delays.build = secs(60));
    let server = cloud.add_server("a", "gb1-a");
    let group = cloud.groups()[0].id.clone();
    let creating = post(&cloud, "/1.0/load_balancers", crate::fixture::balancer_body(&[])).await.id();
    let failed = seed_balancer(&cloud, &[]);
    cloud.set_status(&failed, "failed");
    let stopped = cloud.add_server("b", "gb1-a").id;
    cloud.stop_server(&stopped);
    let deleted = cloud.add_server("c", "gb1-a").id;
    cloud.delete_server(&deleted);
    let table = [
        (creating.as_str(), 202, "load_balancer", creating.as_str()),
        (&server.id, 202, "server", &server.id),
        (&server.interfaces[0].id, 202, "server", &server.id),
        (&stopped, 202, "server", &stopped),
        (&group, 202, "server_group", &group),
        (&failed, 409, "", ""),
        (&deleted, 409, "", ""),
        ("lba-none0", 422, "", ""),
        ("", 422, "", ""),
    ];
    for (destination, status, field, id) in table {
        let ip = seed_cloud_ip(&cloud, "n");
        let answer =
            post(&cloud, &format!("/1.0/cloud_ips/{ip}/map"), json!({"destination": destination})).await;
        assert_eq!(answer.status, status, "{destination}: {answer:?}");
        let shown = get(&cloud, &format!("/1.0/cloud_ips/{ip}")).await.json();
        assert_eq!(
            shown["status"],
            json!(if status == 202 { "mapped" } else { "unmapped" }),
            "{destination}"
        );
        assert!(status != 202 || shown[field]["id"] == json!(id), "{destination}: {shown}");
    }
}

#[tokio::test(start_paused = true)]
async fn what_goes_away_before_the_mapping_is_done_is_not_mapped_to() {
    let cloud = cloud(|settings| settings.delays.map = secs(5));
    let balancer = seed_balancer(&cloud, &[]);
    let ip = seed_cloud_ip(&cloud, "n");
    post(&cloud, &format!("/1.0/cloud_ips/{ip}/map"), json!({"destination": balancer})).await;
    delete(&cloud, &format!("/1.0/load_balancers/{balancer}")).await;
    pass(secs(5)).await;
    assert_eq!(cloud.cloud_ips()[0].status(), "unmapped");
}

#[tokio::test(start_paused = true)]
async fn reverse_names_must_resolve() {
    let cloud = cloud(|_| {});
    let ip = seed_cloud_ip(&cloud, "n");
    let path = format!("/1.0/cloud_ips/{ip}");
    let usual = cloud.cloud_ips()[0].reverse_dns.clone();
    let put = async |name: Value| ask(&cloud, "PUT", &path, json!({"reverse_dns": name})).await;
    let refused = put(json!("shop.example.org")).await;
    assert_eq!(refused.status, 422, "{refused:?}");
    cloud.set_domain("shop.example.org", &["192.0.2.1".parse().unwrap()]);
    assert_eq!(put(json!("shop.example.org")).await.status, 422, "it is somewhere else");
    let own = cloud.cloud_ips()[0].addresses().next().unwrap();
    cloud.set_domain("shop.example.org", &[own]);
    let taken = put(json!("shop.example.org")).await;
    assert_eq!((taken.status, &taken.json()["reverse_dns"]), (200, &json!("shop.example.org")));
    assert_eq!(put(Value::Null).await.json()["reverse_dns"], Value::Null);
    assert_eq!(put(json!("")).await.json()["reverse_dns"], json!(usual), "back to the usual one");
    let renamed = ask(&cloud, "PUT", &path, json!({"name": "m", "mode": "route"})).await.json();
    assert_eq!(
        (&renamed["name"], &renamed["mode"], &renamed["reverse_dns"]),
        (&json!("m"), &json!("route"), &json!(usual))
    );
    assert_eq!(ask(&cloud, "PUT", &path, json!({"mode": "tunnel"})).await.status, 422);
}

#[tokio::test(start_paused = true)]
async fn the_account_has_a_limit() {
    let cloud = cloud(|settings| settings.limits.cloud_ips = 1);
    let ip = seed_cloud_ip(&cloud, "n");
    let refused = post(&cloud, "/1.0/cloud_ips", json!({"name": "m"})).await;
    assert_eq!((refused.status, &refused.json()["error_name"]), (403, &json!("account_limit_reached")));
    delete(&cloud, &format!("/1.0/cloud_ips/{ip}")).await;
    assert_eq!(post(&cloud, "/1.0/cloud_ips", json!({"name": "m"})).await.status, 201);
}
