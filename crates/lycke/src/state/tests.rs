use std::{path::Path, time::Duration};

use serde_json::json;

use super::*;
use crate::{inventory::Demo, refusal::Refusal, spec};

const NOW: Tick = Tick::from_secs(100);

fn demo() -> String {
    Demo { clusters: 2, workers: 2, loopback: true }.inventory().unwrap()
}

fn read(text: &str) -> Result<Inventory, Faults> {
    inventory::read(text, Path::new("inv.yaml"))
}

fn state_of(text: &str) -> State {
    let inventory = read(text).unwrap();
    let pools = Pools::new(&inventory.balancers);
    State::new(inventory, "inv.yaml".into(), Balancers::default(), pools, NOW)
}

fn key(cluster: &str, name: &str) -> BalancerKey {
    BalancerKey { cluster: cluster.into(), namespace: "default".into(), name: name.into() }
}

fn spec_of(uid: &str, requested: &str) -> spec::Spec {
    let body = json!({
        "uid": uid, "requestedAddress": requested,
        "listeners": [{"protocol": "TCP", "port": 80, "nodePort": 30080}],
        "backends": [{"machine": "n-c2-1", "address": "127.0.20.11"}],
    });
    spec::read(&body, inventory::AddressMode::Loopback).unwrap()
}

fn put(state: &mut State, key: &BalancerKey, uid: &str, requested: &str) -> Result<Put, Refusal> {
    let pools = state.pools.clone();
    state.balancers.put(key, spec_of(uid, requested), &pools)
}

fn shown(state: &State, id: &str) -> MachineState {
    state.machine(id, NOW).unwrap().state
}

#[test]
fn a_set_state_goes_before_vagrants_and_vagrants_before_the_files() {
    let text = format!("{}vagrant: {{ directory: x, refresh: 15s }}\n", demo());
    let mut state = state_of(&text);
    assert_eq!(shown(&state, "n-c2-1"), MachineState::Unknown, "CL-99");
    let answer = [("node-c2-1".to_owned(), MachineState::Suspended)].into();
    state.vagrant.answered(NOW, answer);
    assert_eq!(shown(&state, "n-c2-1"), MachineState::Suspended, "CL-26");
    assert_eq!(shown(&state, "n-c2-2"), MachineState::Running, "CL-29");
    state.set_machine_state("n-c2-1", MachineState::Gone, NOW).unwrap();
    assert_eq!(shown(&state, "n-c2-1"), MachineState::Gone, "CL-30");
    assert_eq!(state.machines(NOW).len(), 6, "one that is gone is still listed");
    let later = NOW + Duration::from_secs(61);
    assert_eq!(state.machine("n-c2-2", later).unwrap().state, MachineState::Unknown, "CL-28");
    state.reload(read(&text), later).unwrap();
    assert_eq!(shown(&state, "n-c2-1"), MachineState::Suspended, "CL-30 a reload ends what was set");
}

#[test]
fn what_is_unknown_changes_nothing_for_traffic() {
    let text = format!("{}vagrant: {{ directory: x, refresh: 15s }}\n", demo());
    let mut state = state_of(&text);
    put(&mut state, &key("c2", "web"), "u", "").unwrap();
    let down = |state: &State| state.config(&key("c2", "web")).unwrap().backends[0].down.clone();
    assert_eq!(down(&state), None, "CL-99");
    state.vagrant.answered(NOW, [("node-c2-1".to_owned(), MachineState::Stopped)].into());
    let changes = state.note_states(NOW);
    let change = StateChange {
        id: "n-c2-1".into(),
        from: Some(MachineState::Unknown),
        to: Some(MachineState::Stopped),
    };
    assert!(changes.contains(&change), "{changes:?}");
    assert_eq!(down(&state).as_deref(), Some("machine stopped"), "CL-82");
    assert_eq!(state.note_states(NOW), [], "it is told once");
    state.note_states(NOW + Duration::from_secs(500));
    assert_eq!(down(&state).as_deref(), Some("machine stopped"), "CL-28 too old to say that it runs");
    state.set_machine_state("n-c2-1", MachineState::Running, NOW).unwrap();
    state.note_states(NOW);
    assert_eq!(down(&state), None, "CL-82 it runs again");
    state.set_machine_state("n-c2-1", MachineState::Gone, NOW).unwrap();
    state.note_states(NOW);
    assert_eq!(down(&state).as_deref(), Some("machine gone"), "CL-82");
    state.remove_machine("n-c2-1", NOW);
    state.note_states(NOW);
    assert_eq!(down(&state), None, "a machine that nobody knows is judged by its checks");
}

#[test]
fn a_reload_is_taken_as_a_whole_or_not_at_all() {
    let mut state = state_of(&demo());
    state.set_machine_state("n-c2-1", MachineState::Stopped, NOW).unwrap();
    let before = state.machines(NOW);
    let faults = state.reload(read("version: 1\nmachines: ["), NOW).unwrap_err();
    assert_eq!(state.faults.as_ref(), Some(&faults), "CL-23");
    assert!(faults.to_string().starts_with("inv.yaml:2: "), "CL-23 {faults}");
    assert_eq!(state.machines(NOW), before, "CL-23 the old one stays in force");
    let empty = demo().split("machines:").next().unwrap().to_owned();
    assert!(state.reload(read(&empty), NOW).is_err(), "CL-25");
    assert_eq!(state.machines(NOW), before, "CL-25");
    let fewer = demo().lines().filter(|line| !line.contains("n-c2-2")).collect::<Vec<_>>().join("\n");
    state.reload(read(&fewer), NOW).unwrap();
    assert_eq!(state.faults, None, "CL-23 a good one ends the alarm");
    assert!(state.machine("n-c2-2", NOW).is_err() && state.machine("n-c2-1", NOW).is_ok(), "CL-24");
    state.reload(read(&format!("{empty}allowEmpty: true\n")), NOW).unwrap();
    assert!(state.machines(NOW).is_empty(), "CL-25 it was meant");
}

#[test]
fn machines_come_and_go_at_run_time() {
    let body = |id: &str, name: &str, address: &str| {
        json!({"id": id, "name": name, "cluster": "c2", "type": "vbox.vm.1g.2cpu", "internal": [address]})
            .to_string()
    };
    let mut state = state_of(&demo());
    let added = state.add_machine(&body("x", "extra", "127.0.20.99"), NOW).unwrap();
    assert_eq!((added.source, added.state), (Source::Runtime, MachineState::Running), "CL-93");
    let code = |found: Result<KnownMachine, Refusal>| found.map(|_| ()).unwrap_err().code;
    assert_eq!(code(state.add_machine(&body("x", "other", "127.0.20.98"), NOW)), "machine_exists");
    assert_eq!(code(state.add_machine(&body("n-c1-1", "other", "127.0.20.98"), NOW)), "machine_exists");
    assert_eq!(code(state.add_machine(&body("y", "node-c2-1", "127.0.20.98"), NOW)), "invalid_spec");
    assert_eq!(code(state.add_machine(&body("y", "other", "127.0.20.11"), NOW)), "invalid_spec");
    state.reload(read(&demo()), NOW).unwrap();
    assert!(state.machine("x", NOW).is_ok(), "CL-93 it stays over a reload");
    let file = format!(
        "{}  - {{ id: x, name: filed, cluster: c2, type: vbox.vm.1g.2cpu, internal: [127.0.20.99] }}\n",
        demo()
    );
    state.reload(read(&file), NOW).unwrap();
    assert_eq!(state.machine("x", NOW).unwrap().source, Source::File, "CL-93 the file has it now");
    assert!(state.remove_machine("n-c2-1", NOW) && !state.remove_machine("n-c2-1", NOW));
    assert_eq!(state.machine("n-c2-1", NOW).unwrap_err().code, "machine_not_found");
    state.reload(read(&demo()), NOW).unwrap();
    assert!(state.machine("n-c2-1", NOW).is_ok(), "one of the file is back after a reload");
}

#[test]
fn a_generation_grows_with_what_is_asked_for() {
    let mut state = state_of(&demo());
    let web = key("c2", "web");
    assert_eq!(put(&mut state, &web, "u", "").unwrap(), Put::Created);
    let first = state.balancers.get(&web).unwrap().clone();
    assert_eq!(put(&mut state, &web, "u", "").unwrap(), Put::Unchanged, "CL-33");
    assert_eq!(state.balancers.get(&web), Some(&first), "CL-33");
    assert_eq!(put(&mut state, &web, "v", "").unwrap(), Put::Changed, "CL-70");
    let second = state.balancers.get(&web).unwrap().clone();
    assert_eq!((second.generation, &second.addresses), (2, &first.addresses), "CL-70 the address is kept");
    let pools = state.pools.clone();
    let refused = state.balancers.delete(&web, Some("u"), &pools).unwrap_err();
    assert_eq!((refused.status, refused.code), (409, "uid_conflict"), "CL-80");
    assert_eq!(state.balancers.get(&web), Some(&second), "CL-80");
    assert_eq!(state.balancers.delete(&web, Some("v"), &pools), Ok(true));
    assert_eq!(state.balancers.delete(&web, None, &pools), Ok(false), "CL-38");
    put(&mut state, &web, "w", "").unwrap();
    let again = state.balancers.get(&web).unwrap();
    assert_eq!((again.generation, &again.addresses), (1, &first.addresses), "CL-40");
    put(&mut state, &key("c1", "web"), "w", "").unwrap();
    assert_ne!(state.balancers.get(&key("c1", "web")).unwrap().addresses, first.addresses, "CL-44");
}

#[test]
fn what_is_written_down_comes_back() {
    let mut state = state_of(&demo());
    for name in ["a", "b", "c"] {
        put(&mut state, &key("c2", name), name, if name == "b" { "127.77.0.9" } else { "" }).unwrap();
    }
    put(&mut state, &key("c2", "a"), "other", "").unwrap();
    let pools = state.pools.clone();
    state.balancers.delete(&key("c2", "c"), None, &pools).unwrap();
    let text = Persisted::new(&state.balancers).to_text();
    let restored = Persisted::restore(&text, &pools).unwrap();
    assert_eq!(restored.balancers, state.balancers, "CL-41 CL-89 the same addresses and generations");
    assert!(restored.lost.is_empty());

    for cut in [0, 1, text.len() / 2, text.len() - 2] {
        assert!(Persisted::restore(&text[..cut], &pools).is_err(), "CL-72");
    }
    assert!(Persisted::restore(&text.replace("\"version\": 1", "\"version\": 2"), &pools).is_err(), "CL-72");

    let moved = read("version: 1\nloadBalancers: { pool: 127.5.0.0/29 }\n").unwrap();
    let moved = Persisted::restore(&text, &Pools::new(&moved.balancers)).unwrap();
    for name in ["a", "b"] {
        let balancer = moved.balancers.get(&key("c2", name)).unwrap();
        assert!(
            balancer.addresses[0].to_string().starts_with("127.5.0."),
            "a new pool counts from a restart on"
        );
        assert_eq!(balancer.generation, state.balancers.get(&key("c2", name)).unwrap().generation);
    }
    let tiny = read("version: 1\nloadBalancers: { pool: 127.5.0.1 }\n").unwrap();
    let tiny = Persisted::restore(&text, &Pools::new(&tiny.balancers)).unwrap();
    assert_eq!((tiny.balancers.iter().count(), tiny.lost.len()), (1, 1), "CL-43 there is room for one only");
}
