use super::*;
use crate::value::set;

/// What is tried, the fields that are changed for it, and words of the complaint.
type Row = (&'static str, Vec<(&'static str, Value)>, &'static str);

fn service(changes: &[(&str, Value)]) -> Value {
    let mut service = json!({
        "metadata": {"name": "s", "namespace": "d", "resourceVersion": "1"},
        "spec": {"type": "LoadBalancer", "sessionAffinity": "None", "internalTrafficPolicy": "Cluster",
                 "externalTrafficPolicy": "Cluster", "allocateLoadBalancerNodePorts": true,
                 "clusterIP": "10.96.0.9", "clusterIPs": ["10.96.0.9"], "ipFamilies": ["IPv4"], "ipFamilyPolicy": "SingleStack",
                 "ports": [{"port": 80, "protocol": "TCP", "targetPort": 80, "nodePort": 30001}]},
        "status": {"loadBalancer": {}}
    });
    for (path, value) in changes {
        set(&mut service, path, value.clone());
    }
    service
}

fn holds(case: &str, errors: &FieldErrors, want: &str) {
    let found = errors.summary().unwrap_or_default();
    assert!(if want.is_empty() { found.is_empty() } else { found.contains(want) }, "{case}: {found}");
}

#[test]
fn bad_services_are_refused_with_the_field_named() {
    let port =
        |name: &str, number: i64| json!({"name": name, "port": number, "protocol": "TCP", "targetPort": 80});
    let table: Vec<Row> = vec![
        ("fine", vec![], ""),
        ("no ports", vec![("spec.ports", json!([]))], "spec.ports: Required value"),
        (
            "port 0",
            vec![("spec.ports", json!([port("", 0)]))],
            "spec.ports[0].port: Invalid value: 0: must be between 1 and 65535, inclusive",
        ),
        (
            "nameless among several",
            vec![("spec.ports", json!([port("", 1), port("b", 2)]))],
            "spec.ports[0].name: Required value",
        ),
        (
            "a name twice",
            vec![("spec.ports", json!([port("a", 1), port("a", 2)]))],
            "spec.ports[1].name: Duplicate value: \"a\"",
        ),
        (
            "a number twice",
            vec![("spec.ports", json!([port("a", 1), port("b", 1)]))],
            "spec.ports[1]: Duplicate value",
        ),
        (
            "unknown type",
            vec![("spec.type", json!("Foo"))],
            "spec.type: Unsupported value: \"Foo\": supported values: \"ClusterIP\", \"ExternalName\", \"LoadBalancer\", \"NodePort\"",
        ),
        (
            "class on another type",
            vec![("spec.type", json!("ClusterIP")), ("spec.loadBalancerClass", json!("a/b"))],
            "spec.loadBalancerClass: Forbidden: may only be used when `type` is 'LoadBalancer'",
        ),
        (
            "bad class",
            vec![("spec.loadBalancerClass", json!("/b"))],
            "spec.loadBalancerClass: Invalid value: \"/b\"",
        ),
        (
            "headless balancer",
            vec![("spec.clusterIP", json!("None")), ("spec.clusterIPs", json!(["None"]))],
            "spec.clusterIPs[0]: Invalid value: \"None\": may not be set to 'None' for LoadBalancer services",
        ),
        (
            "bad range",
            vec![("spec.loadBalancerSourceRanges", json!(["10.0.0.0/8", "x"]))],
            "spec.LoadBalancerSourceRanges[1]: Invalid value: \"x\"",
        ),
        (
            "health port without need",
            vec![("spec.healthCheckNodePort", json!(30005))],
            "spec.healthCheckNodePort: Invalid value: 30005: may only be set when",
        ),
        (
            "loopback",
            vec![("spec.externalIPs", json!(["127.0.0.1"]))],
            "spec.externalIPs[0]: Invalid value: \"127.0.0.1\": may not be in the loopback range",
        ),
        (
            "affinity",
            vec![("spec.sessionAffinity", json!("Sticky"))],
            "spec.sessionAffinity: Unsupported value",
        ),
        (
            "node port on a cluster ip",
            vec![("spec.type", json!("ClusterIP"))],
            "spec.ports[0].nodePort: Forbidden: may not be used when `type` is 'ClusterIP'",
        ),
        ("no external name", vec![("spec.type", json!("ExternalName"))], "spec.externalName: Required value"),
    ];
    for (case, changes, want) in table {
        holds(case, &validate(&service(&changes), None), want);
    }
}

#[test]
fn what_was_said_stays_said() {
    let old = service(&[("spec.loadBalancerClass", json!("a/b"))]);
    let table: Vec<Row> = vec![
        ("nothing changed", vec![], ""),
        (
            "another class",
            vec![("spec.loadBalancerClass", json!("a/c"))],
            "spec.loadBalancerClass: Invalid value: \"a/c\": may not change once set",
        ),
        (
            "no class",
            vec![("spec.loadBalancerClass", Value::Null)],
            "spec.loadBalancerClass: Invalid value: null: may not change once set",
        ),
        (
            "another address",
            vec![("spec.clusterIP", json!("10.96.0.8")), ("spec.clusterIPs", json!(["10.96.0.8"]))],
            "spec.clusterIPs[0]: Invalid value: [\"10.96.0.8\"]: may not change once set",
        ),
    ];
    for (case, mut changes, want) in table {
        changes.insert(0, ("spec.loadBalancerClass", json!("a/b")));
        holds(case, &validate_update(&service(&changes), &old), want);
    }
}

#[test]
fn the_status_is_checked_too() {
    let old = service(&[]);
    let table = [
        ("fine", json!([{"ip": "1.2.3.4", "ipMode": "VIP"}, {"hostname": "a.b"}]), ""),
        (
            "no address",
            json!([{"ip": "x", "ipMode": "VIP"}]),
            "status.loadBalancer.ingress[0].ip: Invalid value: \"x\"",
        ),
        ("mode without address", json!([{"hostname": "a.b", "ipMode": "VIP"}]), "ipMode: Forbidden"),
        (
            "unknown mode",
            json!([{"ip": "1.2.3.4", "ipMode": "Foo"}]),
            "ipMode: Unsupported value: \"Foo\": supported values: \"Proxy\", \"VIP\"",
        ),
        ("an address as a name", json!([{"hostname": "1.2.3.4"}]), "must be a DNS name, not an IP address"),
    ];
    for (case, ingress, want) in table {
        holds(case, &validate_status(&service(&[("status.loadBalancer.ingress", ingress)]), &old), want);
    }
    let plain = service(&[
        ("spec.type", json!("ClusterIP")),
        ("status.loadBalancer.ingress", json!([{"ip": "1.2.3.4"}])),
    ]);
    holds(
        "not a balancer",
        &validate_status(&plain, &old),
        "may only be used when `spec.type` is 'LoadBalancer'",
    );
}
