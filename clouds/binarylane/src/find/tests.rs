use std::sync::Arc;

use cloudberth_core::{
    lb::{Claims, Goal, Rival},
    view::{Ingress, ObjectKey},
};

use super::*;

const NAME: &str = "k8s-prod-shop-web";

/// What other Services claim.
fn others(keys: &'static [(LockKind, &'static str)]) -> Claims {
    Claims::new(move |asked| {
        let claimed = keys.iter().any(|(kind, value)| *asked == LockKey::new(*kind, *value));
        claimed.then(|| ObjectKey::new("shop", "other")).into_iter().collect()
    })
}

fn want(claims: Claims, shown: Option<&str>) -> Desired {
    let ingress = shown.map(|ip| Ingress { ip: Some(ip.to_owned()), ..Ingress::default() });
    let service = ServiceView {
        namespace: "shop".to_owned(),
        name: "web".to_owned(),
        ingress: ingress.into_iter().collect(),
        ..ServiceView::default()
    };
    Desired {
        service: Arc::new(service),
        cluster: "prod".to_owned(),
        goal: Goal::Present,
        backends: Vec::new(),
        nodes: Vec::new(),
        rivals: Vec::new(),
        claims,
    }
}

fn colliding(mut want: Desired) -> Desired {
    let key = LockKey::new(LockKind::Name, NAME);
    want.rivals.push(Rival { service: ObjectKey::new("shop-web", "x"), key });
    want
}

fn one(id: i64, name: &str, servers: &[i64]) -> LoadBalancer {
    LoadBalancer {
        id,
        name: name.to_owned(),
        ip: format!("203.0.113.{id}"),
        created_at: format!("2026-03-02T04:05:{id:02}+00:00"),
        server_ids: servers.to_vec(),
        ..LoadBalancer::default()
    }
}

fn listed(whole: Vec<LoadBalancer>) -> ListedBalancers {
    ListedBalancers { whole, ..ListedBalancers::default() }
}

fn servers() -> KnownServers {
    KnownServers { all: [1, 2, 8, 9].into(), own: [1, 2].into() }
}

/// The id of what was found by names, the ids of what is left over, and the reasons of what is said.
fn found(want: &Desired, whole: Vec<LoadBalancer>) -> (Option<i64>, Vec<i64>, Vec<&'static str>) {
    let search = Search::new(want, "k8s");
    let listed = listed(whole);
    let namesakes = search.namesakes(&listed, None).unwrap();
    let Found { balancer, surplus, notices } = search.choose(&namesakes, None, &servers());
    let notices = notices.iter().map(|notice| notice.reason.name()).collect();
    (balancer.map(|one| one.id), surplus.into_iter().map(|(id, _)| id).collect(), notices)
}

#[test]
fn names_lead_to_what_can_only_be_this_services() {
    let plain = || want(Claims::default(), None);
    let hashed = Names::of(&plain().service, "prod", "k8s").hashed;
    let duplicate = vec!["DuplicateLoadBalancer"];
    let table = [
        ("nothing", plain(), vec![one(3, "other", &[1])], (None, vec![], vec![])),
        ("BL-95 its name", plain(), vec![one(3, NAME, &[1])], (Some(3), vec![], vec![])),
        (
            "BL-139 in another case",
            plain(),
            vec![one(3, "K8S-Prod-shop-web", &[1])],
            (Some(3), vec![], vec![]),
        ),
        ("its other name", plain(), vec![one(3, &hashed, &[1])], (Some(3), vec![], vec![])),
        ("an empty pool", plain(), vec![one(3, NAME, &[])], (Some(3), vec![], vec![])),
        ("servers that are gone", plain(), vec![one(3, NAME, &[77])], (Some(3), vec![], vec![])),
        ("BL-138", plain(), vec![one(3, NAME, &[8, 9])], (None, vec![], vec!["LoadBalancerNameTaken"])),
        ("BL-138 a shared pool", plain(), vec![one(3, NAME, &[8, 1])], (Some(3), vec![], vec![])),
        (
            "BL-138 published all the same",
            want(Claims::default(), Some("203.0.113.3")),
            vec![one(3, NAME, &[8])],
            (Some(3), vec![], vec![]),
        ),
        (
            "BL-105 the oldest",
            plain(),
            vec![one(4, NAME, &[1]), one(3, NAME, &[1])],
            (Some(3), vec![4], duplicate.clone()),
        ),
        (
            "BL-105 the published one",
            want(Claims::default(), Some("203.0.113.4")),
            vec![one(4, NAME, &[1]), one(3, NAME, &[1])],
            (Some(4), vec![3], duplicate.clone()),
        ),
        (
            "BL-105 not sure that it is ours",
            plain(),
            vec![one(3, NAME, &[1]), one(4, NAME, &[]), one(5, "K8S-prod-shop-web", &[1])],
            (Some(3), vec![], duplicate.clone()),
        ),
        (
            "BL-105 somebody else's address",
            want(others(&[(LockKind::Published, "203.0.113.4")]), None),
            vec![one(3, NAME, &[1]), one(4, NAME, &[1])],
            (Some(3), vec![], duplicate),
        ),
        (
            "BL-97 another Service records it",
            want(others(&[(LockKind::Id, "3")]), None),
            vec![one(3, NAME, &[1])],
            (None, vec![], vec![]),
        ),
        ("BL-140 a collision", colliding(plain()), vec![one(3, NAME, &[1])], (None, vec![], vec![])),
        (
            "BL-140 and the address is published",
            colliding(want(Claims::default(), Some("203.0.113.3"))),
            vec![one(3, NAME, &[1])],
            (Some(3), vec![], vec![]),
        ),
        (
            "BL-140 and the name is unique",
            colliding(plain()),
            vec![one(3, &hashed, &[1])],
            (Some(3), vec![], vec![]),
        ),
    ];
    for (case, want, whole, expected) in table {
        assert_eq!(found(&want, whole), expected, "{case}");
    }
}

#[test]
fn a_creation_of_our_own_is_found_in_a_collision_too() {
    let intended = |claims: Claims| {
        let mut want = colliding(want(claims, None));
        let mut service = (*want.service).clone();
        service.annotations.insert(INTENT_ANNOTATION.to_owned(), format!("2026-01-01T00:00:00Z {NAME}"));
        want.service = Arc::new(service);
        want
    };
    assert_eq!(found(&intended(Claims::default()), vec![one(3, NAME, &[1])]).0, Some(3), "L6-1605");
    let published = others(&[(LockKind::Published, "203.0.113.3")]);
    assert_eq!(found(&intended(published), vec![one(3, NAME, &[1])]).0, None, "L3-1602");
}

#[test]
fn a_recorded_id_may_be_another_services() {
    let theirs = "k8s-prod-shop-other";
    let plain = |claims| want(claims, None);
    let shown = |claims| want(claims, Some("203.0.113.3"));
    let table = [
        ("adopted by hand", plain(Claims::default()), one(3, "by-hand", &[]), false),
        ("BL-97 recorded by another", plain(others(&[(LockKind::Id, "3")])), one(3, "by-hand", &[]), true),
        (
            "BL-97 named for another",
            plain(others(&[(LockKind::Name, "k8s-prod-shop-other")])),
            one(3, theirs, &[]),
            true,
        ),
        ("our own, copied by another", plain(others(&[(LockKind::Id, "3")])), one(3, NAME, &[]), false),
        ("published by us", shown(others(&[(LockKind::Id, "3")])), one(3, "by-hand", &[]), false),
        (
            "published by both",
            shown(others(&[(LockKind::Id, "3"), (LockKind::Published, "203.0.113.3")])),
            one(3, "by-hand", &[]),
            true,
        ),
        ("a collision, recorded by us", colliding(plain(Claims::default())), one(3, NAME, &[]), false),
        (
            "a collision, recorded by both",
            colliding(plain(others(&[(LockKind::Id, "3")]))),
            one(3, NAME, &[]),
            true,
        ),
    ];
    for (case, want, balancer, another) in table {
        let search = Search::new(&want, "k8s");
        assert_eq!(search.anothers(&balancer).is_some(), another, "{case}");
    }
    let want = plain(others(&[(LockKind::Id, "3")]));
    let search = Search::new(&want, "k8s");
    assert!(search.recorded_by_another(&one(3, NAME, &[])), "BL-113");
    assert!(!search.recorded_by_another(&one(4, NAME, &[])), "BL-113");
}

#[test]
fn what_cannot_be_read_or_is_not_listed_proves_no_absence() {
    let want = want(Claims::default(), None);
    let search = Search::new(&want, "k8s");
    let flawed = |name: Option<&str>| ListedBalancers {
        flawed: vec![Flawed {
            identity: Named { id: 9, name: name.map(str::to_owned) },
            why: "ip is null".to_owned(),
        }],
        ..ListedBalancers::default()
    };
    for (case, listed, known) in [
        ("L1-1605 ours cannot be read", flawed(Some(NAME)), false),
        ("L1-1605 one without a name", flawed(None), false),
        ("L11-1601 somebody else's", flawed(Some("other")), true),
        ("L1-1606 short", ListedBalancers { short: Some("page 2".to_owned()), ..listed(vec![]) }, false),
    ] {
        assert_eq!(search.namesakes(&listed, None).is_ok(), known, "{case}");
    }
    let denied = listed(vec![one(3, NAME, &[1])]);
    assert_eq!(search.namesakes(&denied, Some(3)).unwrap().len(), 0, "the source is newer than the listing");
}

#[test]
fn the_servers_of_nodes_are_known_by_id_or_by_name() {
    let instance = |id: i64, name: &str| Instance::new(crate::id::provider_id(id).unwrap(), name);
    let all = Listing::complete(vec![instance(1, "one"), instance(2, "two"), instance(8, "other")]);
    let node = |name: &str, id: Option<&str>| {
        Arc::new(NodeView {
            name: name.to_owned(),
            provider_id: id.map(str::to_owned),
            ..NodeView::default()
        })
    };
    let nodes = [node("x", Some("binarylane:///1")), node("two", None), node("other", Some("hcloud://8"))];
    let known = KnownServers::new(&all, &nodes).unwrap();
    assert_eq!((known.own, known.all.len()), ([1, 2].into(), 3));
    let short = Listing { short: Some("page 2".to_owned()), ..all };
    assert!(
        KnownServers::new(&short, &nodes).is_err(),
        "BL-138 while it is not known whose they are, nothing is"
    );
}
