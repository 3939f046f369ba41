//! The verdict on one node, in the light of the newest round of questions (law 2).

use std::time::Duration;

use super::facts::{NodeFacts, Tie};
use crate::{error::Error, instance::InstanceState, lookup::Lookup, time::Tick};

/// How long a node has not been Ready before it is asked whether its instance runs.
const NOT_READY: Duration = Duration::from_secs(60);

/// How much time the cloud gets before its word ends a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Timing {
    /// How long a node that is new to us is safe whatever the cloud says: a new instance may not be listed yet.
    pub start_up_grace: Duration,
    /// Time between the two confirmations. Long enough for an eventually consistent listing to catch up, short enough
    /// that a dead instance is gone from the cluster within a minute.
    pub confirm_after: Duration,
}

impl Timing {
    /// What law 2 asks for in production.
    pub const LAW: Self =
        Self { start_up_grace: Duration::from_secs(60), confirm_after: Duration::from_secs(10) };
}

/// What one round of questions about a node's instance brought back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Evidence {
    /// At least one source showed the instance, in this state.
    Seen(InstanceState),
    /// A complete, believed listing lacked it *and* the lookup by id denied it. For a node without an id there is
    /// the listing only.
    Missing,
    /// Anything else: an error, a short page, one source only.
    Unclear,
}

impl From<&Lookup<InstanceState>> for Evidence {
    fn from(gathered: &Lookup<InstanceState>) -> Self {
        match gathered {
            Lookup::Present(state) => Self::Seen(*state),
            Lookup::Absent => Self::Missing,
            Lookup::Unknown(_) => Self::Unclear,
        }
    }
}

/// A round of questions: the listing, and the lookup by id where it was needed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Round {
    /// What came of it.
    pub evidence: Evidence,
    /// When the older of its questions was asked. A listing from a cache began when the cache was filled.
    pub begun: Tick,
    /// When the last of its answers was there.
    pub ended: Tick,
}

/// A warning that is given once and not again until something else was said.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Warning {
    /// The listing is in doubt.
    Doubtful,
    /// The cap holds the deletion back.
    Held,
    /// No instance of the node's name, and no id.
    NotFound,
}

/// What is remembered about a node between rounds. It is bound to the UID: a new node of the same name starts
/// without it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NodeHistory {
    uid: String,
    missing_since: Option<Tick>,
    /// Since when rounds have found it not Ready.
    not_ready_since: Option<Tick>,
    /// When it was last asked whether its instance runs.
    asked_whether_it_runs: Option<Tick>,
    /// The cap does not let it go before this time.
    held_until: Option<Tick>,
    told: Option<Warning>,
}

impl NodeHistory {
    /// Begins anew if this is another node of the same name.
    fn bind(&mut self, facts: &NodeFacts) {
        if self.uid != facts.uid {
            *self = Self { uid: facts.uid.clone(), ..Self::default() };
        }
    }

    /// The doubts are gone, and what was said about them may be said again.
    fn forget(&mut self) {
        (self.missing_since, self.held_until, self.told) = (None, None, None);
    }

    /// It is asked now whether the node's instance runs.
    pub fn asks_whether_it_runs(&mut self, facts: &NodeFacts, now: Tick) {
        self.bind(facts);
        self.asked_whether_it_runs = Some(now);
    }

    /// The cap does not let the node go before `until`; never if there is none.
    pub(super) fn hold(&mut self, facts: &NodeFacts, until: Option<Tick>) {
        self.bind(facts);
        self.held_until = Some(until.unwrap_or(Tick(Duration::MAX)));
    }

    /// True if this warning was not the last one given about this node; it is now.
    pub fn tell(&mut self, facts: &NodeFacts, warning: Warning) -> bool {
        self.bind(facts);
        self.told.replace(warning) != Some(warning)
    }
}

/// What to do with the node now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// Leave it as it is.
    Keep,
    /// Its instance is stopped: add the shutdown taint.
    AddShutdownTaint,
    /// It is Ready again: remove the shutdown taint.
    RemoveShutdownTaint,
    /// Nothing was learnt; nothing changes, earlier doubts included. The regular schedule asks again.
    Unclear,
    /// Ask again at this time; until then nothing changes.
    AskAgain(Tick),
    /// Say that no instance of its name exists; it stays.
    ReportNotFound,
    /// Its instance is gone. Whether it goes now is for [`Deletions`](super::Deletions) to say.
    Delete,
}

/// The verdict that needs no cloud; `None` if the cloud must be asked.
#[must_use]
pub const fn at_once(facts: &NodeFacts) -> Option<Verdict> {
    if facts.deleting || matches!(facts.tie, Tie::Foreign) {
        Some(Verdict::Keep)
    } else if !facts.ready {
        None
    } else if facts.marked_shut_down {
        Some(Verdict::RemoveShutdownTaint)
    } else {
        Some(Verdict::Keep)
    }
}

/// Puts the answers of a round together: an instance that anybody saw is there, one that everybody who can know
/// denied is not.
pub fn gather(
    facts: &NodeFacts,
    listed: Lookup<InstanceState>,
    by_id: Option<Lookup<InstanceState>>,
) -> Lookup<InstanceState> {
    match (listed, by_id) {
        (Lookup::Present(state), _) | (_, Some(Lookup::Present(state))) => Lookup::Present(state),
        (Lookup::Unknown(why), _) | (_, Some(Lookup::Unknown(why))) => Lookup::Unknown(why),
        (Lookup::Absent, Some(Lookup::Absent)) => Lookup::Absent,
        (Lookup::Absent, None) if facts.id().is_none() => Lookup::Absent,
        (Lookup::Absent, None) => {
            Lookup::Unknown(Error::temporary("a listing lacks the instance; the source was not asked"))
        }
    }
}

impl Timing {
    /// From when on the source is worth asking about this one instance, after what the listing `listed` about it.
    ///
    /// Only where the answer could end in a deletion, so that calls do not grow with nodes (law 7): not about an instance that
    /// is listed, and not before a confirmation counts or while the cap holds the node. Until then the listing's silence
    /// alone is [`Evidence::Unclear`].
    #[must_use]
    pub fn lookup_due(
        self,
        facts: &NodeFacts,
        history: &NodeHistory,
        listed: &Lookup<InstanceState>,
    ) -> Option<Tick> {
        let worth =
            at_once(facts).is_none() && facts.id().is_some() && !facts.uninitialised && listed.is_absent();
        let known = (history.uid == facts.uid).then_some(history);
        let confirms =
            known.and_then(|history| history.missing_since).map(|since| since + self.confirm_after);
        let held = known.and_then(|history| history.held_until).filter(|_| !facts.autoscaler_removes);
        worth.then(|| [confirms, held].into_iter().flatten().fold(self.grace_ends(facts), Tick::max))
    }

    /// From when on it is worth asking whether an instance that is `listed` as running really runs, where that may be asked
    /// `every` so often.
    ///
    /// A node that is not Ready for a moment is no reason, and one that is marked already needs no second mark.
    #[must_use]
    pub fn power_check_due(
        self,
        facts: &NodeFacts,
        history: &NodeHistory,
        listed: &Lookup<InstanceState>,
        every: Duration,
    ) -> Option<Tick> {
        let worth = at_once(facts).is_none()
            && facts.id().is_some()
            && !facts.uninitialised
            && !facts.marked_shut_down
            && *listed == Lookup::Present(InstanceState::Running);
        let history = Some(history).filter(|history| worth && history.uid == facts.uid)?;
        let again = history.asked_whether_it_runs.map_or(Tick::ZERO, |asked| asked + every);
        Some((history.not_ready_since? + NOT_READY).max(again))
    }

    /// Judges one node by the newest round.
    ///
    /// `Unclear` keeps an earlier doubt alive without feeding it: an outage neither deletes a node nor restarts the
    /// clock of one that is really gone. Rounds begun while the node was new do not count. The second confirmation must
    /// have *begun* [`confirm_after`](Self::confirm_after) after the first ended, so that no answer is counted twice.
    pub fn judge(self, facts: &NodeFacts, history: &mut NodeHistory, round: &Round) -> Verdict {
        history.bind(facts);
        match at_once(facts) {
            Some(_) => history.not_ready_since = None,
            None => _ = history.not_ready_since.get_or_insert(round.begun),
        }
        let verdict = match (at_once(facts), round.evidence) {
            (Some(verdict), _) => verdict,
            (None, Evidence::Unclear) => return Verdict::Unclear,
            (None, Evidence::Missing) if !facts.uninitialised => {
                let not_before = self.grace_ends(facts);
                if round.begun < not_before {
                    return Verdict::AskAgain(not_before);
                }
                let confirm_at = *history.missing_since.get_or_insert(round.ended) + self.confirm_after;
                return if round.begun < confirm_at {
                    Verdict::AskAgain(confirm_at)
                } else if facts.id().is_some() {
                    Verdict::Delete
                } else if history.tell(facts, Warning::NotFound) {
                    Verdict::ReportNotFound
                } else {
                    Verdict::Keep
                };
            }
            (None, Evidence::Seen(InstanceState::Stopped)) if !facts.marked_shut_down => {
                Verdict::AddShutdownTaint
            }
            (None, Evidence::Seen(_) | Evidence::Missing) => Verdict::Keep,
        };
        history.forget();
        verdict
    }

    fn grace_ends(self, facts: &NodeFacts) -> Tick {
        facts.first_seen + self.start_up_grace
    }
}
