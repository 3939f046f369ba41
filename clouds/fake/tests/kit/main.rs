//! What holds for every cloud, on the fake one.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing, missing_docs)]

mod seeded;
mod under_test;

use std::time::Duration;

use sim_kit::Harm;
use testing_kit::{
    crashes,
    recovery::{Outage, away_for_an_hour, one_in_five},
    seeds,
};

use under_test::Fake;

// Two checks are left out because they need `Balancers::marks`, which the fake cloud does not declare: several fake
// clouds run side by side in one cluster, and they share their annotations.
testing_kit::checks! { Fake;
    answers:
        instances_without_addresses_change_nothing,
        balancers_without_addresses_change_nothing,
        a_denial_to_another_credential_deletes_nothing,
        a_deletion_sent_to_another_account_deletes_nothing;
    ownership:
        a_given_name_is_no_proof_after_a_crash,
        a_copied_id_is_no_proof,
        a_restored_service_waits_for_a_word,
        a_service_of_another_class_is_invisible,
        a_lost_creation_is_found_after_its_name_was_edited;
    refusals:
        a_new_service_that_is_refused_is_not_touched;
}

#[tokio::test(start_paused = true)]
async fn whatever_fails_and_whenever_it_dies_it_ends_well() {
    seeds::whatever_fails_it_ends_well::<Fake>(200).await;
}

#[tokio::test(start_paused = true)]
async fn ports_change_while_nodes_come_and_go() {
    seeds::the_newest_service_counts::<Fake>(200).await;
}

#[tokio::test(start_paused = true)]
async fn killed_at_every_call_it_reaches_the_same_end() {
    let killed = crashes::killed_at_every_call::<Fake>("L6-1601").await;
    assert!(killed.calls > 20, "L6-1601 {killed:?}");
}

#[tokio::test(start_paused = true)]
async fn what_arrives_after_its_sender_died_is_not_left_over() {
    crashes::what_arrives_late_is_not_left_over::<Fake>().await;
}

#[tokio::test(start_paused = true)]
async fn killed_between_its_writes_to_kubernetes_it_reaches_the_same_end() {
    crashes::killed_between_writes::<Fake>("L6-1602").await;
}

#[tokio::test(start_paused = true)]
async fn one_refusal_in_five_does_not_keep_services_from_their_addresses() {
    let times = one_in_five::<Fake>(Harm::status(503), 5).await;
    assert!(times.most <= Duration::from_secs(60), "L12-1601 {times:?}");
}

#[tokio::test(start_paused = true)]
async fn a_cloud_that_was_away_for_an_hour_is_caught_up_with_at_once() {
    for outage in [Outage::Answers503, Outage::Refuses] {
        away_for_an_hour::<Fake>(outage, 3, 24).await;
    }
}
