//! A cluster that the replaced program has brought to rest stays exactly as it is.

use testing_kit::cloudscale::{PREFIX, Variant, plain, variants};

use crate::scene::Scene;

/// A cluster that the replaced program has brought to rest, and that nobody looks after now.
async fn left_behind(variant: &Variant) -> Scene {
    let scene = Scene::with(|settings| settings.latency = std::time::Duration::ZERO);
    scene.killer().abort();
    variant.leave(&scene.cloud, &scene.stage).await;
    scene
}

#[tokio::test(start_paused = true)]
async fn nothing_is_changed_by_the_switch() {
    let variants = variants();
    assert!(variants.len() >= 20);
    for variant in &variants {
        let case = variant.case;
        let mut scene = left_behind(variant).await;
        let (stock, before) = (scene.cloud.resources(), scene.get("web").await);
        let kube = scene.kube_calls();
        scene.restart();
        scene.pass(900).await;
        assert!(!scene.cloud.journal().is_empty(), "CS-153 {case}: it was looked at");
        assert_eq!(scene.changes(), [""; 0], "CS-153 {case}: {:?}", scene.stage.events("web"));
        let writes: Vec<_> =
            scene.stage.writes(kube).into_iter().filter(|call| call.resource == "services").collect();
        assert_eq!(writes, [], "CS-153 {case}");
        assert_eq!(scene.get("web").await, before, "CS-153 {case}");
        assert_eq!(scene.cloud.resources().members.len(), stock.members.len(), "CS-153 {case}");
        let ours = before.annotations.keys().filter(|key| !key.starts_with(PREFIX)).count();
        assert_eq!(ours, 0, "CS-153 {case}: no annotation of ours on what we did not create");
    }
    println!("{} variants", variants.len());
}

#[tokio::test(start_paused = true)]
async fn what_was_taken_over_is_looked_after() {
    let mut scene = left_behind(&plain("plain TCP")).await;
    scene.restart();
    scene.pass(30).await;
    scene.node("node-4").await;
    scene.pass(30).await;
    assert_eq!(scene.changes(), ["members.create"], "CS-153 a node that joins costs one member");
    scene.delete("web").await;
    scene.pass(30).await;
    assert_eq!(scene.cloud.balancers().len(), 0, "CS-153");
    assert!(scene.stage.service("web").await.is_none(), "CS-153");
}

#[tokio::test(start_paused = true)]
async fn sources_that_were_ignored_are_told_of() {
    let variants = variants();
    let variant = variants.iter().find(|variant| variant.case.contains("ignored")).unwrap();
    let mut scene = left_behind(variant).await;
    scene.restart();
    scene.pass(30).await;
    let warnings = scene.warnings("web");
    assert!(warnings.iter().any(|line| line.contains("listener-allowed-cidrs")), "L8-803 {warnings:?}");
}
