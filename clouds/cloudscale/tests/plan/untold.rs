//! What the cloud does not tell is no reason to take anything away.

use cloudberth_cloudscale::{
    Action, BackendInstances, Observed, ObservedBalancer, all_told, trail_of, wire::Named,
};
use cloudberth_core::{
    Category, NodeView,
    lb::{Desired, Goal, Next},
};
use cloudberth_http::Flawed;

use crate::fixture::*;

fn flawed(number: usize) -> Flawed<Named> {
    let identity = Named { uuid: server_uuid(number), name: Some(format!("node-{number:03}")) };
    Flawed { identity, why: "interfaces is missing".to_owned() }
}

/// A look in which these servers cannot be read.
fn dim(want: &Desired, existing: Option<ObservedBalancer>, unreadable: &[usize]) -> Observed {
    let whole = servers((1..=9).filter(|number| !unreadable.contains(number)));
    let flawed: Vec<_> = unreadable.iter().copied().map(flawed).collect();
    Observed { existing, instances: instances_among(want, &whole, &flawed).unwrap() }
}

/// A look in which servers show no private address.
fn blind(want: &Desired, existing: ObservedBalancer) -> Observed {
    let mut all = servers(1..=9);
    for server in &mut all {
        server.interfaces.truncate(1);
    }
    Observed { existing: Some(existing), instances: instances_of(want, &all).unwrap() }
}

fn is_waiting(next: &Next<Action>) -> bool {
    matches!(next, Next::Wait { on, .. } if on.starts_with("the cloud to describe the server of node "))
}

#[test]
fn a_server_that_cannot_be_read_is_neither_there_nor_missing() {
    let by_name = |name: &str| NodeView { name: name.to_owned(), ..NodeView::default() };
    let nameless =
        || Flawed { identity: Named { name: None, ..flawed(5).identity }, why: "name is null".to_owned() };
    let table = [
        ("L1-440 by id", node(2), vec![flawed(2)], (1, 0, 1)),
        ("L1-440 by name", by_name("node-002"), vec![flawed(2)], (1, 0, 1)),
        (
            "L1-441 a namesake",
            by_name("node-003"),
            vec![Flawed { identity: Named { uuid: server_uuid(6), ..flawed(3).identity }, ..flawed(3) }],
            (1, 1, 0),
        ),
        ("L1-441 a server of any name", by_name("node-003"), vec![nameless()], (1, 1, 0)),
        ("L1-441 a server of any name may be it", by_name("node-002"), vec![nameless()], (1, 0, 1)),
        ("L11-407 another's", node(3), vec![flawed(2)], (2, 0, 0)),
    ];
    for (case, second, flawed, counts) in table {
        let want = want(service(&[]), [node(1), second]);
        let BackendInstances { found, missing, unknown } =
            instances_among(&want, &servers([1, 3]), &flawed).unwrap();
        assert_eq!((found.len(), missing.len(), unknown.len()), counts, "{case}: {missing:?} {unknown:?}");
    }
    let both = want(service(&[]), nodes(1..=2));
    let error = instances_among(&both, &servers(5..=6), &[flawed(1), flawed(2)]).unwrap_err();
    assert_eq!(error.category(), Category::Temporary, "L1-442");
    assert!(error.message().contains("node-001: interfaces is missing"), "L1-442 {error}");
}

#[test]
fn while_a_server_cannot_be_read_no_member_goes_and_others_come() {
    let three = want(service(&[]), nodes(1..=3));
    let existing = built(&three);
    // Node 1 left, node 4 came, and nobody knows the addresses of node 3.
    let now = want(service(&[]), nodes(2..=4));
    let way = settle(&now, dim(&now, Some(existing.clone()), &[3]));
    assert_eq!(way.labels, ["add 10.0.0.4:30080 to pool tcp"], "L5-406 L11-408");
    assert!(is_waiting(&way.last.next), "it looks again: {:?}", way.last.next);
    assert_eq!(way.warned(), ["NodeAddressUnknown"]);
    assert!(
        way.last.notices[0].message.ends_with("node-003: interfaces is missing"),
        "{:?}",
        way.last.notices
    );
    assert_eq!(way.last.publish.as_ref().unwrap().ingress.as_ref().map(Vec::len), Some(2));
    let after = settle(&now, look(&now, Some(aged(way.existing()))));
    assert_eq!(after.labels, ["remove 10.0.0.1:30080 from pool tcp"], "told again, what is gone goes");
}

#[test]
fn while_a_server_cannot_be_read_no_pool_is_replaced_and_new_ports_open() {
    let three = want(service(&[]), nodes(1..=3));
    let existing = built(&three);
    let changed = annotated(&three, "pool-algorithm", "source_ip");
    let way = settle(&changed, dim(&changed, Some(existing.clone()), &[3]));
    assert_eq!(way.labels, [""; 0], "L5-407 a new pool would lack a member");
    let more = edited(&three, |service| service.ports.push(tcp("more", 81, 30081)));
    let way = settle(&more, dim(&more, Some(existing.clone()), &[3]));
    assert_eq!(
        way.labels,
        [
            "create pool tcp/more (round_robin, tcp)",
            "add 10.0.0.1:30081 to pool tcp/more",
            "add 10.0.0.2:30081 to pool tcp/more",
            "open port tcp/81 to pool tcp/more",
            "check pool tcp/more by tcp"
        ],
        "L11-409"
    );
    let fewer = edited(&more, |service| _ = service.ports.pop());
    let closed = settle(&fewer, dim(&fewer, Some(aged(way.existing())), &[3]));
    assert_eq!(closed.labels, ["remove pool tcp/more"], "a port that nobody wants is closed");
}

#[test]
fn nothing_is_put_for_good_where_nobody_knows_all_zones() {
    let two = want(service(&[]), nodes(1..=2));
    let decision = decide(&two, &dim(&two, None, &[2]));
    assert!(is_waiting(&decision.next), "L1-443 {:?}", decision.next);
    let told = annotated(&two, "zone", "lpg1");
    assert!(
        matches!(decide(&told, &dim(&told, None, &[2])).next, Next::Act(_)),
        "where it is told it is built"
    );
}

#[test]
fn servers_without_addresses_take_no_member_away() {
    let two = plain(&[]);
    let existing = built(&two);
    let ports = edited(&two, |service| service.ports = vec![tcp("other", 80, 30081)]);
    let table = [
        ("L5-408 nothing else changed", two.clone(), vec![]),
        ("L5-408 a pool that would be replaced", annotated(&two, "pool-algorithm", "source_ip"), vec![]),
        ("L5-408 a port that would move", ports, vec![]),
        (
            "attributes go on",
            annotated(&two, "timeout-client-data-ms", "1000"),
            vec!["set the time-out of clients on port tcp/80"],
        ),
    ];
    for (case, want, labels) in table {
        let way = settle(&want, blind(&want, existing.clone()));
        assert_eq!(way.labels, labels, "{case}");
        assert_eq!(way.warned(), ["NoValidNodes"], "{case}");
        assert!(
            way.last.notices.iter().any(|n| n.message.ends_with("the members that are there stay")),
            "{case}"
        );
        assert_eq!(way.last.next, Next::Converged, "{case}");
    }
    // Nobody is wanted, which somebody said.
    let nobody = want(service(&[]), []);
    let way = settle(&nobody, look(&nobody, Some(existing.clone())));
    assert_eq!(way.labels.len(), 2, "CS-118 {:?}", way.labels);
    // Where there is nothing to lose the ports are opened.
    let mut empty = existing;
    empty.pools.clear();
    let way = settle(&two, blind(&two, empty));
    assert!(way.labels.contains(&"open port tcp/80 to pool tcp".to_owned()), "{:?}", way.labels);
}

#[test]
fn a_load_balancer_that_cannot_be_read_may_be_the_one() {
    let item = |uuid: &str, name: Option<&str>| {
        let identity = Named { uuid: uuid.to_owned(), name: name.map(str::to_owned) };
        vec![Flawed { identity, why: "vip_addresses is missing".to_owned() }]
    };
    let other = "c0ffee01-2d6b-4e55-8a7e-31f2a9b4d002";
    let table = [
        ("another name", item(other, Some("x")), vec![("name", "mine")], true),
        ("L1-444 our name", item(other, Some("mine")), vec![("name", "mine")], false),
        ("L1-444 any name", item(other, None), vec![("name", "mine")], false),
        (
            "the recorded id was asked about",
            item(LB, Some("mine")),
            vec![("name", "mine"), ("uuid", LB)],
            true,
        ),
        ("L1-444 a namesake of it", item(other, Some("mine")), vec![("name", "mine"), ("uuid", LB)], false),
    ];
    for (case, flawed, annotations, clear) in table {
        let trail = trail_of(&service(&annotations), Goal::Present).unwrap();
        let got = all_told(&trail, &flawed);
        assert_eq!(got.is_ok(), clear, "{case}: {got:?}");
    }
}
