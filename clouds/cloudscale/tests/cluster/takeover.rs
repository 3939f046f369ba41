//! A cluster that the replaced program has brought to rest stays exactly as it is.

use cloudscale_sim::replaced::{plain, variants};
use testing_kit::takeover;

use crate::{fixture::Fixture, under_test::Cloudscale};

#[tokio::test(start_paused = true)]
async fn nothing_is_changed_by_the_switch() {
    let ways = takeover::nothing_is_changed_by_the_switch::<Cloudscale>("CS-153").await;
    println!("{ways} variants");
    assert!(ways >= 20, "CS-153 {ways}");
}

#[tokio::test(start_paused = true)]
async fn what_was_taken_over_is_looked_after() {
    takeover::what_was_taken_over_is_looked_after::<Cloudscale>("CS-153").await;
}

#[tokio::test(start_paused = true)]
async fn what_we_build_is_what_was_built_before() {
    let ways = takeover::what_we_build_is_what_was_built_before::<Cloudscale>("CS-153").await;
    assert!(ways >= 15, "CS-153 {ways}");
}

#[tokio::test(start_paused = true)]
async fn a_node_that_joins_costs_one_member() {
    let mut fixture = Fixture::new();
    fixture.killer().abort();
    takeover::leave(&plain("plain TCP"), &fixture.cloud, &fixture.cluster).await;
    fixture.restart();
    fixture.pass(30).await;
    fixture.node("node-4").await;
    fixture.pass(30).await;
    assert_eq!(fixture.changes(), ["members.create"], "CS-153 a node that joins costs one member");
}

#[tokio::test(start_paused = true)]
async fn sources_that_were_ignored_are_told_of() {
    let variants = variants();
    let variant = variants.iter().find(|variant| variant.case.contains("ignored")).unwrap();
    let mut fixture = Fixture::new();
    fixture.killer().abort();
    takeover::leave(variant, &fixture.cloud, &fixture.cluster).await;
    fixture.restart();
    fixture.pass(30).await;
    let warnings = fixture.warnings("web");
    assert!(warnings.iter().any(|line| line.contains("listener-allowed-cidrs")), "L8-803 {warnings:?}");
}
