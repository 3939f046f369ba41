//! A cluster that one of the replaced programs has brought to rest stays as it is: nothing is changed in the cloud.

use binarylane_sim::replaced::{plain, second_generation};
use sim_kit::LeftBehind as _;
use testing_kit::takeover;

use crate::{
    fixture::{Fixture, Setup},
    under_test::BinaryLane,
};

#[tokio::test(start_paused = true)]
async fn nothing_is_changed_by_the_switch() {
    let ways = takeover::nothing_is_changed_by_the_switch::<BinaryLane>("BL-139 L4-1604").await;
    println!("{ways} variants of the first generation");
    assert!(ways >= 10, "{ways}");
    takeover::nothing_is_changed_by_the_switch::<BinaryLane<true>>("BL-145 L4-1605").await;
}

#[tokio::test(start_paused = true)]
async fn what_was_taken_over_is_looked_after() {
    takeover::what_was_taken_over_is_looked_after::<BinaryLane>("BL-139").await;
}

#[tokio::test(start_paused = true)]
async fn what_we_build_is_what_was_built_before() {
    let ways = takeover::what_we_build_is_what_was_built_before::<BinaryLane>("BL-65").await;
    assert!(ways >= 5, "{ways}");
}

#[tokio::test(start_paused = true)]
async fn a_node_that_joins_costs_one_call() {
    let mut fixture = Fixture::new();
    fixture.killer().abort();
    takeover::leave(&plain("plain"), &fixture.cloud, &fixture.cluster).await;
    fixture.restart();
    fixture.pass(30).await;
    fixture.node("node-4").await;
    fixture.pass(30).await;
    assert_eq!(fixture.changes(), ["load_balancers.add_servers"], "BL-87 a node that joins costs one call");
}

/// Routes that we write are those that the second generation looks for: it compares router and destination.
#[tokio::test(start_paused = true)]
async fn routes_are_those_of_the_later_program() {
    let variant = &second_generation()[0];
    let mut fixture = Fixture::with(Setup { routes: true, ..Setup::default() }, |_| {});
    fixture.killer().abort();
    takeover::leave(variant, &fixture.cloud, &fixture.cluster).await;
    let pairs = |fixture: &Fixture| {
        let pairs = fixture.routes().into_iter().map(|entry| (entry.router, entry.destination));
        pairs.collect::<Vec<_>>()
    };
    let (case, theirs) = (variant.case(), pairs(&fixture));
    let vpc = fixture.cloud.first_vpc();
    fixture.cloud.edit(|all| all.vpcs.get_mut(&vpc).unwrap().route_entries.clear());
    fixture.restart();
    fixture.pass(60).await;
    assert_eq!((pairs(&fixture), theirs.len()), (theirs, 3), "BL-145 {case}");
}
