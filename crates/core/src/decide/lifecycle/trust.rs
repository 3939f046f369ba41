//! Whether a listing of instances may be believed when it lacks something (law 1).
//!
//! A token of the wrong project gives a complete, authenticated and wrong listing. It shows itself: none of our
//! instances is listed, or instances are missing whose nodes are Ready, which an instance that is gone cannot be.

use std::{collections::BTreeSet, fmt};

use super::{
    cap::Cap,
    event::{self, NodeEvent},
    facts::{MACHINE_IS_GONE, NodeFacts},
    verdict::{NodeHistory, Warning},
};
use crate::{
    error::{Category, Error},
    instance::{Instance, InstanceListing, InstanceState},
    lookup::Lookup,
    provider_id::ProviderId,
};

/// Why a complete listing is not believed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Doubt {
    /// It shows none of the instances whose ids nodes carry. An empty listing is the plainest case.
    ShowsNone {
        /// How many nodes do.
        nodes: usize,
    },
    /// It lacks instances of Ready nodes, more than may go at once.
    LacksReady {
        /// How many it lacks.
        lacking: usize,
        /// How many may go at once.
        allowed: usize,
    },
}

impl fmt::Display for Doubt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::ShowsNone { nodes } => {
                write!(f, "the cloud lists none of the instances whose ids {nodes} nodes carry")
            }
            Self::LacksReady { lacking, allowed } => write!(
                f,
                "the cloud's listing lacks the instances of {lacking} Ready nodes, and not more than {allowed} may \
                 go at once"
            ),
        }
    }
}

/// What a listing's silence about an instance means.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ListingTrust {
    /// The instance is not there.
    Believed,
    /// Nothing, except for nodes whose absence is expected.
    Doubtful(Doubt),
}

/// The nodes that say something about a listing: those of ours that stay.
fn witnesses(nodes: &[NodeFacts]) -> impl Iterator<Item = (&NodeFacts, &ProviderId)> {
    nodes.iter().filter(|node| !node.deleting).filter_map(|node| node.id().map(|id| (node, id)))
}

/// Whether there is any node whose instance a listing of the right account should show.
#[must_use]
pub fn has_witnesses(nodes: &[NodeFacts]) -> bool {
    witnesses(nodes).any(|(node, _)| !node.is_expected_to_be_gone())
}

/// The doubt about a listing that shows none of the instances that it should show.
#[must_use]
pub fn shows_none(listing: &InstanceListing, nodes: &[NodeFacts]) -> Option<Doubt> {
    let listed: BTreeSet<_> = listing.items.iter().map(|instance| &instance.id).collect();
    let strange = has_witnesses(nodes) && !witnesses(nodes).any(|(_, id)| listed.contains(id));
    strange.then(|| Doubt::ShowsNone { nodes: witnesses(nodes).count() })
}

/// Judges a listing against all nodes of the cluster.
///
/// Nodes that the autoscaler is removing or that a person declared gone speak neither for nor against it.
/// `recorded_is_visible` says that something which we recorded, such as a load balancer's id, was seen with the
/// same credential: then the listing is the right project's, and is believed.
///
/// A raised cap does not raise what is believed: the threshold is never above the law's own.
#[must_use]
pub fn trust(
    listing: &InstanceListing,
    nodes: &[NodeFacts],
    cap: Cap,
    recorded_is_visible: bool,
) -> ListingTrust {
    let listed: BTreeSet<_> = listing.items.iter().map(|instance| &instance.id).collect();
    let lacks = |(node, id): &(&NodeFacts, &ProviderId)| {
        node.ready && !node.is_expected_to_be_gone() && !listed.contains(id)
    };
    let lacking = witnesses(nodes).filter(lacks).count();
    let ours = witnesses(nodes).count();
    let allowed = cap.allowed(ours).min(Cap::LAW.allowed(ours));
    if recorded_is_visible {
        ListingTrust::Believed
    } else if let Some(doubt) = shows_none(listing, nodes) {
        ListingTrust::Doubtful(doubt)
    } else if lacking > allowed {
        ListingTrust::Doubtful(Doubt::LacksReady { lacking, allowed })
    } else {
        ListingTrust::Believed
    }
}

impl ListingTrust {
    /// What the listing says about one node's instance. A short listing denies nothing, whatever its trust.
    pub fn ask(&self, listing: &InstanceListing, facts: &NodeFacts) -> Lookup<InstanceState> {
        let instance = match facts.id() {
            Some(id) => listing.by_id(id),
            None => by_name(listing, &facts.name),
        };
        match (instance.map(|instance| instance.state), self) {
            (Lookup::Absent, Self::Doubtful(doubt)) if !facts.is_expected_to_be_gone() => {
                Lookup::Unknown(Error::temporary(doubt.to_string()))
            }
            (said, _) => said,
        }
    }

    /// The event that tells a person about the doubt and the way out, once for each node that it holds up.
    #[must_use]
    pub fn warn(
        &self,
        listing: &InstanceListing,
        facts: &NodeFacts,
        history: &mut NodeHistory,
    ) -> Option<NodeEvent> {
        let Self::Doubtful(doubt) = self else { return None };
        let absent = facts.id().is_some_and(|id| listing.by_id(id).is_absent());
        let held_up = absent && !facts.ready && !facts.deleting && !facts.is_expected_to_be_gone();
        (held_up && history.tell(facts, Warning::Doubtful))
            .then(|| event::listing_doubtful(facts, doubt, MACHINE_IS_GONE))
    }
}

/// A name that several instances share leads to none of them.
fn by_name<'a>(listing: &'a InstanceListing, name: &str) -> Lookup<&'a Instance> {
    match listing.called(name).count() {
        0 | 1 => listing.called(name).next().map_or_else(|| listing.find(|_| false), Lookup::Present),
        several => Lookup::Unknown(Error::new(
            Category::Conflict,
            format!("{several} instances are called {name:?}"),
        )),
    }
}
