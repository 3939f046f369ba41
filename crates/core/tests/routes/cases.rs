//! What is deleted, what is created and what the nodes are told, case by case.

use std::time::Duration;

use cloudberth_core::{
    Error, Listing,
    decide::routes::{Network, Outcome, conclude, plan},
    route::{Route, RouteChange},
    view::NodeView,
};

use super::{BOTH, Pair, apply, changes, cluster, node, plan_for, route, tracking};

const A4: &str = "10.120.0.0/24";
const B4: &str = "10.120.1.0/24";
const A6: &str = "a00:100::/100";
const B6: &str = "a00:101::/100";

struct Case {
    name: &'static str,
    nodes: Vec<NodeView>,
    routes: Vec<Route>,
    deleted: &'static [(&'static str, &'static str)],
    created: &'static [(&'static str, &'static str)],
    /// What the nodes are told if everything succeeds.
    told: &'static [(&'static str, Network)],
}

const BOTH_CREATED: &[(&str, Network)] = &[("a", Network::Created), ("b", Network::Created)];

fn single() -> Vec<NodeView> {
    vec![node("a", &[A4], &["10.0.0.1"]), node("b", &[B4], &["10.0.0.2"])]
}

fn dual() -> Vec<NodeView> {
    vec![node("a", &[A4, A6], &["10.0.0.1", "fd::1"]), node("b", &[B4, B6], &["10.0.0.2", "fd::2"])]
}

fn all_four(make: impl Fn(&str, &str) -> Route) -> Vec<Route> {
    vec![make("a", A4), make("a", A6), make("b", B4), make("b", B6)]
}

const FOUR: &[(&str, &str)] = &[("a", A4), ("a", A6), ("b", B4), ("b", B6)];

fn dual_stack() -> Vec<Case> {
    let case = |name, routes, deleted, created| Case {
        name,
        nodes: dual(),
        routes,
        deleted,
        created,
        told: BOTH_CREATED,
    };
    let swapped = vec![route("b", A4), route("b", A6), route("a", B4), route("a", B6)];
    let mut extra = all_four(route);
    extra.extend([route("gone", "10.120.2.0/24"), route("gone", "a00:102::/100")]);
    vec![
        case("FW-271 routes without addresses", all_four(|t, c| tracking(t, c, &[])), FOUR, FOUR),
        case("FW-272 other addresses", all_four(|t, c| tracking(t, c, &["10.9.9.9", "fd::9"])), FOUR, FOUR),
        case("FW-273 none", vec![], &[], FOUR),
        case("FW-274 all present", all_four(route), &[], &[]),
        case("FW-275 swapped between nodes", swapped, &[("a", B4), ("a", B6), ("b", A4), ("b", A6)], FOUR),
        case("FW-276 two of four", vec![route("a", A4), route("b", B6)], &[], &[("a", A6), ("b", B4)]),
        case("FW-277 of unknown nodes", extra, &[("gone", "10.120.2.0/24"), ("gone", "a00:102::/100")], &[]),
    ]
}

fn single_stack() -> Vec<Case> {
    let case = |name, routes, deleted, created| Case {
        name,
        nodes: single(),
        routes,
        deleted,
        created,
        told: BOTH_CREATED,
    };
    let both = || vec![route("a", A4), route("b", B4)];
    let with = |extra: Route| [both(), vec![extra]].concat();
    vec![
        case(
            "FW-272 other addresses, single-stack",
            vec![tracking("a", A4, &["10.9.9.9"]), tracking("b", B4, &["10.0.0.1"])],
            &[("a", A4), ("b", B4)],
            &[("a", A4), ("b", B4)],
        ),
        case("FW-278 all present", both(), &[], &[]),
        case("FW-279 one missing", vec![route("a", A4)], &[], &[("b", B4)]),
        case("FW-279 both missing", vec![], &[], &[("a", A4), ("b", B4)]),
        case(
            "FW-280 two of unknown nodes",
            [both(), vec![route("x", "10.120.2.0/24"), route("y", "10.120.3.0/24")]].concat(),
            &[("x", "10.120.2.0/24"), ("y", "10.120.3.0/24")],
            &[],
        ),
        case(
            "FW-281 one right, one of an unknown node",
            vec![route("a", A4), route("x", B4)],
            &[("x", B4)],
            &[("b", B4)],
        ),
        case(
            "FW-283 a blackhole inside",
            with(Route { blackhole: true, ..route("", "10.120.9.0/24") }),
            &[("", "10.120.9.0/24")],
            &[],
        ),
        case(
            "FW-284 a blackhole outside",
            with(Route { blackhole: true, ..route("", "10.1.2.0/24") }),
            &[],
            &[],
        ),
        case("no target, inside", with(route("", "10.120.9.0/24")), &[("", "10.120.9.0/24")], &[]),
        case("of an unknown node, outside", with(route("x", "10.1.2.0/24")), &[], &[]),
        case(
            "L3-21 somebody else's, inside",
            with(Route { ours: false, ..route("x", "10.120.9.0/24") }),
            &[],
            &[],
        ),
        case(
            "L3-22 somebody else's does a node's work",
            vec![route("a", A4), Route { ours: false, ..route("b", B4) }],
            &[],
            &[],
        ),
        case(
            "a blackhole in a node's place is replaced at once",
            vec![route("a", A4), Route { blackhole: true, ..route("b", B4) }],
            &[("b", B4)],
            &[("b", B4)],
        ),
        case(
            "FW-286 addresses that nobody tracks",
            vec![route("a", A4), Route { addresses: None, ..tracking("b", B4, &["10.9.9.9"]) }],
            &[],
            &[],
        ),
        case(
            "the same network, spelled differently",
            vec![route("a", A4), route("b", "10.120.1.1/24")],
            &[("b", "10.120.1.1/24")],
            &[("b", B4)],
        ),
        case(
            "an outdated twin of a good route",
            vec![tracking("a", A4, &["10.9.9.9"]), tracking("a", A4, &["10.0.0.1"]), route("b", B4)],
            &[("a", A4)],
            &[],
        ),
    ]
}

fn odd_nodes() -> Vec<Case> {
    let order = ["fd::1", "10.0.0.1"];
    vec![
        Case {
            name: "FW-282 no network and no routes",
            nodes: vec![node("a", &[A4], &["10.0.0.1"]), node("b", &[], &["10.0.0.2"])],
            routes: vec![],
            deleted: &[],
            created: &[("a", A4)],
            told: &[("a", Network::Created)],
        },
        Case {
            name: "FW-285 the same network twice",
            nodes: vec![node("a", &[A4, A4], &["10.0.0.1"])],
            routes: vec![],
            deleted: &[],
            created: &[("a", A4)],
            told: &[("a", Network::Created)],
        },
        Case {
            name: "FW-287 the same addresses in another order",
            nodes: vec![dual().remove(0)],
            routes: vec![tracking("a", A4, &order), tracking("a", A6, &order)],
            deleted: &[],
            created: &[],
            told: &[("a", Network::Created)],
        },
        Case {
            name: "one address more than the node has",
            nodes: vec![node("a", &[A4], &["10.0.0.1"])],
            routes: vec![tracking("a", A4, &order)],
            deleted: &[("a", A4)],
            created: &[("a", A4)],
            told: &[("a", Network::Created)],
        },
        Case {
            name: "as many addresses, one of them another",
            nodes: vec![node("a", &[A4], &["10.0.0.1", "10.0.0.2"])],
            routes: vec![tracking("a", A4, &["10.0.0.1", "10.0.0.3"])],
            deleted: &[("a", A4)],
            created: &[("a", A4)],
            told: &[("a", Network::Created)],
        },
        Case {
            name: "FW-288 lost its network, has routes; FW-291 only a deletion succeeded",
            nodes: vec![node("a", &[], &["10.0.0.1"]), node("b", &[B4], &["10.0.0.2"])],
            routes: vec![route("a", A4), route("b", B4)],
            deleted: &[("a", A4)],
            created: &[],
            told: &[("a", Network::NotCreated), ("b", Network::Created)],
        },
        Case {
            name: "FW-292 everything kept",
            nodes: single(),
            routes: vec![route("a", A4), tracking("b", B4, &["10.0.0.2"])],
            deleted: &[],
            created: &[],
            told: BOTH_CREATED,
        },
    ]
}

#[test]
fn routes_become_what_the_nodes_need_and_then_rest() {
    let owned = |pairs: &[(&str, &str)]| -> Vec<Pair> {
        pairs.iter().map(|&(n, c)| (n.to_owned(), c.to_owned())).collect()
    };
    for mut case in [dual_stack(), single_stack(), odd_nodes()].into_iter().flatten() {
        let name = case.name;
        let first = plan_for(&case.routes, &case.nodes);
        assert_eq!(changes(&first), (owned(case.deleted), owned(case.created)), "{name}");
        let tracks = case.routes.iter().any(|route| route.addresses.is_some());
        let answers = apply(&mut case.routes, &first, tracks);
        let pass = conclude(&first, &answers, Duration::ZERO);
        let idle = case.deleted.is_empty() && case.created.is_empty();
        assert_eq!(pass.outcome, if idle { Outcome::Noop } else { Outcome::Changed }, "{name}");
        let told: Vec<_> = pass.networks.iter().map(|(node, network)| (node.as_str(), *network)).collect();
        assert_eq!(told, case.told, "{name}");
        assert_eq!((pass.notices.len(), pass.leftovers.len(), pass.retry), (0, 0, None), "{name}");
        let second = plan_for(&case.routes, &case.nodes);
        assert!(second.rounds.is_empty(), "L4-21 {name}: {second:?}");
        assert_eq!(conclude(&second, &[], Duration::ZERO).outcome, Outcome::Noop, "L4-21 {name}");
    }
}

#[test]
fn a_new_route_carries_the_nodes_uid_and_addresses() {
    let plan = plan_for(&[], &single());
    let RouteChange::Create(new) = &plan.rounds[0][0] else { panic!("{plan:?}") };
    assert_eq!((new.hint.as_str(), new.node.as_str(), new.destination.as_str()), ("uid-a", "a", A4));
    assert_eq!(new.addresses, single()[0].addresses, "FW-271");
}

#[test]
fn deletions_come_first_and_are_awaited_where_addresses_are_tracked() {
    let wrong = || vec![route("x", A4), route("a", "10.120.9.0/24")];
    let table = [
        ("nobody tracks: one call, deletions first", wrong(), vec!["delete delete create create"]),
        (
            "any route tracks, not only the first: two calls",
            [wrong(), vec![tracking("b", B4, &["10.0.0.2"])]].concat(),
            vec!["delete delete", "create"],
        ),
        (
            "a tracking route elsewhere counts too",
            [wrong(), vec![tracking("z", "10.1.2.0/24", &[])]].concat(),
            vec!["delete delete", "create create"],
        ),
        ("only creations: one call", vec![tracking("z", "10.1.2.0/24", &[])], vec!["create create"]),
    ];
    for (case, routes, want) in table {
        let word = |change: &RouteChange| match change {
            RouteChange::Delete(_) => "delete",
            RouteChange::Create(_) => "create",
        };
        let plan = plan_for(&routes, &single());
        let rounds: Vec<_> =
            plan.rounds.iter().map(|r| r.iter().map(word).collect::<Vec<_>>().join(" ")).collect();
        assert_eq!(rounds, want, "{case}");
    }
}

#[test]
fn nothing_is_decided_on_a_listing_that_failed_or_is_short() {
    let stale = || vec![route("x", "10.120.9.0/24")];
    let failed = plan(Err(Error::temporary("503")), &single(), |_| false, &cluster(), &BOTH).unwrap_err();
    assert_eq!(failed, Error::temporary("listing routes: 503"), "FW-290");
    let short =
        plan(Ok(Listing::short(stale(), "page 2 is missing")), &single(), |_| false, &cluster(), &BOTH)
            .unwrap_err();
    assert_eq!(
        short,
        Error::temporary("listing routes: the listing is incomplete: page 2 is missing"),
        "L5-21"
    );
    assert_eq!(Outcome::of(Err(&failed)), Outcome::Error, "FW-290");
    assert!(plan(Ok(Listing::complete(stale())), &single(), |_| false, &cluster(), &BOTH).is_ok());
}

#[test]
fn a_route_to_a_node_that_no_cloud_has_claimed_is_left_alone() {
    let routes = vec![route("x", "10.120.9.0/24"), route("y", "10.120.8.0/24")];
    let plan = plan(Ok(Listing::complete(routes)), &[], |name| name == "x", &cluster(), &BOTH).unwrap();
    let want = (vec![("y".to_owned(), "10.120.8.0/24".to_owned())], vec![]);
    assert_eq!(changes(&plan), want, "L3-121");
}
