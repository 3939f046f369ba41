use std::path::Path;

use super::*;

const SEED: &str = "\
version: 1
defaults: { region: virtualbox, zone: virtualbox }
clusters:
  c1: { kubernetesName: kubernetes-1, managed: false }
  c2: { kubernetesName: kubernetes-2, managed: true }
types:
  vbox.vm.512mb.1cpu: { cpus: 1, memoryMiB: 512 }
  vbox.vm.1g.2cpu:    { cpus: 2, memoryMiB: 1024 }
machines:
  - { id: m-c2-1, name: master-c2-1, cluster: c2, type: vbox.vm.512mb.1cpu, internal: [192.168.20.10], external: [192.168.20.10] }
  - id: n-c2-1
    name: node-c2-1
    cluster: c2
    type: vbox.vm.1g.2cpu
    internal: [192.168.20.11]
    external: [192.168.20.11]
    state: stopped
    labels: { rack: shelf }
    backend: 127.0.0.11
    nodeProviderID: kind://docker/kind/kind-worker
vagrant: { directory: ./vagrant, refresh: 20s }
loadBalancers:
  mode: pool
  pool: [192.168.20.128/25, 2001:db8::/120]
  lowPorts: fail
  drain: 5s
  maxConnections: 100
  maxConnectionsTotal: 1000
  udpIdle: 500ms
  udpFlows: 64
  reapAfter: 2h
";

fn file() -> &'static Path {
    Path::new("lab/inv.yaml")
}

fn faults(text: &str) -> Vec<String> {
    read(text, Path::new("inv.yaml")).unwrap_err().0.iter().map(ToString::to_string).collect()
}

/// A valid beginning of nine lines, for files whose machines are wrong.
fn with_machines(machines: &str) -> String {
    let head = SEED.split("machines:").next().unwrap();
    format!("{head}machines:\n{machines}")
}

#[test]
fn every_field_is_read() {
    let read = read(SEED, file()).unwrap();
    assert_eq!(
        read.clusters["c1"],
        Cluster { kubernetes_name: "kubernetes-1".into(), managed: false, line: 4 }
    );
    assert_eq!(read.types["vbox.vm.1g.2cpu"], MachineType { cpus: Some(2), memory_mib: Some(1024) });
    let want = Machine {
        id: "n-c2-1".into(),
        name: "node-c2-1".into(),
        cluster: "c2".into(),
        machine_type: "vbox.vm.1g.2cpu".into(),
        place: Place { region: "virtualbox".into(), zone: "virtualbox".into() },
        internal: vec!["192.168.20.11".parse().unwrap()],
        external: vec!["192.168.20.11".parse().unwrap()],
        backend: "127.0.0.11".parse().unwrap(),
        state: MachineState::Stopped,
        labels: [("rack".to_owned(), "shelf".to_owned())].into(),
        node_provider_id: Some("kind://docker/kind/kind-worker".into()),
    };
    assert_eq!(read.machines["n-c2-1"], want);
    assert_eq!(read.machines["m-c2-1"].backend.to_string(), "192.168.20.10", "the first internal address");
    let vagrant = VagrantSettings { directory: "lab/./vagrant".into(), refresh: Duration::from_secs(20) };
    assert_eq!(read.vagrant, Some(vagrant));
    let balancers = read.balancers;
    assert_eq!(balancers.mode, AddressMode::Pool);
    assert_eq!(
        balancers.pool.iter().map(ToString::to_string).collect::<Vec<_>>(),
        ["192.168.20.128/25", "2001:db8::/120"]
    );
    assert_eq!((balancers.limits.drain, balancers.limits.connections), (Duration::from_secs(5), 100));
    assert_eq!((balancers.limits.udp_idle, balancers.limits.udp_flows), (Duration::from_millis(500), 64));
    assert_eq!(balancers.limits.low_ports, crate::plane::LowPorts::Fail);
    assert_eq!(balancers.connections_total, 1000);
    assert_eq!(balancers.reap_after, Some(Duration::from_secs(7_200)));
}

#[test]
fn what_is_left_out_has_its_default() {
    let small = read("version: 1\n", file()).unwrap();
    assert_eq!(small.balancers, BalancerSettings::default());
    assert_eq!(small.balancers.pool[0].to_string(), "127.77.0.0/16");
    assert_eq!(small.defaults.zone, "virtualbox", "CL-3");
    assert!(small.machines.is_empty() && small.vagrant.is_none() && !small.allow_empty);
    let shared = read("version: 1\nloadBalancers: { mode: shared }\n", file()).unwrap();
    let pool: Vec<_> = shared.balancers.pool.iter().map(|net| net.addr().to_string()).collect();
    assert_eq!(pool, ["127.0.0.1", "::1"]);
    let one = read("version: 1\nloadBalancers: { pool: 127.5.0.0/24 }\n", file()).unwrap();
    assert_eq!(one.balancers.pool[0].to_string(), "127.5.0.0/24");
    let external =
        with_machines("- { id: a, name: b, cluster: c1, type: vbox.vm.1g.2cpu, external: [010.0.0.1] }");
    assert_eq!(read(&external, file()).unwrap().machines["a"].backend.to_string(), "10.0.0.1");
}

#[test]
fn all_faults_come_at_once_with_their_lines() {
    let text = with_machines(
        "  - { id: m-c2-1, name: master-c2-1, cluster: c2, type: vbox.vm.512mb.1cpu, internal: [192.168.20.10] }
  - id: m-c2-1
    name: node-c2-1
    cluster: c2
    type: vbox.huge
    internal:
      - 192.168.20.11
      - 192.168.20.300
",
    );
    assert_eq!(
        faults(&text),
        [
            "inv.yaml:11: machines[1].id: \"m-c2-1\" is already on line 10",
            "inv.yaml:14: machines[1].type: \"vbox.huge\" is not declared under types",
            "inv.yaml:17: machines[1].internal[1]: \"192.168.20.300\" is not an IP address",
        ],
        "CL-22"
    );
}

#[test]
#[expect(clippy::too_many_lines, reason = "a row for each rule")]
fn every_rule_has_its_fault() {
    const GOOD: &str = "- { id: a, name: a, cluster: c1, type: vbox.vm.1g.2cpu, internal: [10.0.0.1] }\n";
    let machine = |extra: &str| {
        with_machines(&format!("{GOOD}- {{ id: b, name: b, cluster: c1, type: vbox.vm.1g.2cpu, {extra} }}\n"))
    };
    let table = [
        ("no version", "clusters: {}".to_owned(), "1: version: it is missing"),
        (
            "another version",
            "version: 2".to_owned(),
            "1: version: it must be a whole number from 1 to 1, not 2",
        ),
        ("no YAML", "version: 1\nmachines: [".to_owned(), "2: file: this is not YAML: "),
        ("no mapping", "- a".to_owned(), "1: file: it must be a mapping"),
        (
            "an unknown key",
            "version: 1\nmachine: []".to_owned(),
            "2: machine: there is no such field; did you mean machines?",
        ),
        (
            "an unknown cluster",
            machine("internal: [10.0.0.2]").replace(
                "cluster: c1, type: vbox.vm.1g.2cpu, internal: [10.0.0.2]",
                "cluster: c9, type: vbox.vm.1g.2cpu, internal: [10.0.0.2]",
            ),
            "11: machines[1].cluster: \"c9\" is not declared",
        ),
        (
            "a missing key",
            with_machines("- name: x\n  cluster: c1\n  type: vbox.vm.1g.2cpu\n  internal: [10.0.0.9]\n"),
            "10: machines[0].id: it is missing",
        ),
        ("no address", machine("state: running"), "11: machines[1].internal: it is missing"),
        (
            "an address of another",
            machine("external: [10.0.0.1]"),
            "11: machines[1].external[0]: 10.0.0.1 is already on line 10",
        ),
        (
            "an address twice",
            machine("internal: [10.0.0.2, 10.0.0.2]"),
            "11: machines[1].internal: 10.0.0.2 is there twice",
        ),
        (
            "no address of a machine",
            machine("internal: [0.0.0.0]"),
            "11: machines[1].internal[0]: \"0.0.0.0\" is not",
        ),
        (
            "an unknown state",
            machine("internal: [10.0.0.2], state: lost"),
            "11: machines[1].state: \"lost\" is not a state",
        ),
        (
            "the state that nobody sets",
            machine("internal: [10.0.0.2], state: unknown"),
            "11: machines[1].state: \"unknown\"",
        ),
        (
            "CL-19 a label of Kubernetes",
            machine("internal: [10.0.0.2], labels: { node.kubernetes.io/x: y }"),
            "11: machines[1].labels.node.kubernetes.io/x: \"node.kubernetes.io/x\" is in a domain of Kubernetes",
        ),
        (
            "a bad label",
            machine("internal: [10.0.0.2], labels: { rack: 'a b' }"),
            "11: machines[1].labels.rack: \"a b\" is not a label value",
        ),
        (
            "a bad id",
            with_machines("- { id: a/b, name: x, cluster: c1, type: vbox.vm.1g.2cpu, internal: [10.0.0.9] }"),
            "10: machines[0].id: \"a/b\" must be letters",
        ),
        (
            "an own id as that of another",
            machine("internal: [10.0.0.2], nodeProviderID: 'cloudlycke://x'"),
            "11: machines[1].nodeProviderID: \"cloudlycke://x\" is an id of this cloud",
        ),
        (
            "no id at all",
            machine("internal: [10.0.0.2], nodeProviderID: x"),
            "11: machines[1].nodeProviderID: \"x\" is not a provider id",
        ),
        (
            "a bad duration",
            "version: 1\nloadBalancers: { drain: soon }".to_owned(),
            "2: loadBalancers.drain: \"soon\" is not a duration",
        ),
        (
            "no pool",
            "version: 1\nloadBalancers: { mode: pool }".to_owned(),
            "2: loadBalancers.pool: it is missing; mode pool needs addresses",
        ),
        (
            "outside of loopback",
            "version: 1\nloadBalancers: { pool: 10.0.0.0/8 }".to_owned(),
            "2: loadBalancers.pool: \"10.0.0.0/8\" is outside of 127.0.0.0/8",
        ),
        (
            "too many to share",
            "version: 1\nloadBalancers: { mode: shared, pool: [127.0.0.0/24] }".to_owned(),
            "2: loadBalancers.pool[0]: \"127.0.0.0/24\" is more than one address",
        ),
        (
            "vagrant without a directory",
            "version: 1\nvagrant: { refresh: 3s }".to_owned(),
            "2: vagrant.directory: it is missing",
        ),
        (
            "vagrant all the time",
            "version: 1\nvagrant: { directory: x, refresh: 0s }".to_owned(),
            "2: vagrant.refresh: \"0s\" must be more",
        ),
    ];
    for (case, text, want) in table {
        let found = faults(&text);
        assert_eq!(found.len(), 1, "{case}: {found:?}");
        assert!(found[0].starts_with(&format!("inv.yaml:{want}")), "{case}: {found:?}");
    }
}

#[test]
fn names_are_unique_in_a_cluster_and_addresses_too() {
    let text = with_machines(
        "- { id: a, name: x, cluster: c1, type: vbox.vm.1g.2cpu, internal: [10.0.0.1], external: [10.0.0.1] }
- { id: b, name: x, cluster: c2, type: vbox.vm.1g.2cpu, internal: [10.0.0.1] }
",
    );
    assert_eq!(read(&text, file()).unwrap().machines.len(), 2, "CL-16 another cluster, another world");
    let same = text.replace("cluster: c2", "cluster: c1");
    let found = faults(&same);
    assert_eq!(
        found,
        [
            "inv.yaml:11: machines[1].internal[0]: 10.0.0.1 is already on line 10",
            "inv.yaml:11: machines[1].name: \"x\" is already on line 10",
        ]
    );
}

#[test]
fn the_demo_has_the_machines_of_the_original() {
    let text = Demo { clusters: 2, workers: 1, loopback: false }.inventory().unwrap();
    let made = read(&text, file()).unwrap();
    let shown: Vec<_> =
        made.machines.values().map(|m| format!("{} {} {}", m.id, m.name, m.internal[0])).collect();
    assert_eq!(
        shown,
        [
            "m-c1-1 master-c1-1 192.168.10.10",
            "m-c2-1 master-c2-1 192.168.20.10",
            "n-c1-1 node-c1-1 192.168.10.11",
            "n-c2-1 node-c2-1 192.168.20.11",
        ],
        "CL-21"
    );
    assert_eq!(made.machines["m-c2-1"].machine_type, "vbox.vm.512mb.1cpu", "CL-21");
    assert_eq!(made.machines["n-c2-1"].machine_type, "vbox.vm.1g.2cpu", "CL-21");
    assert_eq!((made.clusters["c1"].managed, made.clusters["c2"].managed), (false, true), "CL-21");
    for (clusters, workers, good) in
        [(25, 244, true), (26, 1, false), (0, 1, false), (1, 245, false), (1, 0, true)]
    {
        for loopback in [false, true] {
            let text = Demo { clusters, workers, loopback }.inventory();
            assert_eq!(text.is_ok(), good, "CL-21 {clusters} {workers}");
            if let Ok(text) = text {
                let made = read(&text, file()).unwrap();
                assert_eq!(made.machines.len(), usize::from(clusters) * (usize::from(workers) + 1), "CL-21");
                let on_loopback = made.machines.values().all(|machine| machine.backend.is_loopback());
                assert_eq!(on_loopback, loopback);
            }
        }
    }
}

#[test]
fn a_reload_may_not_empty_a_cluster_by_accident() {
    let old = read(SEED, file()).unwrap();
    let empty = with_machines("");
    let cut = empty.replace("  c2: { kubernetesName: kubernetes-2, managed: true }\n", "");
    let meant = format!("{empty}allowEmpty: true\n");
    let table = [
        ("CL-25 no machine is left", empty.as_str(), Some(5)),
        ("CL-25 the cluster is left out", &cut, Some(1)),
        ("CL-25 it is meant", &meant, None),
        ("CL-25 nothing has changed", SEED, None),
    ];
    for (case, text, want) in table {
        let found = emptied_clusters(&old, &read(text, file()).unwrap(), file());
        assert_eq!(found.first().map(|fault| fault.line), want, "{case}");
        if let Some(fault) = found.first() {
            assert_eq!(fault.field, "clusters.c2", "{case}");
        }
    }
}

#[test]
fn a_machine_in_a_request_obeys_the_same_rules() {
    let inventory = read(SEED, file()).unwrap();
    let good = r#"{"id":"x","name":"y","cluster":"c1","type":"vbox.vm.1g.2cpu","internal":["10.0.0.7"],"labels":{"a":"b"}}"#;
    assert_eq!(read_machine_json(good, &inventory).unwrap().backend.to_string(), "10.0.0.7");
    let bad = r#"{"id":"x","name":"y","cluster":"c9","type":"z","internal":["here"],"colour":"red"}"#;
    let message = read_machine_json(bad, &inventory).unwrap_err();
    for part in ["cluster: \"c9\"", "type: \"z\"", "internal[0]: \"here\"", "colour: there is no such field"]
    {
        assert!(message.contains(part), "{part} in {message}");
    }
}
