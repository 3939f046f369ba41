//! Answers that say less than they should.

use testing_kit::checks::answers;

use crate::under_test::Cloudscale;

#[tokio::test(start_paused = true)]
async fn servers_without_addresses_change_nothing() {
    answers::instances_without_addresses_change_nothing::<Cloudscale>().await;
}

#[tokio::test(start_paused = true)]
async fn load_balancers_without_addresses_change_nothing() {
    answers::balancers_without_addresses_change_nothing::<Cloudscale>().await;
}

#[tokio::test(start_paused = true)]
async fn an_unreadable_part_stops_nobody_else() {
    answers::an_unreadable_part_stops_nobody_else::<Cloudscale>().await;
}

#[tokio::test(start_paused = true)]
async fn a_denial_to_another_credential_deletes_nothing() {
    answers::a_denial_to_another_credential_deletes_nothing::<Cloudscale>().await;
}
