//! What is there beside what is wanted: what is created, replaced, changed, removed, and in which order.

use std::time::Duration;

use cloudberth_cloudscale::{
    Action, Observed, ObservedBalancer,
    wire::{BalancerStatus, FlavorStub, SlugStub},
};
use cloudberth_core::lb::{Desired, Impact, Next};

use crate::fixture::*;

type Edit = fn(&mut ObservedBalancer);

fn rest(want: &Desired, edit: Edit) -> ObservedBalancer {
    let mut existing = built(want);
    edit(&mut existing);
    existing
}

#[test]
fn a_load_balancer_is_created_filled_and_left_alone() {
    let want = plain(&[]);
    let way = settle(&want, absent(&want));
    let name = format!("create load balancer k8s-service-{UID}");
    assert_eq!(
        way.labels,
        [
            name.as_str(),
            "create pool tcp (round_robin, tcp)",
            "add 10.0.0.1:30080 to pool tcp",
            "add 10.0.0.2:30080 to pool tcp",
            "open port tcp/80 to pool tcp",
            "check pool tcp by tcp",
        ],
        "CS-78 CS-85 CS-88 CS-91 CS-95"
    );
    let ten = crate::fixture::want(service(&[]), nodes(1..=10));
    assert_eq!(settle(&ten, absent(&ten)).acts.len(), 14, "ten nodes take 14 mutations");
    assert_eq!(labels(&want, &built(&want)), [""; 0], "CS-83 CS-75");
    assert_eq!(decide(&gone(&want), &Observed::default()).next, Next::Converged, "CS-75 CS-149");
    assert_eq!(cloudberth_cloudscale::decide(&gone(&want), None).next, Next::Converged, "CS-75 CS-149");
}

#[test]
fn only_changing_delays_work_and_polls_become_rarer() {
    let want = annotated(&plain(&[]), "timeout-client-data-ms", "1");
    let before = plain(&[]);
    let mut existing = built(&before);
    existing.balancer.status = BalancerStatus::Changing;
    let mut poll = |millis| {
        existing.changing_for = Duration::from_millis(millis);
        let observed = look(&want, Some(existing.clone()));
        match (decide(&want, &observed).next, decide(&gone(&want), &observed).next) {
            (Next::Wait { poll, .. }, Next::Wait { poll: again, .. }) if poll == again => poll.as_millis(),
            other => panic!("{other:?}"),
        }
    };
    let polls: Vec<_> = [0, 400, 800, 1_600, 4_000, 9_000, 60_000, 600_000].map(&mut poll).into();
    assert_eq!(polls, [600, 200, 200, 400, 1_000, 2_250, 5_000, 5_000], "CS-76 CS-105 CS-150");
    for word in ["running", "degraded", "error", "stopped", "unknown", "brand-new"] {
        existing.balancer.status = read(serde_json::json!(word));
        assert_eq!(labels(&want, &existing), ["set the time-out of clients on port tcp/80"], "CS-105 {word}");
    }
}

#[test]
fn what_is_not_wanted_is_deleted_at_once_with_everything_below() {
    let want = gone(&plain(&[]));
    let way = settle(&want, look(&want, Some(built(&plain(&[])))));
    let [Action::DeleteBalancer { .. }] = way.acts.as_slice() else { panic!("{:?}", way.acts) };
    assert_eq!(way.observed.existing, None, "CS-77 CS-148");
    assert_eq!(way.last.next, Next::Converged, "CS-148");
    let broken = gone(&plain(&[
        ("ip-mode", "proxy"),
        ("floating-ips", "["),
        ("flavor", "other"),
        ("health-monitor-delay-s", "x"),
    ]));
    let way = settle(&broken, look(&broken, Some(built(&plain(&[])))));
    assert_eq!((way.acts.len(), way.refused().len()), (1, 0), "CS-151");
}

#[test]
fn a_name_is_changed_in_place() {
    let want = plain(&[("uuid", LB), ("name", "mine")]);
    let existing = built(&plain(&[]));
    let way = settle(&want, look(&want, Some(existing)));
    let [Action::RenameBalancer { name, .. }] = way.acts.as_slice() else { panic!("{:?}", way.acts) };
    assert_eq!(name, "mine", "CS-79 CS-145");
}

#[test]
fn what_cannot_be_changed_is_refused_and_everything_else_goes_on() {
    let vip = r#"[{"subnet": "55ee", "address": "10.0.0.5"}]"#;
    let table: [(&str, Desired, Edit, &[&str]); 9] = [
        ("CS-80 CS-147", plain(&[("flavor", "lb-huge")]), |_| {}, &["flavor"]),
        (
            "CS-80 it was made with another",
            plain(&[]),
            |s| s.balancer.flavor = Some(FlavorStub { slug: "lb-huge".into() }),
            &["flavor"],
        ),
        ("CS-81 CS-147", plain(&[("vip-addresses", vip)]), |_| {}, &["vip-addresses"]),
        ("CS-82 CS-147", plain(&[("zone", "rma1")]), |_| {}, &["zone"]),
        (
            "CS-82 nobody asks for a zone",
            plain(&[]),
            |s| s.balancer.zone = Some(SlugStub { slug: "rma1".into() }),
            &[],
        ),
        (
            "CS-147 all at once",
            plain(&[("zone", "rma1"), ("flavor", "x"), ("vip-addresses", vip)]),
            |_| {},
            &["flavor", "zone", "vip-addresses"],
        ),
        ("CS-54 an empty flavor", plain(&[("flavor", "")]), |_| {}, &["flavor"]),
        ("VIPs that nobody asks for", plain(&[("vip-addresses", "[]")]), |_| {}, &[]),
        ("VIPs that cannot be read", plain(&[("vip-addresses", "")]), |_| {}, &["vip-addresses"]),
    ];
    for (case, want, edit, fields) in table {
        let mut existing = rest(&plain(&[]), edit);
        existing.balancer.zone.get_or_insert_with(|| SlugStub { slug: "lpg1".into() });
        // A node joined meanwhile: its member must come.
        let want = Desired { backends: crate::fixture::want(service(&[]), nodes(1..=3)).backends, ..want };
        let way = settle(&want, look(&want, Some(existing)));
        assert_eq!(way.labels, ["add 10.0.0.3:30080 to pool tcp"], "{case}");
        let full: Vec<_> = fields.iter().map(|field| format!("{PREFIX}{field}")).collect();
        assert_eq!(way.refused(), full, "{case}");
        let publish = way.last.publish.unwrap();
        assert_eq!(
            publish.annotations.contains_key(&format!("{PREFIX}zone")),
            !fields.contains(&"zone"),
            "{case}"
        );
        assert!(publish.ingress.is_some(), "{case}: the status goes on");
    }
}

#[test]
fn private_addresses_are_compared_as_far_as_they_are_given() {
    let asked = r#"[{"subnet": "s1", "address": "10.0.0.5"}, {"subnet": "s2", "address": "2001:db8::5"}]"#;
    let want = plain(&[("vip-addresses", asked)]);
    let existing = built(&want);
    let refused = |text: &str| {
        let want = plain(&[("vip-addresses", text)]);
        !settle(&want, look(&want, Some(existing.clone()))).last.refused.is_empty()
    };
    let table = [
        (r#"[{"subnet": "s1", "address": "10.0.0.5"}, {"subnet": "s2"}]"#, false),
        (r#"[{"SUBNET": "s1"}, {"subnet": "s2", "more": 1}]"#, false),
        (r#"[{"address": "10.0.0.5"}, {"subnet": "s2"}]"#, false),
        (r#"[{"subnet": "s1", "address": ""}, {"subnet": "s2", "address": null}]"#, false),
        (r#"[{"subnet": "s1"}, {"subnet": "S2", "address": "2001:DB8:0::5"}]"#, false),
        ("[]", false),
        ("null", false),
        (r#"[{"subnet": "s1"}, {"subnet": "s2", "address": "2001:db8::6"}]"#, true),
        (r#"[{"subnet": "s1", "address": "10.0.0.6"}, {"subnet": "s2"}]"#, true),
        (r#"[{"subnet": "s2"}, {"subnet": "s1"}]"#, true),
        (r#"[{"subnet": "s1"}]"#, true),
        (" ", true),
    ];
    for (text, want) in table {
        assert_eq!(refused(text), want, "CS-81 {text}");
    }
}

#[test]
fn a_pool_is_replaced_without_a_gap_before_its_port_moves() {
    let replace = [
        "create pool tcp (least_connections, tcp)",
        "add 10.0.0.1:30080 to pool tcp",
        "add 10.0.0.2:30080 to pool tcp",
        "close port tcp/80",
        "open port tcp/80 to pool tcp",
        "remove pool tcp",
        "check pool tcp by tcp",
    ];
    let existing = built(&plain(&[]));
    assert_eq!(labels(&plain(&[("pool-algorithm", "least_connections")]), &existing), replace, "CS-87");
    let named = edited(&plain(&[]), |s| s.ports = vec![tcp("http", 80, 30080)]);
    let want: Vec<_> = replace
        .iter()
        .map(|label| match *label {
            "close port tcp/80" | "remove pool tcp" => (*label).to_owned(),
            other => other.replace("pool tcp", "pool tcp/http").replace("least_connections", "round_robin"),
        })
        .collect();
    assert_eq!(labels(&named, &existing), want, "CS-86 CS-143 a port gets a name");
    let https = edited(&plain(&[]), |s| s.ports = vec![tcp("https", 80, 30080)]);
    assert_eq!(labels(&https, &built(&named)).len(), 7, "CS-86 CS-143 a port gets another name");
    let proxy = plain(&[("pool-protocol", "proxyv2")]);
    assert_eq!(labels(&proxy, &existing).len(), 7);
    let impacts = |want: &Desired| settle(want, look(want, Some(existing.clone()))).worst;
    assert_eq!(impacts(&proxy), Impact::Considerable);
    assert_eq!(impacts(&plain(&[("timeout-member-data-ms", "1")])), Impact::None, "CS-145");
    assert_eq!(impacts(&plain(&[("health-monitor-delay-s", "9")])), Impact::Minimal);
}

#[test]
fn a_port_that_comes_or_goes_leaves_the_others_alone() {
    let two = edited(&plain(&[]), |s| s.ports = vec![tcp("a", 80, 30080), tcp("b", 81, 30081)]);
    let one = edited(&plain(&[]), |s| s.ports = vec![tcp("a", 80, 30080)]);
    assert_eq!(labels(&one, &built(&two)), ["remove pool tcp/b"], "CS-84 CS-144");
    let added = labels(&two, &built(&one));
    assert_eq!(added.len(), 5, "CS-144");
    assert!(added.iter().all(|label| label.contains("tcp/b")), "CS-144 {added:?}");
}

#[test]
fn an_outer_port_changes_by_its_listener_alone() {
    for name in ["", "http"] {
        let before = edited(&plain(&[]), |s| s.ports = vec![tcp(name, 80, 30080)]);
        let after = edited(&plain(&[]), |s| s.ports = vec![tcp(name, 8080, 30080)]);
        let pool = if name.is_empty() { "tcp" } else { "tcp/http" };
        let want = [format!("open port tcp/8080 to pool {pool}"), "close port tcp/80".to_owned()];
        assert_eq!(labels(&after, &built(&before)), want, "CS-142");
    }
}

#[test]
fn two_ports_change_places() {
    let ports = |a, b| edited(&plain(&[]), |s| s.ports = vec![tcp("a", a, 30080), tcp("b", b, 30081)]);
    assert_eq!(
        labels(&ports(81, 80), &built(&ports(80, 81))),
        [
            "close port tcp/80",
            "close port tcp/81",
            "open port tcp/81 to pool tcp/a",
            "open port tcp/80 to pool tcp/b"
        ],
        "CS-158"
    );
    assert_eq!(
        labels(&ports(81, 82), &built(&ports(80, 81))),
        [
            "close port tcp/81",
            "open port tcp/81 to pool tcp/a",
            "open port tcp/82 to pool tcp/b",
            "close port tcp/80"
        ],
        "CS-158 one moves up"
    );
}

#[test]
fn what_a_person_wrote_comes_after_the_nodes() {
    let changed = [
        ("name", "mine"),
        ("floating-ips", "[\"192.0.2.7/32\"]"),
        ("listener-allowed-cidrs", "[\"10.0.0.0/8\"]"),
        ("health-monitor-type", "udp-connect"),
    ];
    let want = want(service(&changed), nodes([2, 3]));
    assert_eq!(
        labels(&want, &built(&plain(&[]))),
        [
            "stop checking pool tcp by tcp",
            "add 10.0.0.3:30080 to pool tcp",
            "remove 10.0.0.1:30080 from pool tcp",
            "check pool tcp by udp-connect",
            "set who may connect on port tcp/80",
            &format!("rename load balancer k8s-service-{UID} to mine"),
            "assign floating IP 192.0.2.7/32",
        ],
        "L11-201"
    );
}
