//! What holds for every Service, every node set and every state of the cloud: decide, assume, fold, again, comes to rest;
//! at rest nothing is decided; and from any step on a fresh look comes to the same end.

use std::collections::BTreeSet;

use cloudberth_binarylane::{
    Action, Observed, assume, fold,
    wire::{BalancerStatus, LoadBalancer},
};
use cloudberth_core::lb::{Desired, Goal, Next};
use proptest::{prelude::*, sample::subsequence};

use crate::fixture::*;

/// What a load balancer does, whatever the order.
fn shape(existing: &LoadBalancer) -> (BTreeSet<String>, String, String, BTreeSet<i64>) {
    let rules = existing.forwarding_rules.iter().map(|rule| rule.entry_protocol.clone()).collect();
    let check = &existing.health_check;
    (rules, check.protocol.clone(), check.path.clone(), existing.server_ids.iter().copied().collect())
}

/// Goes on until nothing is left to do. The cloud builds a new load balancer as soon as it is waited for. Every stop on
/// the way is returned.
fn walk(want: &Desired, mut observed: Observed) -> Vec<Observed> {
    let mut stops = vec![observed.clone()];
    for _ in 0..12 {
        let decision = planner().decide(want, Some(&observed));
        let acts = match decision.next {
            Next::Converged => return stops,
            Next::Wait { .. } => {
                let existing = observed.existing.as_mut().expect("what is waited for is there");
                assert_eq!(existing.status, BalancerStatus::New);
                (existing.status, existing.id, existing.ip) =
                    (BalancerStatus::Active, LB, "203.0.113.80".to_owned());
                continue;
            }
            Next::Act(round) => round,
        };
        for step in acts {
            if step.creates && !decision.refused.is_empty() {
                return stops;
            }
            if let (Action::RemoveServers { servers, .. }, Some(existing)) = (&step.act, &observed.existing) {
                let left = existing.server_ids.iter().filter(|id| !servers.contains(id)).count();
                assert!(left > 0 || want.backends.is_empty(), "a pool is not emptied while there are nodes");
            }
            observed = fold(Some(observed), &step.act, &assume(&step.act)).unwrap();
            stops.push(observed.clone());
        }
    }
    panic!("it does not come to rest: {want:?}");
}

fn some_want() -> impl Strategy<Value = Desired> {
    let annotations = subsequence(
        vec![
            ("protocol", "http"),
            ("health-check-path", "/up"),
            ("health-check-protocol", "both"),
            ("region", "bne"),
        ],
        0..=4,
    );
    let ports = subsequence(vec![80, 443, 8080], 1..=3);
    let nodes = subsequence(vec![1_i64, 2, 3, 4], 0..=4);
    (annotations, ports, nodes)
        .prop_map(|(annotations, ports, nodes)| want(service(&annotations, &ports), nodes))
}

fn some_balancer() -> impl Strategy<Value = LoadBalancer> {
    let words = subsequence(vec!["http", "https"], 1..=2);
    let members = subsequence(vec![1_i64, 2, 3, 4, 5], 0..=5);
    (words, members, any::<bool>()).prop_map(|(words, members, regional)| {
        let protocol = if words.len() == 2 { "both" } else { words[0] };
        let balancer = balancer(&words, protocol, &members);
        if regional { in_region(balancer, "bne") } else { balancer }
    })
}

proptest! {
    #[test]
    fn every_way_comes_to_rest_and_to_the_same_end(
        want in some_want(),
        existing in proptest::option::of(some_balancer()),
        surplus in any::<bool>(),
        goes in any::<bool>(),
    ) {
        let want = if goes { Desired { goal: Goal::Gone, ..want } } else { want };
        let surplus = if surplus { vec![(7, "k8s-prod-shop-web".to_owned())] } else { Vec::new() };
        let observed = Observed { existing, surplus, ..absent(&want) };
        let stops = walk(&want, observed);
        let end = stops.last().unwrap();
        if want.goal == Goal::Gone {
            prop_assert!(end.existing.is_none() && end.surplus.is_empty());
        }
        for stop in &stops {
            // After a crash only what is in the cloud is known.
            let again = walk(&want, stop.clone());
            let shapes = (end.existing.as_ref().map(shape), again.last().unwrap().existing.as_ref().map(shape));
            prop_assert_eq!(&shapes.0, &shapes.1, "L6-1600");
        }
    }
}
