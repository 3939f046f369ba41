//! Server group, firewall policy and rules.

use cloudberth_brightbox::{Action, wire::Rule};
use cloudberth_core::ServiceView;
use serde_json::json;

use crate::fixture::{NAME, account, built, edited, port, read, secure, service, settle, want};

fn rules(service: ServiceView) -> Vec<String> {
    let way = settle(&want(service), account(&["srv-aaaaa"]));
    let rules = way.observed.policies[0].rules.clone();
    for rule in &rules {
        assert_eq!(
            (rule.protocol.as_str(), rule.source.as_str(), rule.description.as_str()),
            ("tcp", "10.0.0.0/8", NAME)
        );
    }
    rules.into_iter().map(|rule| rule.destination_port).collect()
}

/// The case, the nodes, who comes in and who goes.
type Members<'a> = (&'a str, &'a [&'a str], &'a [&'a str], &'a [&'a str]);

#[test]
fn node_ports_and_the_check_are_let_through() {
    let checked = |port| ServiceView { health_check_node_port: port, ..secure(&[]) };
    assert_eq!(rules(checked(8_080)), ["31347,31348,8080"], "BB-130");
    assert_eq!(rules(checked(0)), ["31347,31348"], "BB-130");
    assert_eq!(rules(checked(31_347)), ["31347,31348"], "BB-134 each port once");
    let many = |count: i64| ServiceView {
        ports: (0..count).map(|at| port(&format!("p{at}"), 1_000 + at, 30_000 + at)).collect(),
        ..service(&[])
    };
    let twenty = rules(many(20));
    let counts: Vec<_> = twenty.iter().map(|ports| ports.split(',').count()).collect();
    assert_eq!(counts, [15, 5], "BB-134 {twenty:?}");
    assert_eq!(rules(many(15)).len(), 1, "BB-134");
}

#[test]
fn what_is_missing_is_created_in_order() {
    let way = settle(&want(service(&[])), account(&["srv-bbbbb", "srv-aaaaa"]));
    let names: Vec<_> =
        way.labels.iter().map(|label| label.split(' ').take(3).collect::<Vec<_>>().join(" ")).collect();
    let order = [
        "create server group",
        "add srv-aaaaa, srv-bbbbb",
        "create firewall policy",
        "open ports 31348",
        "create load balancer",
        "map Cloud IP",
    ];
    assert_eq!(names, order, "BB-132 BB-138 BB-131 sorted");
}

#[test]
fn members_become_the_nodes() {
    let (want, observed) = built(&want(service(&[])), &["srv-a", "srv-b"]);
    let table: &[Members<'_>] = &[
        ("BB-131 the same", &["srv-b", "srv-a"], &[], &[]),
        ("BB-131 one more", &["srv-a", "srv-b", "srv-c"], &["srv-c"], &[]),
        ("BB-131 one less", &["srv-b"], &[], &["srv-a"]),
        ("BB-131 to nothing", &[], &[], &["srv-a", "srv-b"]),
        ("BB-131 mixed", &["srv-d", "srv-b", "srv-c"], &["srv-c", "srv-d"], &["srv-a"]),
    ];
    for (case, servers, added, removed) in table {
        let mut now = observed.clone();
        now.servers.found = servers.iter().map(|id| (*id).to_owned()).collect();
        let way = settle(&want, now);
        let (mut adds, mut removes) = (Vec::new(), Vec::new());
        for act in &way.acts {
            match act {
                Action::AddServers { servers, .. } => adds.extend(servers.clone()),
                Action::RemoveServers { servers, .. } => removes.extend(servers.clone()),
                _ => {}
            }
        }
        assert_eq!(
            (adds, removes),
            (
                added.iter().map(|s| (*s).to_owned()).collect(),
                removed.iter().map(|s| (*s).to_owned()).collect()
            ),
            "{case}"
        );
    }
}

#[test]
fn rules_are_mended_and_those_of_others_left_alone() {
    let (want, mut observed) = built(&want(service(&[])), &["srv-a"]);
    let hand_made: Rule = read(
        json!({"id": "fwr-hand", "source": "any", "destination_port": "22", "protocol": "tcp", "description": "ssh"}),
    );
    observed.policies[0].rules.push(hand_made.clone());
    assert_eq!(settle(&want, observed.clone()).labels, [""; 0], "BB-133 BB-183 the same");
    let moved = edited(&want, |service| service.ports[0].node_port = 32_000);
    let way = settle(&moved, observed.clone());
    let [Action::UpdateRule { rule, options }, Action::UpdateBalancer { .. }] = &way.acts[..] else {
        panic!("BB-133 {:?}", way.labels)
    };
    assert_eq!(
        (rule, options.destination_port.as_str()),
        (&observed.policies[0].rules[0].id, "32000"),
        "BB-133 one PUT on the first"
    );
    assert!(way.observed.policies[0].rules.contains(&hand_made), "BB-183");
    observed.policies[0].server_group = None;
    let way = settle(&want, observed.clone());
    assert!(matches!(&way.acts[..], [Action::AttachPolicy { .. }]), "BB-135 {:?}", way.labels);
    let mut doubled = way.observed;
    let mut twin = doubled.policies[0].rules[0].clone();
    twin.id = "fwr-twin".to_owned();
    doubled.policies[0].rules.push(twin);
    let way = settle(&want, doubled);
    assert!(
        matches!(&way.acts[..], [Action::DeleteRule { rule, .. }] if rule == "fwr-twin"),
        "L6-1601 {:?}",
        way.labels
    );
}
