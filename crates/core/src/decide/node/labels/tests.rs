//! Labels, case by case, and the promise that a second pass finds nothing to do.

use proptest::prelude::*;

use super::*;
use crate::decide::node::{
    fixture::{apply, instance, map, node},
    patch, record,
};
use crate::view::Pairs;

const BETA_TYPE: &str = "beta.kubernetes.io/instance-type";
const TYPE: &str = "node.kubernetes.io/instance-type";
const BETA_ZONE: &str = "failure-domain.beta.kubernetes.io/zone";
const ZONE_NOW: &str = "topology.kubernetes.io/zone";
const BETA_REGION: &str = "failure-domain.beta.kubernetes.io/region";
const REGION_NOW: &str = "topology.kubernetes.io/region";

/// Long keys, shortened: `T`, `Z`, `R` for the current labels, small letters for beta.
fn long(text: &str) -> Pairs {
    let key = |short: &str| match short {
        "t" => BETA_TYPE.to_owned(),
        "T" => TYPE.to_owned(),
        "z" => BETA_ZONE.to_owned(),
        "Z" => ZONE_NOW.to_owned(),
        "r" => BETA_REGION.to_owned(),
        "R" => REGION_NOW.to_owned(),
        other => other.to_owned(),
    };
    map(text).iter().map(|(short, value)| (key(short), value)).collect()
}

fn labelled(labels: &str) -> NodeView {
    NodeView { labels: long(labels), ..node("n") }
}

fn with_record(node: NodeView, labels: &Pairs) -> NodeView {
    let mut record = Record::default();
    for (key, value) in labels.iter() {
        record.note(key, value);
    }
    match record.to_json().as_str() {
        Some(text) => node.annotated(record::ANNOTATION, text),
        None => node,
    }
}

fn recorded(node: NodeView, labels: &str) -> NodeView {
    with_record(node, &long(labels))
}

/// The node after the changes.
fn after(node: &NodeView, changes: &LabelChanges) -> NodeView {
    if changes.is_empty() { node.clone() } else { apply(node, &patch::main_patch(node, changes, None, None)) }
}

fn record_of(node: &NodeView) -> Pairs {
    Record::of(node).iter().collect()
}

#[test]
fn at_initialisation_the_instance_is_right_about_its_facts() {
    let all = "t=flex-4, T=flex-4, z=rma1, Z=rma1, r=rma, R=rma";
    let table = [
        ("FW-16 nothing there", "", ("flex-4", "rma1", "rma"), all),
        (
            "FW-5 zone and region",
            "",
            ("-", "us-west-1a", "us-west"),
            "z=us-west-1a, Z=us-west-1a, r=us-west, R=us-west",
        ),
        ("FW-33 no zone, label stays", "Z=old, T=x", ("flex-4", "-", "-"), "Z=old, t=flex-4, T=flex-4"),
        ("FW-34 both overwritten", "t=a, T=b", ("flex-4", "-", "-"), "t=flex-4, T=flex-4"),
        ("others stay", "mine=1", ("flex-4", "-", "-"), "mine=1, t=flex-4, T=flex-4"),
        ("no zone, the beta label is copied", "z=old", ("-", "-", "-"), "z=old, Z=old"),
    ];
    for (case, labels, (kind, zone, region), want) in table {
        let node = labelled(labels);
        let changes = at_initialisation(&node, &instance("fake://1", "n").with_facts(kind, zone, region));
        assert_eq!(after(&node, &changes).labels, long(want), "{case}");
        assert_eq!(changes.notices, [], "{case}");
    }
}

#[test]
fn what_is_written_at_initialisation_is_remembered() {
    let instance = instance("fake://1", "n").with_facts("flex-4", "rma1", "-").with_labels("a=1, b=2, c=3");
    let node = labelled("z=rma1, Z=rma1, b=2, c=user, R=elsewhere");
    let changes = at_initialisation(&node, &instance);
    let node = after(&node, &changes);
    assert_eq!(record_of(&node), long("t=flex-4, T=flex-4, z=rma1, Z=rma1, a=1"));
    let want = r#"{"a":"1","beta.kubernetes.io/instance-type":"flex-4","failure-domain.beta.kubernetes.io/zone":"rma1","node.kubernetes.io/instance-type":"flex-4","topology.kubernetes.io/zone":"rma1"}"#;
    assert_eq!(&node.annotations[record::ANNOTATION], want);
    let agreeing = labelled("z=rma1, Z=rma1, t=flex-4, T=flex-4");
    let facts = instance.with_labels("");
    let changes = at_initialisation(&agreeing, &facts);
    assert_eq!((changes.labels.len(), changes.record.is_some()), (0, true), "the node is written to anyway");
    assert_eq!(at_initialisation(&after(&agreeing, &changes), &facts), LabelChanges::default());
}

#[test]
fn an_empty_fact_is_none() {
    let mut odd = instance("fake://1", "n");
    odd.instance_type = Some(LabelValue::new("").unwrap());
    assert_eq!(at_initialisation(&labelled("t=a, T=a"), &odd), LabelChanges::default());
}

#[test]
fn extra_labels_never_replace_what_the_node_has() {
    let kept = |key: &str, node: &str, cloud: &str| LabelNotice::Kept {
        key: key.into(),
        node: node.into(),
        cloud: cloud.into(),
    };
    let refused = |key: &str| LabelNotice::Refused { key: key.into() };
    let table = [
        (
            "FW-19",
            "",
            "topology.k8s.cp/zone-id=az1, my.custom.label/foo=bar",
            "topology.k8s.cp/zone-id=az1, my.custom.label/foo=bar",
            vec![],
        ),
        (
            "FW-20",
            "",
            "topology.kubernetes.io/region=x, topology.k8s.io/region=x, kubernetes.io/region=x, k8s.io/region=x",
            "",
            vec![
                refused("k8s.io/region"),
                refused("kubernetes.io/region"),
                refused("topology.k8s.io/region"),
                refused("topology.kubernetes.io/region"),
            ],
        ),
        ("FW-21", "foo=mine", "foo=bar", "foo=mine", vec![kept("foo", "mine", "bar")]),
        ("FW-22", "foo=bar", "foo=bar", "foo=bar", vec![]),
        ("FW-23", "", "app.k8snio/bar=1, k8snio/bar=2", "app.k8snio/bar=1, k8snio/bar=2", vec![]),
        ("FW-23 another word", "", "mykubernetes.io/x=1, x=2", "mykubernetes.io/x=1, x=2", vec![]),
    ];
    for (case, labels, extra, want, notices) in table {
        let node = labelled(labels);
        let instance = instance("fake://1", "n").with_labels(extra);
        for changes in [at_initialisation(&node, &instance), in_service(&node, &instance)] {
            assert_eq!(after(&node, &changes).labels, long(want), "{case}");
            assert_eq!(changes.notices, notices, "{case}");
        }
    }
}

#[test]
fn notices_name_label_and_values() {
    let refused = LabelNotice::Refused { key: "k8s.io/x".into() };
    assert_eq!(
        refused.to_string(),
        "label k8s.io/x from the cloud is left out: its domain belongs to Kubernetes"
    );
    let kept = LabelNotice::Kept { key: "a".into(), node: "1".into(), cloud: "2".into() };
    assert_eq!(kept.to_string(), "label a keeps the node's value \"1\"; the cloud says \"2\"");
}

#[test]
fn without_a_record_beta_leads_and_gaps_are_filled() {
    let silent = ("-", "-", "-");
    let all = ("flex-4", "rma1", "rma");
    let table = [
        ("FW-50", "t=a, z=b, r=c", silent, "t=a, T=a, z=b, Z=b, r=c, R=c"),
        ("FW-50 whatever the instance says", "t=a, z=b, r=c", all, "t=a, T=a, z=b, Z=b, r=c, R=c"),
        ("FW-51", "t=a, T=a, z=b, Z=b, r=c, R=c", silent, ""),
        ("FW-51 whatever the instance says", "t=a, T=a, z=b, Z=b, r=c, R=c", all, ""),
        ("FW-52", "t=a, T=1, z=b, Z=2, r=c, R=3", all, "t=a, T=a, z=b, Z=b, r=c, R=c"),
        ("FW-53", "T=a, Z=b, R=c", all, ""),
        ("FW-54", "Z=b, r=c", silent, "Z=b, r=c, R=c"),
        ("FW-55", "", silent, ""),
        ("the gap is filled", "t=a, T=a, r=c, R=c", all, "t=a, T=a, z=rma1, Z=rma1, r=c, R=c"),
        ("all gaps are filled", "mine=1", all, "mine=1, t=flex-4, T=flex-4, z=rma1, Z=rma1, r=rma, R=rma"),
    ];
    for (case, labels, (kind, zone, region), want) in table {
        let node = labelled(labels);
        let instance = instance("fake://1", "n").with_facts(kind, zone, region);
        let changes = in_service(&node, &instance);
        assert_eq!(changes.is_empty(), want.is_empty(), "{case}");
        let node = after(&node, &changes);
        assert_eq!(node.labels, long(if want.is_empty() { labels } else { want }), "{case}");
        assert!(in_service(&node, &instance).is_empty(), "{case}, once more");
    }
}

#[test]
fn a_record_is_written_only_along_with_something_from_the_instance() {
    let facts = instance("fake://1", "n").with_facts("flex-4", "rma1", "rma");
    let table = [
        (
            "L4-203 the labels of a replaced program agree",
            "t=flex-4, T=flex-4, z=rma1, Z=rma1, r=rma, R=rma",
            "",
        ),
        ("only a copy of a beta label", "t=flex-4, z=rma1, Z=rma1, r=rma, R=rma", ""),
        (
            "a gap is filled, and what agrees enters the record",
            "t=flex-4, T=flex-4, r=else, R=else",
            "t=flex-4, T=flex-4, z=rma1, Z=rma1",
        ),
        ("half a pair that agrees does not", "T=flex-4", "z=rma1, Z=rma1, r=rma, R=rma"),
    ];
    for (case, labels, want) in table {
        let node = labelled(labels);
        assert_eq!(record_of(&after(&node, &in_service(&node, &facts))), long(want), "{case}");
    }
    let unmoved = labelled("t=flex-4, T=flex-4, z=rma1, Z=rma1, r=rma, R=rma");
    assert!(in_service(&unmoved, &facts).is_empty(), "L4-203");
}

#[test]
fn with_a_record_our_labels_follow_and_the_users_stay() {
    let resized = instance("fake://1", "n").with_facts("flex-8", "-", "-").with_labels("a=2");
    let bare = instance("fake://1", "n");
    let table = [
        (
            "resized",
            "t=flex-4, T=flex-4, a=1",
            "t=flex-4, T=flex-4, a=1",
            &resized,
            "t=flex-8, T=flex-8, a=2",
        ),
        (
            "the user's value stays",
            "t=flex-4, T=mine, a=1",
            "t=flex-4, T=flex-4, a=1",
            &resized,
            "t=flex-8, T=mine, a=2",
        ),
        (
            "the user's beta value stays alone",
            "t=mine, T=flex-8, a=2",
            "t=flex-8, T=flex-8, a=2",
            &resized,
            "t=mine, T=flex-8, a=2",
        ),
        ("what the user removed stays away", "t=flex-4", "t=flex-4, T=flex-4, a=1", &resized, "t=flex-8"),
        (
            "the user's extra stays",
            "t=flex-8, T=flex-8, a=mine",
            "t=flex-8, T=flex-8, a=1",
            &resized,
            "t=flex-8, T=flex-8, a=mine",
        ),
        (
            "a new fact is added",
            "t=flex-8, T=flex-8",
            "t=flex-8, T=flex-8",
            &resized,
            "t=flex-8, T=flex-8, a=2",
        ),
        (
            "a fact that is gone clears nothing",
            "t=flex-4, T=flex-4",
            "t=flex-4, T=flex-4",
            &bare,
            "t=flex-4, T=flex-4",
        ),
        ("an extra that is gone goes", "a=1, b=2", "a=1", &bare, "b=2"),
        ("unless the user changed it", "a=mine", "a=1", &bare, "a=mine"),
        (
            "unrecorded pairs keep the old rule",
            "z=x, Z=y, a=2",
            "a=2",
            &bare.clone().with_labels("a=2"),
            "z=x, Z=x, a=2",
        ),
        ("half a record claims half a pair", "t=flex-4", "t=flex-4, a=1", &resized, "t=flex-8"),
        ("unrecorded and missing is filled", "a=2", "a=2", &resized, "t=flex-8, T=flex-8, a=2"),
    ];
    for (case, labels, record, instance, want) in table {
        let node = recorded(labelled(labels), record);
        let changes = in_service(&node, instance);
        let node = after(&node, &changes);
        assert_eq!(node.labels, long(want), "{case}");
        assert!(in_service(&node, instance).is_empty(), "{case}, once more");
    }
}

#[test]
fn the_record_says_what_we_wrote_and_forgets_what_we_no_longer_do() {
    let instance = instance("fake://1", "n").with_facts("flex-8", "-", "-").with_labels("a=2");
    let table = [
        ("moved on", "t=flex-4, T=flex-4, a=1", "t=flex-4, T=flex-4, a=1", "t=flex-8, T=flex-8, a=2"),
        (
            "the user's is remembered as we left it",
            "t=flex-4, T=mine, a=2",
            "t=flex-4, T=flex-4, a=2",
            "t=flex-8, T=flex-4, a=2",
        ),
        ("the user agrees", "t=flex-4, T=flex-8, a=2", "t=flex-4, T=flex-4, a=2", "t=flex-8, T=flex-8, a=2"),
        ("gone", "b=1, t=flex-8, T=flex-8, a=2", "b=1, t=flex-8, T=flex-8, a=2", "t=flex-8, T=flex-8, a=2"),
        (
            "gone, changed by the user",
            "b=mine, t=flex-8, T=flex-8, a=1",
            "b=1, t=flex-8, T=flex-8, a=1",
            "t=flex-8, T=flex-8, a=2",
        ),
    ];
    for (case, labels, record, want) in table {
        let node = recorded(labelled(labels), record);
        assert_eq!(record_of(&after(&node, &in_service(&node, &instance))), long(want), "{case}");
    }
    let empty = recorded(labelled("a=1"), "a=1");
    let node = after(&empty, &in_service(&empty, &crate::decide::node::fixture::instance("fake://1", "n")));
    assert!(!node.annotations.contains_key(record::ANNOTATION), "an empty record is no record");
}

#[test]
fn a_second_initialisation_moves_our_extras_and_no_others() {
    let instance = instance("fake://1", "n").with_facts("flex-8", "-", "-").with_labels("a=2, b=2, c=2");
    let node =
        recorded(labelled("a=1, b=mine, d=4, t=flex-4, T=mine"), "a=1, b=1, c=1, d=4, t=flex-4, T=flex-4");
    let node = after(&node, &at_initialisation(&node, &instance));
    assert_eq!(node.labels, long("a=2, b=mine, t=flex-8, T=flex-8"));
}

#[test]
fn the_domains_of_kubernetes_are_not_ours() {
    let table = [
        ("kubernetes.io/x", true),
        ("k8s.io/x", true),
        ("foo.kubernetes.io/x", true),
        ("foo.k8s.io/x", true),
        ("mykubernetes.io/x", false),
        ("k8snio/x", false),
        ("kubernetes.io.example.com/x", false),
        ("kubernetes.io", false),
        ("x", false),
    ];
    for (text, reserved) in table {
        assert_eq!(is_reserved(&LabelKey::new(text).unwrap()), reserved, "{text}");
        assert_eq!(may_be_ours(text), !reserved, "{text}");
    }
    for pair in PAIRS {
        assert!(may_be_ours(pair.beta) && may_be_ours(pair.current));
    }
    assert!(!may_be_ours("not a key"));
}

fn some_labels() -> impl Strategy<Value = Pairs> {
    let key = prop::sample::select(vec!["t", "T", "z", "Z", "r", "R", "a", "b", "c"]);
    let value = prop::sample::select(vec!["1", "2", "3"]);
    prop::collection::vec((key, value), 0..10).prop_map(|pairs| {
        let text: Vec<String> = pairs.into_iter().map(|(k, v)| format!("{k}={v}")).collect();
        long(&text.join(", "))
    })
}

fn some_instance() -> impl Strategy<Value = Instance> {
    let fact = || prop::sample::select(vec!["-", "1", "2", "3"]);
    let extra = prop::sample::select(vec!["", "a=1", "a=2, b=1", "a=3, b=2, c=1", "k8s.io/x=1"]);
    (fact(), fact(), fact(), extra)
        .prop_map(|(t, z, r, extra)| instance("fake://1", "n").with_facts(t, z, r).with_labels(extra))
}

fn some_node() -> impl Strategy<Value = NodeView> {
    (some_labels(), prop::option::of(some_labels())).prop_map(|(labels, record)| {
        with_record(NodeView { labels, ..node("n") }, &record.unwrap_or_default())
    })
}

proptest! {
    #[test]
    fn a_second_pass_writes_nothing(node in some_node(), instance in some_instance()) {
        let once = after(&node, &in_service(&node, &instance));
        prop_assert!(in_service(&once, &instance).is_empty(), "L4-204");
        let initialised = after(&node, &at_initialisation(&node, &instance));
        prop_assert!(in_service(&initialised, &instance).is_empty(), "L4-205");
    }

    #[test]
    fn every_change_is_one(node in some_node(), instance in some_instance()) {
        for changes in [in_service(&node, &instance), at_initialisation(&node, &instance)] {
            for (key, value) in &changes.labels {
                prop_assert_ne!(node.labels.get(key), value.as_deref());
            }
            prop_assert!(changes.record.as_ref() != Some(&Record::of(&node)));
        }
    }

    #[test]
    fn what_somebody_else_set_stays(node in some_node(), instance in some_instance()) {
        let record = Record::of(&node);
        let next = after(&node, &in_service(&node, &instance));
        for (key, value) in node.labels.iter() {
            let copied = PAIRS.iter().any(|p| p.current == key && record.get(p.current).is_none() && record.get(p.beta).is_none());
            if !copied && record.get(key) != Some(value) {
                prop_assert_eq!(next.labels.get(key), Some(value), "{}", key);
            }
        }
    }

    #[test]
    fn once_ours_a_label_follows_every_change(node in some_node(), first in some_instance(), second in some_instance()) {
        let node = NodeView { labels: Pairs::default(), annotations: Pairs::default(), ..node };
        let joined = after(&node, &at_initialisation(&node, &first));
        let moved = after(&joined, &in_service(&joined, &second));
        for (pair, value) in facts(&second) {
            for key in pair.keys() {
                if let Some(value) = value {
                    prop_assert_eq!(moved.labels.get(key), Some(value));
                }
            }
        }
        let extras = second.labels.iter().filter(|(k, _)| !is_reserved(k));
        let wanted: Pairs = extras.map(|(k, v)| (k.as_str(), v.as_str())).collect();
        let has: Pairs = moved.labels.iter().filter(|(k, _)| !is_well_known(k)).collect();
        prop_assert_eq!(has, wanted);
    }
}
