//! How soon everything is well again: with a service that refuses now and then, and after one that was away for an hour.

use std::time::Duration;

use sim_kit::Harm;
use testing_kit::recovery::{Outage, away_for_an_hour, one_in_five};

use crate::under_test::Lycke;

/// A question is asked up to four times.
const CALLS_A_MINUTE: usize = 24;

#[tokio::test(start_paused = true)]
async fn one_refusal_in_five_does_not_keep_services_from_their_addresses() {
    for code in [503, 429] {
        let times = one_in_five::<Lycke>(Harm::status(code), 10).await;
        println!("20 % are {code}: {times:?}");
        assert!(times.most <= Duration::from_secs(60), "L12-1801 {code} {times:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_service_that_was_away_for_an_hour_is_caught_up_with_at_once() {
    for outage in [Outage::Answers503, Outage::Refuses] {
        for more in [0, 3, 11] {
            away_for_an_hour::<Lycke>(outage, more, CALLS_A_MINUTE).await;
        }
    }
}
