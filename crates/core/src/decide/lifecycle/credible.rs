//! Whether a listing of machines may be believed when it lacks something (law 1).
//!
//! A token of the wrong project gives a complete, authenticated and wrong listing. It shows itself: none of our
//! machines is listed, or machines are missing whose nodes are Ready, which a machine that is gone cannot be.

use std::{collections::BTreeSet, fmt};

use super::{
    cap::Cap,
    event::{self, NodeEvent},
    suspect::{MACHINE_IS_GONE, Suspect},
    verdict::{Memory, Warning},
};
use crate::{
    error::{Category, Error},
    instance::{Instance, InstanceState},
    lookup::{Listing, Lookup},
    provider_id::ProviderId,
};

/// Why a complete listing is not believed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Doubt {
    /// It shows none of the machines whose ids nodes carry. An empty listing is the plainest case.
    ShowsNone {
        /// How many nodes do.
        nodes: usize,
    },
    /// It lacks machines of Ready nodes, more than may go at once.
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
                write!(f, "the cloud lists none of the machines whose ids {nodes} nodes carry")
            }
            Self::LacksReady { lacking, allowed } => write!(
                f,
                "the cloud's listing lacks the machines of {lacking} Ready nodes, and not more than {allowed} may \
                 go at once"
            ),
        }
    }
}

/// What a listing's silence about a machine means.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Standing {
    /// The machine is not there.
    Believed,
    /// Nothing, except for nodes whose absence is expected.
    Doubtful(Doubt),
}

/// The nodes that say something about a listing: those of ours that stay.
fn witnesses(nodes: &[Suspect]) -> impl Iterator<Item = (&Suspect, &ProviderId)> {
    nodes.iter().filter(|node| !node.deleting).filter_map(|node| node.id().map(|id| (node, id)))
}

/// Whether there is any node whose machine a listing of the right account should show.
#[must_use]
pub fn has_witnesses(nodes: &[Suspect]) -> bool {
    witnesses(nodes).any(|(node, _)| !node.is_expected_to_be_gone())
}

/// The doubt about a listing that shows none of the machines that it should show.
#[must_use]
pub fn shows_none(listing: &Listing<Instance>, nodes: &[Suspect]) -> Option<Doubt> {
    let listed: BTreeSet<_> = listing.items.iter().map(|machine| &machine.id).collect();
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
pub fn standing(
    listing: &Listing<Instance>,
    nodes: &[Suspect],
    cap: Cap,
    recorded_is_visible: bool,
) -> Standing {
    let listed: BTreeSet<_> = listing.items.iter().map(|machine| &machine.id).collect();
    let lacks = |(node, id): &(&Suspect, &ProviderId)| {
        node.ready && !node.is_expected_to_be_gone() && !listed.contains(id)
    };
    let lacking = witnesses(nodes).filter(lacks).count();
    let ours = witnesses(nodes).count();
    let allowed = cap.allowed(ours).min(Cap::LAW.allowed(ours));
    if recorded_is_visible {
        Standing::Believed
    } else if let Some(doubt) = shows_none(listing, nodes) {
        Standing::Doubtful(doubt)
    } else if lacking > allowed {
        Standing::Doubtful(Doubt::LacksReady { lacking, allowed })
    } else {
        Standing::Believed
    }
}

impl Standing {
    /// What the listing says about one node's machine. A short listing denies nothing, whatever its standing.
    pub fn ask(&self, listing: &Listing<Instance>, suspect: &Suspect) -> Lookup<InstanceState> {
        let machine = match suspect.id() {
            Some(id) => listing.find(|machine| machine.id == *id),
            None => by_name(listing, &suspect.name),
        };
        match (machine.map(|machine| machine.state), self) {
            (Lookup::Absent, Self::Doubtful(doubt)) if !suspect.is_expected_to_be_gone() => {
                Lookup::Unknown(Error::temporary(doubt.to_string()))
            }
            (said, _) => said,
        }
    }

    /// The event that tells a person about the doubt and the way out, once for each node that it holds up.
    #[must_use]
    pub fn warn(
        &self,
        listing: &Listing<Instance>,
        suspect: &Suspect,
        memory: &mut Memory,
    ) -> Option<NodeEvent> {
        let Self::Doubtful(doubt) = self else { return None };
        let absent = suspect.id().is_some_and(|id| listing.find(|machine| machine.id == *id).is_absent());
        let held_up = absent && !suspect.ready && !suspect.deleting && !suspect.is_expected_to_be_gone();
        (held_up && memory.tell(suspect, Warning::Doubtful))
            .then(|| event::listing_doubtful(suspect, doubt, MACHINE_IS_GONE))
    }
}

/// A name that several machines share leads to none of them.
fn by_name<'a>(listing: &'a Listing<Instance>, name: &str) -> Lookup<&'a Instance> {
    match listing.items.iter().filter(|machine| machine.name == name).count() {
        0 | 1 => listing.find(|machine| machine.name == name),
        several => {
            Lookup::Unknown(Error::new(Category::Conflict, format!("{several} machines are called {name:?}")))
        }
    }
}
