//! A cluster that the replaced program has brought to rest stays exactly as it is.

use testing_kit::cloudscale::{PREFIX, Variant, plain, variants};

use crate::fixture::Fixture;

/// A cluster that the replaced program has brought to rest, and that nobody looks after now.
async fn left_behind(variant: &Variant) -> Fixture {
    let fixture = Fixture::with(|settings| settings.latency = std::time::Duration::ZERO);
    fixture.killer().abort();
    variant.leave(&fixture.cloud, &fixture.cluster).await;
    fixture
}

#[tokio::test(start_paused = true)]
async fn nothing_is_changed_by_the_switch() {
    let variants = variants();
    assert!(variants.len() >= 20);
    for variant in &variants {
        let case = variant.case;
        let mut fixture = left_behind(variant).await;
        let (stock, before) = (fixture.cloud.resources(), fixture.get("web").await);
        let kube = fixture.kube_calls();
        fixture.restart();
        fixture.pass(900).await;
        assert!(!fixture.cloud.journal().is_empty(), "CS-153 {case}: it was looked at");
        assert_eq!(fixture.changes(), [""; 0], "CS-153 {case}: {:?}", fixture.cluster.events("web"));
        let writes: Vec<_> =
            fixture.cluster.writes(kube).into_iter().filter(|call| call.resource == "services").collect();
        assert_eq!(writes, [], "CS-153 {case}");
        assert_eq!(fixture.get("web").await, before, "CS-153 {case}");
        assert_eq!(fixture.cloud.resources().members.len(), stock.members.len(), "CS-153 {case}");
        let ours = before.annotations.keys().filter(|key| !key.starts_with(PREFIX)).count();
        assert_eq!(ours, 0, "CS-153 {case}: no annotation of ours on what we did not create");
    }
    println!("{} variants", variants.len());
}

#[tokio::test(start_paused = true)]
async fn what_was_taken_over_is_looked_after() {
    let mut fixture = left_behind(&plain("plain TCP")).await;
    fixture.restart();
    fixture.pass(30).await;
    fixture.node("node-4").await;
    fixture.pass(30).await;
    assert_eq!(fixture.changes(), ["members.create"], "CS-153 a node that joins costs one member");
    fixture.delete("web").await;
    fixture.pass(30).await;
    assert_eq!(fixture.cloud.balancers().len(), 0, "CS-153");
    assert!(fixture.cluster.service("web").await.is_none(), "CS-153");
}

#[tokio::test(start_paused = true)]
async fn sources_that_were_ignored_are_told_of() {
    let variants = variants();
    let variant = variants.iter().find(|variant| variant.case.contains("ignored")).unwrap();
    let mut fixture = left_behind(variant).await;
    fixture.restart();
    fixture.pass(30).await;
    let warnings = fixture.warnings("web");
    assert!(warnings.iter().any(|line| line.contains("listener-allowed-cidrs")), "L8-803 {warnings:?}");
}
