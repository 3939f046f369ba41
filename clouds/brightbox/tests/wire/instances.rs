//! Servers as instances.

use cloudberth_core::{
    AddressKind, Category, Instance, InstanceState, Instances, Lookup, Provider, provider_id::Reading,
};
use cloudberth_http::testing::Reply;
use serde_json::{Value, json};

use crate::script::{ACCOUNT, Script, TOKENS, server, token};

async fn look_up(reply: Reply) -> Lookup<Instance> {
    let script = Script::signed_in();
    script.cloud.always("GET /1.0/servers/srv-testy", reply);
    let id = "brightbox://srv-testy".parse().unwrap();
    let by_id = script.provider.get(&script.call(), &id).await;
    let by_name = script.provider.find(&script.call(), "srv-testy").await;
    assert_eq!(by_id.is_present(), by_name.is_present(), "BB-33 by the bare name too");
    assert_eq!(by_id.is_absent(), by_name.is_absent(), "BB-33");
    by_id
}

async fn described(more: Value) -> Instance {
    look_up(Reply::json(200, &server("srv-testy", &more))).await.known().unwrap().expect("it exists")
}

#[tokio::test(start_paused = true)]
async fn existence_and_shutdown_follow_from_the_status() {
    let table = [
        ("BB-33", "active", Some(InstanceState::Running)),
        ("BB-34", "deleted", None),
        ("BB-36", "inactive", Some(InstanceState::Stopped)),
        ("BB-38", "creating", Some(InstanceState::Pending)),
        ("BB-38", "deleting", Some(InstanceState::Other)),
        ("BB-39", "unavailable", Some(InstanceState::Stopped)),
        ("BB-40", "failed", None),
    ];
    for (case, status, want) in table {
        let answer = look_up(Reply::json(200, &server("srv-testy", &json!({"status": status})))).await;
        let state = answer.known().unwrap().map(|instance| instance.state);
        assert_eq!(state, want, "{case} {status}");
    }
    let gone = Reply::json(404, &json!({"error_name": "missing_resource", "errors": ["no"]}));
    assert_eq!(look_up(gone).await, Lookup::Absent, "BB-35 BB-49 BB-29 BB-50");
    let why = look_up(Reply::text(500, "<html>")).await.known().unwrap_err();
    assert_ne!(why.category(), Category::NotFound, "BB-37 BB-48 {why}");
    assert!(why.message().contains("500"), "BB-37 {why}");
}

#[tokio::test(start_paused = true)]
async fn a_status_that_says_nothing_is_about_this_server_only() {
    for (case, status) in [
        ("BB-41", json!(null)),
        ("BB-41", json!("")),
        ("BB-42 BB-157", json!("hibernating")),
        ("BB-157", json!("available")),
    ] {
        let instance = described(json!({"status": status})).await;
        assert!(instance.flaw.is_some_and(|why| why.contains("status")), "{case} {status}");
    }
    let script = Script::signed_in();
    let all =
        json!([server("srv-one00", &json!({"status": "hibernating"})), server("srv-two00", &json!({}))]);
    script.cloud.on("GET /1.0/servers", [Reply::json(200, &all)]);
    let listing = script.provider.list(&script.call()).await.unwrap();
    assert!(listing.is_complete(), "BB-42");
    let flaws: Vec<_> = listing.items.iter().map(|one| one.flaw.is_some()).collect();
    assert_eq!(flaws, [true, false], "BB-42 the other is unaffected");
    assert_eq!(script.cloud.lines().iter().filter(|line| line.starts_with("GET")).count(), 1, "BB-52");
}

#[tokio::test(start_paused = true)]
async fn addresses_have_their_order() {
    let shown =
        |instance: &Instance| -> Vec<String> { instance.addresses.iter().map(ToString::to_string).collect() };
    let plain = described(json!({})).await;
    let four = [
        "Hostname srv-testy",
        "ExternalDNS srv-testy.gb1.brightbox.com",
        "ExternalIP 10.241.7.22",
        "ExternalIP 2a02:1348:17c:41:24:19ff:fe0a:1",
    ];
    assert_eq!(shown(&plain), four, "BB-43");
    let cloud_ip =
        json!([{"id": "cip-q4t9z", "public_ip": "203.0.113.9", "fqdn": "cip-q4t9z.gb1.brightbox.com"}]);
    let with = described(json!({"cloud_ips": cloud_ip})).await;
    let more = ["ExternalIP 203.0.113.9", "ExternalDNS cip-q4t9z.gb1.brightbox.com"];
    assert_eq!(shown(&with), [four.as_slice(), &more].concat(), "BB-44 BB-45");
    let v4_only = described(json!({"interfaces": [{"ipv4_address": "10.241.7.22"}]})).await;
    assert_eq!((shown(&v4_only).len(), v4_only.flaw), (3, None), "BB-51");
    let mapped =
        described(json!({"interfaces": [{"ipv4_address": "::ffff:10.1.2.3", "ipv6_address": ""}]})).await;
    assert_eq!(shown(&mapped)[2], "ExternalIP 10.1.2.3", "BB-168");
    let table = [
        ("BB-46 IPv4", json!({"interfaces": [{"ipv4_address": "fred"}]}), "IPv4 address of server srv-testy"),
        ("BB-46 IPv6", json!({"interfaces": [{"ipv6_address": "fred"}]}), "IPv6 address of server srv-testy"),
        (
            "BB-46 Cloud IP",
            json!({"cloud_ips": [{"id": "cip-q4t9z", "public_ip": "fred"}]}),
            "Cloud IP cip-q4t9z",
        ),
        ("BB-168", json!({"interfaces": [{"ipv4_address": "010.1.2.3"}]}), "010.1.2.3"),
        ("not told", json!({"interfaces": null}), "interfaces"),
        ("F5 no zone", json!({"zone": null}), "zone"),
        ("F5 no type", json!({"server_type": null}), "server_type"),
        ("BB-27 no region", json!({"zone": {"handle": "fred"}}), "fred"),
    ];
    for (case, more, words) in table {
        let flaw = described(more).await.flaw.unwrap_or_else(|| panic!("{case}"));
        assert!(flaw.contains(words), "{case}: {flaw}");
    }
    assert!(plain.addresses.iter().all(|one| one.kind() != AddressKind::InternalIp), "BB-43");
}

#[tokio::test(start_paused = true)]
async fn labels_come_from_the_server() {
    for (case, zone, kind, region) in
        [("BB-47 BB-28", "gb1s-a", "1gb.ssd", "gb1s"), ("BB-47 BB-28", "gb1-b", "2gb.ssd", "gb1")]
    {
        let instance = described(json!({"zone": {"handle": zone}, "server_type": {"handle": kind}})).await;
        assert_eq!(instance.id.to_string(), "brightbox://srv-testy", "{case}");
        assert_eq!(instance.zone.unwrap().as_str(), zone, "{case}");
        assert_eq!(instance.region.unwrap().as_str(), region, "{case}");
        assert_eq!(instance.instance_type.unwrap().as_str(), kind, "{case} BB-50");
        assert_eq!(instance.name, "srv-testy", "BB-25 a node is called after the id of its server");
    }
}

#[tokio::test(start_paused = true)]
async fn a_foreign_id_is_never_sent() {
    let script = Script::signed_in();
    let id = "aws:///i-1".parse().unwrap();
    let answer = script.provider.get(&script.call(), &id).await;
    assert!(matches!(answer, Lookup::Unknown(_)), "BB-32 BB-166 never \"does not exist\": {answer:?}");
    assert_eq!(script.cloud.lines(), [""; 0], "BB-32 L3-1604");
    assert_eq!(script.provider.read_id("aws:///i-1"), Reading::Foreign, "BB-32");
    assert_eq!(script.provider.read_id("brightbox://"), Reading::Malformed, "BB-166");
}

#[tokio::test(start_paused = true)]
async fn the_provider_offers_instances_and_load_balancers() {
    let script = Script::signed_in();
    assert_eq!((script.provider.name(), script.provider.scheme()), ("brightbox", "brightbox"), "BB-18");
    assert!(script.provider.instances().is_some() && script.provider.load_balancers().is_some(), "BB-21");
    assert!(script.provider.routes().is_none() && script.provider.zones().is_none(), "BB-20");
    assert_eq!(script.cloud.lines(), [""; 0], "BB-9 nothing is asked for that");
}

#[tokio::test(start_paused = true)]
async fn private_addresses_are_internal_where_that_is_asked_for() {
    let switches = [ACCOUNT, ("BRIGHTBOX_INTERNAL_ADDRESSES", "auto"), ("BRIGHTBOX_K3S_PROVIDER_IDS", "on")];
    let script = Script::new("cli-xxxxx", &switches);
    let cloud_ip = json!([{"id": "cip-q4t9z", "public_ip": "203.0.113.9", "public_ipv6": "2001:db8::9", "fqdn": "c.example"}]);
    let interfaces =
        json!([{"ipv4_address": "10.241.7.22", "ipv6_address": "fd00::1"}, {"ipv4_address": "203.0.113.1"}]);
    let body = server("srv-testy", &json!({"cloud_ips": cloud_ip, "interfaces": interfaces}));
    script.cloud.always(TOKENS, token("t0k3n")).always("GET /1.0/servers/srv-testy", Reply::json(200, &body));
    let id = "k3s://srv-testy".parse().unwrap();
    let instance = script.provider.get(&script.call(), &id).await.known().unwrap().expect("BB-167");
    assert_eq!(instance.id.to_string(), "brightbox://srv-testy", "BB-167");
    let shown: Vec<_> = instance.addresses.iter().skip(2).map(ToString::to_string).collect();
    let want = [
        "InternalIP 10.241.7.22",
        "InternalIP fd00::1",
        "ExternalIP 203.0.113.1",
        "ExternalIP 203.0.113.9",
        "ExternalIP 2001:db8::9",
        "ExternalDNS c.example",
    ];
    assert_eq!(shown, want);
}
