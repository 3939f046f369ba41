//! Whatever is asked in whatever order: nothing panics, and what is there hangs together.

use std::collections::BTreeSet;

use cloudscale_sim::{Cloud, Resources, Target};
use proptest::prelude::*;
use serde_json::{Value, json};

use crate::fixture::cloud;

/// One request with holes for ids, which are filled with those of things that are or were there.
#[derive(Clone, Debug)]
struct Step {
    method: &'static str,
    collection: usize,
    known: usize,
    parent: usize,
    whole: Value,
    patch: Value,
}

const COLLECTIONS: [&str; 8] = [
    "/v1/servers",
    "/v1/load-balancers",
    "/v1/load-balancers/pools",
    "/v1/load-balancers/pools/{pool}/members",
    "/v1/load-balancers/listeners",
    "/v1/load-balancers/health-monitors",
    "/v1/floating-ips",
    "/v1/networks",
];

fn value() -> impl Strategy<Value = Value> {
    prop_oneof![
        Just(Value::Null),
        Just(json!("{parent}")),
        Just(json!("tcp")),
        Just(json!("")),
        Just(json!([])),
        Just(json!({})),
        Just(json!([{"subnet": "{parent}"}])),
        Just(json!({"version": "1.0", "host": "h"})),
        Just(json!(["10.0.0.0/8"])),
        (-2_i64..70_000).prop_map(Value::from),
        any::<bool>().prop_map(Value::from),
        ".{0,8}".prop_map(Value::from),
    ]
}

fn field() -> impl Strategy<Value = &'static str> {
    prop::sample::select(vec![
        "name",
        "flavor",
        "zone",
        "vip_addresses",
        "load_balancer",
        "pool",
        "algorithm",
        "protocol",
        "address",
        "subnet",
        "protocol_port",
        "monitor_port",
        "enabled",
        "allowed_cidrs",
        "type",
        "delay_s",
        "timeout_s",
        "http",
        "server",
        "ip_version",
        "prefix_length",
        "tags",
        "image",
        "interfaces",
    ])
}

/// A change of one attribute, rarely of two.
fn patch() -> impl Strategy<Value = Value> {
    let one = (field(), value()).prop_map(|(key, value)| json!({key: value}));
    prop_oneof![8 => one, 1 => value()]
}

/// Mostly bodies that are good for something, with some fields spoilt.
fn whole() -> impl Strategy<Value = Value> {
    let good = json!({
        "name": "x", "flavor": "lb-standard", "load_balancer": "{balancer}", "pool": "{pool}", "subnet": "{subnet}",
        "algorithm": "round_robin", "protocol": "tcp", "address": "10.0.0.10", "protocol_port": 80, "type": "http",
        "ip_version": 4,
    });
    let spoilt = prop::collection::vec((field(), value()), 0..2).prop_map(move |changes| {
        let mut body = good.clone();
        for (key, value) in changes {
            body[key] = value;
        }
        body
    });
    prop_oneof![8 => spoilt, 1 => value()]
}

fn step() -> impl Strategy<Value = Step> {
    let method = prop_oneof![8 => Just("POST"), 2 => Just("PATCH"), 1 => Just("DELETE"), 1 => Just("GET")];
    let places = (0..COLLECTIONS.len(), 0_usize..40, 0_usize..40);
    (method, places, whole(), patch()).prop_map(|(method, (collection, known, parent), whole, patch)| Step {
        method,
        collection,
        known,
        parent,
        whole,
        patch,
    })
}

fn ids(resources: &Resources) -> Vec<String> {
    let mut ids: Vec<_> = resources.balancers.keys().chain(resources.pools.keys()).cloned().collect();
    ids.extend(
        resources.members.keys().chain(resources.listeners.keys()).chain(resources.monitors.keys()).cloned(),
    );
    ids.extend(resources.servers.keys().cloned());
    ids.extend(resources.floating_ips.keys().map(ToString::to_string));
    ids
}

fn carry_out(cloud: &Cloud, step: &Step) -> Option<u16> {
    let resources = cloud.resources();
    let pick = |ids: Vec<String>, at: usize| ids.get(at % ids.len().max(1)).cloned().unwrap_or_default();
    let subnet = resources.subnets.values().find(|subnet| subnet.cidr.to_string() == "10.0.0.0/16").unwrap();
    let pool = pick(resources.pools.keys().cloned().collect(), step.parent);
    let fill = |text: &str| {
        text.replace("{parent}", &pick(ids(&resources), step.parent))
            .replace("{balancer}", &pick(resources.balancers.keys().cloned().collect(), step.parent))
            .replace("{pool}", &pool)
            .replace("{subnet}", &subnet.uuid)
    };
    let of_kind: Vec<String> = match step.collection {
        0 => resources.servers.keys().cloned().collect(),
        1 => resources.balancers.keys().cloned().collect(),
        2 => resources.pools.keys().cloned().collect(),
        3 => resources.members_of(&pool).map(|member| member.uuid.clone()).collect(),
        4 => resources.listeners.keys().cloned().collect(),
        5 => resources.monitors.keys().cloned().collect(),
        _ => ids(&resources),
    };
    let collection = fill(COLLECTIONS[step.collection]);
    let path = if step.method == "POST" {
        collection
    } else {
        format!("{collection}/{}", pick(of_kind, step.known))
    };
    let body = if step.method == "POST" { &step.whole } else { &step.patch };
    let mut body: Value = serde_json::from_str(&fill(&body.to_string())).unwrap();
    // Some names mean one thing here and another there.
    match (step.method, step.collection, body.as_object_mut()) {
        ("POST", 0, Some(fields)) => {
            fields.insert("flavor".to_owned(), json!("flex-4-1"));
            fields.insert("image".to_owned(), json!("debian-13"));
        }
        ("POST", 6, Some(fields)) => drop(fields.remove("type")),
        _ => {}
    }
    cloud.back_door(step.method, &path, &body).err().map(|(status, _)| status)
}

fn holds_together(resources: &Resources) {
    let has_pool = |pool: &str| resources.pools.contains_key(pool);
    assert!(resources.pools.values().all(|pool| resources.balancers.contains_key(&pool.balancer)));
    assert!(resources.members.values().all(|member| has_pool(&member.pool)));
    assert!(resources.monitors.values().all(|monitor| has_pool(&monitor.pool)));
    assert!(resources.listeners.values().all(|listener| listener.pool.as_deref().is_some_and(has_pool)));
    for ip in resources.floating_ips.values() {
        match &ip.target {
            Some(Target::Server(id)) => assert!(resources.servers.contains_key(id)),
            Some(Target::Balancer(id)) => assert!(resources.balancers.contains_key(id)),
            None => {}
        }
    }
    let ports: BTreeSet<_> =
        resources.listeners.values().map(|l| (&l.balancer, &l.protocol, l.protocol_port)).collect();
    assert_eq!(ports.len(), resources.listeners.len());
    let targets: BTreeSet<_> =
        resources.members.values().map(|m| (&m.pool, m.address, m.protocol_port)).collect();
    assert_eq!(targets.len(), resources.members.len());
    let watched: BTreeSet<_> = resources.monitors.values().map(|monitor| &monitor.pool).collect();
    assert_eq!(watched.len(), resources.monitors.len());
    let addresses: Vec<_> = resources.addresses().collect();
    assert_eq!(addresses.iter().collect::<BTreeSet<_>>().len(), addresses.len());
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn every_state_is_consistent(steps in prop::collection::vec(step(), 1..60)) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build().unwrap();
        let _inside = runtime.enter();
        let cloud = cloud(|settings| settings.instances = 2);
        let balancer = cloud.seed("load-balancers", &json!({"name": "x", "flavor": "lb-standard"})).unwrap();
        let pool = json!({"name": "x", "load_balancer": balancer, "algorithm": "source_ip", "protocol": "tcp"});
        cloud.seed("load-balancers/pools", &pool).unwrap();
        for step in &steps {
            let before = cloud.resources();
            let refused = carry_out(&cloud, step);
            let after = cloud.resources();
            holds_together(&after);
            if let Some(status) = refused {
                prop_assert!(matches!(status, 400 | 404 | 405), "{step:?}: {status}");
                prop_assert_eq!(ids(&before), ids(&after), "what is refused changes nothing");
                prop_assert_eq!(format!("{:?}", before.listeners), format!("{:?}", after.listeners));
                prop_assert_eq!(format!("{:?}", before.monitors), format!("{:?}", after.monitors));
            }
        }
    }
}
