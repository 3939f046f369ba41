use super::*;
use crate::store::Store;
use sim_kit::Surroundings;

fn ranges(cluster: &[&str]) -> Ranges {
    Ranges { cluster: cluster.iter().map(|range| range.parse().unwrap()).collect(), ports: 30000..=30003 }
}

fn service(name: &str, spec: &Value) -> Value {
    let mut service = json!({"metadata": {"name": name, "namespace": "d"}, "spec": spec});
    super::super::service::defaults(&mut service);
    service
}

struct Cluster {
    store: Store,
    world: Surroundings,
    ranges: Ranges,
}

impl Cluster {
    fn new(cluster: &[&str]) -> Self {
        let world = Surroundings::new(1, || jiff::Timestamp::UNIX_EPOCH);
        Self { store: Store::new(10), world, ranges: ranges(cluster) }
    }

    fn create(&mut self, name: &str, spec: &Value) -> Answer<Value> {
        let mut service = service(name, spec);
        let mut setting = Setting { store: &self.store, world: &mut self.world, ranges: &self.ranges };
        super::super::service::prepare_create(&mut service, &mut setting)?;
        self.store.put("services", &format!("d/{name}"), service.clone());
        Ok(service)
    }
}

const DUAL: [&str; 2] = ["10.96.0.0/16", "fd00:10:96::/112"];

#[test]
fn families_follow_policy_and_cluster() {
    let table = [
        ("nothing said", &DUAL[..], json!({}), "SingleStack", json!(["IPv4"])),
        (
            "two wanted, two there",
            &DUAL[..],
            json!({"ipFamilyPolicy": "PreferDualStack"}),
            "PreferDualStack",
            json!(["IPv4", "IPv6"]),
        ),
        (
            "two wanted, one there",
            &DUAL[..1],
            json!({"ipFamilyPolicy": "PreferDualStack"}),
            "PreferDualStack",
            json!(["IPv4"]),
        ),
        ("six asked for", &DUAL[..], json!({"ipFamilies": ["IPv6"]}), "SingleStack", json!(["IPv6"])),
        (
            "headless without selector",
            &DUAL[..1],
            json!({"clusterIP": "None"}),
            "RequireDualStack",
            json!(["IPv4", "IPv6"]),
        ),
        (
            "headless with selector",
            &DUAL[..1],
            json!({"clusterIP": "None", "selector": {"a": "b"}}),
            "SingleStack",
            json!(["IPv4"]),
        ),
    ];
    for (case, cluster, spec, policy, families) in table {
        let made = Cluster::new(cluster).create("a", &spec).unwrap();
        assert_eq!(made["spec"]["ipFamilyPolicy"], policy, "{case}");
        assert_eq!(made["spec"]["ipFamilies"], families, "{case}");
        if made["spec"]["clusterIP"] != "None" {
            assert_eq!(
                made["spec"]["clusterIPs"].as_array().unwrap().len(),
                families.as_array().unwrap().len(),
                "{case}"
            );
            assert_eq!(made["spec"]["clusterIPs"][0], made["spec"]["clusterIP"], "{case}");
        }
    }
}

#[test]
fn what_cannot_be_had_is_refused() {
    let ports = |node: i64| json!({"type": "NodePort", "ports": [{"port": 80, "nodePort": node}]});
    let table = [
        (
            "no second family",
            json!({"ipFamilyPolicy": "RequireDualStack"}),
            422,
            "not configured for dual-stack",
        ),
        (
            "no such family",
            json!({"ipFamilies": ["IPv6"]}),
            422,
            "spec.ipFamilies[0]: Invalid value: \"IPv6\": not configured on this cluster",
        ),
        (
            "outside the range",
            json!({"clusterIP": "10.1.1.1"}),
            422,
            "failed to allocate IP 10.1.1.1: the provided network does not match the current range",
        ),
        ("taken", json!({"clusterIP": "10.96.0.77"}), 422, "provided IP is already allocated"),
        (
            "port outside",
            ports(80),
            422,
            "spec.ports[0].nodePort: Invalid value: 80: provided port is not in the valid range. The range of valid ports is 30000-30003",
        ),
        ("port taken", ports(30001), 422, "provided port is already allocated"),
    ];
    for (case, spec, code, words) in table {
        let mut cluster = Cluster::new(&DUAL[..1]);
        cluster.create("first", &json!({"type": "NodePort", "clusterIP": "10.96.0.77", "ports": [{"port": 1, "nodePort": 30001}]})).unwrap();
        let failure = cluster.create("a", &spec).unwrap_err();
        assert_eq!(failure.code.as_u16(), code, "{case}: {}", failure.message);
        assert!(failure.message.contains(words), "{case}: {}", failure.message);
    }
}

#[test]
fn ports_are_never_given_twice_and_run_out() {
    let mut cluster = Cluster::new(&DUAL);
    let mut seen = BTreeSet::new();
    let local = json!({"type": "LoadBalancer", "externalTrafficPolicy": "Local", "ports": [{"port": 80}]});
    for name in ["a", "b"] {
        let made = cluster.create(name, &local).unwrap();
        assert!(seen.insert(made["spec"]["ports"][0]["nodePort"].as_i64().unwrap()));
        assert!(seen.insert(made["spec"]["healthCheckNodePort"].as_i64().unwrap()));
    }
    assert_eq!(seen.into_iter().collect::<Vec<_>>(), [30000, 30001, 30002, 30003]);
    assert_eq!(cluster.create("c", &local).unwrap_err().code.as_u16(), 500);
    let none =
        json!({"type": "LoadBalancer", "allocateLoadBalancerNodePorts": false, "ports": [{"port": 80}]});
    assert!(cluster.create("d", &none).unwrap()["spec"]["ports"][0].get("nodePort").is_none());
}

#[test]
fn one_number_in_two_protocols_shares_a_node_port() {
    let spec = json!({"type": "NodePort", "ports": [{"name": "t", "port": 53}, {"name": "u", "port": 53, "protocol": "UDP"}]});
    let made = Cluster::new(&DUAL).create("dns", &spec).unwrap();
    assert_eq!(made["spec"]["ports"][0]["nodePort"], made["spec"]["ports"][1]["nodePort"]);
}

#[test]
fn low_ports_are_kept_for_requests_by_number() {
    for (size, want) in [(1, 0), (16, 0), (17, 16), (2_768, 86), (65_535, 128)] {
        assert_eq!(kept_for_wishes(size), want, "{size}");
    }
}
