//! What a POST must say, and what is answered to one that does not.

use cloudscale_sim::{Cloud, Limits};
use serde_json::{Value, json};

use crate::fixture::{ask, balancer_and_pool, cloud, get, member_body};

const NOBODY: &str = "00000000-0000-4000-8000-000000000000";

/// A good body with some fields changed; `null` takes a field away.
fn but(good: &Value, changes: &Value) -> Value {
    let mut body = good.clone();
    for (key, value) in changes.as_object().unwrap() {
        match value {
            Value::Null => drop(body.as_object_mut().unwrap().remove(key)),
            _ => body[key] = value.clone(),
        }
    }
    body
}

/// Each change makes a good body bad; the answer names the field and says why.
async fn refuse(cloud: &Cloud, path: &str, good: &Value, table: &[(&str, Value, &str, &str)]) {
    for (case, changes, field, fragment) in table {
        let answer = ask(cloud, "POST", path, but(good, changes)).await;
        assert_eq!(answer.status, 400, "{case}: {answer:?}");
        let said = answer.json()[*field].to_string();
        assert!(said.contains(fragment), "{case}: {answer:?}");
    }
    let answer = ask(cloud, "POST", path, good.clone()).await;
    assert_eq!(answer.status, 201, "the body that all are made of is good: {answer:?}");
}

#[tokio::test(start_paused = true)]
async fn balancers() {
    let cloud = cloud(|_| {});
    let server = cloud.add_server("a", "rma1");
    let private = cloud.add_private_network("db", "rma1", "10.9.0.0/24".parse().unwrap());
    let far = cloud.add_private_network("far", "lpg1", "10.8.0.0/24".parse().unwrap());
    let taken = json!(server.private_address().unwrap().address);
    let good = json!({"name": "web", "flavor": "lb-standard", "zone": "rma1", "vip_addresses": []});
    let vip = |vip: Value| json!({"vip_addresses": [vip]});
    let table = [
        ("no name", json!({"name": null}), "name", "This field is required"),
        ("blank name", json!({"name": ""}), "name", "This field may not be blank"),
        ("a name of spaces", json!({"name": "  "}), "name", "This field may not be blank"),
        ("a number for a name", json!({"name": 5}), "name", "valid string"),
        ("no flavor", json!({"flavor": null}), "flavor", "This field is required"),
        ("unknown flavor", json!({"flavor": "lb-huge"}), "flavor", "is not a valid choice"),
        ("unknown zone", json!({"zone": "mars1"}), "zone", "Choose one of"),
        ("unknown zone", json!({"zone": "mars1"}), "zone", "is not a valid choice"),
        ("tags that are no text", json!({"tags": {"a": 1}}), "tags", "valid string"),
        ("VIP subnet is no UUID", vip(json!({"subnet": "db"})), "vip_addresses", "Must be a valid UUID"),
        ("VIP subnet unknown", vip(json!({"subnet": NOBODY})), "vip_addresses", "does not exist"),
        ("VIP subnet in another zone", vip(json!({"subnet": far})), "vip_addresses", "does not exist"),
        (
            "VIP address outside its subnet",
            vip(json!({"subnet": private, "address": "10.9.1.1"})),
            "vip_addresses",
            "is not a valid IP for the specified subnet",
        ),
        ("VIP address in use", vip(json!({"address": taken})), "vip_addresses", "in use"),
        ("VIP address is none", vip(json!({"address": "x"})), "vip_addresses", "valid IPv4"),
        ("VIP that says nothing", vip(json!({})), "vip_addresses", "This field is required"),
        ("VIPs that are no list", json!({"vip_addresses": "x"}), "vip_addresses", "list of items"),
    ];
    refuse(&cloud, "/v1/load-balancers", &good, &table).await;
    assert_eq!(cloud.balancers().len(), 1, "what is refused is not made");
}

#[tokio::test(start_paused = true)]
async fn a_balancer_has_the_addresses_that_were_asked_for() {
    let cloud = cloud(|settings| settings.default_zone = "lpg1".to_owned());
    let subnet = cloud.add_private_network("db", "lpg1", "10.9.0.0/24".parse().unwrap());
    let table = [
        ("both public ones", json!(null), vec!["198.19.0.10", "2001:db8:2::a"]),
        ("both public ones", json!([]), vec!["198.19.0.11", "2001:db8:2::b"]),
        ("any of a subnet", json!([{"subnet": subnet}]), vec!["10.9.0.10"]),
        ("this one", json!([{"subnet": subnet, "address": "10.9.0.77"}]), vec!["10.9.0.77"]),
        ("this one, wherever it is from", json!([{"address": "10.9.0.78"}]), vec!["10.9.0.78"]),
        (
            "a named one is not picked",
            json!([{"subnet": subnet}, {"subnet": subnet, "address": "10.9.0.12"}, {"subnet": subnet}]),
            vec!["10.9.0.11", "10.9.0.12", "10.9.0.13"],
        ),
        (
            "two",
            json!([{"subnet": subnet}, {"subnet": subnet, "address": "10.9.0.99"}]),
            vec!["10.9.0.14", "10.9.0.99"],
        ),
    ];
    let full = cloud.add_private_network("tiny", "lpg1", "10.7.0.0/30".parse().unwrap());
    let too_many = json!([{"subnet": full, "address": "10.7.0.1"}, {"subnet": full}, {"subnet": full}]);
    let twice = json!([{"address": "10.9.0.50"}, {"address": "10.9.0.50"}]);
    for (vips, fragment) in [(too_many, "no free address"), (twice, "given twice")] {
        let body = json!({"name": "web", "flavor": "lb-standard", "vip_addresses": vips});
        let answer = ask(&cloud, "POST", "/v1/load-balancers", body).await;
        assert!(answer.status == 400 && answer.text.contains(fragment), "{answer:?}");
    }
    for (case, vips, want) in table {
        let body = json!({"name": "same name for all", "flavor": "lb-standard", "vip_addresses": vips});
        let made = ask(&cloud, "POST", "/v1/load-balancers", body).await;
        assert_eq!(made.status, 201, "{case}: {made:?}");
        let got: Vec<_> =
            made.json()["vip_addresses"].as_array().unwrap().iter().map(|v| v["address"].clone()).collect();
        assert_eq!(got, want, "{case}");
        assert_eq!(made.json()["zone"]["slug"], "lpg1", "the default zone");
    }
}

#[tokio::test(start_paused = true)]
async fn pools() {
    let cloud = cloud(|_| {});
    let (balancer, _) = balancer_and_pool(&cloud).await;
    let good =
        json!({"name": "tcp", "load_balancer": balancer, "algorithm": "source_ip", "protocol": "proxyv2"});
    let table = [
        ("no name", json!({"name": null}), "name", "This field is required"),
        ("no balancer", json!({"load_balancer": null}), "load_balancer", "This field is required"),
        ("unknown balancer", json!({"load_balancer": NOBODY}), "load_balancer", "does not exist"),
        ("no algorithm", json!({"algorithm": null}), "algorithm", "This field is required"),
        ("unknown algorithm", json!({"algorithm": "random"}), "algorithm", "Expect one of"),
        ("unknown protocol", json!({"protocol": "sctp"}), "protocol", "Expect one of"),
    ];
    refuse(&cloud, "/v1/load-balancers/pools", &good, &table).await;
    let again = ask(&cloud, "POST", "/v1/load-balancers/pools", good).await;
    assert_eq!(again.status, 201, "names are not unique");
}

#[tokio::test(start_paused = true)]
async fn members() {
    let cloud = cloud(|settings| settings.limits = Limits { members: 2, ..Limits::default() });
    let server = cloud.add_server("a", "rma1");
    let (_, pool) = balancer_and_pool(&cloud).await;
    let path = format!("/v1/load-balancers/pools/{pool}/members");
    let good = member_body(&cloud, &server.uuid, 30_080);
    let table = [
        ("no name", json!({"name": null}), "name", "This field is required"),
        ("no address", json!({"address": null}), "address", "This field is required"),
        ("no address but text", json!({"address": "x"}), "address", "valid IPv4"),
        ("an address from elsewhere", json!({"address": "10.250.0.1"}), "address", "specified subnet"),
        ("no port", json!({"protocol_port": null}), "protocol_port", "This field is required"),
        ("port 0", json!({"protocol_port": 0}), "protocol_port", "The protocol_port must be between"),
        (
            "port 65536",
            json!({"protocol_port": 65_536}),
            "protocol_port",
            "The protocol_port must be between",
        ),
        ("monitor port 0", json!({"monitor_port": 0}), "monitor_port", "must be between"),
        ("unknown subnet", json!({"subnet": NOBODY}), "subnet", "does not exist"),
        ("enabled is no boolean", json!({"enabled": "yes"}), "enabled", "boolean"),
    ];
    refuse(&cloud, &path, &good, &table).await;
    let again = ask(&cloud, "POST", &path, but(&good, &json!({"name": "other"}))).await;
    assert!(again.status == 400 && again.text.contains("already"), "same address and port: {again:?}");
    let bare =
        ask(&cloud, "POST", &path, but(&good, &json!({"protocol_port": 81, "monitor_port": null}))).await;
    assert_eq!((bare.status, &bare.json()["monitor_port"]), (201, &Value::Null), "same address, other port");
    assert_eq!(bare.json()["enabled"], true);
    let full = ask(&cloud, "POST", &path, but(&good, &json!({"protocol_port": 82}))).await;
    assert!(full.status == 400 && full.text.contains("limit"), "{full:?}");
    let nowhere = ask(&cloud, "POST", &format!("/v1/load-balancers/pools/{NOBODY}/members"), good).await;
    assert_eq!((nowhere.status, nowhere.json()), (404, json!({"detail": "Not found."})));
}

#[tokio::test(start_paused = true)]
async fn listeners() {
    let cloud = cloud(|_| {});
    let (balancer, pool) = balancer_and_pool(&cloud).await;
    let path = "/v1/load-balancers/listeners";
    let good = json!({"name": "tcp/80", "pool": pool, "protocol": "tcp", "protocol_port": 80});
    let table = [
        ("no name", json!({"name": null}), "name", "This field is required"),
        ("no pool", json!({"pool": null}), "pool", "This field is required"),
        ("unknown pool", json!({"pool": NOBODY}), "pool", "does not exist"),
        ("unknown protocol", json!({"protocol": "proxy"}), "protocol", "Expect one of"),
        ("port 0", json!({"protocol_port": 0}), "protocol_port", "The protocol_port must be between"),
        (
            "a bare address",
            json!({"allowed_cidrs": ["10.0.0.1"]}),
            "allowed_cidrs",
            "valid network address in CIDR",
        ),
        ("a timeout of 0", json!({"timeout_client_data_ms": 0}), "timeout_client_data_ms", "greater than"),
        (
            "a timeout that is text",
            json!({"timeout_member_data_ms": "1"}),
            "timeout_member_data_ms",
            "integer",
        ),
    ];
    refuse(&cloud, path, &good, &table).await;
    let made = get(&cloud, path).await.json()[0].clone();
    let defaults =
        ["timeout_client_data_ms", "timeout_member_connect_ms", "timeout_member_data_ms", "allowed_cidrs"];
    assert_eq!(
        defaults.map(|key| made[key].clone()),
        [json!(50_000), json!(5_000), json!(50_000), json!([])]
    );
    let again = ask(&cloud, "POST", path, but(&good, &json!({"name": "other"}))).await;
    assert!(again.status == 400 && again.text.contains("already"), "same protocol and port: {again:?}");
    let udp = but(&good, &json!({"protocol": "udp", "allowed_cidrs": ["10.0.0.0/8", "2001:db8::/32"]}));
    let udp = ask(&cloud, "POST", path, udp).await;
    assert_eq!(udp.status, 201, "the same number for another protocol: {udp:?}");
    assert_eq!(udp.json()["allowed_cidrs"], json!(["10.0.0.0/8", "2001:db8::/32"]), "in the order given");
    let second = but(&good, &json!({"protocol_port": 81, "allowed_cidrs": [], "tags": {"a": "b"}}));
    let second = ask(&cloud, "POST", path, second).await;
    assert_eq!(
        (second.status, &second.json()["tags"]),
        (201, &json!({"a": "b"})),
        "two listeners of one pool"
    );
    assert_eq!(second.json()["load_balancer"]["uuid"], json!(balancer));
}

#[tokio::test(start_paused = true)]
async fn bodies_must_be_objects_and_paths_must_exist() {
    let cloud = cloud(|_| {});
    let table = [
        ("POST", "/v1/load-balancers", json!([]), 400, "dictionary"),
        ("POST", "/v1/load-balancers", json!({}), 400, "This field is required"),
        ("GET", "/v1/load-balancers/x", json!(null), 404, "Not found."),
        ("PATCH", "/v1/load-balancers/x", json!({"name": "a"}), 404, "Not found."),
        ("DELETE", "/v1/load-balancers/x", json!(null), 404, "Not found."),
        ("GET", "/v1/load-balancers/listeners/x", json!(null), 404, "Not found."),
        ("GET", "/v1/nonsense", json!(null), 404, "Not found."),
        ("PUT", "/v1/load-balancers/x", json!({}), 405, "not allowed"),
    ];
    for (method, path, body, status, fragment) in table {
        let answer = ask(&cloud, method, path, body).await;
        assert_eq!(answer.status, status, "{method} {path}: {answer:?}");
        assert!(answer.text.contains(fragment), "{method} {path}: {answer:?}");
    }
    assert_eq!(get(&cloud, "/v1/load-balancers").await.text, "[]");
}

#[tokio::test(start_paused = true)]
async fn a_project_has_limits_and_errors_come_in_two_forms() {
    let cloud = cloud(|settings| {
        settings.errors_in_lists = true;
        settings.limits = Limits { balancers: 1, servers: 0, floating_ips: 0, ..Limits::default() };
    });
    let body = json!({"name": "web", "flavor": "lb-standard"});
    assert_eq!(ask(&cloud, "POST", "/v1/load-balancers", body.clone()).await.status, 201);
    let server = json!({"name": "a", "flavor": "flex-4-2", "image": "debian-13"});
    let table = [
        ("/v1/load-balancers", body),
        ("/v1/servers", server),
        ("/v1/floating-ips", json!({"ip_version": 4})),
    ];
    for (path, body) in table {
        let answer = ask(&cloud, "POST", path, body).await;
        assert!(answer.status == 400 && answer.text.contains("limit"), "{path}: {answer:?}");
    }
    let lists = ask(&cloud, "POST", "/v1/load-balancers", json!({"flavor": "x"})).await;
    let want = json!({"name": ["This field is required."], "flavor": ["\"x\" is not a valid choice."]});
    assert_eq!(lists.json(), want);
}
