//! Chance picks what happens, what fails and when the program dies.

use testing_kit::seeds;

use crate::under_test::Lycke;

#[tokio::test(start_paused = true)]
async fn whatever_fails_and_whenever_it_dies_it_ends_well() {
    seeds::whatever_fails_it_ends_well::<Lycke>(30).await;
}

#[tokio::test(start_paused = true)]
async fn ports_change_while_nodes_come_and_go() {
    seeds::the_newest_service_counts::<Lycke>(50).await;
}
