//! The facts about a node that bear on its life, stripped of everything else.

use super::verdict::at_once;
use crate::{
    decide::node::taints::{SHUTDOWN, TO_BE_DELETED, UNINITIALISED},
    instance::InstanceListing,
    provider_id::{ProviderId, Reading},
    time::Tick,
    view::{NodeView, Ready},
};

/// The annotation with which a person says that a node's instance is gone although the listing that says so is in
/// doubt. Its value must be `true`. It lifts that one doubt; everything else that protects a node stays.
pub const MACHINE_IS_GONE: &str = "cloudberth.dev/machine-is-gone";

/// How a node hangs together with the cloud.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Tie {
    /// It carries an id of this cloud, given here as the cloud's listing writes it.
    Ours(ProviderId),
    /// It carries no id: only its name can lead to an instance.
    NoId,
    /// It carries another cloud's id, or something that is not an id. It is not looked at (law 3).
    Foreign,
}

/// A node, as far as its life is concerned.
#[expect(clippy::struct_excessive_bools, reason = "independent facts of a node, in any combination")]
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NodeFacts {
    /// The node's name.
    pub name: String,
    /// The node's UID: the precondition of its deletion.
    pub uid: String,
    /// The Ready condition is `True`; everything else, a missing condition included, is not.
    pub ready: bool,
    /// No cloud has claimed it yet.
    pub uninitialised: bool,
    /// Somebody is deleting it already.
    pub deleting: bool,
    /// It carries the shutdown taint.
    pub marked_shut_down: bool,
    /// The autoscaler is removing it.
    pub autoscaler_removes: bool,
    /// A person said that its instance is gone.
    pub declared_gone: bool,
    /// How it hangs together with the cloud.
    pub tie: Tie,
    /// When this replica first saw it: not before it was created, and free of anybody else's clock.
    pub first_seen: Tick,
}

impl NodeFacts {
    /// Takes the facts from a node. `read` is how this cloud reads the text of a provider id.
    pub fn of(node: &NodeView, read: impl Fn(&str) -> Reading, first_seen: Tick) -> Self {
        let tie = match node.provider_id.as_deref().map(read) {
            None => Tie::NoId,
            Some(Reading::Mine(id)) => Tie::Ours(id),
            Some(Reading::Malformed | Reading::Foreign) => Tie::Foreign,
        };
        Self {
            name: node.name.clone(),
            uid: node.uid.clone(),
            ready: node.ready == Ready::True,
            uninitialised: node.has_taint(UNINITIALISED),
            deleting: node.deleting,
            marked_shut_down: node.has_taint(SHUTDOWN),
            autoscaler_removes: node.has_taint(TO_BE_DELETED),
            declared_gone: node.annotations.get(MACHINE_IS_GONE).is_some_and(|value| value == "true"),
            tie,
            first_seen,
        }
    }

    /// The id by which the source can be asked.
    #[must_use]
    pub const fn id(&self) -> Option<&ProviderId> {
        match &self.tie {
            Tie::Ours(id) => Some(id),
            Tie::NoId | Tie::Foreign => None,
        }
    }

    /// Whether the listing lacks its instance, and that could matter.
    #[must_use]
    pub fn is_missed_by(&self, listing: &InstanceListing) -> bool {
        let lacks = |id: &ProviderId| listing.by_id(id).is_absent();
        at_once(self).is_none() && self.id().is_some_and(lacks)
    }

    /// Whether its absence from a listing that is in doubt is believed all the same.
    #[must_use]
    pub const fn is_expected_to_be_gone(&self) -> bool {
        self.autoscaler_removes || self.declared_gone
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::view::{Taint, TaintEffect};

    /// A cloud whose ids were once written without a scheme.
    fn read(text: &str) -> Reading {
        let id = match text.split_once("://") {
            Some(("fake", id)) => id,
            Some(_) => return Reading::Foreign,
            None => text,
        };
        let good = |id: &str| id.chars().all(|c| c.is_ascii_digit());
        let id = ProviderId::new("fake", id).ok().filter(|id| good(id.id()));
        id.map_or(Reading::Malformed, Reading::Mine)
    }

    fn of(change: impl FnOnce(&mut NodeView)) -> NodeFacts {
        let mut node = NodeView {
            name: "node0".to_owned(),
            uid: "u0".to_owned(),
            provider_id: Some("fake://1".to_owned()),
            ..NodeView::default()
        };
        change(&mut node);
        NodeFacts::of(&node, read, Tick::from_secs(7))
    }

    fn plain() -> NodeFacts {
        NodeFacts {
            name: "node0".to_owned(),
            uid: "u0".to_owned(),
            ready: false,
            uninitialised: false,
            deleting: false,
            marked_shut_down: false,
            autoscaler_removes: false,
            declared_gone: false,
            tie: Tie::Ours("fake://1".parse().unwrap()),
            first_seen: Tick::from_secs(7),
        }
    }

    fn taint(key: &str) -> impl FnOnce(&mut NodeView) {
        let taint =
            Taint { key: key.to_owned(), value: None, effect: TaintEffect::NoSchedule, time_added: None };
        |node| node.taints.push(taint)
    }

    #[test]
    fn each_fact_is_read_from_its_field() {
        let gone = |value: &'static str| {
            move |node: &mut NodeView| {
                node.annotations.insert("cloudberth.dev/machine-is-gone", value);
            }
        };
        let table = [
            ("FW-111 no Ready condition", of(|_| ()), plain()),
            ("Ready", of(|node| node.ready = Ready::True), NodeFacts { ready: true, ..plain() }),
            ("NotReady", of(|node| node.ready = Ready::False), plain()),
            ("deleting", of(|node| node.deleting = true), NodeFacts { deleting: true, ..plain() }),
            (
                "uninitialised",
                of(taint("node.cloudprovider.kubernetes.io/uninitialized")),
                NodeFacts { uninitialised: true, ..plain() },
            ),
            (
                "shut down",
                of(taint("node.cloudprovider.kubernetes.io/shutdown")),
                NodeFacts { marked_shut_down: true, ..plain() },
            ),
            (
                "leaving",
                of(taint("ToBeDeletedByClusterAutoscaler")),
                NodeFacts { autoscaler_removes: true, ..plain() },
            ),
            ("a candidate only", of(taint("DeletionCandidateOfClusterAutoscaler")), plain()),
            ("declared gone", of(gone("true")), NodeFacts { declared_gone: true, ..plain() }),
            ("declared, but not so", of(gone("false")), plain()),
        ];
        for (case, got, want) in table {
            assert_eq!(got, want, "{case}");
        }
    }

    #[test]
    fn a_node_is_ours_by_its_id_alone() {
        let tie = |id: Option<&str>| of(|node| node.provider_id = id.map(str::to_owned)).tie;
        let id: ProviderId = "fake://1".parse().unwrap();
        let table = [
            ("FW-128 our id is used", Some("fake://1"), Tie::Ours(id.clone())),
            ("an id as a replaced program wrote it", Some("1"), Tie::Ours(id.clone())),
            ("L3-101 another cloud's", Some("aws:///i-0"), Tie::Foreign),
            ("L3-105 ours, written wrong", Some("fake://x"), Tie::Foreign),
            ("L3-102 not an id at all", Some("node0"), Tie::Foreign),
            ("none", None, Tie::NoId),
        ];
        for (case, text, want) in table {
            assert_eq!(tie(text), want, "{case}");
        }
        assert_eq!(plain().id(), Some(&id));
        assert_eq!(NodeFacts { tie: Tie::NoId, ..plain() }.id(), None);
        assert_eq!(NodeFacts { tie: Tie::Foreign, ..plain() }.id(), None);
    }

    #[test]
    fn the_autoscaler_or_a_person_can_expect_an_absence() {
        for (autoscaler_removes, declared_gone, want) in
            [(false, false, false), (true, false, true), (false, true, true), (true, true, true)]
        {
            let facts = NodeFacts { autoscaler_removes, declared_gone, ..plain() };
            assert_eq!(facts.is_expected_to_be_gone(), want, "{autoscaler_removes} {declared_gone}");
        }
    }
}
