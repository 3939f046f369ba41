//! How soon everything is well again: with a cloud that refuses now and then, and after one that was away for an hour.

use std::{collections::BTreeMap, time::Duration};

use cloudberth_core::{Random, Tick, decide::node::taints::UNINITIALISED};
use serde_json::json;
use sim_kit::Harm;

use crate::{
    checks::CloudFixture,
    seeded::{SeededCloud, Wishes},
};

const SERVICES: [&str; 5] = ["web-1", "web-2", "web-3", "web-4", "web-5"];

/// How long it took over several seeds.
#[derive(Clone, Copy, Debug)]
pub struct Times {
    /// Half of them were as quick as this.
    pub median: Duration,
    /// Nine of ten were.
    pub most: Duration,
    /// All were.
    pub slowest: Duration,
}

/// How long five Services with ten nodes each take to get their addresses if chance fails one request in five.
async fn addressed_by_a_cloud_that_refuses<C: SeededCloud>(seed: u64, harm: &Harm) -> Duration {
    let fixture: CloudFixture<C> = CloudFixture::looking_again(None);
    let mut wishes = Wishes::default();
    for number in 1..=10 {
        wishes.join(&fixture, &format!("node-{number}")).await;
    }
    fixture.pass(10).await;
    let (random, harm) = (Random::seeded(seed), harm.clone());
    fixture.cloud.plan_faults(Box::new(move |_| (random.fraction() < 0.2).then(|| harm.clone())));
    let start = fixture.cluster.clock.now();
    for name in SERVICES {
        wishes.create(&fixture, name, json!({})).await;
    }
    for name in SERVICES {
        fixture.addressed(name, Duration::from_secs(900)).await;
    }
    let took = fixture.cluster.clock.now().since(start);
    fixture.cloud.stop_faults();
    fixture.pass(30).await;
    let case = format!("L6-820 L6-821 seed {seed}");
    wishes.assert_fulfilled(&fixture, &case).await;
    assert_eq!(fixture.created(), 5, "L6-822 {case}: each is made once");
    fixture.assert_rest(60, &format!("L4-820 {case}")).await;
    took
}

/// How long five Services take to get their addresses from a cloud that answers one request in five with this harm.
pub async fn one_in_five<C: SeededCloud>(harm: Harm, seeds: u64) -> Times {
    let mut times = Vec::new();
    for seed in 0..seeds {
        times.push(addressed_by_a_cloud_that_refuses::<C>(seed, &harm).await);
    }
    times.sort();
    let (median, most) = (times[times.len() / 2], times[times.len() * 9 / 10 - 1]);
    Times { median, most, slowest: times[times.len() - 1] }
}

/// Most calls in any minute between two times.
fn busiest_minute<C: SeededCloud>(fixture: &CloudFixture<C>, from: Tick, until: Tick) -> usize {
    let mut minutes: BTreeMap<u64, usize> = BTreeMap::new();
    for request in fixture.cloud.reached() {
        if request.sent >= from && request.sent < until {
            *minutes.entry(request.sent.since(from).as_secs() / 60).or_default() += 1;
        }
    }
    minutes.into_values().max().unwrap_or(0)
}

/// How a cloud is away.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outage {
    /// It answers every request with 503.
    Answers503,
    /// No connection comes about.
    Refuses,
}

/// A cloud is away for an hour, while Services are created, edited and deleted and a node joins, and for `more` seconds;
/// the outage begins `more` tenths of a second after a Service was created. It is asked little meanwhile, in `calls`
/// requests a minute at most, and everything is well within half a minute after it is back.
pub async fn away_for_an_hour<C: SeededCloud>(outage: Outage, more: u64, calls: usize) {
    let case = format!("{outage:?}, {more} s more");
    let fixture: CloudFixture<C> = CloudFixture::looking_again(None);
    let mut wishes = Wishes::default();
    for number in 1..=3 {
        wishes.join(&fixture, &format!("node-{number}")).await;
    }
    for name in ["old", "gone"] {
        wishes.create(&fixture, name, json!({})).await;
    }
    fixture.pass(10).await;
    wishes.create(&fixture, "torn", json!({})).await;
    tokio::time::sleep(Duration::from_millis(100 * more)).await;
    match outage {
        Outage::Refuses => fixture.cloud.refuse_connections(true),
        Outage::Answers503 => fixture.cloud.plan_faults(Box::new(|_| Some(Harm::status(503)))),
    }
    fixture.pass(1).await;
    for name in SERVICES {
        wishes.create(&fixture, name, json!({})).await;
    }
    let ports = fixture.cloud.other_ports(&Random::seeded(more));
    wishes.edit(&fixture, "old", ports).await;
    wishes.delete(&fixture, "gone").await;
    fixture.cloud.add_instance("fresh");
    fixture.join("fresh").await;
    fixture.pass(300).await;
    let (from, refusals) = (fixture.cluster.clock.now(), fixture.cloud.refused_connections());
    fixture.pass(3_300 + more).await;
    let busiest = busiest_minute(&fixture, from, fixture.cluster.clock.now());
    assert!(busiest <= calls, "L12-822 {case}: one asks for all, {busiest} calls in a minute");
    let refusals = fixture.cloud.refused_connections() - refusals;
    assert!(refusals <= calls * 56, "L12-823 {case}: {refusals} connections in 55 minutes");
    assert!(!fixture.warnings("web-1").is_empty(), "{case}: people are told what is waited for");

    fixture.cloud.refuse_connections(false);
    fixture.cloud.stop_faults();
    fixture.pass(30).await;
    let node = fixture.cluster.node("fresh").await.unwrap();
    assert!(!node.has_taint(UNINITIALISED), "L12-824 {case}: the node waits no more");
    wishes.nodes.insert("fresh".to_owned(), node.provider_id.unwrap_or_default());
    assert!(fixture.service("gone").await.is_none(), "L12-825 {case}");
    wishes.assert_fulfilled(&fixture, &format!("L12-826 {case}")).await;
    fixture.assert_rest(60, &format!("L4-821 {case}")).await;
}
