//! How soon everything is well again: with a cloud that refuses now and then, and after one that was away for an hour.

use std::time::Duration;

use cloudscale_sim::Harm;
use testing_kit::recovery::{Outage, away_for_an_hour, one_in_five};

use crate::under_test::Cloudscale;

/// A question is asked up to four times.
const CALLS_A_MINUTE: usize = 24;

#[tokio::test(start_paused = true)]
async fn one_refusal_in_five_does_not_keep_services_from_their_addresses() {
    let times = one_in_five::<Cloudscale>(Harm::status(503), 50).await;
    println!("20 % are 503: {times:?}");
    assert!(times.most <= Duration::from_secs(15), "L12-820 {times:?}");
}

#[tokio::test(start_paused = true)]
async fn one_throttled_request_in_five_does_not_either() {
    let times = one_in_five::<Cloudscale>(Harm::status(429), 10).await;
    println!("20 % are 429: {times:?}");
    assert!(times.most <= Duration::from_secs(30), "L12-821 {times:?}");
}

#[tokio::test(start_paused = true)]
async fn a_cloud_that_answered_503_for_an_hour_is_caught_up_with_at_once() {
    for more in [0, 3, 8, 11] {
        away_for_an_hour::<Cloudscale>(Outage::Answers503, more, CALLS_A_MINUTE).await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_cloud_that_refused_connections_for_an_hour_is_caught_up_with_at_once() {
    for more in [0, 3, 8, 11] {
        away_for_an_hour::<Cloudscale>(Outage::Refuses, more, CALLS_A_MINUTE).await;
    }
}
