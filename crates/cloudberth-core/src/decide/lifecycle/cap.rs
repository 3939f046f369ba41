//! How fast nodes may go (law 2).

use std::{fmt, str::FromStr, time::Duration};

use super::{
    event::{self, NodeEvent},
    suspect::Suspect,
    verdict::{Memory, Warning},
};
use crate::{
    error::{Category, Error, Result},
    time::Tick,
};

/// How many nodes may go within the window: the value of `--max-node-deletions`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Share {
    /// The larger of one and this part of the cluster, rounded down.
    Percent(u8),
    /// This many; with none, no node is ever deleted.
    Count(u32),
}

impl FromStr for Share {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        let share = match text.strip_suffix('%') {
            Some(percent) => percent.parse().ok().filter(|p| (1..=100).contains(p)).map(Self::Percent),
            None => text.parse().ok().map(Self::Count),
        };
        share.ok_or_else(|| {
            Error::user_input(format!(
                "--max-node-deletions is {text:?}; it must be a number of nodes, such as 3, or a share of the cluster \
                 from 1% to 100%"
            ))
        })
    }
}

impl fmt::Display for Share {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Percent(percent) => write!(f, "{percent}%"),
            Self::Count(count) => write!(f, "{count}"),
        }
    }
}

/// A rate of deletions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cap {
    /// How many.
    pub share: Share,
    /// Within how long.
    pub window: Duration,
}

impl Cap {
    /// The law's own: the larger of one and 10 % of the cluster within 10 minutes.
    pub const LAW: Self = Self { share: Share::Percent(10), window: Duration::from_secs(600) };

    /// How many of `nodes` may go within the window. Count only this cloud's nodes: others must not raise it.
    #[must_use]
    pub fn allowed(self, nodes: usize) -> usize {
        match self.share {
            Share::Percent(percent) => (nodes.saturating_mul(percent.into()) / 100).max(1),
            Share::Count(count) => count.try_into().unwrap_or(usize::MAX),
        }
    }
}

/// Whether a node that may be deleted is deleted now.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Sentence {
    /// Now, with its UID and the version just read as preconditions; say so first. Report the answer to [`Deletions::answered`].
    Delete {
        /// What the deletion must insist on.
        uid: String,
        /// What is said just before.
        event: NodeEvent,
    },
    /// Not before this time; never if there is none.
    Wait {
        /// When the cap lets the next one go.
        until: Option<Tick>,
        /// What is said about it, the first time.
        event: Option<NodeEvent>,
    },
}

/// What became of a deletion.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Answer {
    /// The node is gone, by our hand or somebody else's.
    Gone,
    /// It is not as it was when it was read: it changed, or another node of the same name has taken its place. Nothing
    /// was deleted; the next round judges anew.
    Changed,
    /// It is tried again after the next round; the event says why, unless we stopped ourselves.
    Failed(Option<NodeEvent>),
}

/// The deletions within the window.
///
/// A replica that takes over can [`note`](Self::note) the deletions that it saw happen.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Deletions {
    /// When, ascending, and the UID of the node where it is known.
    counted: Vec<(Tick, String)>,
    /// What went before this time is not known.
    known_from: Option<Tick>,
}

impl Deletions {
    /// Those of a replica that begins at `now` and does not know what went before. Within its first window it lets one
    /// node go, so that a program that crashes again and again cannot empty a cluster.
    #[must_use]
    pub const fn since(now: Tick) -> Self {
        Self { counted: Vec::new(), known_from: Some(now) }
    }

    /// Remembers a deletion, and forgets those that left the window before it.
    pub fn note(&mut self, at: Tick, cap: Cap) {
        self.count(at, "", cap);
    }

    fn count(&mut self, at: Tick, uid: &str, cap: Cap) {
        self.counted.retain(|(other, _)| *other + cap.window > at);
        let place = self.counted.partition_point(|(other, _)| *other <= at);
        self.counted.insert(place, (at, uid.to_owned()));
    }

    /// How many deletions count against the cap now.
    #[must_use]
    pub fn counted(&self, cap: Cap, now: Tick) -> usize {
        self.counted.iter().filter(|(at, _)| *at + cap.window > now).count()
    }

    /// Decides whether a node that was judged [`Verdict::Delete`](super::Verdict::Delete) goes now; if so it is
    /// counted, unless the autoscaler is removing it, and once only, however often it has to be tried. `nodes` is the number of this cloud's nodes.
    pub fn sentence(
        &mut self,
        suspect: &Suspect,
        memory: &mut Memory,
        cap: Cap,
        nodes: usize,
        now: Tick,
    ) -> Sentence {
        self.counted.retain(|(at, _)| *at + cap.window > now);
        let tried = self.counted.iter().any(|(_, uid)| *uid == suspect.uid);
        let free = suspect.autoscaler_removes || tried;
        let all = cap.allowed(nodes);
        let beginning = self.known_from.map(|from| from + cap.window).filter(|end| *end > now);
        let allowed = if beginning.is_some() { all.min(1) } else { all };
        let taken = self.counted.len();
        if taken >= allowed && !free {
            // The deletion that must leave the window before another may join.
            let leaves =
                |allowed| self.counted.get(taken.checked_sub(allowed)?).map(|(at, _)| *at + cap.window);
            let until = match beginning {
                Some(end) if allowed < all => leaves(all).map_or(Some(end), |at| Some(at.max(end))),
                _ => leaves(allowed),
            };
            memory.hold(suspect, until);
            let event =
                memory.tell(suspect, Warning::Held).then(|| event::deletion_held(suspect, cap, allowed));
            return Sentence::Wait { until, event };
        }
        if !free {
            self.count(now, &suspect.uid, cap);
        }
        Sentence::Delete { uid: suspect.uid.clone(), event: event::deleting_node(suspect) }
    }

    /// Takes the answer to a deletion. What certainly deleted nothing is not counted; what may have is.
    pub fn answered(&mut self, suspect: &Suspect, answer: Result<(), &Error>) -> Answer {
        let Err(why) = answer else { return Answer::Gone };
        if !matches!(why.category(), Category::Temporary | Category::Cancelled) {
            self.called_off(suspect);
        }
        match why.category() {
            Category::NotFound => Answer::Gone,
            Category::Conflict => Answer::Changed,
            _ => Answer::Failed(event::deleting_node_failed(suspect, why)),
        }
    }

    /// The deletion was not even sent: it does not count.
    pub fn called_off(&mut self, suspect: &Suspect) {
        self.counted.retain(|(_, uid)| *uid != suspect.uid);
    }
}
