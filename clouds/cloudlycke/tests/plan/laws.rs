//! What holds for every Service and every state of the cloud: decide, assume, fold, again, comes to rest; at rest nothing
//! is decided; and from any step on a fresh look comes to the same end.

use cloudberth_cloudlycke::{Answer, Observed, decide, fold};
use cloudberth_core::lb::{Desired, Goal, Next};
use proptest::{prelude::*, sample::subsequence};

use crate::fixture::*;

/// Goes on until nothing is left to do. The service gives a new load balancer an address at once. Every stop on the way is
/// returned.
fn walk(want: &Desired, mut observed: Observed) -> Vec<Observed> {
    let mut stops = vec![observed.clone()];
    for _ in 0..8 {
        let decision = decide(want, Some(&observed));
        let Next::Act(round) = decision.next else { return stops };
        for step in round {
            if step.creates && !decision.refused.is_empty() {
                return stops;
            }
            let answer = match assumed(&step.act) {
                Answer::Balancer(balancer) => Answer::Balancer(Box::new(served(balancer.spec))),
                other => other,
            };
            observed = fold(Some(observed), &step.act, &answer).unwrap();
            stops.push(observed.clone());
        }
    }
    panic!("it does not come to rest: {want:?}");
}

fn some_want() -> impl Strategy<Value = Desired> {
    let annotations = subsequence(
        vec![
            ("policy", "source-hash"),
            ("proxy-protocol", "v3"),
            ("idle-timeout", "5"),
            ("healthcheck-protocol", "http"),
            ("address-mode", "shared"),
        ],
        0..=5,
    );
    let ports = subsequence(vec![80_i64, 443, 8080], 1..=3);
    let nodes = subsequence(vec![1_u8, 2, 3, 4], 0..=4);
    (annotations, ports, nodes)
        .prop_map(|(annotations, ports, nodes)| want(service(&annotations, &ports), &nodes))
}

proptest! {
    #[test]
    fn every_way_comes_to_rest_and_to_the_same_end(
        before in some_want(),
        want in some_want(),
        exists in any::<bool>(),
        goes in any::<bool>(),
    ) {
        let want = if goes { Desired { goal: Goal::Gone, ..want } } else { want };
        let existing = if exists { present(&before).existing } else { None };
        let stops = walk(&want, Observed { existing, ..absent(&want) });
        let end = stops.last().unwrap();
        if want.goal == Goal::Gone {
            prop_assert!(end.existing.is_none());
        }
        for stop in &stops {
            // After a crash only what is in the cloud is known.
            let fresh = Observed { existing: stop.existing.clone(), ..absent(&want) };
            let again = walk(&want, fresh);
            prop_assert_eq!(&end.existing, &again.last().unwrap().existing, "L6-1803");
        }
    }
}
