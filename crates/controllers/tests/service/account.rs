//! A token of another account is a good token, and everything of ours is missing there.

use std::{sync::Arc, time::Duration};

use cloudberth_core::Category;
use cloudberth_fake::Fault;
use serde_json::json;
use tokio::sync::Notify;

use crate::fixture::{FINALIZER, Fixture};

const GONE: &str = "cloudberth.dev/machine-is-gone";

/// Two instances, and a load balancer that is built.
async fn served() -> Fixture {
    let scene = Fixture::new();
    scene.node("n1").await;
    scene.node("n2").await;
    scene.create("web", json!({})).await;
    scene.pass(5).await;
    assert_eq!(scene.balancers().len(), 1);
    scene
}

impl Fixture {
    /// The token is of another account from now on: everything that is asked for is missing.
    fn leave(&self) {
        self.stage.clouds[0].plan_faults(|_| Some(Fault::Deny));
    }

    fn come_back(&self) {
        self.stage.clouds[0].stop_faults();
    }

    async fn is_held(&self) -> bool {
        let service = self.stage.service("web").await;
        service.is_some_and(|service| service.finalizers.contains(&FINALIZER.to_owned()))
    }

    fn listings(&self) -> usize {
        self.stage.clouds[0].calls().iter().filter(|call| call.operation == "list instances").count()
    }
}

#[tokio::test(start_paused = true)]
async fn an_account_without_any_instance_of_ours_lets_nothing_go() {
    for (case, change) in
        [("L1-850 deleted", None), ("L1-851 of another type", Some(json!({"spec": {"type": "ClusterIP"}})))]
    {
        let mut scene = served().await;
        scene.leave();
        match change.clone() {
            None => scene.delete("web").await,
            Some(body) => scene.edit("web", body).await,
        }
        scene.pass(300).await;
        assert!(scene.is_held().await, "{case}");
        let said = scene.stage.events("web");
        let warned = |line: &String| {
            line.starts_with("Warning SyncLoadBalancerFailed") && line.contains("ids 2 nodes carry")
        };
        assert!(said.iter().any(warned), "{case}: {said:?}");
        let listings = scene.listings();
        assert!(listings <= 7, "{case}: {listings} listings in five minutes");

        scene.kill();
        scene.restart();
        scene.pass(120).await;
        assert!(scene.is_held().await, "{case}, and a new leader holds it too");
        assert_eq!(scene.balancers().len(), 1, "{case}");

        scene.come_back();
        scene.pass(120).await;
        assert!(!scene.is_held().await, "{case}");
        assert_eq!(scene.balancers(), [], "{case}: nothing is left behind");
    }
}

#[tokio::test(start_paused = true)]
async fn what_is_gone_from_our_own_account_is_let_go_at_once() {
    let scene = served().await;
    scene.stage.clouds[0].delete_balancer(&scene.balancer("web").await.id);
    let (calls, listings) = (scene.calls(), scene.listings());
    scene.delete("web").await;
    scene.pass(2).await;
    assert!(scene.stage.service("web").await.is_none(), "L1-852");
    assert_eq!(scene.mutations(calls), []);
    assert_eq!(scene.listings() - listings, 1, "L7-850 one listing");
}

#[tokio::test(start_paused = true)]
async fn what_we_delete_ourselves_needs_no_witness() {
    let scene = served().await;
    let listings = scene.listings();
    scene.delete("web").await;
    scene.pass(5).await;
    assert!(scene.stage.service("web").await.is_none());
    assert_eq!(scene.listings(), listings, "L7-851");
}

#[tokio::test(start_paused = true)]
async fn many_services_share_the_listing() {
    let scene = Fixture::new();
    scene.node("n1").await;
    let names: Vec<_> = (0..12).map(|number| format!("web-{number}")).collect();
    for name in &names {
        scene.create(name, json!({})).await;
    }
    scene.pass(10).await;
    for balancer in scene.balancers() {
        scene.stage.clouds[0].delete_balancer(&balancer.id);
    }
    let listings = scene.listings();
    for name in &names {
        scene.delete(name).await;
    }
    scene.pass(10).await;
    for name in &names {
        assert!(scene.stage.service(name).await.is_none(), "{name}");
    }
    let asked = scene.listings() - listings;
    assert!(asked <= 3, "L7-852 {asked} listings for {} Services", names.len());
}

#[tokio::test(start_paused = true)]
async fn instances_that_cannot_be_listed_vouch_for_nothing() {
    for (case, fault) in [
        ("L1-853", Fault::Refuse(Category::Temporary)),
        ("L1-854", Fault::Refuse(Category::Unauthorised)),
        ("L1-855", Fault::AnswerLost),
    ] {
        let scene = served().await;
        scene.stage.clouds[0].plan_faults(move |request| {
            Some(if request.operation == "list instances" { fault } else { Fault::Deny })
        });
        scene.delete("web").await;
        scene.pass(120).await;
        assert!(scene.is_held().await, "{case}");
        scene.come_back();
        scene.pass(300).await;
        assert!(!scene.is_held().await, "{case}");
        assert_eq!(scene.balancers(), [], "{case}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_token_that_is_mended_between_the_look_and_the_listing_loses_nothing() {
    let scene = served().await;
    let mut away = true;
    scene.stage.clouds[0].plan_faults(move |request| {
        away &= request.operation != "list instances";
        away.then_some(Fault::Deny)
    });
    scene.delete("web").await;
    scene.pass(5).await;
    assert!(scene.stage.service("web").await.is_none());
    assert_eq!(scene.balancers(), [], "L1-856");
}

#[tokio::test(start_paused = true)]
async fn a_token_that_is_swapped_after_the_listing_began_loses_nothing() {
    let scene = Fixture::with(&["alpha"], |settings| settings.latency = Duration::from_secs(1));
    scene.node("n1").await;
    scene.create("web", json!({})).await;
    scene.pass(60).await;
    assert_eq!(scene.balancers().len(), 1);
    // Somebody else lists the instances just when the load balancer is looked for, and is the last to see the account.
    let looks = Arc::new(Notify::new());
    let (sprung, mut seen) = (Arc::clone(&looks), false);
    scene.stage.clouds[0].plan_faults(move |request| {
        sprung.notify_one();
        let ours = request.operation == "list instances" && !std::mem::replace(&mut seen, true);
        (!ours).then_some(Fault::Deny)
    });
    let inventory = Arc::clone(&scene.stage.ctx.clouds.named("alpha").unwrap().inventory);
    let clock = Arc::clone(&scene.stage.clock);
    tokio::spawn(async move {
        looks.notified().await;
        inventory.listing(clock.now()).await;
    });
    scene.delete("web").await;
    scene.pass(60).await;
    assert!(scene.is_held().await, "L1-1000");
    scene.come_back();
    scene.pass(300).await;
    assert_eq!(scene.balancers(), [], "L1-1000 nothing is left behind");
}

#[tokio::test(start_paused = true)]
async fn where_no_node_can_tell_nothing_hangs() {
    let annotate = async |scene: &Fixture, name: &str| {
        let body = json!({"metadata": {"annotations": {GONE: "true"}}});
        scene.stage.merge(&scene.stage.nodes(), name, body).await;
    };
    let scene = served().await;
    for instance in scene.stage.clouds[0].instances() {
        scene.stage.clouds[0].delete_instance(&instance.id);
    }
    scene.stage.clouds[0].delete_balancer(&scene.balancer("web").await.id);
    scene.delete("web").await;
    scene.pass(120).await;
    assert!(scene.is_held().await, "L1-857 everything is gone, and that looks like another account");
    annotate(&scene, "n1").await;
    scene.pass(120).await;
    assert!(scene.is_held().await, "the other node still stands");
    annotate(&scene, "n2").await;
    scene.pass(120).await;
    assert!(!scene.is_held().await, "a person said that the instances are gone");

    let scene = served().await;
    for name in ["n1", "n2"] {
        scene.stage.delete(&scene.stage.nodes(), name).await;
    }
    scene.pass(1).await;
    scene.leave();
    let listings = scene.listings();
    scene.delete("web").await;
    scene.pass(5).await;
    assert!(!scene.is_held().await, "a cluster without nodes is being taken down");
    assert_eq!(scene.listings(), listings, "nobody could tell, so nobody is asked");
}

#[tokio::test(start_paused = true)]
async fn a_dry_run_says_that_it_would_not_let_go() {
    let scene = served().await;
    scene.kill();
    scene.delete("web").await;
    scene.leave();
    scene.pass(1).await;
    let nodes = scene.stage.ctx.cluster.nodes.all();
    let all = scene.controller.dry_run(&nodes).await;
    let (_, told) = all.iter().find(|(key, _)| key.name == "web").unwrap();
    assert!(told.steps.is_empty(), "{told:?}");
    let why = told.unknown.as_ref().map(ToString::to_string).unwrap_or_default();
    assert!(why.contains("ids 2 nodes carry"), "L1-858 {told:?}");
}

#[tokio::test(start_paused = true)]
async fn a_dry_run_says_that_it_would_not_build_a_second_one() {
    let scene = served().await;
    scene.kill();
    scene.edit("web", json!({"spec": {"ports": [{"port": 81}]}})).await;
    scene.leave();
    scene.pass(1).await;
    let nodes = scene.stage.ctx.cluster.nodes.all();
    let all = scene.controller.dry_run(&nodes).await;
    let (_, told) = all.iter().find(|(key, _)| key.name == "web").unwrap();
    assert!(told.steps.is_empty(), "L1-1010 {told:?}");
    let why = told.unknown.as_ref().map(ToString::to_string).unwrap_or_default();
    assert!(why.contains("ids 2 nodes carry"), "L1-1010 {told:?}");
}

#[tokio::test(start_paused = true)]
async fn nothing_is_built_a_second_time_in_a_strange_account() {
    let scene = served().await;
    let before = scene.balancer("web").await;
    scene.leave();
    let calls = scene.calls();
    scene.edit("web", json!({"spec": {"ports": [{"port": 81}]}})).await;
    scene.pass(300).await;
    assert_eq!(scene.mutations(calls), [], "L1-859 the one that there is stands in the right account");
    assert!(scene.reasons("web").contains(&"SyncLoadBalancerFailed".to_owned()));
    scene.come_back();
    scene.pass(120).await;
    assert_eq!(scene.balancer("web").await.id, before.id, "L1-859");
    assert_eq!(scene.balancers().len(), 1);

    scene.stage.clouds[0].delete_balancer(&before.id);
    let listings = scene.listings();
    scene.edit("web", json!({"spec": {"ports": [{"port": 82}]}})).await;
    scene.pass(5).await;
    assert_ne!(scene.balancer("web").await.id, before.id, "what is gone from our own account is built anew");
    assert_eq!(scene.listings() - listings, 1, "L7-853");
}
