//! What a node gets from its cloud before pods may come.
//!
//! A new node carries a taint that keeps pods away until its cloud has said what it is. Initialising it takes two
//! writes: first its addresses, then, in one patch, its provider id, its labels and the removal of the taint. The
//! second is decided on a node that has the addresses already, so a node without the taint is never without them, and
//! a crash between the two leaves a node that is simply not initialised yet.

use super::{
    addresses, labels, node_ip,
    ownership::NodeOwner,
    patch::{self, NodePatch},
    step::Step,
    taints,
};
use crate::{
    error::{Category, Error, Result},
    instance::Instance,
    lookup::Lookup,
    view::NodeView,
};

/// Decides on a node that waits for its cloud, in the light of to whom it belongs; `None` if it does not wait.
#[must_use]
pub fn initialise(node: &NodeView, owner: &NodeOwner<'_>) -> Option<Step> {
    let taints = taints::without_key(&node.taints, taints::UNINITIALISED)?;
    let not_yet = |why: Error| Some(Step::NotYet { why, has_instance: false });
    let instance = match owner {
        NodeOwner::Ours { instance: Lookup::Present(instance), .. } => instance,
        NodeOwner::Ours { instance: Lookup::Absent, cloud } => return not_yet(absent(node, cloud)),
        NodeOwner::Ours { instance: Lookup::Unknown(why), .. } | NodeOwner::Undecided(why) => {
            return not_yet(why.clone());
        }
        NodeOwner::Nowhere(searched) => return not_yet(searched.explain(node)),
        NodeOwner::Foreign(why) => return Some(Step::Leave(why.clone())),
    };
    Some(match addresses(node, instance) {
        Err(why) => Step::NotYet { has_instance: why.category() == Category::Temporary, why },
        Ok(Some(patch)) => Step::Write { patch, joins: false, notices: Vec::new() },
        Ok(None) => {
            let changes = labels::at_initialisation(node, instance);
            let id = node.provider_id.is_none().then_some(&instance.id);
            let patch = patch::main_patch(node, &changes, id, Some(&taints));
            Step::Write { patch, joins: true, notices: changes.notices }
        }
    })
}

/// The address patch that is still missing, or why the node cannot have its addresses yet.
fn addresses(node: &NodeView, instance: &Instance) -> Result<Option<NodePatch>> {
    if let Some(why) = instance.unreadable() {
        return Err(why);
    }
    let provided = node_ip::provided(node)?;
    let offered = node_ip::offered(instance, &provided);
    node_ip::choose(&offered, &provided).map_err(|why| node_ip::invalid(node, &why))?;
    if !addresses::has_ip(&offered) && !addresses::has_ip(&node.addresses) {
        let message = format!("instance {} of node {:?} has no address yet", instance.id, node.name);
        return Err(Error::temporary(message));
    }
    addresses::show(node, &offered, &provided)
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
            fixture::{self, apply, instance, map, node, taint, waiting},
            labels::LabelNotice,
            ownership::Searched,
            patch::Subresource,
            reconcile::reconcile,
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
                Some(Step::Write { patch, joins, .. }) => {
                    let part = if joins { Subresource::Main } else { Subresource::Status };
                    assert_eq!(patch.subresource(), part);
                    patch
                }
                None => return (node, writes),
                other => panic!("{other:?}"),
            };
            node = apply(&node, &patch);
        }
        panic!("it does not come to rest")
    }

    struct Expected {
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
        let plain = Expected {
            id: "fake://12345",
            taints: &[],
            addresses: "I 10.0.0.1, E 132.143.154.163",
            labels: "",
        };
        let table = [
            (
                "FW-1",
                waiting("n").at("H nodeoverriden"),
                fake().with_addresses(full),
                Expected { addresses: full, ..plain },
            ),
            (
                "FW-2",
                waiting("n").at("H nodeoverriden"),
                fake(),
                Expected { addresses: "I 10.0.0.1, E 132.143.154.163, H nodeoverriden", ..plain },
            ),
            ("FW-3", waiting("n"), fake(), Expected { ..plain }),
            (
                "FW-5 FW-16",
                waiting("n"),
                instance("aws://12345", "n").with_addresses("I 10.0.0.1").with_facts(
                    "-",
                    "us-west-1a",
                    "us-west",
                ),
                Expected { id: "aws://12345", addresses: "I 10.0.0.1", labels: place, ..plain },
            ),
            ("FW-6", with_other_taint(["other", mark]), fake(), Expected { taints: &["other"], ..plain }),
            ("FW-17", with_other_taint([mark, "other"]), fake(), Expected { taints: &["other"], ..plain }),
            ("FW-36", NodeView { taints: vec![odd_mark], ..node("n") }, fake(), Expected { ..plain }),
            (
                "FW-8 FW-18",
                waiting("n").id("fake://old").at("H n").annotated(node_ip::ANNOTATION, "10.0.0.1"),
                fake(),
                Expected { id: "fake://old", addresses: "I 10.0.0.1, E 132.143.154.163, H n", ..plain },
            ),
            ("FW-14 FW-24", waiting("n").id("fake://12345"), fake(), Expected { ..plain }),
            ("FW-35", waiting("n").id("fake://other"), fake(), Expected { id: "fake://other", ..plain }),
            (
                "FW-19",
                waiting("n"),
                fake().with_labels("topology.k8s.cp/zone-id=az1, k8s.io/no=1"),
                Expected { labels: "topology.k8s.cp/zone-id=az1", ..plain },
            ),
            (
                "FW-39",
                with_other_taint(["node.kubernetes.io/not-ready", mark]),
                fake().with_addresses("H n, I 10.0.0.1, I 10.0.0.2, E 132.143.154.163"),
                Expected {
                    taints: &["node.kubernetes.io/not-ready"],
                    addresses: "H n, I 10.0.0.1, I 10.0.0.2, E 132.143.154.163",
                    ..plain
                },
            ),
            (
                "FW-40",
                waiting("n").annotated(node_ip::ANNOTATION, "2001:db2::1,172.16.0.1"),
                fake().with_addresses("I 10.0.0.1, I 172.16.0.1, I 2001:db2::1"),
                Expected { addresses: "I 2001:db2::1, I 172.16.0.1", ..plain },
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
            assert_eq!(after.addresses, fixture::addresses(want.addresses), "{case}");
            assert_eq!(after.labels, map(want.labels), "{case}");
            assert_eq!(writes, 2, "{case}");
            assert!(reconcile(&after, &ours(&instance)).writes.is_empty(), "L4-206 {case}");
        }
    }

    #[test]
    fn addresses_come_first_and_are_not_written_twice() {
        let instance = instance("fake://1", "n").with_addresses("I 10.0.0.1");
        let bare = waiting("n");
        assert!(matches!(initialise(&bare, &ours(&instance)), Some(Step::Write { joins: false, .. })));
        let addressed = waiting("n").at("I 10.0.0.1");
        assert!(matches!(initialise(&addressed, &ours(&instance)), Some(Step::Write { joins: true, .. })));
        assert_eq!(run(&addressed, &instance).1, 1);
        let silent = instance.with_addresses("");
        assert_eq!(run(&addressed, &silent).0.addresses, addressed.addresses, "FW-66 its own addresses stay");
    }

    #[test]
    fn what_is_wrong_with_labels_is_reported_with_the_join() {
        let instance = instance("fake://1", "n").with_labels("k8s.io/x=1");
        let Some(Step::Write { notices, .. }) = initialise(&waiting("n").at("I 10.0.0.1"), &ours(&instance))
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
                "retry NotFound: fake has no instance with the provider id fake://1",
            ),
            (
                "FW-7 no instance of that name",
                waiting("n"),
                NodeOwner::Nowhere(Searched::default()),
                "retry NotFound: no instance is called \"n\"",
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
                None => "skip".to_owned(),
                Some(Step::Leave(why)) => format!("leave: {why}"),
                Some(Step::NotYet { why, .. }) => format!("retry {:?}: {why}", why.category()),
                Some(other) => format!("{other:?}"),
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
            while let Some(Step::Write { patch, .. }) = initialise(&node, &ours(&instance)) {
                node = apply(&node, &patch);
                writes += 1;
                prop_assert!(node.has_taint(taints::UNINITIALISED) || addresses::has_ip(&node.addresses));
                prop_assert!(writes <= 2);
            }
            prop_assert!(reconcile(&node, &ours(&instance)).writes.is_empty());
        }
    }
}
