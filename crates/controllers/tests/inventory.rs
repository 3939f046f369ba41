//! The inventory: one listing for everybody, and no answer that is older than the question.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing, missing_docs)]

use std::{sync::Arc, time::Duration};

use cloudberth_controllers::inventory::SurveyFleet;
use cloudberth_core::{Category, lb::Fleet};
use cloudberth_fake::Fault;
use futures_util::future::join_all;
use testing_kit::ClusterFixture;

#[tokio::test(start_paused = true)]
async fn everybody_who_asks_at_once_is_served_by_one_listing() {
    let stage = ClusterFixture::new();
    stage.clouds[0].add_instance("a", "north-1");
    let inventory = &stage.ctx.clouds.named("alpha").unwrap().inventory;
    let now = stage.clock.now();
    let answers = join_all((0..1_000).map(|_| inventory.listing(now))).await;
    assert!(answers.iter().all(|snapshot| snapshot.answer.as_ref().unwrap().items.len() == 1));
    assert_eq!(inventory.listings(), 1, "L7-40");

    stage.pass(60).await;
    inventory.listing(now).await;
    assert_eq!(inventory.listings(), 1, "L7-41 an old question is served by an old listing");
    let fresh = inventory.listing(stage.clock.now()).await;
    assert_eq!(inventory.listings(), 2, "L7-42 a new question is not");
    assert!(fresh.begun > now);
}

#[tokio::test(start_paused = true)]
async fn a_listing_that_was_begun_too_early_is_awaited_and_not_believed() {
    let stage = ClusterFixture::with(&["alpha"], |settings| settings.latency = Duration::from_secs(4));
    let inventory = &stage.ctx.clouds.named("alpha").unwrap().inventory;
    let start = stage.clock.now();
    let late = async {
        stage.pass(1).await;
        inventory.listing(stage.clock.now()).await
    };
    let (early, late) = tokio::join!(inventory.listing(start), late);
    assert!(late.begun >= early.ended, "L7-43 never two at once");
    assert_eq!(inventory.listings(), 2);
}

#[tokio::test(start_paused = true)]
async fn what_failed_for_one_is_not_tried_again_for_each() {
    let stage = ClusterFixture::new();
    stage.clouds[0].plan_faults(|_| Some(Fault::Refuse(Category::Unauthorised)));
    let inventory = &stage.ctx.clouds.named("alpha").unwrap().inventory;
    for _ in 0..100 {
        let now = stage.clock.now();
        assert!(inventory.listing(now).await.answer.is_err());
    }
    assert_eq!(inventory.listings(), 1, "L7-44");
    stage.clouds[0].stop_faults();
    stage.pass(2).await;
    assert!(inventory.listing(stage.clock.now()).await.answer.is_ok(), "L1-40 a failure is not kept");
}

#[tokio::test(start_paused = true)]
async fn what_was_asked_before_a_term_does_not_serve_it() {
    let stage = ClusterFixture::with(&["alpha"], |settings| settings.latency = Duration::from_secs(4));
    let inventory = &stage.ctx.clouds.named("alpha").unwrap().inventory;
    let start = stage.clock.now();
    inventory.listing(start).await;
    inventory.forget();
    assert_eq!(inventory.newest(), None, "L4-610");
    let first = stage.clock.now();
    // Under way when the next term begins.
    let late = inventory.listing(start);
    let term = async {
        stage.pass(1).await;
        inventory.forget();
        let second = stage.clock.now();
        (second, inventory.listing(start).await)
    };
    let (old, (second, new)) = tokio::join!(late, term);
    assert!(old.begun >= first && old.begun < second);
    assert!(new.begun >= second, "L4-611");
    assert_eq!(inventory.newest().unwrap(), new);
}

#[tokio::test(start_paused = true)]
async fn a_listing_is_recent_for_minutes_and_within_its_term() {
    let stage = ClusterFixture::new();
    let inventory = Arc::clone(&stage.ctx.clouds.named("alpha").unwrap().inventory);
    let fleet = SurveyFleet::new(Arc::clone(&inventory), stage.clock.now());
    assert!(fleet.recent().is_none(), "L1-1617 nobody asked yet");
    inventory.listing(stage.clock.now()).await;
    assert!(fleet.recent().is_some());
    stage.pass(290).await;
    assert!(fleet.recent().is_some());
    assert_eq!(inventory.listings(), 1, "nobody was asked");
    stage.pass(20).await;
    assert!(fleet.recent().is_none(), "L1-1617 nodes would show newer addresses");
    inventory.listing(stage.clock.now()).await;
    let term = fleet.term();
    inventory.forget();
    assert!(fleet.recent().is_none(), "L4-1618");
    assert_ne!(fleet.term(), term, "L6-1604");
}
