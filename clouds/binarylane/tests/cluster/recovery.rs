//! How soon everything is well again: with a cloud that refuses now and then, and after one that was away for an hour.

use std::time::Duration;

use binarylane_sim::Harm;
use testing_kit::recovery::{Outage, away_for_an_hour, one_in_five};

use crate::under_test::BinaryLane;

/// A question is asked up to four times.
const CALLS_A_MINUTE: usize = 24;

/// A 503 does not tell whether the load balancer was created, and it may show up two minutes later: until then nobody
/// creates another.
#[tokio::test(start_paused = true)]
async fn one_refusal_in_five_does_not_keep_services_from_their_addresses() {
    let times = one_in_five::<BinaryLane>(Harm::status(503), 5).await;
    println!("20 % are 503: {times:?}");
    assert!(times.most <= Duration::from_secs(450), "L12-820 {times:?}");
}

#[tokio::test(start_paused = true)]
async fn one_throttled_request_in_five_does_not_either() {
    let times = one_in_five::<BinaryLane>(Harm::status(429), 5).await;
    println!("20 % are 429: {times:?}");
    assert!(times.most <= Duration::from_secs(60), "L12-821 {times:?}");
}

#[tokio::test(start_paused = true)]
async fn a_cloud_that_was_away_for_an_hour_is_caught_up_with_at_once() {
    for outage in [Outage::Answers503, Outage::Refuses] {
        for more in [0, 3, 11] {
            away_for_an_hour::<BinaryLane>(outage, more, CALLS_A_MINUTE).await;
        }
    }
}
