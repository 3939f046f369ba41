//! How soon everything is well again: with a cloud that refuses now and then, and after one that was away for an hour.

use std::time::Duration;

use brightbox_sim::Harm;
use testing_kit::recovery::{Outage, away_for_an_hour, one_in_five};

use crate::under_test::Brightbox;

/// A question is asked up to four times.
const CALLS_A_MINUTE: usize = 24;

/// Nobody says that a 503 of this cloud means that nothing was done, so after one that answers a creation it is waited
/// whether the thing shows up, forty seconds each time.
#[tokio::test(start_paused = true)]
async fn one_refusal_in_five_does_not_keep_services_from_their_addresses() {
    let times = one_in_five::<Brightbox>(Harm::status(503), 3).await;
    println!("20 % are 503: {times:?}");
    assert!(times.most <= Duration::from_secs(300), "L12-1601 {times:?}");
}

#[tokio::test(start_paused = true)]
async fn one_throttled_request_in_five_does_not_either() {
    let times = one_in_five::<Brightbox>(Harm::status(429), 3).await;
    println!("20 % are 429: {times:?}");
    assert!(times.most <= Duration::from_secs(45), "L12-1602 {times:?}");
}

#[tokio::test(start_paused = true)]
async fn a_cloud_that_answered_503_for_an_hour_is_caught_up_with_at_once() {
    for more in [0, 3, 8] {
        away_for_an_hour::<Brightbox>(Outage::Answers503, more, CALLS_A_MINUTE).await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_cloud_that_refused_connections_for_an_hour_is_caught_up_with_at_once() {
    for more in [0, 3, 8] {
        away_for_an_hour::<Brightbox>(Outage::Refuses, more, CALLS_A_MINUTE).await;
    }
}
