//! What is recorded of settings that are not compared: after a lost answer, and before an edit is written.

use cloudberth_brightbox::Observed;
use cloudberth_core::lb::{Desired, Publish};

use crate::fixture::{APPLIED, aged, annotated, built, decide, edited, service, settle, want};

const ID: &str = "cloudberth.dev/brightbox-load-balancer";
const INTENT: &str = "cloudberth.dev/intent";

/// A load balancer that is complete, and a Service on which nothing of it is recorded.
fn unrecorded(annotations: &[(&str, &str)]) -> (Desired, Observed, String) {
    let (want, observed) = built(&want(service(annotations)), &["srv-a"]);
    let digest = want.service.annotations[APPLIED].clone();
    (annotated(&annotated(&want, APPLIED, None), ID, None), observed, digest)
}

fn recorded(publish: Option<Publish>, key: &str) -> Option<String> {
    publish?.annotations.get(key).cloned()
}

#[test]
fn a_creation_whose_answer_was_lost_is_recorded_when_it_is_found() {
    let (bare, observed, digest) = unrecorded(&[("policy", "round-robin")]);
    assert_eq!(decide(&bare, &observed).publish, None, "BB-181 what others made is not recorded");
    let ours = annotated(&bare, INTENT, Some("2026-03-02T12:00:00Z web.shop.prod"));
    let way = settle(&ours, observed.clone());
    assert_eq!(way.labels, [""; 0], "L6-1611 it is as the Service says");
    let id = observed.balancers[0].id.clone();
    assert_eq!(recorded(way.last.publish.clone(), ID), Some(id.clone()), "L6-1611");
    assert_eq!(recorded(way.last.publish, APPLIED), Some(digest.clone()), "L6-1611");
    // Somebody has edited the Service since: what the creation was sent with is not known.
    let mut other = observed;
    other.balancers[0].policy = Some("least-connections".to_owned());
    let first = decide(&ours, &other);
    assert_eq!(recorded(first.publish.clone(), APPLIED).as_deref(), Some("unknown"), "L6-1612");
    assert_eq!(recorded(first.publish.clone(), ID), Some(id), "L6-1612");
    let way = settle(&ours, other.clone());
    assert_eq!(way.acts.len(), 1, "L6-1612 {:?}", way.labels);
    assert_eq!(recorded(way.last.publish, APPLIED), Some(digest), "L6-1612");
    // The program died before it was written, and the intent is gone.
    let next = edited(&bare, |service| service.annotations.extend(first.publish.unwrap().annotations));
    assert_eq!(settle(&next, other).acts.len(), 1, "L6-1612 the next one writes it");
}

#[test]
fn an_edit_is_on_record_before_it_is_written() {
    let (bare, mut observed, digest) = unrecorded(&[]);
    observed.first_digest = Some(digest.clone());
    let asks = annotated(&bare, "policy", Some("round-robin"));
    let first = decide(&asks, &observed).publish;
    assert_eq!(recorded(first.clone(), APPLIED), Some(digest), "BB-126 L6-1610");
    assert_eq!(recorded(first.clone(), ID), None, "it is not ours yet");
    // Another program goes on: it has first seen the Service as it is now.
    let next = edited(&asks, |service| service.annotations.extend(first.unwrap().annotations));
    let mut seen = observed.clone();
    seen.first_digest = None;
    assert_eq!(settle(&next, seen).acts.len(), 1, "BB-126 L6-1610");
    let way = settle(&asks, observed);
    assert_eq!(way.acts.len(), 1, "BB-126 {:?}", way.labels);
    let last = way.last.publish;
    assert_eq!(recorded(last.clone(), ID), Some(way.observed.balancers[0].id.clone()), "BB-126");
    assert_ne!(
        recorded(last, APPLIED),
        recorded(decide(&asks, &aged(way.observed)).publish, APPLIED),
        "BB-126"
    );
}

#[test]
fn a_refused_setting_records_nothing() {
    let (bare, mut observed, digest) = unrecorded(&[]);
    observed.first_digest = Some(digest);
    let asks = annotated(&bare, "policy", Some("magic"));
    assert_eq!(decide(&asks, &observed).publish, None, "L8-1605");
    let ours = annotated(&asks, INTENT, Some("2026-03-02T12:00:00Z web.shop.prod"));
    let publish = decide(&ours, &observed).publish;
    assert_eq!(recorded(publish.clone(), APPLIED), None, "L8-1605 what is refused was not written");
    assert!(recorded(publish, ID).is_some(), "L8-1605 and the id is known");
}
