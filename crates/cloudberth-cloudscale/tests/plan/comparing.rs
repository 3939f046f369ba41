//! What is there beside what is wanted: what is created, replaced, changed, removed, and in which order.

use std::time::Duration;

use cloudberth_cloudscale::{
    Act, Seen, Standing,
    wire::{
        BalancerStatus, FlavorStub, HttpChange, ListenerChange, Member, MonitorChange, NewMember, SlugStub,
    },
};
use cloudberth_core::{
    lb::{Impact, Next, Want},
    view::ExternalTrafficPolicy,
};

use crate::kit::*;

type Edit = fn(&mut Standing);

fn rest(want: &Want, edit: Edit) -> Standing {
    let mut standing = built(want);
    edit(&mut standing);
    standing
}

fn acts(want: &Want, standing: &Standing) -> Vec<Act> {
    settle(want, look(want, Some(standing.clone()))).acts
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
    let ten = crate::kit::want(service(&[]), nodes(1..=10));
    assert_eq!(settle(&ten, absent(&ten)).acts.len(), 14, "ten nodes take 14 mutations");
    assert_eq!(labels(&want, &built(&want)), [""; 0], "CS-83 CS-75");
    assert_eq!(decide(&gone(&want), &Seen::default()).next, Next::Converged, "CS-75 CS-149");
    assert_eq!(PLANNER.decide(&gone(&want), None).next, Next::Converged, "CS-75 CS-149");
}

#[test]
fn only_changing_delays_work_and_polls_become_rarer() {
    let want = annotated(&plain(&[]), "timeout-client-data-ms", "1");
    let before = plain(&[]);
    let mut standing = built(&before);
    standing.balancer.status = BalancerStatus::Changing;
    let mut poll = |millis| {
        standing.changing_for = Duration::from_millis(millis);
        let seen = look(&want, Some(standing.clone()));
        match (decide(&want, &seen).next, decide(&gone(&want), &seen).next) {
            (Next::Wait { poll, .. }, Next::Wait { poll: again, .. }) if poll == again => poll.as_millis(),
            other => panic!("{other:?}"),
        }
    };
    let polls: Vec<_> = [0, 400, 800, 1_600, 4_000, 9_000, 60_000, 600_000].map(&mut poll).into();
    assert_eq!(polls, [400, 400, 400, 800, 2_000, 4_500, 5_000, 5_000], "CS-76 CS-105 CS-150");
    for word in ["running", "degraded", "error", "stopped", "unknown", "brand-new"] {
        standing.balancer.status = read(serde_json::json!(word));
        assert_eq!(labels(&want, &standing), ["set the time-out of clients on port tcp/80"], "CS-105 {word}");
    }
}

#[test]
fn what_is_not_wanted_is_deleted_at_once_with_everything_below() {
    let want = gone(&plain(&[]));
    let way = settle(&want, look(&want, Some(built(&plain(&[])))));
    let [Act::DeleteBalancer { .. }] = way.acts.as_slice() else { panic!("{:?}", way.acts) };
    assert_eq!(way.seen.standing, None, "CS-77 CS-148");
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
    let standing = built(&plain(&[]));
    let way = settle(&want, look(&want, Some(standing)));
    let [Act::RenameBalancer { name, .. }] = way.acts.as_slice() else { panic!("{:?}", way.acts) };
    assert_eq!(name, "mine", "CS-79 CS-145");
}

#[test]
fn what_cannot_be_changed_is_refused_and_everything_else_goes_on() {
    let vip = r#"[{"subnet": "55ee", "address": "10.0.0.5"}]"#;
    let table: [(&str, Want, Edit, &[&str]); 9] = [
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
        let mut standing = rest(&plain(&[]), edit);
        standing.balancer.zone.get_or_insert_with(|| SlugStub { slug: "lpg1".into() });
        // A node joined meanwhile: its member must come.
        let want = Want { backends: crate::kit::want(service(&[]), nodes(1..=3)).backends, ..want };
        let way = settle(&want, look(&want, Some(standing)));
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
    let want = plain(&[("vip-addresses", r#"[{"subnet": "s1", "address": "10.0.0.5"}, {"subnet": "s2"}]"#)]);
    let standing = built(&want);
    let refused = |text: &str| {
        let want = plain(&[("vip-addresses", text)]);
        !settle(&want, look(&want, Some(standing.clone()))).last.refused.is_empty()
    };
    let table = [
        (r#"[{"subnet": "s1", "address": "10.0.0.5"}, {"subnet": "s2"}]"#, false),
        (r#"[{"SUBNET": "s1"}, {"subnet": "s2", "more": 1}]"#, false),
        (r#"[{"address": "10.0.0.5"}, {"subnet": "s2"}]"#, false),
        (r#"[{"subnet": "s1", "address": ""}, {"subnet": "s2", "address": null}]"#, false),
        ("[]", false),
        ("null", false),
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
    let standing = built(&plain(&[]));
    assert_eq!(labels(&plain(&[("pool-algorithm", "least_connections")]), &standing), replace, "CS-87");
    let named = edited(&plain(&[]), |s| s.ports = vec![tcp("http", 80, 30080)]);
    let want: Vec<_> = replace
        .iter()
        .map(|label| match *label {
            "close port tcp/80" | "remove pool tcp" => (*label).to_owned(),
            other => other.replace("pool tcp", "pool tcp/http").replace("least_connections", "round_robin"),
        })
        .collect();
    assert_eq!(labels(&named, &standing), want, "CS-86 CS-143 a port gets a name");
    let https = edited(&plain(&[]), |s| s.ports = vec![tcp("https", 80, 30080)]);
    assert_eq!(labels(&https, &built(&named)).len(), 7, "CS-86 CS-143 a port gets another name");
    let proxy = plain(&[("pool-protocol", "proxyv2")]);
    assert_eq!(labels(&proxy, &standing).len(), 7);
    let impacts = |want: &Want| {
        let mut seen = look(want, Some(standing.clone()));
        let mut worst = Impact::None;
        while let Next::Act(steps) = decide(want, &seen).next {
            for step in steps {
                worst = worst.max(step.impact);
                seen = cloudberth_cloudscale::fold(
                    Some(seen),
                    &step.act,
                    &cloudberth_cloudscale::assume(&step.act),
                )
                .unwrap();
            }
        }
        worst
    };
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
fn members_come_before_others_go() {
    let standing = built(&plain(&[]));
    let with = |numbers: &[usize]| want(service(&[]), numbers.iter().map(|n| node(*n)));
    let table: [(&str, Want, &[&str]); 5] = [
        ("CS-88", with(&[1, 2, 3]), &["add 10.0.0.3:30080 to pool tcp"]),
        ("CS-89", with(&[2]), &["remove 10.0.0.1:30080 from pool tcp"]),
        (
            "L5-201 all nodes are replaced",
            with(&[3, 4]),
            &[
                "add 10.0.0.3:30080 to pool tcp",
                "add 10.0.0.4:30080 to pool tcp",
                "remove 10.0.0.1:30080 from pool tcp",
                "remove 10.0.0.2:30080 from pool tcp",
            ],
        ),
        (
            "CS-90 another node port",
            edited(&plain(&[]), |s| s.ports = vec![tcp("", 80, 31000)]),
            &[
                "add 10.0.0.1:31000 to pool tcp",
                "add 10.0.0.2:31000 to pool tcp",
                "remove 10.0.0.1:30080 from pool tcp",
                "remove 10.0.0.2:30080 from pool tcp",
            ],
        ),
        ("CS-144 nothing changed", with(&[2, 1]), &[]),
    ];
    for (case, want, steps) in table {
        assert_eq!(labels(&want, &standing), steps, "{case}");
    }
}

#[test]
fn what_two_members_cannot_share_is_handed_over_one_at_a_time() {
    let swap = [
        "remove 10.0.0.1:30080 from pool tcp",
        "add 10.0.0.1:30080 to pool tcp",
        "remove 10.0.0.2:30080 from pool tcp",
        "add 10.0.0.2:30080 to pool tcp",
    ];
    let want = plain(&[]);
    let disabled = rest(&want, |s| s.pools[0].members.iter_mut().for_each(|m| m.enabled = false));
    assert_eq!(labels(&want, &disabled), swap, "CS-100");
    let renamed = rest(&want, |s| s.pools[0].members[0].name = "by hand".to_owned());
    assert_eq!(labels(&want, &renamed), ["remove by hand from pool tcp", "add 10.0.0.1:30080 to pool tcp"]);
    let local = edited(&want, |service| {
        service.external_traffic_policy = ExternalTrafficPolicy::Local;
        service.health_check_node_port = 32_000;
    });
    let there = labels(&local, &built(&want));
    assert_eq!(there, [&["stop checking pool tcp by tcp"][..], &swap, &["check pool tcp by http"]].concat());
    let back = labels(&want, &built(&local));
    assert_eq!(back, [&["stop checking pool tcp by http"][..], &swap, &["check pool tcp by tcp"]].concat());
    let null = rest(&want, |s| s.pools[0].members.iter_mut().for_each(|m| m.monitor_port = None));
    assert_eq!(labels(&want, &null), [""; 0], "no monitor port is the same port");
}

#[test]
fn listeners_are_replaced_by_key_and_changed_by_attribute() {
    let want = plain(&[]);
    let table: [(&str, Edit, &[&str]); 5] = [
        ("CS-91 missing", |s| s.pools[0].listeners.clear(), &["open port tcp/80 to pool tcp"]),
        (
            "CS-91 surplus",
            |s| {
                let mut l = s.pools[0].listeners[0].clone();
                (l.uuid, l.name, l.protocol_port) = ("x".into(), "tcp/81".into(), 81);
                s.pools[0].listeners.push(l);
            },
            &["close port tcp/81"],
        ),
        (
            "CS-92",
            |s| {
                (s.pools[0].listeners[0].protocol, s.pools[0].listeners[0].name) =
                    ("udp".into(), "udp/80".into());
            },
            &["open port tcp/80 to pool tcp", "close port udp/80"],
        ),
        (
            "another name",
            |s| s.pools[0].listeners[0].name = "by hand".into(),
            &["close port by hand", "open port tcp/80 to pool tcp"],
        ),
        (
            "a twin of what is wanted stays",
            |s| {
                let mut l = s.pools[0].listeners[0].clone();
                l.uuid = "x".into();
                s.pools[0].listeners.insert(0, l);
            },
            &[],
        ),
    ];
    for (case, edit, steps) in table {
        assert_eq!(labels(&want, &rest(&want, edit)), steps, "{case}");
    }
    let change = |annotations: &[(&str, &str)]| -> Vec<ListenerChange> {
        let acts = acts(&plain(annotations), &built(&want));
        acts.into_iter()
            .map(|act| match act {
                Act::UpdateListener { change, .. } => change,
                other => panic!("{other:?}"),
            })
            .collect()
    };
    let cidrs =
        |list: &[&str]| vec![ListenerChange::AllowedCidrs(list.iter().map(|s| (*s).to_owned()).collect())];
    assert_eq!(
        change(&[("listener-allowed-cidrs", r#"["10.1.2.3/8", "::/0"]"#)]),
        cidrs(&["10.1.2.3/8", "::/0"]),
        "CS-93 CS-111"
    );
    assert_eq!(
        change(&[
            ("timeout-member-data-ms", "7"),
            ("timeout-client-data-ms", "8"),
            ("timeout-member-connect-ms", "5000")
        ]),
        [ListenerChange::TimeoutClientData(8), ListenerChange::TimeoutMemberData(7)],
        "CS-94"
    );
    let filtered = built(&plain(&[("listener-allowed-cidrs", r#"["10.0.0.0/8", "::/0"]"#)]));
    let same = plain(&[("listener-allowed-cidrs", r#"["::/0", "10.9.9.9/8", "10.0.0.0/8"]"#)]);
    assert_eq!(labels(&same, &filtered), [""; 0], "order and spelling do not count");
    assert_eq!(acts(&want, &filtered).len(), 1, "CS-93 the filter is taken away");
}

#[test]
fn monitors_are_replaced_by_key_and_changed_by_attribute() {
    let http = |text| plain(&[("health-monitor-type", "http"), ("health-monitor-http", text)]);
    let want = plain(&[]);
    let table: [(&str, &Want, Standing, &[&str]); 8] = [
        ("CS-95 missing", &want, rest(&want, |s| s.pools[0].monitors.clear()), &["check pool tcp by tcp"]),
        (
            "CS-95 surplus",
            &want,
            rest(&want, |s| {
                let mut m = s.pools[0].monitors[0].clone();
                (m.uuid, m.kind) = ("x".into(), "ping".into());
                s.pools[0].monitors.push(m);
            }),
            &["stop checking pool tcp by ping"],
        ),
        (
            "CS-95 another type",
            &plain(&[("health-monitor-type", "ping")]),
            built(&want),
            &["stop checking pool tcp by tcp", "check pool tcp by ping"],
        ),
        ("CS-96 equal", &http(r#"{"method": "GET"}"#), built(&http("{ }")), &[]),
        (
            "CS-99",
            &http(r#"{"version": "1.0"}"#),
            built(&http("{ }")),
            &["stop checking pool tcp by http", "check pool tcp by http"],
        ),
        ("CS-98", &http(r#"{"host": "h"}"#), built(&http(r#"{"host": "h"}"#)), &[]),
        (
            "a host that goes",
            &http("{ }"),
            built(&http(r#"{"host": "h"}"#)),
            &["stop checking pool tcp by http", "check pool tcp by http"],
        ),
        (
            "details that nobody asks for",
            &http("{}"),
            built(&http(r#"{"host": "h", "url_path": "/x"}"#)),
            &[],
        ),
    ];
    for (case, want, standing, steps) in table {
        assert_eq!(labels(want, &standing), steps, "{case}");
    }
    let change = |after: &Want, before: &Want| -> Vec<MonitorChange> {
        let acts = acts(after, &built(before));
        acts.into_iter()
            .map(|act| match act {
                Act::UpdateMonitor { change, .. } => change,
                other => panic!("{other:?}"),
            })
            .collect()
    };
    assert_eq!(
        change(&http(r#"{"method": "HEAD"}"#), &http("{ }")),
        [MonitorChange::Http(HttpChange::Method("HEAD".into()))],
        "CS-96"
    );
    assert_eq!(
        change(
            &http(r#"{"host": "h", "expected_codes": ["204", "200"], "url_path": "/x"}"#),
            &http(r#"{"expected_codes": ["200", "204"]}"#)
        ),
        [
            MonitorChange::Http(HttpChange::Host("h".into())),
            MonitorChange::Http(HttpChange::UrlPath("/x".into())),
            MonitorChange::Http(HttpChange::ExpectedCodes(vec!["204".into(), "200".into()])),
        ],
        "the order of codes counts"
    );
    let numbers = plain(&[
        ("health-monitor-delay-s", "9"),
        ("health-monitor-timeout-s", "8"),
        ("health-monitor-up-threshold", "7"),
        ("health-monitor-down-threshold", "3"),
    ]);
    assert_eq!(
        change(&numbers, &want),
        [MonitorChange::Delay(9), MonitorChange::Timeout(8), MonitorChange::UpThreshold(7)],
        "CS-97"
    );
}

#[test]
fn what_the_api_does_not_show_is_not_judged() {
    let want = plain(&[("timeout-client-data-ms", "1"), ("health-monitor-delay-s", "9")]);
    let standing = rest(&plain(&[]), |s| {
        s.pools[0].listeners[0].timeout_client_data_ms = None;
        s.pools[0].monitors[0].delay_s = None;
    });
    assert_eq!(labels(&want, &standing), [""; 0]);
}

#[test]
fn sets_are_compared_by_key() {
    let want = want(service(&[]), nodes([1, 2, 5]));
    let standing = built(&crate::kit::want(service(&[]), nodes([2, 3, 5])));
    let acts = acts(&want, &standing);
    let [Act::CreateMember { member: NewMember { name, .. }, .. }, Act::DeleteMember { member, .. }] =
        acts.as_slice()
    else {
        panic!("{acts:?}")
    };
    let gone: Vec<&Member> = standing.pools[0].members.iter().filter(|m| m.uuid == *member).collect();
    assert_eq!(
        (name.as_str(), gone.len(), gone[0].name.as_str()),
        ("10.0.0.1:30080", 1, "10.0.0.3:30080"),
        "CS-101 CS-102"
    );
}

#[test]
fn twins_and_strays_stay_as_they_are() {
    let want = plain(&[]);
    let twin_pool = rest(&want, |s| {
        let mut twin = s.pools[0].clone();
        twin.pool.uuid = "twin".into();
        twin.listeners.clear();
        twin.members.truncate(1);
        s.pools.insert(0, twin);
    });
    assert_eq!(labels(&want, &twin_pool), [""; 0], "a twin before the last is not touched");
    let twin_member = rest(&want, |s| {
        let mut twin = s.pools[0].members[0].clone();
        twin.uuid = "twin".into();
        s.pools[0].members.push(twin);
    });
    assert_eq!(labels(&want, &twin_member), [""; 0]);
    let surplus_twins = rest(&want, |s| {
        for uuid in ["x", "y"] {
            let mut other = s.pools[0].clone();
            (other.pool.uuid, other.pool.name) = (uuid.into(), "tcp/old".into());
            other.listeners.clear();
            s.pools.push(other);
        }
    });
    assert_eq!(labels(&want, &surplus_twins), ["remove pool tcp/old", "remove pool tcp/old"]);
}
