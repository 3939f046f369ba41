//! Members, listeners and health monitors: what is replaced, what is changed in place, what stays.

use cloudberth_cloudscale::{
    Action, ObservedBalancer,
    wire::{HttpChange, ListenerChange, Member, MonitorChange, NewMember},
};
use cloudberth_core::{lb::Desired, view::ExternalTrafficPolicy};

use crate::fixture::*;

type Edit = fn(&mut ObservedBalancer);

fn rest(want: &Desired, edit: Edit) -> ObservedBalancer {
    let mut existing = built(want);
    edit(&mut existing);
    existing
}

fn acts(want: &Desired, existing: &ObservedBalancer) -> Vec<Action> {
    settle(want, look(want, Some(existing.clone()))).acts
}

#[test]
fn members_come_before_others_go() {
    let existing = built(&plain(&[]));
    let with = |numbers: &[usize]| want(service(&[]), numbers.iter().map(|n| node(*n)));
    let table: [(&str, Desired, &[&str]); 5] = [
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
        assert_eq!(labels(&want, &existing), steps, "{case}");
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
                Action::UpdateListener { change, .. } => change,
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
    let table: [(&str, &Desired, ObservedBalancer, &[&str]); 9] = [
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
        (
            "CS-99 no version is 1.1",
            &http("{}"),
            built(&http(r#"{"version": "1.0"}"#)),
            &["stop checking pool tcp by http", "check pool tcp by http"],
        ),
    ];
    for (case, want, existing, steps) in table {
        assert_eq!(labels(want, &existing), steps, "{case}");
    }
    let change = |after: &Desired, before: &Desired| -> Vec<MonitorChange> {
        let acts = acts(after, &built(before));
        acts.into_iter()
            .map(|act| match act {
                Action::UpdateMonitor { change, .. } => change,
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
    let existing = rest(&plain(&[]), |s| {
        s.pools[0].listeners[0].timeout_client_data_ms = None;
        s.pools[0].monitors[0].delay_s = None;
    });
    assert_eq!(labels(&want, &existing), [""; 0]);
}

#[test]
fn sets_are_compared_by_key() {
    let want = want(service(&[]), nodes([1, 2, 5]));
    let existing = built(&crate::fixture::want(service(&[]), nodes([2, 3, 5])));
    let acts = acts(&want, &existing);
    let [Action::CreateMember { member: NewMember { name, .. }, .. }, Action::DeleteMember { member, .. }] =
        acts.as_slice()
    else {
        panic!("{acts:?}")
    };
    let gone: Vec<&Member> = existing.pools[0].members.iter().filter(|m| m.uuid == *member).collect();
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
