//! What a node gets from its cloud before pods may come.
//!
//! A new node carries a taint that keeps pods away until its cloud has said what it is. Initialising it takes two
//! writes: first its addresses, then, in one patch, its provider id, its labels and the removal of the taint. The
//! second is decided on a node that has the addresses already, so a node without the taint is never without them, and
//! a crash between the two leaves a node that is simply not initialised yet.

use super::{
    addresses,
    labels::{self, LabelNotice},
    node_ip,
    ownership::NodeOwner,
    patch::{self, NodePatch},
    taints,
};
use crate::{
    error::{Category, Error, Result},
    instance::Instance,
    lookup::Lookup,
    view::NodeView,
};

/// What to do with a node now.
#[derive(Clone, Debug, PartialEq)]
pub enum Verdict {
    /// It does not wait for its cloud.
    Skip,
    /// It is somebody else's: not even an event is written. The text is for the log.
    Leave(String),
    /// Not yet: write nothing, and come back as the error's category says.
    Retry(Error),
    /// Its instance is not there, by complete answers. Write nothing but an event with this error, and come back.
    NotFound(Error),
    /// Send this, and decide again on the node that the answer shows.
    Addresses(NodePatch),
    /// Send this; then the node is in service, and the event of [`super::events::SYNCED`] is due.
    Join {
        /// Provider id, labels and taints in one write.
        patch: NodePatch,
        /// What was not done, and why; for the log.
        notices: Vec<LabelNotice>,
    },
}

/// Decides on a node, in the light of to whom it belongs.
#[must_use]
pub fn initialise(node: &NodeView, claim: &NodeOwner<'_>) -> Verdict {
    let Some(taints) = taints::without_key(&node.taints, taints::UNINITIALISED) else {
        return Verdict::Skip;
    };
    let instance = match claim {
        NodeOwner::Ours { instance: Lookup::Present(instance), .. } => instance,
        NodeOwner::Ours { instance: Lookup::Absent, cloud } => return Verdict::NotFound(absent(node, cloud)),
        NodeOwner::Ours { instance: Lookup::Unknown(why), .. } | NodeOwner::Undecided(why) => {
            return Verdict::Retry(why.clone());
        }
        NodeOwner::Nowhere(searched) => return Verdict::NotFound(searched.explain(node)),
        NodeOwner::Foreign(why) => return Verdict::Leave(why.clone()),
    };
    if let Some(why) = instance.unreadable() {
        return Verdict::Retry(why);
    }
    match addresses(node, instance) {
        Err(why) => return Verdict::Retry(why),
        Ok(Some(patch)) => return Verdict::Addresses(patch),
        Ok(None) => {}
    }
    let changes = labels::at_initialisation(node, instance);
    let id = node.provider_id.is_none().then_some(&instance.id);
    let patch = patch::main_patch(node, &changes, id, Some(&taints));
    Verdict::Join { patch, notices: changes.notices }
}

/// The address patch that is still missing, or why the node cannot have its addresses yet.
fn addresses(node: &NodeView, instance: &Instance) -> Result<Option<NodePatch>> {
    node_ip::choose(&instance.addresses, &node_ip::provided(node)?)
        .map_err(|why| node_ip::invalid(node, &why))?;
    if !addresses::has_ip(&instance.addresses) && !addresses::has_ip(&node.addresses) {
        let message = format!("instance {} of node {:?} has no address yet", instance.id, node.name);
        return Err(Error::temporary(message));
    }
    addresses::update(node, &instance.addresses)
}

fn absent(node: &NodeView, cloud: &str) -> Error {
    let id = node.provider_id.as_deref().unwrap_or("(none)");
    Error::new(
        Category::NotFound,
        format!("{cloud} has no instance with the provider id {id} of node {:?}", node.name),
    )
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::{
        decide::node::{
            ownership::Searched,
            patch::Subresource,
            reconcile::reconcile,
            testkit::{self, apply, instance, map, node, taint, waiting},
        },
        view::{Taint, TaintEffect},
    };

    fn ours(instance: &Instance) -> NodeOwner<'_> {
        NodeOwner::Ours { cloud: "fake", instance: Lookup::Present(instance) }
    }

    /// Carries out verdicts until the node rests, as the controller does; the node, and how many writes it took.
    fn run(node: &NodeView, instance: &Instance) -> (NodeView, usize) {
        let mut node = node.clone();
        for writes in 0..4 {
            let patch = match initialise(&node, &ours(instance)) {
                Verdict::Addresses(patch) => {
                    assert_eq!(patch.subresource(), Subresource::Status);
                    patch
                }
                Verdict::Join { patch, .. } => {
                    assert_eq!(patch.subresource(), Subresource::Main);
                    patch
                }
                Verdict::Skip => return (node, writes),
                other => panic!("{other:?}"),
            };
            node = apply(&node, &patch);
        }
        panic!("it does not come to rest")
    }

    struct Want {
        id: &'static str,
        taints: &'static [&'static str],
        addresses: &'static str,
        labels: &'static str,
    }

    #[test]
    fn a_waiting_node_gets_what_its_instance_says() {
        let full = "H node0.cloud.internal, I 10.0.0.1, E 132.143.154.163";
        let fake = || instance("fake://12345", "n").with_addresses("I 10.0.0.1, E 132.143.154.163");
        let with_other_taint = |taints: [&str; 2]| NodeView { taints: taints.map(taint).into(), ..node("n") };
        let place = "failure-domain.beta.kubernetes.io/zone=us-west-1a, topology.kubernetes.io/zone=us-west-1a, \
                     failure-domain.beta.kubernetes.io/region=us-west, topology.kubernetes.io/region=us-west";
        let mark = taints::UNINITIALISED;
        let odd_mark = Taint { value: None, effect: TaintEffect::NoExecute, ..taint(mark) };
        let plain =
            Want { id: "fake://12345", taints: &[], addresses: "I 10.0.0.1, E 132.143.154.163", labels: "" };
        let table = [
            (
                "FW-1",
                waiting("n").at("H nodeoverriden"),
                fake().with_addresses(full),
                Want { addresses: full, ..plain },
            ),
            (
                "FW-2",
                waiting("n").at("H nodeoverriden"),
                fake(),
                Want { addresses: "I 10.0.0.1, E 132.143.154.163, H nodeoverriden", ..plain },
            ),
            ("FW-3", waiting("n"), fake(), Want { ..plain }),
            (
                "FW-5 FW-16",
                waiting("n"),
                instance("aws://12345", "n").with_addresses("I 10.0.0.1").with_facts(
                    "-",
                    "us-west-1a",
                    "us-west",
                ),
                Want { id: "aws://12345", addresses: "I 10.0.0.1", labels: place, ..plain },
            ),
            ("FW-6", with_other_taint(["other", mark]), fake(), Want { taints: &["other"], ..plain }),
            ("FW-17", with_other_taint([mark, "other"]), fake(), Want { taints: &["other"], ..plain }),
            ("FW-36", NodeView { taints: vec![odd_mark], ..node("n") }, fake(), Want { ..plain }),
            (
                "FW-8 FW-18",
                waiting("n").id("fake://old").at("H n").annotated(node_ip::ANNOTATION, "10.0.0.1"),
                fake(),
                Want { id: "fake://old", addresses: "I 10.0.0.1, E 132.143.154.163, H n", ..plain },
            ),
            ("FW-14 FW-24", waiting("n").id("fake://12345"), fake(), Want { ..plain }),
            ("FW-35", waiting("n").id("fake://other"), fake(), Want { id: "fake://other", ..plain }),
            (
                "FW-19",
                waiting("n"),
                fake().with_labels("topology.k8s.cp/zone-id=az1, k8s.io/no=1"),
                Want { labels: "topology.k8s.cp/zone-id=az1", ..plain },
            ),
            (
                "FW-39",
                with_other_taint(["node.kubernetes.io/not-ready", mark]),
                fake().with_addresses("H n, I 10.0.0.1, I 10.0.0.2, E 132.143.154.163"),
                Want {
                    taints: &["node.kubernetes.io/not-ready"],
                    addresses: "H n, I 10.0.0.1, I 10.0.0.2, E 132.143.154.163",
                    ..plain
                },
            ),
            (
                "FW-40",
                waiting("n").annotated(node_ip::ANNOTATION, "2001:db2::1,172.16.0.1"),
                fake().with_addresses("I 10.0.0.1, I 172.16.0.1, I 2001:db2::1"),
                Want { addresses: "I 2001:db2::1, I 172.16.0.1", ..plain },
            ),
        ];
        for (case, before, instance, want) in table {
            let (after, writes) = run(&before, &instance);
            assert_eq!(after.provider_id.as_deref(), Some(want.id), "{case}");
            assert_eq!(
                after.taints.iter().map(|t| t.key.as_str()).collect::<Vec<_>>(),
                want.taints,
                "{case}"
            );
            assert_eq!(after.addresses, testkit::addresses(want.addresses), "{case}");
            assert_eq!(after.labels, map(want.labels), "{case}");
            assert_eq!(writes, 2, "{case}");
            assert!(reconcile(&after, &ours(&instance)).writes.is_empty(), "L4-206 {case}");
        }
    }

    #[test]
    fn addresses_come_first_and_are_not_written_twice() {
        let instance = instance("fake://1", "n").with_addresses("I 10.0.0.1");
        let bare = waiting("n");
        assert!(matches!(initialise(&bare, &ours(&instance)), Verdict::Addresses(_)));
        let addressed = waiting("n").at("I 10.0.0.1");
        assert!(matches!(initialise(&addressed, &ours(&instance)), Verdict::Join { .. }));
        assert_eq!(run(&addressed, &instance).1, 1);
        let silent = instance.with_addresses("");
        assert_eq!(run(&addressed, &silent).0.addresses, addressed.addresses, "FW-66 its own addresses stay");
    }

    #[test]
    fn what_is_wrong_with_labels_is_reported_with_the_join() {
        let instance = instance("fake://1", "n").with_labels("k8s.io/x=1");
        let Verdict::Join { notices, .. } = initialise(&waiting("n").at("I 10.0.0.1"), &ours(&instance))
        else {
            panic!()
        };
        assert_eq!(notices, [LabelNotice::Refused { key: "k8s.io/x".into() }], "FW-20");
    }

    #[test]
    fn without_certainty_nothing_is_written() {
        let instance = instance("fake://1", "n").with_addresses("I 10.0.0.1, H n");
        let silent = instance.clone().with_addresses("");
        let nameless = instance.clone().with_addresses("I 10.0.0.1");
        let named_only = instance.clone().with_addresses("H n");
        let flawed = Instance::flawed(instance.id.clone(), "n", "interfaces is missing");
        let unknown =
            |why: &str| NodeOwner::Ours { cloud: "fake", instance: Lookup::Unknown(Error::temporary(why)) };
        let gone = NodeOwner::Ours { cloud: "fake", instance: Lookup::Absent };
        let asks_for = |ip: &str| waiting("n").annotated(node_ip::ANNOTATION, ip);
        let table = [
            ("FW-4 FW-15 not waiting", node("n").labelled("a=1"), ours(&instance), "skip"),
            ("not waiting, not found", node("n"), gone.clone(), "skip"),
            (
                "FW-7 no such instance",
                waiting("n").id("fake://1"),
                gone,
                "not found: fake has no instance with the provider id fake://1",
            ),
            (
                "FW-7 no instance of that name",
                waiting("n"),
                NodeOwner::Nowhere(Searched::default()),
                "not found: no instance is called \"n\"",
            ),
            ("FW-13 looking up the id failed", waiting("n"), unknown("500"), "retry Temporary: 500"),
            (
                "FW-26 the instance cannot be read",
                waiting("n").id("fake://1"),
                unknown("503"),
                "retry Temporary: 503",
            ),
            ("FW-49 its zone is not known", waiting("n"), unknown("zone: 503"), "retry Temporary: zone: 503"),
            (
                "L1-212 a cloud did not answer",
                waiting("n"),
                NodeOwner::Undecided(Error::temporary("beta: 503")),
                "retry Temporary: beta: 503",
            ),
            (
                "L3-204 another cloud's",
                waiting("n").id("aws://1"),
                NodeOwner::Foreign("not ours".into()),
                "leave: not ours",
            ),
            (
                "FW-9 a broken annotation",
                asks_for("invalid-ip"),
                ours(&instance),
                "retry UserInput: provided node ip for node \"n\" is not valid: ",
            ),
            (
                "FW-10 an address that the cloud lacks",
                asks_for("10.0.0.2"),
                ours(&instance),
                "retry NotFound: provided node ip for node \"n\" is not valid: ",
            ),
            (
                "FW-10 only an old host name has it",
                asks_for("10.0.0.2").at("H 10.0.0.2"),
                ours(&nameless),
                "retry NotFound: ",
            ),
            ("FW-10 the cloud lists none", asks_for("10.0.0.2"), ours(&silent), "retry NotFound: "),
            (
                "no addresses anywhere",
                waiting("n"),
                ours(&silent),
                "retry Temporary: instance fake://1 of node \"n\" has no address yet",
            ),
            (
                "L1-424 a host name is no address",
                waiting("n").at("H n"),
                ours(&named_only),
                "retry Temporary: instance fake://1 of node \"n\" has no address yet",
            ),
            (
                "L1-425 the cloud does not say, whatever the node shows",
                waiting("n").at("I 10.0.0.1"),
                ours(&flawed),
                "retry Temporary: the cloud does not describe instance fake://1 fully: interfaces is missing",
            ),
        ];
        for (case, node, claim, want) in table {
            let got = match initialise(&node, &claim) {
                Verdict::Skip => "skip".to_owned(),
                Verdict::Leave(why) => format!("leave: {why}"),
                Verdict::Retry(why) => format!("retry {:?}: {why}", why.category()),
                Verdict::NotFound(why) => {
                    assert_eq!(why.category(), Category::NotFound, "{case}");
                    format!("not found: {why}")
                }
                writes @ (Verdict::Addresses(_) | Verdict::Join { .. }) => format!("{writes:?}"),
            };
            assert!(got.starts_with(want), "{case}: {got}");
        }
    }

    proptest! {
        #[test]
        fn a_node_in_service_always_has_addresses(
            shown in prop::sample::select(vec!["", "H n", "I 10.0.0.9", "I 10.0.0.1, H n"]),
            cloud in prop::sample::select(vec!["", "H m", "I 10.0.0.1", "I 10.0.0.1, I fd00::1, H m", "E 1.1.1.1"]),
            told in prop::sample::select(vec![None, Some("10.0.0.1"), Some("fd00::1,10.0.0.1"), Some("x")]),
        ) {
            let mut node = waiting("n").at(shown);
            if let Some(told) = told {
                node = node.annotated(node_ip::ANNOTATION, told);
            }
            let instance = instance("fake://1", "n").with_addresses(cloud);
            let mut writes = 0;
            while let Verdict::Addresses(patch) | Verdict::Join { patch, .. } = initialise(&node, &ours(&instance)) {
                node = apply(&node, &patch);
                writes += 1;
                prop_assert!(node.has_taint(taints::UNINITIALISED) || addresses::has_ip(&node.addresses));
                prop_assert!(writes <= 2);
            }
            prop_assert!(reconcile(&node, &ours(&instance)).writes.is_empty());
        }
    }
}
