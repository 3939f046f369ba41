use serde_json::{Value, json};

use super::*;

fn body() -> Value {
    json!({
        "id": "n-c2-1", "providerID": "cloudlycke://n-c2-1", "name": "node-c2-1", "cluster": "c2",
        "type": "vbox.vm.1g.2cpu", "region": "virtualbox", "zone": "virtualbox",
        "internal": ["192.168.20.11"], "external": ["192.168.20.11"], "backend": "192.168.20.11",
        "state": "running", "labels": {"rack": "shelf"}, "source": "file",
    })
}

fn with(field: &str, value: Value) -> Item<Machine, MachineIdentity> {
    let mut body = body();
    body[field] = value;
    serde_json::from_value(body).unwrap()
}

fn here(item: Item<Machine, MachineIdentity>) -> Instance {
    match read(item, "c2").unwrap() {
        Known::Here(instance) => *instance,
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_machine_is_an_instance_with_everything_that_its_node_shows() {
    let instance = here(serde_json::from_value(body()).unwrap());
    assert_eq!(instance.id.to_string(), "cloudlycke://n-c2-1", "CL-1 CL-4");
    assert_eq!((instance.name.as_str(), instance.state), ("node-c2-1", InstanceState::Running), "CL-8");
    assert_eq!(instance.instance_type.unwrap().as_str(), "vbox.vm.1g.2cpu", "CL-1");
    let place = (instance.zone.unwrap(), instance.region.unwrap());
    assert_eq!((place.0.as_str(), place.1.as_str()), ("virtualbox", "virtualbox"), "CL-3");
    let shown: Vec<_> =
        instance.addresses.iter().map(|one| format!("{:?} {}", one.kind(), one.address())).collect();
    assert_eq!(shown, ["InternalIp 192.168.20.11", "ExternalIp 192.168.20.11", "Hostname node-c2-1"], "CL-1");
    let labels: Vec<_> = instance.labels.iter().map(|(key, value)| (key.as_str(), value.as_str())).collect();
    assert_eq!(labels, [("rack", "shelf")], "CL-19");
}

#[test]
fn a_state_says_whether_a_machine_exists_and_runs() {
    let state = |text: &str| with("state", json!(text));
    for (case, text, want) in [
        ("CL-8", "running", InstanceState::Running),
        ("CL-9", "stopped", InstanceState::Stopped),
        ("CL-9", "suspended", InstanceState::Stopped),
    ] {
        assert_eq!(here(state(text)).state, want, "{case} {text}");
    }
    assert_eq!(read(state("gone"), "c2").unwrap(), Known::Gone, "CL-11");
    for text in ["unknown", "from the future"] {
        let instance = here(state(text));
        assert!(instance.flaw.is_some() && instance.state == InstanceState::Other, "CL-12 {text}");
        assert_eq!(facts(&instance).unwrap().machine, "n-c2-1", "traffic goes on while nobody knows");
    }
}

#[test]
fn what_lacks_its_addresses_exists_and_is_not_described() {
    let mut lacking = body();
    lacking.as_object_mut().unwrap().remove("internal");
    let instance = here(serde_json::from_value(lacking).unwrap());
    assert_eq!(instance.flaw.as_deref(), Some("internal is missing"));
    assert_eq!((instance.id.to_string().as_str(), facts(&instance)), ("cloudlycke://n-c2-1", None));
}

#[test]
fn a_machine_of_another_cluster_is_not_ours() {
    let elsewhere = Known::Elsewhere("c1".to_owned());
    assert_eq!(read(with("cluster", json!("c1")), "c2").unwrap(), elsewhere, "CL-15");
    let here: Listing<Instance> =
        instances(Listing::complete(vec![with("cluster", json!("c1")), with("id", json!("x"))]), "c2");
    assert_eq!(here.items.len(), 1, "CL-16");
}

#[test]
fn a_node_that_another_program_owns_is_found_by_its_own_id_only() {
    let instance = here(with("nodeProviderID", json!("kind://docker/kind/kind-worker")));
    assert_eq!(instance.id.to_string(), "kind://docker/kind/kind-worker");
    assert_eq!(instance.name, "", "CL-7 no node is taken for its machine because of a name");
    let broken = instances(Listing::complete(vec![with("nodeProviderID", json!("no id"))]), "c2");
    assert!(broken.items.is_empty() && broken.short.unwrap().contains("no id"));
}
