//! Things of others are neither changed nor deleted (law 3), and what is ours is not lost when its name is edited while it
//! comes into being (law 6).

use std::time::Duration;

use serde_json::{Value, json};
use sim_kit::merge;

use super::{CloudFixture, CloudUnderTest, annotation};
use crate::seeded::FINALIZER;

/// What the warning about another Service's load balancer names.
const ADOPT: &str = "cloudberth.dev/adopt-load-balancer";
/// The UID of a Service of another cluster.
const ELSEWHERE: &str = "5d0f0a5e-7c1b-4f6e-9a3d-0123456789ab";
/// The class of another controller.
const FOREIGN: &str = "example.net/other";

impl<C: CloudUnderTest> CloudFixture<C> {
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
    let mut fixture: CloudFixture<C> = CloudFixture::with_nodes(2).await;
    let Some(name) = fixture.cloud.name_annotation() else { return };
    let prod = fixture.cloud.build_by_hand("prod");
    let before = fixture.state(&prod);
    let asks = || annotation(name, json!("prod"));

    fixture.create("web", asks()).await;
    fixture.pass(60).await;
    let case = "L3-320 a given name";
    fixture.assert_untouched(&prod, &before, case);
    assert_eq!(fixture.cloud.balancers().len(), 1, "{case}: no second one of that name");
    assert_eq!(fixture.cloud.mutations(), 0, "{case}");
    fixture.assert_warned("web", &[fixture.cloud.id_annotation(), &prod], case);
    fixture.restart();
    fixture.pass(300).await;
    fixture.assert_untouched(&prod, &before, "L3-321 after a restart");
    fixture.assert_quiet(600, "L4-300 a refusal is not repeated").await;
    fixture.take_down("web", "L3-322").await;
    fixture.assert_untouched(&prod, &before, "L3-322 the Service is deleted");

    fixture.create("web", asks()).await;
    fixture.pass(30).await;
    fixture.annotate("web", fixture.cloud.id_annotation(), json!(prod)).await;
    fixture.pass(60).await;
    fixture.assert_served_by("web", &prod, "L3-323 adopted on purpose").await;
    assert_ne!(fixture.state(&prod), before, "L3-323");

    fixture.create("free", annotation(name, json!("free"))).await;
    fixture.pass(60).await;
    let free = fixture.recorded("free").await.unwrap();
    fixture.annotate("free", fixture.cloud.id_annotation(), Value::Null).await;
    fixture.pass(60).await;
    fixture.assert_served_by("free", &free, "L3-324 the published address is a proof").await;
    assert_eq!(fixture.cloud.balancers().len(), 2, "L3-324");
}

/// The same, for a program that dies at any moment of its first look.
pub async fn a_given_name_is_no_proof_after_a_crash<C: CloudUnderTest>() {
    for millis in (0..240).step_by(20) {
        let mut fixture: CloudFixture<C> = CloudFixture::with_nodes(1).await;
        let Some(name) = fixture.cloud.name_annotation() else { return };
        let prod = fixture.cloud.build_by_hand("prod");
        let before = fixture.state(&prod);
        fixture.pass(10).await;
        fixture.create("web", annotation(name, json!("prod"))).await;
        tokio::time::sleep(Duration::from_millis(millis)).await;
        fixture.killer().abort();
        fixture.pass(1).await;
        fixture.restart();
        fixture.pass(300).await;
        let case = format!("L3-325 killed after {millis} ms");
        fixture.assert_untouched(&prod, &before, &case);
        assert_eq!(fixture.cloud.balancers().len(), 1, "{case}");
        fixture.take_down("web", &case).await;
        fixture.assert_untouched(&prod, &before, &case);
    }
}

/// A load balancer whose name was generated for another Service is not taken over by whoever carries its id.
pub async fn a_copied_id_is_no_proof<C: CloudUnderTest>() {
    let fixture: CloudFixture<C> = CloudFixture::with_nodes(2).await;
    let theirs = fixture.cloud.build_by_hand(&fixture.name_elsewhere(ELSEWHERE));
    let before = fixture.state(&theirs);
    let copied = || annotation(fixture.cloud.id_annotation(), json!(theirs));

    fixture.create("web", copied()).await;
    fixture.pass(120).await;
    let case = "L3-326 a copied id";
    fixture.assert_untouched(&theirs, &before, case);
    assert_eq!(fixture.cloud.mutations(), 0, "{case}: and nothing is created beside it");
    fixture.assert_warned("web", &[ADOPT, &theirs, ELSEWHERE], case);
    assert_eq!(fixture.ingress("web").await, [""; 0], "{case}");
    fixture.assert_quiet(600, "L4-301 a hold is not repeated").await;
    fixture.annotate("web", ADOPT, json!("another")).await;
    fixture.pass(60).await;
    fixture.assert_untouched(&theirs, &before, "L3-327 a word about another one");
    fixture.take_down("web", "L3-328").await;
    fixture.assert_untouched(&theirs, &before, "L3-328 the Service is deleted");

    fixture.create("web", copied()).await;
    fixture.pass(30).await;
    fixture.annotate("web", ADOPT, json!(theirs)).await;
    fixture.pass(60).await;
    fixture.assert_served_by("web", &theirs, "L3-329 a person confirms").await;
    fixture.take_down("web", "L3-330").await;
    assert_eq!(fixture.cloud.balancers(), [""; 0], "L3-330 what was adopted goes with its Service");
}

/// A Service that was created anew, or restored from a backup, comes with the id of the load balancer that it had.
pub async fn a_restored_service_waits_for_a_word<C: CloudUnderTest>() {
    let mut fixture: CloudFixture<C> = CloudFixture::with_nodes(2).await;
    fixture.create("web", json!({})).await;
    fixture.pass(60).await;
    let own = fixture.recorded("web").await.unwrap();
    let before = fixture.state(&own);
    fixture.killer().abort();
    fixture.edit("web", json!({"metadata": {"finalizers": null}})).await;
    fixture.delete("web").await;
    fixture.create("web", annotation(fixture.cloud.id_annotation(), json!(own))).await;
    fixture.restart();
    fixture.pass(120).await;
    fixture.assert_untouched(&own, &before, "L3-331 another UID");
    fixture.assert_warned("web", &[ADOPT, &own], "L3-331");
    fixture.annotate("web", ADOPT, json!(own)).await;
    fixture.pass(60).await;
    fixture.assert_served_by("web", &own, "L3-332").await;
    assert_eq!(fixture.cloud.balancers(), [own], "L3-332");
    // The word is needed once: the name says whose it is from now on.
    fixture.annotate("web", ADOPT, Value::Null).await;
    fixture.pass(60).await;
    fixture.take_down("web", "L3-333").await;
    assert_eq!(fixture.cloud.balancers(), [""; 0], "L3-333");
}

/// A Service of another controller is invisible, whatever annotations were copied onto it.
pub async fn a_service_of_another_class_is_invisible<C: CloudUnderTest>() {
    let fixture: CloudFixture<C> = CloudFixture::with_nodes(2).await;
    fixture.create("own", json!({})).await;
    fixture.pass(60).await;
    let ours = fixture.recorded("own").await.unwrap();
    let named = fixture.cloud.build_by_hand("prod");
    let elsewhere = fixture.cloud.build_by_hand(&fixture.name_elsewhere(ELSEWHERE));
    for (case, balancer) in [
        ("L3-334 the id of one that somebody built", &named),
        ("L3-335 the id of another cluster's", &elsewhere),
        ("L3-336 the id of another Service's", &ours),
    ] {
        let before = fixture.state(balancer);
        let mut body = annotation(fixture.cloud.id_annotation(), json!(balancer));
        merge(
            &mut body,
            json!({"metadata": {"finalizers": [FINALIZER]}, "spec": {"loadBalancerClass": FOREIGN}}),
        );
        fixture.create("theirs", body).await;
        fixture.assert_quiet(300, case).await;
        fixture.delete("theirs").await;
        fixture.assert_quiet(300, case).await;
        let service = fixture.service("theirs").await.unwrap();
        assert_eq!(service.finalizers, [FINALIZER], "{case}: the other controller's finalizer stays");
        fixture.assert_untouched(balancer, &before, case);
        fixture.edit("theirs", json!({"metadata": {"finalizers": null}})).await;
        fixture.assert_quiet(60, case).await;
        assert_eq!(fixture.cluster.events("theirs"), [""; 0], "{case}: nothing is said about it either");
    }
    fixture.take_down("own", "our own goes").await;
    assert_eq!(fixture.cloud.balancers().len(), 2, "L3-336");
}

/// A Service that came to be of another class while nobody looked leaves nothing behind.
pub async fn what_is_proven_goes_beside_another_class<C: CloudUnderTest>() {
    let mut fixture: CloudFixture<C> = CloudFixture::with_nodes(2).await;
    fixture.create("web", json!({})).await;
    fixture.pass(60).await;
    assert_eq!(fixture.cloud.balancers().len(), 1);
    fixture.killer().abort();
    fixture.edit("web", json!({"spec": {"type": "ClusterIP"}})).await;
    fixture.edit("web", json!({"spec": {"type": "LoadBalancer", "loadBalancerClass": FOREIGN}})).await;
    fixture.restart();
    fixture.pass(120).await;
    assert_eq!(
        fixture.cloud.balancers(),
        [""; 0],
        "L3-337 its name carries the UID, so it is ours to delete"
    );
    assert_eq!(fixture.service("web").await.unwrap().finalizers, [""; 0], "L3-337");
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
        let mut fixture: CloudFixture<C> = CloudFixture::with_nodes(1).await;
        let Some(name) = fixture.cloud.name_annotation() else { return };
        let theirs = fixture.cloud.build_by_hand("theirs");
        let before = fixture.state(&theirs);
        fixture.pass(10).await;
        fixture.cloud.lose_next_creation();
        fixture.create("web", annotation(name, json!("first"))).await;
        fixture.pass(2).await;
        let made: Vec<_> = fixture.cloud.balancers().into_iter().filter(|id| *id != theirs).collect();
        assert_eq!((made.len(), fixture.recorded("web").await), (1, None), "{case}: its answer was lost");
        if killed {
            fixture.killer().abort();
        }
        fixture.annotate("web", name, new).await;
        if deleted {
            fixture.delete("web").await;
        }
        if killed {
            fixture.restart();
        }
        fixture.pass(600).await;
        fixture.assert_untouched(&theirs, &before, case);
        let left: Vec<_> = fixture.cloud.balancers().into_iter().filter(|id| *id != theirs).collect();
        if deleted {
            assert_eq!(left, [""; 0], "{case}: nothing leaks");
            assert!(fixture.service("web").await.is_none(), "{case}");
        } else {
            assert_eq!(left, made, "{case}: it is found, and not created a second time");
            fixture.assert_served_by("web", &made[0], case).await;
        }
    }
}
