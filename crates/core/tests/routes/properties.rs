//! Whatever routes and nodes there are: one pass makes it right, the next has nothing to do, nothing foreign is
//! touched.

use std::{collections::BTreeSet, time::Duration};

use cloudberth_core::{
    Error, NodeView, Result,
    decide::routes::{Network, Outcome, conclude, responsible},
    lb::Notice,
    route::Route,
};
use proptest::prelude::*;

use super::{apply, apply_one, changes, cluster, node, plan_for, route, tracking};

/// Few names, networks and addresses, so that they meet often.
fn cidr() -> impl Strategy<Value = &'static str> {
    proptest::sample::select(vec![
        "10.120.0.0/24",
        "10.120.1.0/24",
        "10.120.1.1/24",
        "a00:100::/100",
        "192.168.0.0/24",
        "nonsense",
    ])
}

fn ips() -> impl Strategy<Value = Vec<&'static str>> {
    proptest::sample::subsequence(vec!["10.0.0.1", "10.0.0.2", "fd::1"], 0..=3).prop_shuffle()
}

fn nodes() -> impl Strategy<Value = Vec<NodeView>> {
    let one = (prop::collection::vec(cidr(), 0..3), ips());
    prop::collection::vec(one, 0..4).prop_map(|all| {
        let named = all.into_iter().zip(["a", "b", "c"]);
        named.map(|((cidrs, ips), name)| node(name, &cidrs, &ips)).collect()
    })
}

fn routes(tracks: bool) -> impl Strategy<Value = Vec<Route>> {
    let target = proptest::sample::select(vec!["", "a", "b", "c", "x"]);
    let one = (target, cidr(), ips(), any::<bool>(), any::<bool>()).prop_map(
        move |(target, cidr, ips, hole, ours)| {
            let tracked = tracking(target, cidr, &ips).addresses.filter(|_| tracks);
            Route { addresses: tracked, blackhole: hole, ours, ..route(target, cidr) }
        },
    );
    prop::collection::vec(one, 0..8).prop_map(|mut all| {
        for (index, route) in all.iter_mut().enumerate() {
            route.name = format!("r{index}");
        }
        all
    })
}

fn case() -> impl Strategy<Value = (bool, Vec<Route>, Vec<NodeView>)> {
    any::<bool>().prop_flat_map(|tracks| (Just(tracks), routes(tracks), nodes()))
}

proptest! {
    #[test]
    fn one_pass_makes_it_right_and_the_next_has_nothing_to_do((tracks, mut routes, nodes) in case()) {
        let first = plan_for(&routes, &nodes);
        let before = routes.clone();
        let answers = apply(&mut routes, &first, tracks);
        let pass = conclude(&first, &answers, Duration::ZERO);
        let second = plan_for(&routes, &nodes);
        prop_assert!(second.rounds.is_empty(), "{:?}", second);
        prop_assert_eq!(pass.outcome == Outcome::Changed, !first.rounds.is_empty());
        for route in &before {
            let touchable = route.ours && responsible(&route.destination, &cluster());
            prop_assert!(touchable || routes.contains(route), "{:?} was not ours to delete", route);
        }
        for node in &nodes {
            for cidr in &node.pod_cidrs {
                let there = |r: &&Route| r.target.as_deref() == Some(&node.name) && &r.destination == cidr;
                prop_assert!(routes.iter().any(|r| there(&r)), "{} lacks {}", node.name, cidr);
            }
            let told = pass.networks.get(&node.name);
            let had_routes = before.iter().any(|r| r.target.as_deref() == Some(&node.name));
            let want = match (node.pod_cidrs.is_empty(), had_routes) {
                (false, _) => Some(&Network::Created),
                (true, true) => Some(&Network::NotCreated),
                (true, false) => None,
            };
            prop_assert_eq!(told, want, "{}", node.name);
        }
    }

    #[test]
    fn no_route_is_created_twice_and_none_without_need((_, routes, nodes) in case()) {
        let (_, created) = changes(&plan_for(&routes, &nodes));
        let unique: BTreeSet<_> = created.iter().collect();
        prop_assert_eq!(unique.len(), created.len());
        for (name, cidr) in &created {
            prop_assert!(nodes.iter().any(|node| &node.name == name && node.pod_cidrs.contains(cidr)));
        }
    }

    /// A cloud that fails at random is asked again until it is done, and loses nothing on the way.
    #[test]
    fn failures_are_made_up_for_later(
        (tracks, mut routes, nodes) in case(),
        luck in prop::collection::vec(any::<bool>(), 64),
    ) {
        let mut luck = luck.into_iter().chain(std::iter::repeat(true));
        for _ in 0..80 {
            let plan = plan_for(&routes, &nodes);
            if plan.rounds.is_empty() {
                return Ok(());
            }
            let mut answers = Vec::new();
            for round in &plan.rounds {
                let mut told: Vec<Result<Vec<Notice>>> = Vec::new();
                for change in round {
                    if luck.next() == Some(true) {
                        apply_one(&mut routes, change, tracks);
                        told.push(Ok(Vec::new()));
                    } else {
                        told.push(Err(Error::temporary("503")));
                    }
                }
                answers.push(told);
            }
            let failed = answers.iter().flatten().any(Result::is_err);
            let pass = conclude(&plan, &answers, Duration::ZERO);
            prop_assert_eq!(pass.retry.is_some(), failed);
        }
        prop_assert!(false, "it never came to rest");
    }
}
