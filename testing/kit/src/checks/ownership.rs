//! Things of others are neither changed nor deleted (law 3), and what is ours is not lost when its name is edited while it
//! comes into being (law 6).

use std::time::Duration;

use serde_json::{Value, json};

use super::{CloudUnderTest, Scene, annotation};
use crate::cloudscale::{FINALIZER, merge};

/// What the warning about another Service's load balancer names.
const ADOPT: &str = "cloudberth.dev/adopt-load-balancer";
/// The UID of a Service of another cluster.
const ELSEWHERE: &str = "5d0f0a5e-7c1b-4f6e-9a3d-0123456789ab";
/// The class of another controller.
const FOREIGN: &str = "example.net/other";

impl<C: CloudUnderTest> Scene<C> {
    fn assert_untouched(&self, balancer: &str, before: &str, case: &str) {
        assert_eq!(self.cloud.state_of(balancer).as_deref(), Some(before), "{case}: not touched");
    }

    fn assert_warned(&self, service: &str, words: &[&str], case: &str) {
        let warnings = self.warnings(service);
        let fits = |line: &&String| words.iter().all(|word| line.contains(word));
        assert!(warnings.iter().any(|line| fits(&line)), "{case}: {words:?} in {warnings:?}");
    }

    fn state(&self, balancer: &str) -> String {
        self.cloud.state_of(balancer).unwrap()
    }

    /// Deletes a Service and waits until it is gone.
    async fn take_down(&self, service: &str, case: &str) {
        self.delete(service).await;
        self.pass(300).await;
        assert!(self.service(service).await.is_none(), "{case}: the Service is let go");
    }

    async fn assert_served_by(&self, service: &str, balancer: &str, case: &str) {
        let recorded = self.recorded(service).await;
        assert_eq!(recorded.as_deref(), Some(balancer), "{case}: {:?}", self.warnings(service));
        assert!(!self.ingress(service).await.is_empty(), "{case}: its address is published");
    }
}

/// A load balancer that bears the name which a Service asks for is not the Service's for that reason.
pub async fn a_given_name_is_no_proof<C: CloudUnderTest>() {
    let mut scene: Scene<C> = Scene::with_nodes(2).await;
    let Some(name) = scene.cloud.name_annotation() else { return };
    let prod = scene.cloud.build_by_hand("prod");
    let before = scene.state(&prod);
    let asks = || annotation(name, json!("prod"));

    scene.create("web", asks()).await;
    scene.pass(60).await;
    let case = "L3-320 a given name";
    scene.assert_untouched(&prod, &before, case);
    assert_eq!(scene.cloud.balancers().len(), 1, "{case}: no second one of that name");
    assert_eq!(scene.cloud.mutations(), 0, "{case}");
    scene.assert_warned("web", &[scene.cloud.id_annotation(), &prod], case);
    scene.restart();
    scene.pass(300).await;
    scene.assert_untouched(&prod, &before, "L3-321 after a restart");
    scene.assert_quiet(600, "L4-300 a refusal is not repeated").await;
    scene.take_down("web", "L3-322").await;
    scene.assert_untouched(&prod, &before, "L3-322 the Service is deleted");

    scene.create("web", asks()).await;
    scene.pass(30).await;
    scene.annotate("web", scene.cloud.id_annotation(), json!(prod)).await;
    scene.pass(60).await;
    scene.assert_served_by("web", &prod, "L3-323 adopted on purpose").await;
    assert_ne!(scene.state(&prod), before, "L3-323");

    scene.create("free", annotation(name, json!("free"))).await;
    scene.pass(60).await;
    let free = scene.recorded("free").await.unwrap();
    scene.annotate("free", scene.cloud.id_annotation(), Value::Null).await;
    scene.pass(60).await;
    scene.assert_served_by("free", &free, "L3-324 the published address is a proof").await;
    assert_eq!(scene.cloud.balancers().len(), 2, "L3-324");
}

/// The same, for a program that dies at any moment of its first look.
pub async fn a_given_name_is_no_proof_after_a_crash<C: CloudUnderTest>() {
    for millis in (0..240).step_by(20) {
        let mut scene: Scene<C> = Scene::with_nodes(1).await;
        let Some(name) = scene.cloud.name_annotation() else { return };
        let prod = scene.cloud.build_by_hand("prod");
        let before = scene.state(&prod);
        scene.pass(10).await;
        scene.create("web", annotation(name, json!("prod"))).await;
        tokio::time::sleep(Duration::from_millis(millis)).await;
        scene.killer().abort();
        scene.pass(1).await;
        scene.restart();
        scene.pass(300).await;
        let case = format!("L3-325 killed after {millis} ms");
        scene.assert_untouched(&prod, &before, &case);
        assert_eq!(scene.cloud.balancers().len(), 1, "{case}");
        scene.take_down("web", &case).await;
        scene.assert_untouched(&prod, &before, &case);
    }
}

/// A load balancer whose name was generated for another Service is not taken over by whoever carries its id.
pub async fn a_copied_id_is_no_proof<C: CloudUnderTest>() {
    let scene: Scene<C> = Scene::with_nodes(2).await;
    let theirs = scene.cloud.build_by_hand(&scene.name_elsewhere(ELSEWHERE));
    let before = scene.state(&theirs);
    let copied = || annotation(scene.cloud.id_annotation(), json!(theirs));

    scene.create("web", copied()).await;
    scene.pass(120).await;
    let case = "L3-326 a copied id";
    scene.assert_untouched(&theirs, &before, case);
    assert_eq!(scene.cloud.mutations(), 0, "{case}: and nothing is created beside it");
    scene.assert_warned("web", &[ADOPT, &theirs, ELSEWHERE], case);
    assert_eq!(scene.ingress("web").await, [""; 0], "{case}");
    scene.assert_quiet(600, "L4-301 a hold is not repeated").await;
    scene.annotate("web", ADOPT, json!("another")).await;
    scene.pass(60).await;
    scene.assert_untouched(&theirs, &before, "L3-327 a word about another one");
    scene.take_down("web", "L3-328").await;
    scene.assert_untouched(&theirs, &before, "L3-328 the Service is deleted");

    scene.create("web", copied()).await;
    scene.pass(30).await;
    scene.annotate("web", ADOPT, json!(theirs)).await;
    scene.pass(60).await;
    scene.assert_served_by("web", &theirs, "L3-329 a person confirms").await;
    scene.take_down("web", "L3-330").await;
    assert_eq!(scene.cloud.balancers(), [""; 0], "L3-330 what was adopted goes with its Service");
}

/// A Service that was created anew, or restored from a backup, comes with the id of the load balancer that it had.
pub async fn a_restored_service_waits_for_a_word<C: CloudUnderTest>() {
    let mut scene: Scene<C> = Scene::with_nodes(2).await;
    scene.create("web", json!({})).await;
    scene.pass(60).await;
    let own = scene.recorded("web").await.unwrap();
    let before = scene.state(&own);
    scene.killer().abort();
    scene.edit("web", json!({"metadata": {"finalizers": null}})).await;
    scene.delete("web").await;
    scene.create("web", annotation(scene.cloud.id_annotation(), json!(own))).await;
    scene.restart();
    scene.pass(120).await;
    scene.assert_untouched(&own, &before, "L3-331 another UID");
    scene.assert_warned("web", &[ADOPT, &own], "L3-331");
    scene.annotate("web", ADOPT, json!(own)).await;
    scene.pass(60).await;
    scene.assert_served_by("web", &own, "L3-332").await;
    assert_eq!(scene.cloud.balancers(), [own], "L3-332");
    // The word is needed once: the name says whose it is from now on.
    scene.annotate("web", ADOPT, Value::Null).await;
    scene.pass(60).await;
    scene.take_down("web", "L3-333").await;
    assert_eq!(scene.cloud.balancers(), [""; 0], "L3-333");
}

/// A Service of another controller is invisible, whatever annotations were copied onto it.
pub async fn a_service_of_another_class_is_invisible<C: CloudUnderTest>() {
    let scene: Scene<C> = Scene::with_nodes(2).await;
    scene.create("own", json!({})).await;
    scene.pass(60).await;
    let ours = scene.recorded("own").await.unwrap();
    let named = scene.cloud.build_by_hand("prod");
    let elsewhere = scene.cloud.build_by_hand(&scene.name_elsewhere(ELSEWHERE));
    for (case, balancer) in [
        ("L3-334 the id of one that somebody built", &named),
        ("L3-335 the id of another cluster's", &elsewhere),
        ("L3-336 the id of another Service's", &ours),
    ] {
        let before = scene.state(balancer);
        let mut body = annotation(scene.cloud.id_annotation(), json!(balancer));
        merge(
            &mut body,
            json!({"metadata": {"finalizers": [FINALIZER]}, "spec": {"loadBalancerClass": FOREIGN}}),
        );
        scene.create("theirs", body).await;
        scene.assert_quiet(300, case).await;
        scene.delete("theirs").await;
        scene.assert_quiet(300, case).await;
        let service = scene.service("theirs").await.unwrap();
        assert_eq!(service.finalizers, [FINALIZER], "{case}: the other controller's finalizer stays");
        scene.assert_untouched(balancer, &before, case);
        scene.edit("theirs", json!({"metadata": {"finalizers": null}})).await;
        scene.assert_quiet(60, case).await;
        assert_eq!(scene.stage.events("theirs"), [""; 0], "{case}: nothing is said about it either");
    }
    scene.take_down("own", "our own goes").await;
    assert_eq!(scene.cloud.balancers().len(), 2, "L3-336");
}

/// A Service that came to be of another class while nobody looked leaves nothing behind.
pub async fn what_is_proven_goes_beside_another_class<C: CloudUnderTest>() {
    let mut scene: Scene<C> = Scene::with_nodes(2).await;
    scene.create("web", json!({})).await;
    scene.pass(60).await;
    assert_eq!(scene.cloud.balancers().len(), 1);
    scene.killer().abort();
    scene.edit("web", json!({"spec": {"type": "ClusterIP"}})).await;
    scene.edit("web", json!({"spec": {"type": "LoadBalancer", "loadBalancerClass": FOREIGN}})).await;
    scene.restart();
    scene.pass(120).await;
    assert_eq!(scene.cloud.balancers(), [""; 0], "L3-337 its name carries the UID, so it is ours to delete");
    assert_eq!(scene.service("web").await.unwrap().finalizers, [""; 0], "L3-337");
}

/// A creation whose answer was lost is found although somebody edits the name before it shows up.
pub async fn a_lost_creation_is_found_after_its_name_was_edited<C: CloudUnderTest>() {
    for (case, new, killed, deleted) in [
        ("L6-310 another name", json!("second"), false, false),
        ("L6-311 no name any more", Value::Null, false, false),
        ("L6-312 and the program dies", json!("second"), true, false),
        ("L6-313 and the Service is deleted", json!("second"), false, true),
        ("L6-314 and both", Value::Null, true, true),
        ("L3-338 a name that somebody else has", json!("theirs"), false, false),
        ("L3-339 and the Service is deleted", json!("theirs"), false, true),
    ] {
        let mut scene: Scene<C> = Scene::with_nodes(1).await;
        let Some(name) = scene.cloud.name_annotation() else { return };
        let theirs = scene.cloud.build_by_hand("theirs");
        let before = scene.state(&theirs);
        scene.pass(10).await;
        scene.cloud.lose_next_creation();
        scene.create("web", annotation(name, json!("first"))).await;
        scene.pass(2).await;
        let made: Vec<_> = scene.cloud.balancers().into_iter().filter(|id| *id != theirs).collect();
        assert_eq!((made.len(), scene.recorded("web").await), (1, None), "{case}: its answer was lost");
        if killed {
            scene.killer().abort();
        }
        scene.annotate("web", name, new).await;
        if deleted {
            scene.delete("web").await;
        }
        if killed {
            scene.restart();
        }
        scene.pass(600).await;
        scene.assert_untouched(&theirs, &before, case);
        let left: Vec<_> = scene.cloud.balancers().into_iter().filter(|id| *id != theirs).collect();
        if deleted {
            assert_eq!(left, [""; 0], "{case}: nothing leaks");
            assert!(scene.service("web").await.is_none(), "{case}");
        } else {
            assert_eq!(left, made, "{case}: it is found, and not created a second time");
            scene.assert_served_by("web", &made[0], case).await;
        }
    }
}
