//! The life of a Service with a load balancer, as two questions.
//!
//! ```text
//!            open                       the loop's turn                  close
//!   ┌─► Prepare (finalizer, intent) ──► Goal::Present, Permit::Create ──► TurnEnd, Wait, Retry
//!   ├─► Ensure ───────────────────────► Goal::Present, Permit::NoCreate ─► …, RecordIntent, Hold
//!   ├─► Cleanup, CleanupIfProven ─────► Goal::Gone ──────────────────────► Release, Hold, Wait, Retry
//!   └─► LeaveAlone, Nothing, Doubt, Orphan
//! ```
//!
//! A pass opens on the newest version of the Service, gives the loop one turn, and closes. Nothing that matters is
//! remembered from pass to pass: it stands on the Service, so a pass can end anywhere and the next one goes on (law 6).
//! Only how long an intent has been in sight is remembered, and whoever does not remember it waits longer.
//!
//! - The finalizer comes before the first change in a cloud, and never onto a Service that is being deleted.
//! - It goes only after the loop said that the goal "gone" is reached, and while no intent pends.
//! - A creation needs an intent that was recorded for it. While an older one pends and nothing is found, nothing is
//!   created and nothing is let go.
//! - An unknown outcome writes nothing and keeps everything.

use std::time::Duration;

use crate::{
    decide::service::{
        assignments::Assignment,
        need::{has_finalizer, needs_cleanup, wants},
        trigger::traces,
    },
    error::Error,
    lb::{Creation, Goal, Intent, LockKey, LockKind, Permit, Turn, TurnEnd},
    view::ServiceView,
};

/// How soon another pass follows one that was overtaken by an edit.
const AGAIN: Duration = Duration::from_secs(1);

/// How a pass begins.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Opening<'a> {
    /// It is nobody's of ours: nothing is read, written or said.
    LeaveAlone,
    /// It is ours, and nothing is to be done.
    Nothing,
    /// It cannot be told who it belongs to: say so, do nothing.
    Doubt(Error),
    /// Nothing holds it, and a load balancer may be left: say so, do nothing.
    Orphan {
        /// Where it may be left.
        provider: &'a str,
    },
    /// Write [`patch::prepare`](super::patch::prepare), then have a turn for [`Goal::Present`].
    Prepare {
        /// Who serves it.
        provider: &'a str,
        /// Whether an intent is recorded in the same write. If it is, the turn may create.
        intent: bool,
    },
    /// Have a turn for [`Goal::Present`] with [`Permit::NoCreate`].
    Ensure {
        /// Who serves it.
        provider: &'a str,
    },
    /// Have a turn for [`Goal::Gone`] with [`Permit::NoCreate`].
    Cleanup {
        /// Who holds it.
        provider: &'a str,
    },
    /// The same, but only if the cloud [proves](crate::decide::service::ownership::Ownership::Proven) that the load
    /// balancer is this Service's. If not, nothing is written or said.
    CleanupIfProven {
        /// Who may hold it.
        provider: &'a str,
    },
}

impl<'a> Opening<'a> {
    /// The turn that follows: with whom, to which end, and whether it may create. `None` where none follows.
    #[must_use]
    pub fn turn(&self) -> Option<(&'a str, Goal, Permit)> {
        match *self {
            Self::Prepare { provider, intent: true } => Some((provider, Goal::Present, Permit::Create)),
            Self::Prepare { provider, intent: false } | Self::Ensure { provider } => {
                Some((provider, Goal::Present, Permit::NoCreate))
            }
            Self::Cleanup { provider } | Self::CleanupIfProven { provider } => {
                Some((provider, Goal::Gone, Permit::NoCreate))
            }
            Self::LeaveAlone | Self::Nothing | Self::Doubt(_) | Self::Orphan { .. } => None,
        }
    }

    /// The same without an intent, for a load balancer whose name a user gave: it has to be looked for before anything
    /// says that we are about to create it. Otherwise the intent would speak for one that somebody else has built.
    #[must_use]
    pub fn look_first(self) -> Self {
        match self {
            Self::Prepare { provider, .. } => Self::Prepare { provider, intent: false },
            other => other,
        }
    }
}

/// Begins a pass on the newest version of a Service.
///
/// `assignment` is what this version is to us, and `intent` the judgement of [`Intents`](crate::lb::Intents) on it, by
/// the settle time of the provider in question.
#[must_use]
pub fn open<'a>(service: &ServiceView, assignment: &Assignment<'a>, intent: Intent) -> Opening<'a> {
    if let Some(why) = &assignment.doubt {
        return Opening::Doubt(why.clone());
    }
    let Some(holder) = assignment.holder else { return Opening::LeaveAlone };
    let wanted = assignment.server.filter(|_| wants(service, assignment) && !service.deleting);
    match wanted {
        // A Service that moves is cleaned up where it was even if somebody took the finalizer away meanwhile.
        Some(server) if server != holder => Opening::Cleanup { provider: holder },
        Some(server) if has_finalizer(service) => Opening::Ensure { provider: server },
        // An intent that still pends must not be renewed: it is all that is known about a creation.
        Some(server) => Opening::Prepare { provider: server, intent: intent == Intent::Free },
        None if needs_cleanup(service, assignment) && assignment.unproven => {
            Opening::CleanupIfProven { provider: holder }
        }
        None if needs_cleanup(service, assignment) => Opening::Cleanup { provider: holder },
        None if !has_finalizer(service) && traces(service, assignment).is_some() => {
            Opening::Orphan { provider: holder }
        }
        None => Opening::Nothing,
    }
}

/// Whether a Service is new: nothing holds it, and nothing on it tells of a load balancer. If it asks for what cannot be
/// done, there is nothing to look for and nothing to clean up later.
#[must_use]
pub fn is_new(
    service: &ServiceView,
    assignment: &Assignment<'_>,
    opening: &Opening<'_>,
    keys: &[LockKey],
) -> bool {
    let has_id = keys.iter().any(|key| key.kind == LockKind::Id);
    matches!(opening, Opening::Prepare { .. }) && !has_id && traces(service, assignment).is_none()
}

/// How a pass ends.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Closing {
    /// Nothing is left to do until something changes.
    TurnEnd {
        /// Whether a recorded intent ends; see [`patch::record`](super::patch::record).
        clear_intent: bool,
    },
    /// The cloud is busy: another pass after `poll`.
    Wait {
        /// When to look again.
        poll: Duration,
        /// Whether a recorded intent ends.
        clear_intent: bool,
    },
    /// Something has to be created: write [`patch::prepare`](super::patch::prepare) with an intent, then have another
    /// turn with [`Permit::Create`].
    RecordIntent,
    /// An earlier creation may still show up: another pass after `poll`, and nothing until then.
    Hold {
        /// When to look again.
        poll: Duration,
    },
    /// The load balancer is gone: write [`patch::release`](super::patch::release).
    Release,
    /// It failed: another pass as the error's category says.
    Retry {
        /// What went wrong.
        error: Error,
        /// Whether a recorded intent ends.
        clear_intent: bool,
    },
}

/// Ends a pass after its turn. `intent` is the judgement on the newest version of the Service.
#[must_use]
pub fn close(goal: Goal, permit: Permit, turn: &Turn, intent: Intent) -> Closing {
    let clear_intent = goal == Goal::Present && intent_is_over(permit, turn, intent);
    match (&turn.end, goal) {
        (TurnEnd::Unknown(error) | TurnEnd::Failed(error), _) => {
            Closing::Retry { error: error.clone(), clear_intent }
        }
        (TurnEnd::Wait { poll, .. }, _) => Closing::Wait { poll: *poll, clear_intent },
        (TurnEnd::Converged | TurnEnd::Refused, Goal::Present) => Closing::TurnEnd { clear_intent },
        (TurnEnd::NeedsIntent, Goal::Present) if permit == Permit::NoCreate => {
            unless_pending(intent, Closing::RecordIntent)
        }
        // The Service was edited since, and asks for another name than the one that was recorded.
        (TurnEnd::NeedsIntent, Goal::Present) => Closing::Wait { poll: AGAIN, clear_intent },
        (TurnEnd::Converged, Goal::Gone) => unless_pending(intent, Closing::Release),
        (TurnEnd::NeedsIntent | TurnEnd::Refused, _) => {
            let error = Error::permanent("internal error: the plan asks for a creation out of turn");
            Closing::Retry { error, clear_intent: false }
        }
    }
}

/// What was going to be done, or the wait for an older intent.
fn unless_pending(intent: Intent, then: Closing) -> Closing {
    match intent {
        Intent::Free => then,
        Intent::Pending(poll) => Closing::Hold { poll },
    }
}

/// Whether a turn towards presence proved that no creation is under way any more.
///
/// With [`Permit::Create`] the intent is the turn's own, so "nothing was created" ends it. Without, it is an older
/// one, and only the sight of what it was for ends it, or a look that found nothing after its time was over. A failure
/// after a creation may be that of recording the id.
fn intent_is_over(permit: Permit, turn: &Turn, intent: Intent) -> bool {
    let nothing_sent = permit == Permit::Create && turn.creation == Creation::Nothing;
    match turn.end {
        _ if turn.creation == Creation::Unsure => false,
        TurnEnd::Converged => true,
        TurnEnd::Wait { .. } => nothing_sent || turn.creation == Creation::Known,
        // Something would have to be created, so nothing was found.
        TurnEnd::Refused => nothing_sent || intent == Intent::Free,
        TurnEnd::Failed(_) | TurnEnd::NeedsIntent => nothing_sent,
        TurnEnd::Unknown(_) => false,
    }
}

#[cfg(test)]
mod crash_tests;
#[cfg(test)]
mod tests;
