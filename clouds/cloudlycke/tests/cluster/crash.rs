//! Killed at any call and started again: the same end, nothing leaked, nothing doubled, nothing lost (law 6).

use testing_kit::crashes;

use crate::under_test::Lycke;

#[tokio::test(start_paused = true)]
async fn killed_at_every_call_it_reaches_the_same_end() {
    let killed = crashes::killed_at_every_call::<Lycke>("L6-1801").await;
    println!("{killed:?}");
    assert!(killed.calls > 8, "L6-1801 {killed:?}");
}

#[tokio::test(start_paused = true)]
async fn what_arrives_after_its_sender_died_is_not_left_over() {
    crashes::what_arrives_late_is_not_left_over::<Lycke>().await;
}

#[tokio::test(start_paused = true)]
async fn killed_between_its_writes_to_kubernetes_it_reaches_the_same_end() {
    let programs = crashes::killed_between_writes::<Lycke>("L6-1802").await;
    println!("{programs} programs were killed");
}
