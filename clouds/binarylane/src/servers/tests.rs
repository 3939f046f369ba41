use serde_json::{Value, json};

use super::*;

fn worker() -> Value {
    json!({
        "id": 410_077, "name": "Kube-W1", "vpc_id": 4021, "status": "active", "unheard_of": {"a": [1]},
        "region": {"slug": "bne", "name": "Brisbane", "sizes": []}, "size": {"slug": "std-2vcpu"}, "size_slug": "std-2vcpu",
        "networks": {
            "v4": [
                {"ip_address": "198.51.100.24", "type": "public", "netmask": "255.255.255.0", "nat_target": null},
                {"ip_address": "10.240.0.7", "type": "private", "netmask": "255.255.0.0", "gateway": null},
            ],
            "v6": [{"ip_address": "2001:db8:7::24", "type": "public", "netmask": 64}],
            "source_and_destination_check": true, "mac_address": "00:00:5e:00:53:01",
        },
        "host": {"display_name": "bne-node-17", "uptime_ms": 1}, "cancelled_at": null, "is_under_maintenance": null,
    })
}

fn edited(edit: impl FnOnce(&mut Value)) -> Value {
    let mut body = worker();
    edit(&mut body);
    body
}

fn read(body: Value, settings: NodeSettings) -> Instance {
    instance(serde_json::from_value(body).unwrap(), settings).unwrap().unwrap()
}

fn plain(body: Value) -> Instance {
    read(body, NodeSettings::default())
}

fn lines(addresses: &[NodeAddress]) -> Vec<String> {
    addresses.iter().map(ToString::to_string).collect()
}

fn host(instance: &Instance) -> Option<&str> {
    instance.labels.get(&LabelKey::new(HOST_LABEL).unwrap()).map(LabelValue::as_str)
}

#[test]
fn a_server_becomes_an_instance() {
    let instance = plain(worker());
    assert_eq!(instance.id.to_string(), "binarylane://410077", "BL-17 BL-26");
    assert_eq!(instance.name, "kube-w1", "BL-18 nodes have lower-case names");
    assert_eq!(instance.instance_type, LabelValue::new("std-2vcpu").ok(), "BL-26");
    assert_eq!(instance.zone, Zone::new("bne").ok(), "BL-26 BL-114");
    assert_eq!(instance.region, Region::new("bne").ok(), "BL-26 BL-114");
    let want = [
        "Hostname Kube-W1",
        "ExternalIP 198.51.100.24",
        "InternalIP 10.240.0.7",
        "ExternalIP 2001:db8:7::24",
    ];
    assert_eq!(lines(&instance.addresses), want, "BL-26 BL-33");
    assert_eq!(host(&instance), Some("bne-node-17"), "BL-26");
    let want = Facts {
        server: 410_077,
        region: "bne".to_owned(),
        vpc: Some(4021),
        vpc_addresses: vec!["10.240.0.7".to_owned()],
        checks_destination: true,
    };
    assert_eq!(facts(&instance), Some(&want));
}

#[test]
fn only_off_and_archived_servers_are_shut_down() {
    use InstanceState::{Other, Pending, Running, Stopped};
    let table = [
        ("BL-46", "new", Pending),
        ("BL-46", "active", Running),
        ("BL-44", "off", Stopped),
        ("BL-45", "archive", Stopped),
        ("BL-37", "resizing", Other),
        ("another case", "Off", Other),
    ];
    for (case, status, want) in table {
        assert_eq!(plain(edited(|s| s["status"] = json!(status))).state, want, "{case} {status}");
    }
    assert_eq!(plain(edited(|s| s["status"] = json!(null))).state, Other);
}

#[test]
fn a_cancelled_server_is_gone_only_if_somebody_says_so_and_it_is_off() {
    let said = NodeSettings { cancelled_is_gone: true, ..NodeSettings::default() };
    let at = "2026-03-02T04:05:06+00:00";
    let table = [
        ("BL-45", "archive", Some(at), false, true),
        ("BL-45", "archive", Some(at), true, false),
        ("BL-45 unpaid", "archive", None, true, true),
        ("BL-151", "active", Some(at), true, true),
        ("BL-151", "off", Some(at), true, true),
    ];
    for (case, status, cancelled, setting, exists) in table {
        let body = edited(|s| {
            s["status"] = json!(status);
            s["cancelled_at"] = json!(cancelled);
        });
        let item: Item<Server, Named> = serde_json::from_value(body).unwrap();
        let settings = if setting { said } else { NodeSettings::default() };
        assert_eq!(instance(item.clone(), settings).unwrap().is_some(), exists, "{case} {status}");
        assert_eq!(instances(vec![item], settings).0.len(), usize::from(exists), "{case} {status}");
    }
}

#[test]
fn private_addresses_that_do_not_work_are_withheld() {
    type Edit = fn(&mut Value);
    let table: [(&str, Edit, &[&str], &[&str]); 7] = [
        (
            "BL-27",
            |s| {
                s["networks"]["v4"].as_array_mut().unwrap().remove(1);
            },
            &[],
            &[],
        ),
        (
            "BL-28",
            |s| {
                let more = json!({"ip_address": "10.240.0.3", "type": "private"});
                s["networks"]["v4"].as_array_mut().unwrap().push(more);
            },
            &["10.240.0.7", "10.240.0.3"],
            &[],
        ),
        ("BL-29", |s| s["vpc_id"] = json!(null), &[], &["10.240.0.7"]),
        (
            "BL-30",
            |s| {
                let more = json!({"ip_address": "172.21.4.9", "type": "private"});
                s["networks"]["v4"].as_array_mut().unwrap().insert(0, more);
            },
            &["10.240.0.7"],
            &["172.21.4.9"],
        ),
        (
            "BL-30 the only one",
            |s| s["networks"]["v4"][1]["ip_address"] = json!("172.21.4.9"),
            &["172.21.4.9"],
            &[],
        ),
        (
            "BL-30 a neighbour",
            |s| s["networks"]["v4"][1]["ip_address"] = json!("172.22.4.9"),
            &["172.22.4.9"],
            &[],
        ),
        ("BL-34", |s| s["networks"]["v4"][1]["type"] = json!("storage"), &[], &[]),
    ];
    for (case, edit, shown, withheld) in table {
        let instance = plain(edited(edit));
        let internal = |list: &[NodeAddress]| {
            let own = list.iter().filter(|address| address.kind() == AddressKind::InternalIp);
            own.map(|address| address.address().to_owned()).collect::<Vec<_>>()
        };
        assert_eq!(internal(&instance.addresses), shown, "{case}");
        assert_eq!(internal(&instance.withheld), withheld, "{case}");
        assert_eq!(facts(&instance).unwrap().vpc_addresses, shown, "{case}");
    }
    let compatible = NodeSettings { include_private_without_vpc: true, ..NodeSettings::default() };
    let instance = read(edited(|s| s["vpc_id"] = json!(null)), compatible);
    assert!(lines(&instance.addresses).contains(&"InternalIP 10.240.0.7".to_owned()), "BL-29");
    assert_eq!(facts(&instance).unwrap().vpc_addresses, [""; 0], "it is in no VPC all the same");
}

#[test]
fn a_server_without_a_public_address_or_host_is_described_too() {
    let instance = plain(edited(|s| {
        s["networks"]["v4"].as_array_mut().unwrap().remove(0);
        s["networks"]["v6"] = json!([{"ip_address": "fd00::1", "type": "private", "netmask": null}]);
        s["host"]["display_name"] = json!("");
    }));
    assert_eq!(lines(&instance.addresses), ["Hostname Kube-W1", "InternalIP 10.240.0.7"], "BL-27 BL-33");
    assert_eq!(host(&instance), None, "BL-27");
}

#[test]
fn netmasks_of_any_kind_are_read() {
    for netmask in [json!("255.255.255.0"), json!(64), json!(null)] {
        let instance = plain(edited(|s| s["networks"]["v4"][0]["netmask"] = netmask.clone()));
        assert_eq!(instance.addresses.len(), 4, "BL-35 {netmask}");
    }
}

#[test]
fn the_host_becomes_a_label_that_kubernetes_takes() {
    let table = [
        ("BL-36", "bne node 17".to_owned(), Some("bne-node-17".to_owned())),
        ("BL-36", " (rack 3) ".to_owned(), Some("rack-3".to_owned())),
        ("BL-36", "x".repeat(70), Some("x".repeat(63))),
        ("BL-36", format!("{}  y", "x".repeat(62)), Some("x".repeat(62))),
        ("BL-36", "Büro".to_owned(), Some("B-ro".to_owned())),
        ("BL-36", "---".to_owned(), None),
        ("BL-36", "雪".to_owned(), None),
    ];
    for (case, name, want) in table {
        let instance = plain(edited(|s| s["host"]["display_name"] = json!(name)));
        assert_eq!(host(&instance), want.as_deref(), "{case} {name:?}");
    }
    assert_eq!(host(&plain(edited(|s| s["host"] = json!(null)))), None);
}

#[test]
fn what_is_not_told_makes_the_instance_unknown_and_not_absent() {
    type Spoil = fn(&mut Value);
    let table: [(&str, Spoil, &str); 6] = [
        ("networks", |s| drop(s.as_object_mut().unwrap().remove("networks")), "networks is missing"),
        ("v4", |s| s["networks"]["v4"] = json!(null), "networks.v4 is null"),
        ("region", |s| s["region"] = json!(null), "region is null"),
        ("type", |s| s["networks"]["v4"][0]["type"] = json!(null), "networks.v4[0].type is null"),
        (
            "address",
            |s| s["networks"]["v4"][1]["ip_address"] = json!(null),
            "networks.v4[1].ip_address is null",
        ),
        ("name", |s| s["name"] = json!(null), "name is null"),
    ];
    for (case, spoil, why) in table {
        let item: Item<Server, Named> = serde_json::from_value(edited(spoil)).unwrap();
        let flawed = instance(item.clone(), NodeSettings::default()).unwrap().unwrap();
        assert_eq!(flawed.flaw.as_deref(), Some(why), "L1-1601 {case}");
        assert_eq!((flawed.state, flawed.addresses.len()), (InstanceState::Other, 0), "L1-1601 {case}");
        let whole = Item::Whole(serde_json::from_value(worker()).unwrap());
        let (all, short) = instances(vec![item, whole], NodeSettings::default());
        assert_eq!(all.len(), 2, "L1-1602 {case}: it is there");
        assert_eq!(short.is_some(), case == "name", "L1-1603 {case}: only a name could be anybody's");
    }
}

#[test]
fn an_id_that_is_none_hides_no_other_server() {
    let bad: Item<Server, Named> = serde_json::from_value(edited(|s| s["id"] = json!(0))).unwrap();
    let good: Item<Server, Named> = serde_json::from_value(worker()).unwrap();
    let (all, short) = instances(vec![bad, good], NodeSettings::default());
    assert_eq!(all.len(), 1, "L11-1600");
    assert!(short.unwrap().contains("the id 0"), "L1-1604");
}
