//! Many clusters, some of which are not there.

use std::{collections::BTreeMap, time::Duration};

use embedded_kube::{Fault, Harm};
use jiff::{SignedDuration, Timestamp};
use serde_json::json;

use super::world::{Running, World, calls_so_far, ours, pass, simulate, writes};

const CLUSTERS: usize = 200;
const AWAY: usize = 20;
/// One call to each cluster in this time, when nothing changes.
const BETWEEN_CALLS: SignedDuration = SignedDuration::from_secs(600);

fn host(number: usize) -> String {
    format!("metal{number:03}")
}

/// Every tenth cluster is one of those that may be away.
const fn may_be_away(number: usize) -> bool {
    number.is_multiple_of(CLUSTERS / AWAY)
}

/// Starts the program among clusters of which some do not answer, or among those only that do.
async fn begin(with_those_away: bool) -> (World, Running, Timestamp) {
    let world = World::new().await;
    world.define_floating(&["v1beta1", "v1beta2"]).await;
    world.configure(&[]).await;
    for number in (0..CLUSTERS).filter(|number| with_those_away || !may_be_away(*number)) {
        let display = host(number);
        world.bare_metal(&format!("c-m-{number:03}"), &display).await;
        world.pool(&format!("{display}--lan"), &display, "lan", "eth0", false).await;
        if may_be_away(number) && number % 20 == 0 {
            // Its address is known, and nobody answers there.
            world.api(&display).add_fault(Fault::new(Harm::Latency { millis: 3_600_000 }));
        } else if may_be_away(number) {
            world.unplug(&display);
        }
    }
    // Clusters that did not opt in are never looked at.
    for number in 0..50 {
        world.management(&format!("c-m-off{number}"), &format!("off{number}"), &json!({})).await;
    }
    world.helm.takes(Duration::from_secs(5), Duration::from_secs(720));
    let began = world.clock.wall();
    let running = world.start();
    // Four Helm processes at once, two charts of five seconds each.
    pass(700).await;
    (world, running, began)
}

/// After how long each cluster was as it should be: when the last write was made.
async fn converged(world: &World, began: Timestamp) -> BTreeMap<String, SignedDuration> {
    let mut all = BTreeMap::new();
    for host in (0..CLUSTERS).filter(|number| !may_be_away(*number)).map(host) {
        assert_eq!(world.map(&host).await, json!({format!("{host}--lan"): "eth0"}), "{host}");
        assert!(world.deployment(&host).await.is_some(), "{host}");
        let last = ours(&world.api(&host), 0).into_iter().rfind(embedded_kube::Call::is_write).unwrap();
        all.insert(host, last.at.duration_since(began));
    }
    all
}

#[test]
fn clusters_that_are_not_there_do_not_hold_up_the_others() {
    let mut alone = BTreeMap::new();
    simulate(async {
        let (world, _running, began) = begin(false).await;
        alone = converged(&world, began).await;
    });
    simulate(async {
        let (world, running, began) = begin(true).await;
        let beside = converged(&world, began).await;
        // The order differs, because more clusters wait in it. The first, the one in the middle and the last do not.
        let sorted = |all: &BTreeMap<String, SignedDuration>| {
            let mut all: Vec<_> = all.values().copied().collect();
            all.sort_unstable();
            [all[0], all[all.len() / 2], all[all.len() - 1]]
        };
        for (alone, beside) in sorted(&alone).into_iter().zip(sorted(&beside)) {
            let late = beside - alone;
            assert!(late <= SignedDuration::from_secs(10), "RF-49 RF-197 {late:?} later than {alone:?}");
        }

        let there: Vec<_> = (0..CLUSTERS).filter(|number| !may_be_away(*number)).map(host).collect();
        let marks: Vec<_> = there.iter().map(|host| calls_so_far(&world.api(host))).collect();
        pass(3_600).await;
        for (host, mark) in there.iter().zip(marks) {
            let calls = ours(&world.api(host), mark);
            for pair in calls.windows(2) {
                let between = pair[1].at.duration_since(pair[0].at);
                assert!(between >= BETWEEN_CALLS, "RF-197 {host}: {between:?} between two calls");
            }
            assert!((5..=6).contains(&calls.len()), "RF-197 {host}: {} calls in an hour", calls.len());
            assert_eq!(writes(&world.api(host), mark), [""; 0], "law 4 {host}");
        }
        let off = ours(&world.local, 0)
            .into_iter()
            .filter(|call| call.name.starts_with("off") || call.name.starts_with("c-m-off"))
            .count();
        assert_eq!(off, 0, "RF-26 RF-197 nothing is read for those that did not opt in");
        drop(running);
    });
}
