//! Which load balancer is a Service's, and which servers are its nodes'.

use std::time::Duration;

use cloudberth_cloudscale::{
    Observed, ObservedBalancer, Parts, balancer_name, follow, identity, lock_keys, name_for, trail_of,
    wire::Server,
};
use cloudberth_core::{
    Category, NodeView, ServiceView,
    decide::service::ownership::{Ownership, judge},
    lb::{Goal, INTENT_ANNOTATION, Next},
};
use serde_json::json;

use crate::fixture::*;

const OTHER: &str = "c0ffee01-2d6b-4e55-8a7e-31f2a9b4d002";
const UNKNOWN: &str = "00000000-0000-4000-8000-000000000000";

#[test]
fn a_load_balancer_is_found_by_id_and_by_name_or_not_at_all() {
    let default = format!("k8s-service-{UID}");
    let listed = [balancer(LB, "unique"), balancer(OTHER, "twice"), balancer(UNKNOWN, "twice")];
    let ours = [balancer(LB, &default)];
    let nobody = "11111111-0000-4000-8000-000000000000";
    let table = [
        ("CS-39 nothing matches", &listed[..], &[][..], Ok(None)),
        ("a name that is unique", &listed, &[("name", "unique")], Ok(Some(LB))),
        ("CS-40 the default name", &ours, &[], Ok(Some(LB))),
        ("CS-41 a name that two have", &listed, &[("name", "twice")], Err(())),
        ("CS-42 a name and another's id", &listed, &[("name", "unique"), ("uuid", OTHER)], Err(())),
        ("a name and an unknown id", &listed, &[("name", "unique"), ("uuid", nobody)], Ok(Some(LB))),
        ("a name and no id at all", &listed, &[("name", "unique"), ("uuid", "nonsense")], Ok(Some(LB))),
        ("CS-44 a name and its id", &listed, &[("name", "unique"), ("uuid", LB)], Ok(Some(LB))),
        ("CS-45 an id alone", &listed, &[("uuid", LB)], Ok(Some(LB))),
        (
            "CS-45 an id in another spelling",
            &listed,
            &[("uuid", "C0FFEE01-2D6B-4E55-8A7E-31F2A9B4D001")],
            Ok(Some(LB)),
        ),
        ("CS-48 neither is known", &listed, &[("name", "new"), ("uuid", nobody)], Ok(None)),
    ];
    for (case, listed, set, want) in table {
        let trail = trail_of(&service(set), Goal::Present).unwrap();
        let found = follow(&trail, listed, None).map(|found| found.map(|b| b.uuid.as_str()));
        match (found, want) {
            (Ok(found), Ok(want)) => assert_eq!(found, want, "{case}"),
            (Err(error), Err(())) => {
                assert_eq!(error.category(), Category::Conflict, "{case}");
                assert!(
                    error.message().starts_with("found more than one load balancer: c0ffee01")
                        || error.message().contains(UNKNOWN),
                    "{case}: {error}"
                );
                assert!(error.message().contains(OTHER), "{case}: {error}");
            }
            (found, _) => panic!("{case}: {found:?}"),
        }
    }
}

#[test]
fn what_the_source_shows_counts_though_the_listing_lacks_it() {
    let trail = trail_of(&service(&[("uuid", LB)]), Goal::Present).unwrap();
    let asked = balancer(LB, "renamed by hand");
    assert_eq!(follow(&trail, &[], Some(&asked)).unwrap().unwrap().uuid, LB);
    let named = [balancer(OTHER, &format!("k8s-service-{UID}"))];
    assert!(follow(&trail, &named, Some(&asked)).is_err(), "CS-42");
    for text in ["", "../../servers", "nonsense"] {
        assert_eq!(trail_of(&service(&[("uuid", text)]), Goal::Present).unwrap().id, None, "{text:?}");
    }
}

#[test]
fn an_empty_name_leads_nowhere_but_never_blocks_a_deletion() {
    let empty = service(&[("name", "")]);
    let error = trail_of(&empty, Goal::Present).unwrap_err();
    assert_eq!(error.category(), Category::UserInput, "CS-47");
    assert!(error.message().starts_with("k8s.cloudscale.ch/loadbalancer-name: "), "CS-47 {error}");
    let default = format!("k8s-service-{UID}");
    assert_eq!(trail_of(&empty, Goal::Gone).unwrap().name, default);
    assert_eq!(trail_of(&service(&[("name", ""), ("uuid", LB)]), Goal::Present).unwrap().name, default);
}

#[test]
fn what_was_found_by_a_given_name_is_not_ours_for_that_reason() {
    use Ownership::{NotProven, Proven, Told};
    let default = format!("k8s-service-{UID}");
    let theirs = format!("k8s-service-{OTHER}");
    let another = || Ownership::AnotherServices { uid: OTHER.to_owned() };
    let nobody = "11111111-0000-4000-8000-000000000000";
    let table = [
        ("CS-40 a name that is unique", &[("name", "unique")][..], "unique", NotProven),
        ("CS-40 the default name", &[], default.as_str(), Proven),
        ("CS-43 a name and an unknown id", &[("name", "unique"), ("uuid", nobody)], "unique", NotProven),
        ("CS-43 a name and no id at all", &[("name", "unique"), ("uuid", "nonsense")], "unique", NotProven),
        ("CS-44 a name and its id", &[("name", "unique"), ("uuid", LB)], "unique", Told),
        ("CS-45 an id alone", &[("uuid", LB)], "unique", Told),
        ("an id in another spelling", &[("uuid", "C0FFEE01-2D6B-4E55-8A7E-31F2A9B4D001")], "x", Told),
        ("L3-340 an id of one that was made for another", &[("uuid", LB)], theirs.as_str(), another()),
        ("a name of a person's that begins alike", &[("uuid", LB)], "k8s-service-prod", Told),
    ];
    for (case, set, name, want) in table {
        let service = service(set);
        let verdict =
            judge(&service, &lock_keys(&service), &name_for(&service), &identity(&balancer(LB, name)));
        assert_eq!(verdict, want, "{case}");
    }
}

#[test]
fn a_creation_that_was_never_answered_is_found_by_its_recorded_name() {
    let listed = [balancer(LB, "first"), balancer(OTHER, "second"), balancer(UNKNOWN, "third")];
    let default = [balancer(LB, "first"), balancer(OTHER, &format!("k8s-service-{UID}"))];
    let intent = |value: &str| {
        let mut service = service(&[("name", "second")]);
        service.annotations.insert(INTENT_ANNOTATION.to_owned(), value.to_owned());
        service
    };
    let found_by = |service: &ServiceView, listed: &[_]| {
        let trail = trail_of(service, Goal::Present).unwrap();
        follow(&trail, listed, None).map(|found| found.map(|b| b.uuid.clone()))
    };
    let found = |id: &str| Ok(Some(id.to_owned()));
    assert_eq!(found_by(&intent("2026-01-01T00:00:00Z first"), &listed[..1]), found(LB), "L6-315");
    assert_eq!(found_by(&intent("2026-01-01T00:00:00Z first"), &listed), found(LB), "L6-316 not a stranger");
    assert_eq!(
        found_by(&intent("2026-01-01T00:00:00Z second"), &listed),
        found(OTHER),
        "the name is the same"
    );
    assert_eq!(
        found_by(&intent("2026-01-01T00:00:00Z"), &listed),
        found(OTHER),
        "from before they had names"
    );
    assert_eq!(found_by(&intent("2026-01-01T00:00:00Z gone"), &listed[1..]), found(OTHER), "not there yet");
    let mut unnamed = intent("2026-01-01T00:00:00Z first");
    unnamed.annotations.retain(|key, _| key == INTENT_ANNOTATION);
    assert!(found_by(&unnamed, &default).is_err(), "both are this Service's: a person has to look");
}

#[test]
fn names() {
    let mut plain = service(&[]);
    plain.uid = "deadbeef".to_owned();
    assert_eq!(balancer_name(&plain), "k8s-service-deadbeef", "CS-60");
    assert_eq!(balancer_name(&service(&[("name", "mine")])), "mine", "CS-60");
}

#[test]
fn parts_are_those_of_the_load_balancer_however_it_was_found() {
    let stub = |uuid: &str| json!({"uuid": uuid});
    let pool = |uuid: &str, lb: &str| json!({"uuid": uuid, "name": "tcp", "load_balancer": stub(lb), "algorithm": "round_robin", "protocol": "tcp"});
    let listener = |uuid: &str, pool: serde_json::Value| json!({"uuid": uuid, "name": "tcp/80", "pool": pool, "protocol": "tcp", "protocol_port": 80, "allowed_cidrs": []});
    let monitor =
        |uuid: &str, pool: &str| json!({"uuid": uuid, "pool": stub(pool), "type": "tcp", "http": null});
    let parts = Parts {
        pools: vec![read(pool("p1", LB)), read(pool("p2", OTHER))],
        listeners: vec![
            read(listener("l1", stub("p1"))),
            read(listener("l2", stub("p2"))),
            read(listener("l3", json!(null))),
        ],
        monitors: vec![read(monitor("m1", "p1")), read(monitor("m2", "p2"))],
        ..Parts::default()
    };
    assert_eq!(parts.pools_of(LB).collect::<Vec<_>>(), ["p1"]);
    let member =
        read(json!({"uuid": "x", "name": "10.0.0.1:30080", "address": "10.0.0.1", "protocol_port": 30080,
        "monitor_port": null, "subnet": stub(SUBNET)}));
    let existing =
        ObservedBalancer::assemble(balancer(LB, "x"), &parts, [("p1".to_owned(), vec![member])].into())
            .unwrap();
    let counts = |s: &ObservedBalancer| {
        s.pools.iter().map(|p| (p.members.len(), p.listeners.len(), p.monitors.len())).collect::<Vec<_>>()
    };
    assert_eq!(counts(&existing), [(1, 1, 1)], "CS-45");
    let bare = ObservedBalancer::bare(balancer(LB, "x"), Duration::from_secs(3));
    assert_eq!((bare.balancer.uuid.as_str(), bare.changing_for.as_secs(), bare.pools.len()), (LB, 3, 0));
    let unread = ObservedBalancer::assemble(balancer(LB, "x"), &parts, [].into());
    assert!(unread.is_err(), "CS-74 members that nobody read are not members that are not there");
}

#[test]
fn a_node_finds_its_server() {
    let by_name = |name: &str| NodeView { name: name.to_owned(), ..NodeView::default() };
    let by_id = |name: &str, id: &str| NodeView { provider_id: Some(id.to_owned()), ..by_name(name) };
    let id = |number| format!("cloudscale://{}", server_uuid(number));
    let mut all = servers(1..=3);
    all.push(Server { uuid: server_uuid(9), ..all[2].clone() });
    let table = [
        ("CS-29", by_name("node-001"), Some("10.0.0.1")),
        ("CS-30", by_id("", &id(2)), Some("10.0.0.2")),
        ("CS-31 by name", by_name("node-003"), None),
        ("CS-31 by id", by_id("node-003", &id(9)), Some("10.0.0.3")),
        ("CS-32", by_id("node-001", &id(2)), Some("10.0.0.2")),
        ("CS-33", by_id("node-001", &id(77)), None),
        ("CS-34", by_id("node-001", "cloudscale://bad"), None),
        ("CS-36 an unknown name", by_name("nobody"), None),
        ("CS-36 an empty name", by_name(""), None),
        ("foreign", by_id("node-001", "other://1"), None),
    ];
    for (case, node, address) in table {
        let want = want(service(&[]), [node, by_id("zzz", &id(1))]);
        let instances = instances_of(&want, &all).unwrap();
        assert_eq!(instances.found.len(), 1 + usize::from(address.is_some()), "{case}");
        assert_eq!(instances.missing.len(), usize::from(address.is_none()), "{case}");
        if let Some(address) = address {
            let found = instances.found.iter().map(|m| m.addresses[0].address.as_str()).next();
            assert_eq!(found, Some(address), "{case}");
        }
    }
}

#[test]
fn one_node_without_a_server_is_left_out_and_all_of_them_are_an_error() {
    let ten = want(service(&[]), nodes(1..=10));
    let existing = built(&ten);
    let nine = instances_of(&ten, &servers(2..=10)).unwrap();
    let way = settle(&ten, Observed { existing: Some(existing), instances: nine });
    assert_eq!(way.labels, ["remove 10.0.0.1:30080 from pool tcp"], "CS-38");
    assert_eq!(way.warned(), ["NodeWithoutServer"], "CS-38");
    assert!(way.last.notices[0].message.contains("node-001: there is no instance"), "CS-38");
    assert_eq!(way.last.next, Next::Converged);
    let error = instances_of(&ten, &servers(40..50)).unwrap_err();
    assert!(error.message().starts_with("none of 10 nodes has an instance"), "CS-38 {error}");
    assert!(instances_of(&ten, &[]).is_err(), "CS-37 CS-38");
    assert!(instances_of(&gone(&ten), &[]).unwrap().found.is_empty(), "what goes needs no servers");
}

#[test]
fn of_many_nodes_without_a_server_a_few_are_named() {
    let said = |servers_from: usize| {
        let want = want(service(&[]), nodes(1..=8));
        let instances = instances_of(&want, &servers(servers_from..=8)).unwrap();
        let notices = decide(&want, &Observed { existing: None, instances }).notices;
        notices.into_iter().map(|notice| notice.message).collect::<String>()
    };
    assert_eq!(said(1), "");
    assert!(said(6).contains("node-005") && !said(6).contains("more"), "{}", said(6));
    assert!(said(8).contains("node-005") && !said(8).contains("node-006"), "{}", said(8));
    assert!(said(8).ends_with("; and 2 more"), "{}", said(8));
}
