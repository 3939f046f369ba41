//! How soon everything is well again: with a cloud that refuses now and then, and after one that was away for an hour.

use std::{collections::BTreeMap, time::Duration};

use cloudberth_core::{Random, Tick, decide::node::taints::UNINITIALISED};
use cloudscale_sim::Harm;
use serde_json::json;

use crate::fixture::{Fixture, INTENT, PREFIX};

const SERVICES: [&str; 5] = ["web-1", "web-2", "web-3", "web-4", "web-5"];

/// Every Service has one load balancer with these ports and so many members, and there is nothing else.
async fn assert_served(fixture: &Fixture, wanted: &BTreeMap<&str, u16>, members: usize, case: &str) {
    let mut ids = Vec::new();
    for (name, port) in wanted {
        let service = fixture.get(name).await;
        assert_eq!(service.ingress.len(), 2, "{case} {name}: {:?}", fixture.cluster.events(name));
        assert_eq!(service.annotations.get(INTENT), None, "{case} {name}");
        let shape: Vec<_> = fixture.shape(name).await.into_iter().map(|(port, m)| (port, m.len())).collect();
        assert_eq!(shape, [(*port, members)], "{case} {name}");
        ids.push(service.annotations[&format!("{PREFIX}uuid")].clone());
    }
    ids.sort();
    let there: Vec<_> = fixture.cloud.balancers().into_iter().map(|balancer| balancer.uuid).collect();
    assert_eq!(there, ids, "L6-820 {case}: nothing leaked, nothing doubled");
    let count = wanted.len();
    let parts = fixture.parts().map(|kind| kind.len());
    assert_eq!(parts, [count, count, count, count * members], "L6-821 {case}: no part is too many");
}

/// How long five Services with ten nodes each take to get their addresses if chance fails one request in five.
async fn addressed_by_a_cloud_that_refuses(seed: u64, fault: &Harm) -> Duration {
    let fixture = Fixture::new();
    fixture.nodes(10).await;
    fixture.pass(10).await;
    let (random, fault) = (Random::seeded(seed), fault.clone());
    fixture.cloud.plan_faults(move |_| (random.fraction() < 0.2).then(|| fault.clone()));
    let start = fixture.cluster.clock.now();
    for name in SERVICES {
        fixture.create(name, json!({})).await;
    }
    for name in SERVICES {
        fixture.addressed(name, Duration::from_secs(900)).await;
    }
    let took = fixture.cluster.clock.now().since(start);
    fixture.cloud.stop_faults();
    fixture.pass(30).await;
    let case = format!("seed {seed}");
    assert_served(&fixture, &SERVICES.map(|name| (name, 80)).into(), 10, &case).await;
    let made = |entry: &&cloudscale_sim::Entry| {
        entry.operation == "load-balancers.create" && entry.outcome.status() == Some(201)
    };
    assert_eq!(fixture.cloud.journal().iter().filter(made).count(), 5, "L6-822 {case}: each is made once");
    fixture.assert_quiet(60, &format!("L4-820 {case}")).await;
    took
}

/// The time that nine of ten seeds keep.
async fn nine_of_ten(fault: Harm, seeds: u64, case: &str) -> Duration {
    let mut times = Vec::new();
    for seed in 0..seeds {
        times.push(addressed_by_a_cloud_that_refuses(seed, &fault).await);
    }
    times.sort();
    let (median, most) = (times[times.len() / 2], times[times.len() * 9 / 10 - 1]);
    println!("{case}: median {median:?}, nine of ten {most:?}, slowest {:?}", times[times.len() - 1]);
    most
}

#[tokio::test(start_paused = true)]
async fn one_refusal_in_five_does_not_keep_services_from_their_addresses() {
    let took = nine_of_ten(Harm::status(503), 50, "20 % are 503").await;
    assert!(took <= Duration::from_secs(15), "L12-820 {took:?}");
}

#[tokio::test(start_paused = true)]
async fn one_throttled_request_in_five_does_not_either() {
    let took = nine_of_ten(Harm::status(429), 10, "20 % are 429").await;
    assert!(took <= Duration::from_secs(30), "L12-821 {took:?}");
}

/// Most calls in any minute between two times.
fn busiest_minute(fixture: &Fixture, from: Tick, until: Tick) -> usize {
    let mut minutes: BTreeMap<u64, usize> = BTreeMap::new();
    for entry in fixture.cloud.journal() {
        if entry.sent >= from && entry.sent < until {
            *minutes.entry(entry.sent.since(from).as_secs() / 60).or_default() += 1;
        }
    }
    minutes.into_values().max().unwrap_or(0)
}

async fn away_for_an_hour(refused: bool, more: u64) {
    let case = format!("refused {refused}, {more} s more");
    let fixture = Fixture::new();
    fixture.nodes(3).await;
    for name in ["old", "gone"] {
        fixture.create(name, json!({})).await;
    }
    fixture.pass(10).await;
    fixture.create("torn", json!({})).await;
    tokio::time::sleep(Duration::from_millis(100 * more)).await;
    if refused {
        fixture.door.shut(true);
    } else {
        fixture.cloud.plan_faults(|_| Some(Harm::status(503)));
    }
    fixture.cloud.clear_journal();
    fixture.pass(1).await;
    for name in SERVICES {
        fixture.create(name, json!({})).await;
    }
    fixture.edit("old", json!({"spec": {"ports": [{"port": 81, "protocol": "TCP"}]}})).await;
    fixture.delete("gone").await;
    fixture.cloud.add_server("fresh", "rma1");
    fixture.join("fresh").await;
    fixture.pass(300).await;
    let (from, refusals) = (fixture.cluster.clock.now(), fixture.door.refusals());
    fixture.pass(3_300 + more).await;
    let busiest = busiest_minute(&fixture, from, fixture.cluster.clock.now());
    // A question is asked up to four times.
    assert!(busiest <= 24, "L12-822 {case}: one asks for all, {busiest} calls in a minute");
    let refusals = fixture.door.refusals() - refusals;
    assert!(refusals <= 24 * 56, "L12-823 {case}: {refusals} connections in 55 minutes");
    assert!(!fixture.warnings("web-1").is_empty(), "{case}: people are told what is waited for");

    fixture.door.shut(false);
    fixture.cloud.stop_faults();
    fixture.pass(30).await;
    let node = fixture.cluster.node("fresh").await.unwrap();
    assert!(!node.has_taint(UNINITIALISED), "L12-824 {case}: the node waits no more");
    assert!(fixture.cluster.service("gone").await.is_none(), "L12-825 {case}");
    let mut wanted: BTreeMap<_, _> = SERVICES.map(|name| (name, 80)).into();
    wanted.extend([("old", 81), ("torn", 80)]);
    assert_served(&fixture, &wanted, 4, &format!("L12-826 {case}")).await;
    fixture.assert_quiet(60, &format!("L4-821 {case}")).await;
}

#[tokio::test(start_paused = true)]
async fn a_cloud_that_answered_503_for_an_hour_is_caught_up_with_at_once() {
    for more in [0, 3, 8, 11] {
        away_for_an_hour(false, more).await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_cloud_that_refused_connections_for_an_hour_is_caught_up_with_at_once() {
    for more in [0, 3, 8, 11] {
        away_for_an_hour(true, more).await;
    }
}
