//! Whatever is asked in whatever order: nothing panics, and what is there hangs together.

use std::collections::BTreeSet;

use brightbox_sim::{Cloud, Destination, Resources};
use proptest::prelude::*;
use serde_json::{Value, json};

use crate::fixture::cloud;

/// One request with holes for ids, which are filled with those of things that are or were there.
#[derive(Clone, Debug)]
struct Step {
    method: &'static str,
    collection: &'static str,
    action: &'static str,
    known: usize,
    other: usize,
    body: Value,
}

fn value() -> impl Strategy<Value = Value> {
    prop_oneof![
        Just(Value::Null),
        Just(json!("{other}")),
        Just(json!("tcp")),
        Just(json!("")),
        Just(json!([])),
        Just(json!([{"node": "{other}"}])),
        Just(json!([{"server": "{other}"}])),
        Just(json!([{"protocol": "https", "in": 443, "out": 1}])),
        Just(json!(["a.example.org"])),
        (-2_i64..70_000).prop_map(Value::from),
        any::<bool>().prop_map(Value::from),
        ".{0,8}".prop_map(Value::from),
    ]
}

fn field() -> impl Strategy<Value = &'static str> {
    prop::sample::select(vec![
        "name",
        "nodes",
        "listeners",
        "healthcheck",
        "domains",
        "policy",
        "destination",
        "servers",
        "server_group",
        "firewall_policy",
        "source",
        "destination_port",
        "protocol",
        "reverse_dns",
        "https_redirect",
    ])
}

/// Mostly bodies that are good for something, with some fields spoilt.
fn body() -> impl Strategy<Value = Value> {
    let good = json!({
        "name": "x", "nodes": [{"node": "{server}"}], "servers": [{"server": "{server}"}], "server_group": "{group}",
        "listeners": [{"protocol": "tcp", "in": 80, "out": 30_080}], "healthcheck": {"type": "tcp", "port": 1},
        "firewall_policy": "{policy}", "source": "any", "destination": "{other}",
    });
    prop::collection::vec((field(), value()), 0..2).prop_map(move |changes| {
        let mut body = good.clone();
        for (key, value) in changes {
            body[key] = value;
        }
        body
    })
}

fn step() -> impl Strategy<Value = Step> {
    let place = prop::sample::select(vec![
        ("POST", "load_balancers", ""),
        ("PUT", "load_balancers", ""),
        ("DELETE", "load_balancers", ""),
        ("POST", "load_balancers", "/add_nodes"),
        ("POST", "load_balancers", "/remove_nodes"),
        ("POST", "cloud_ips", ""),
        ("POST", "cloud_ips", "/map"),
        ("POST", "cloud_ips", "/map"),
        ("POST", "cloud_ips", "/unmap"),
        ("DELETE", "cloud_ips", ""),
        ("PUT", "cloud_ips", ""),
        ("POST", "server_groups", ""),
        ("DELETE", "server_groups", ""),
        ("POST", "server_groups", "/add_servers"),
        ("POST", "server_groups", "/remove_servers"),
        ("POST", "firewall_policies", ""),
        ("POST", "firewall_policies", "/apply_to"),
        ("POST", "firewall_policies", "/remove"),
        ("DELETE", "firewall_policies", ""),
        ("POST", "firewall_rules", ""),
        ("DELETE", "servers", ""),
        ("POST", "servers", "/stop"),
        ("GET", "load_balancers", ""),
    ]);
    (place, 0_usize..20, 0_usize..40, body()).prop_map(
        |((method, collection, action), known, other, body)| Step {
            method,
            collection,
            action,
            known,
            other,
            body,
        },
    )
}

fn carry_out(cloud: &Cloud, step: &Step) -> Option<u16> {
    let resources = cloud.resources();
    let pick = |ids: Vec<&String>, at: usize| {
        ids.get(at % ids.len().max(1)).map(ToString::to_string).unwrap_or_default()
    };
    let of = |collection: &str| match collection {
        "servers" => resources.servers.keys().collect::<Vec<_>>(),
        "load_balancers" => resources.balancers.keys().collect(),
        "cloud_ips" => resources.cloud_ips.keys().collect(),
        "server_groups" => resources.groups.keys().collect(),
        _ => resources.policies.keys().collect(),
    };
    let all =
        ["servers", "load_balancers", "server_groups", "cloud_ips"].iter().flat_map(|one| of(one)).collect();
    let text = step
        .body
        .to_string()
        .replace("{other}", &pick(all, step.other))
        .replace("{server}", &pick(of("servers"), step.other))
        .replace("{group}", &pick(of("server_groups"), step.other))
        .replace("{policy}", &pick(of("firewall_policies"), step.other));
    let mut body: Value = serde_json::from_str(&text).unwrap();
    // The address of a rule is called like the target of a mapping.
    if step.collection == "firewall_rules" {
        body.as_object_mut().unwrap().remove("destination");
    }
    let id = format!("/{}", pick(of(step.collection), step.known));
    let id = if step.method == "POST" && step.action.is_empty() { "" } else { &id };
    let path = format!("/1.0/{}{id}{}", step.collection, step.action);
    cloud.back_door(step.method, &path, &body).err().map(|(status, _)| status)
}

fn holds_together(resources: &Resources) {
    let there = |id: &String| resources.servers.get(id).is_some_and(|server| server.status != "deleted");
    assert!(resources.groups.values().all(|group| group.servers.iter().all(there)));
    for balancer in resources.balancers.values() {
        assert!(balancer.nodes.iter().all(there));
        let ports: BTreeSet<_> = balancer.listeners.iter().map(|listener| listener.in_port).collect();
        assert_eq!(ports.len(), balancer.listeners.len());
    }
    for ip in resources.cloud_ips.values() {
        assert!(match &ip.destination {
            None => true,
            Some(Destination::Server(id)) => there(id),
            Some(Destination::Balancer(id)) =>
                resources.balancers.get(id).is_some_and(|b| b.status != "deleted"),
            Some(Destination::Group(id)) => resources.groups.contains_key(id),
        });
    }
    let attached: Vec<_> = resources.policies.values().filter_map(|policy| policy.group.as_ref()).collect();
    assert!(attached.iter().all(|group| resources.groups.contains_key(*group)));
    assert_eq!(attached.iter().collect::<BTreeSet<_>>().len(), attached.len(), "one policy for a group");
    assert_eq!(resources.groups.values().filter(|group| group.default).count(), 1);
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn every_state_is_consistent(steps in prop::collection::vec(step(), 1..60)) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build().unwrap();
        let _inside = runtime.enter();
        let cloud = cloud(|settings| settings.instances = 3);
        for step in &steps {
            let before = cloud.resources();
            let refused = carry_out(&cloud, step);
            let after = cloud.resources();
            holds_together(&after);
            if let Some(status) = refused {
                prop_assert!(matches!(status, 404 | 405 | 409 | 422), "{step:?}: {status}");
                prop_assert_eq!(before, after, "what is refused changes nothing");
            }
        }
    }
}
