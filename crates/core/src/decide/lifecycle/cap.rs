//! How fast nodes may go (law 2).

use std::{fmt, str::FromStr, time::Duration};

use super::{
    event::{self, NodeEvent},
    facts::NodeFacts,
    verdict::{NodeHistory, Warning},
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

/// How long after we stopped waiting for it the API server may still carry out a request: its `--request-timeout`, as it
/// is unless somebody sets it.
const STRAGGLES: Duration = Duration::from_secs(60);

/// Whether a node that may be deleted is deleted now.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DeletionDecision {
    /// Now, with its UID and the version just read as preconditions; publish the event first. Ask [`Deletions::send`]
    /// just before the call, and report the answer to [`Deletions::answered`].
    Delete(NodeEvent),
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

/// A deletion that counts.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Counted {
    /// The latest time at which the API server may have carried it out, or may yet.
    at: Tick,
    /// The node, where it is known.
    uid: String,
    /// It was sent, and there is no answer yet.
    under_way: bool,
    /// It was sent before, and nobody knows what came of that.
    in_doubt: bool,
    /// The node has left the cluster since.
    gone: bool,
}

impl Counted {
    const fn new(at: Tick, uid: String) -> Self {
        Self { at, uid, under_way: false, in_doubt: false, gone: false }
    }

    const fn may_have_worked(&self) -> bool {
        self.under_way || self.in_doubt
    }
}

/// The deletions within the window, by the times at which the API server carried them out. What is under way, and what
/// may have worked, keeps its place.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Deletions {
    /// Ascending by time.
    counted: Vec<Counted>,
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

    /// Counts a deletion as if it had been carried out at `at`.
    #[cfg(test)]
    pub(super) fn note(&mut self, at: Tick, cap: Cap) {
        self.forget_before(at, cap);
        self.count(Counted::new(at, String::new()));
    }

    fn forget_before(&mut self, now: Tick, cap: Cap) {
        self.counted.retain(|counted| counted.at + cap.window > now);
    }

    fn count(&mut self, new: Counted) {
        let place = self.counted.partition_point(|other| other.at <= new.at);
        self.counted.insert(place, new);
    }

    /// Takes out what counts for this node, to be put back with another time.
    fn take(&mut self, uid: &str) -> Option<Counted> {
        let place = self.counted.iter().position(|counted| counted.uid == uid)?;
        Some(self.counted.remove(place))
    }

    /// How many deletions count against the cap now.
    #[must_use]
    pub fn counted(&self, cap: Cap, now: Tick) -> usize {
        self.counted.iter().filter(|counted| counted.at + cap.window > now).count()
    }

    /// Decides whether a node that was judged [`Verdict::Delete`](super::Verdict::Delete) goes now; if so it is
    /// counted, unless the autoscaler is removing it, and once only, however often it has to be tried. `nodes` is the number of this cloud's nodes.
    pub fn decision(
        &mut self,
        facts: &NodeFacts,
        history: &mut NodeHistory,
        cap: Cap,
        nodes: usize,
        now: Tick,
    ) -> DeletionDecision {
        self.forget_before(now, cap);
        let tried = self.counted.iter().any(|counted| counted.uid == facts.uid);
        let free = facts.autoscaler_removes || tried;
        let all = cap.allowed(nodes);
        let beginning = self.known_from.map(|from| from + cap.window).filter(|end| *end > now);
        let allowed = if beginning.is_some() { all.min(1) } else { all };
        let taken = self.counted.len();
        if taken >= allowed && !free {
            // The deletion that must leave the window before another may join.
            let leaves =
                |allowed| self.counted.get(taken.checked_sub(allowed)?).map(|other| other.at + cap.window);
            let until = match beginning {
                Some(end) if allowed < all => leaves(all).map_or(Some(end), |at| Some(at.max(end))),
                _ => leaves(allowed),
            };
            history.hold(facts, until);
            let event = history.tell(facts, Warning::Held).then(|| event::deletion_held(facts, cap, allowed));
            return DeletionDecision::Wait { until, event };
        }
        if !free {
            self.count(Counted::new(now, facts.uid.clone()));
        }
        DeletionDecision::Delete(event::deleting_node(facts))
    }

    /// Asks whether a deletion that was decided may be sent now. It may not if it had to wait for so long that it left the
    /// window and another may have taken its place: then it is to be judged anew. From here on it counts for as long as
    /// the API server may carry it out.
    #[must_use]
    pub fn send(&mut self, facts: &NodeFacts, cap: Cap, now: Tick) -> bool {
        self.forget_before(now, cap);
        match self.take(&facts.uid) {
            Some(counted) => {
                let in_doubt = counted.may_have_worked();
                self.count(Counted { at: now + STRAGGLES, under_way: true, in_doubt, ..counted });
                true
            }
            None => facts.autoscaler_removes,
        }
    }

    /// Takes the answer to a deletion. What certainly deleted nothing is not counted; what may have is, and so is what was
    /// tried before without an answer.
    pub fn answered(&mut self, facts: &NodeFacts, answer: Result<(), &Error>, now: Tick) -> Answer {
        let counts = match answer {
            // It is gone by now, perhaps because of an earlier try. If a backup brings it back, it is another deletion.
            Ok(()) => Some((now, false)),
            Err(why) => {
                let may_have_worked = matches!(why.category(), Category::Temporary | Category::Cancelled);
                may_have_worked.then_some((now + STRAGGLES, true))
            }
        };
        if let Some(counted) = self.take(&facts.uid) {
            let counted = Counted { under_way: false, ..counted };
            match counts {
                Some((at, true)) if !counted.gone => self.count(Counted { at, in_doubt: true, ..counted }),
                Some((at, _)) => self.count(Counted::new(at, String::new())),
                None if counted.in_doubt => self.count(counted),
                None => {}
            }
        }
        let Err(why) = answer else { return Answer::Gone };
        match why.category() {
            Category::NotFound => Answer::Gone,
            Category::Conflict => Answer::Changed,
            _ => Answer::Failed(event::deleting_node_failed(facts, why)),
        }
    }

    /// A node has left the cluster. A deletion that was sent for it is settled: should a backup bring the node back, it is
    /// another deletion. One that was not sent does not count.
    pub fn gone(&mut self, uid: &str) {
        match self.take(uid) {
            Some(counted) if counted.under_way => self.count(Counted { gone: true, ..counted }),
            Some(counted) if counted.in_doubt => self.count(Counted::new(counted.at, String::new())),
            _ => {}
        }
    }

    /// The deletion was not even sent: it does not count, unless an earlier try may have worked.
    pub fn called_off(&mut self, facts: &NodeFacts) {
        self.counted.retain(|counted| counted.uid != facts.uid || counted.may_have_worked());
    }

    /// What was sent certainly deleted nothing, and is tried again at once: it keeps its place for that.
    pub fn again(&mut self, facts: &NodeFacts) {
        if let Some(counted) = self.counted.iter_mut().find(|counted| counted.uid == facts.uid) {
            counted.under_way = false;
        }
    }

    /// A replica leads again that led before. It remembers its own deletions, and does not know what others did meanwhile.
    /// What it had decided and not sent ended with its term.
    pub fn resume(&mut self, now: Tick) {
        self.known_from = Some(now);
        self.counted.retain(|counted| counted.uid.is_empty() || counted.may_have_worked());
    }
}
