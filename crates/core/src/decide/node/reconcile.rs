//! What a node in service gets when its instance has changed.

use super::{
    addresses,
    labels::{self, LabelNotice},
    ownership::NodeOwner,
    patch::{self, NodePatch},
    taints,
};
use crate::{error::Error, lookup::Lookup, view::NodeView};

/// What to write now; empty for a node that has all it should have.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Upkeep {
    /// To be sent in this order: the node itself first, because its patch carries the version that it was decided on
    /// and the write of the addresses makes a new one.
    pub writes: Vec<NodePatch>,
    /// Why the addresses are left as they are.
    pub addresses_held: Option<Error>,
    /// What was not done about labels, and why; for the log.
    pub notices: Vec<LabelNotice>,
    /// The node joined without waiting for its cloud and has no provider id: its kubelet runs without
    /// `--cloud-provider=external`, and load balancers and routes cannot find its instance safely.
    pub unbound: bool,
}

/// Decides on a node in service. Only an instance that is there can change anything: a node that still waits, one of
/// somebody else, and an answer that is missing or negative leave everything as it is.
#[must_use]
pub fn reconcile(node: &NodeView, claim: &NodeOwner<'_>) -> Upkeep {
    let NodeOwner::Ours { instance: Lookup::Present(instance), .. } = claim else {
        return Upkeep::default();
    };
    if node.has_taint(taints::UNINITIALISED) {
        return Upkeep::default();
    }
    let unbound = node.provider_id.is_none();
    if let Some(why) = instance.unreadable() {
        return Upkeep { addresses_held: Some(why), unbound, ..Upkeep::default() };
    }
    let changes = labels::in_service(node, instance);
    let labels = (!changes.is_empty()).then(|| patch::main_patch(node, &changes, None, None));
    let (addresses, addresses_held) = match addresses::update(node, instance) {
        Ok(patch) => (patch, None),
        Err(why) => (None, Some(why)),
    };
    Upkeep {
        writes: labels.into_iter().chain(addresses).collect(),
        addresses_held,
        notices: changes.notices,
        unbound,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        decide::node::{
            fixture::{addresses, apply, instance, map, node, waiting},
            node_ip,
            ownership::Searched,
            patch::Subresource,
        },
        error::Category,
        instance::Instance,
    };

    fn moved() -> Instance {
        instance("fake://1", "n").with_addresses("I 10.0.0.2").with_facts("flex-8", "-", "-")
    }

    const LABELS: &str = "beta.kubernetes.io/instance-type=flex-8, node.kubernetes.io/instance-type=flex-8";

    #[test]
    fn only_an_instance_that_is_there_changes_anything() {
        let instance = moved();
        let present = NodeOwner::Ours { cloud: "fake", instance: Lookup::Present(&instance) };
        let in_service = || node("n").id("fake://1").at("I 10.0.0.1");
        let table = [
            ("FW-65 still waiting", waiting("n").id("fake://1"), present.clone(), 0),
            (
                "FW-68 the cloud does not answer",
                in_service(),
                NodeOwner::Ours { cloud: "fake", instance: Lookup::Unknown(Error::temporary("503")) },
                0,
            ),
            (
                "L1-213 the instance is gone",
                in_service(),
                NodeOwner::Ours { cloud: "fake", instance: Lookup::Absent },
                0,
            ),
            ("L1-214 not decided", in_service(), NodeOwner::Undecided(Error::temporary("503")), 0),
            ("nowhere", in_service(), NodeOwner::Nowhere(Searched::default()), 0),
            ("L3-205 another cloud's", in_service(), NodeOwner::Foreign("not ours".into()), 0),
            ("there", in_service(), present.clone(), 2),
            ("there, labels agree", in_service().labelled(LABELS), present.clone(), 1),
            ("L4-207 there, all agrees", in_service().labelled(LABELS).at("I 10.0.0.2"), present, 0),
        ];
        for (case, node, claim, writes) in table {
            assert_eq!(reconcile(&node, &claim).writes.len(), writes, "{case}");
        }
    }

    #[test]
    fn the_node_itself_is_written_before_its_addresses() {
        let instance = moved().with_labels("k8s.io/x=1");
        let claim = NodeOwner::Ours { cloud: "fake", instance: Lookup::Present(&instance) };
        let before = node("n").id("fake://1").at("I 10.0.0.1, H n");
        let upkeep = reconcile(&before, &claim);
        assert_eq!(
            upkeep.writes.iter().map(NodePatch::subresource).collect::<Vec<_>>(),
            [Subresource::Main, Subresource::Status]
        );
        assert_eq!(upkeep.notices, [LabelNotice::Refused { key: "k8s.io/x".into() }]);
        assert_eq!((upkeep.addresses_held, upkeep.unbound), (None, false));
        let after = upkeep.writes.iter().fold(before.clone(), |node, patch| apply(&node, patch));
        assert_eq!(after.labels, map(LABELS));
        assert_eq!(after.addresses, addresses("I 10.0.0.2, H n"));
        assert_eq!((after.provider_id.clone(), after.taints.clone()), (before.provider_id, before.taints));
        assert_eq!(reconcile(&after, &claim).writes, [], "L4-208");
    }

    #[test]
    fn an_instance_that_is_not_described_changes_nothing() {
        let flawed = Instance::flawed("fake://1".parse().unwrap(), "n", "interfaces is missing");
        let claim = NodeOwner::Ours { cloud: "fake", instance: Lookup::Present(&flawed) };
        let before = node("n").id("fake://1").at("I 10.0.0.1, H n").labelled(LABELS);
        let upkeep = reconcile(&before, &claim);
        assert_eq!((upkeep.writes, upkeep.unbound), (vec![], false), "L1-422");
        let why = upkeep.addresses_held.unwrap();
        assert!(
            why.message().contains("fake://1") && why.message().contains("interfaces is missing"),
            "{why}"
        );
        assert_eq!(why.category(), Category::Temporary);
        let silent = instance("fake://1", "n").with_addresses("H n").with_facts("flex-8", "-", "-");
        let claim = NodeOwner::Ours { cloud: "fake", instance: Lookup::Present(&silent) };
        assert_eq!(reconcile(&before, &claim).writes, [], "L1-423 a list without an IP");
    }

    #[test]
    fn addresses_that_cannot_be_settled_hold_up_nothing_else() {
        let instance = moved();
        let claim = NodeOwner::Ours { cloud: "fake", instance: Lookup::Present(&instance) };
        let upkeep = reconcile(
            &node("n").id("fake://1").at("I 10.0.0.1").annotated(node_ip::ANNOTATION, "10.0.0.1"),
            &claim,
        );
        assert_eq!(upkeep.addresses_held.map(|why| why.category()), Some(Category::NotFound), "FW-69");
        assert_eq!(
            upkeep.writes.iter().map(NodePatch::subresource).collect::<Vec<_>>(),
            [Subresource::Main],
            "FW-69"
        );
    }

    #[test]
    fn a_node_that_joined_past_its_cloud_is_pointed_out() {
        let instance = moved();
        let claim = NodeOwner::Ours { cloud: "fake", instance: Lookup::Present(&instance) };
        assert!(reconcile(&node("n"), &claim).unbound);
        assert!(!reconcile(&waiting("n"), &claim).unbound);
    }
}
